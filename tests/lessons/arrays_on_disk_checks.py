"""The cells to copy of the lesson on arrays on disk, on other arrays.

Chunks that do not divide, other dtypes and ranks, missing values, too few steps.
"""

import io
import itertools
import math
import time

import numpy as np
from copied_cells import refusal
from hypothesis import strategies as st
from hypothesis_cases import tried

LIBRARIES = ("numpy", "tensorstore", "zarr", "h5py", "h5py without chunks")


def on_disk(array, chunks, library):
    """The array as this library has it. In memory, so that it is quick."""
    if library == "tensorstore":
        import tensorstore as ts

        spec = {"driver": "zarr3", "kvstore": "memory://"}
        layout = ts.ChunkLayout(chunk_shape=chunks)
        made = {"shape": array.shape, "dtype": array.dtype, "chunk_layout": layout}
        stored = ts.open(spec, create=True, **made).result()
        stored[...] = array
        return stored
    if library == "zarr":
        import zarr

        return zarr.create_array({}, data=array, chunks=chunks)
    if library.startswith("h5py"):
        import h5py

        file = h5py.File(io.BytesIO(), "w")
        return file.create_dataset("x", data=array, chunks=chunks if library == "h5py" else None)
    return array


def numbered(shape, dtype="int32"):
    """An array in which each value is its own place."""
    return np.arange(math.prod(shape)).reshape(shape).astype(dtype)


class Counted:
    """A NumPy array with chunks that notes what was read, and when."""

    def __init__(self, array, chunks):
        self.array, self.chunks, self.parts = array, chunks, []
        self.shape, self.dtype = array.shape, array.dtype

    def __getitem__(self, part):
        self.parts.append(part)
        return self.array[part]


@st.composite
def arrays(draw):
    """A shape of one to four axes, with sizes for windows, cells, blocks and chunks."""
    shape = draw(st.lists(st.integers(1, 12), min_size=1, max_size=4))
    each = [tuple(draw(st.integers(1, size)) for size in shape) for _ in range(4)]
    return tuple(shape), *each


@tried(
    2,
    sizes=arrays(),
    library=st.sampled_from(LIBRARIES),
    blocks=st.booleans(),
    batch_size=st.integers(1, 9),
    processes=st.integers(1, 3),
    mix=st.integers(1, 5),
    seed=st.integers(0, 99),
)
def check_windows(names, sizes, library, blocks, batch_size, processes, mix, seed) -> None:
    """An epoch has one window of each cell, on any number of processes."""
    shape, window, every, block, chunks = sizes
    array = numbered(shape)
    cuts = names["Cuts"](
        on_disk(array, chunks, library), window, every, block=block if blocks else None
    )
    rooms = [size - length + 1 for size, length in zip(shape, window, strict=True)]
    cells = [-(-room // size) for room, size in zip(rooms, every, strict=True)]
    assert cuts.count == math.prod(cells), "the windows are counted wrongly."
    steps = cuts.count // (batch_size * processes)
    if not steps:
        refusal("too few", lambda: names["Windows"](cuts, batch_size, processes=processes))
        return
    parts = [
        names["Windows"](cuts, batch_size, seed, mix, process, processes)
        for process in range(processes)
    ]
    seen = {0: [], 1: []}
    for part, epoch in itertools.product(parts, seen):
        assert part.steps == steps, "an epoch has another number of steps."
        for step in range(epoch * steps, (epoch + 1) * steps):
            batch = part[step]
            assert batch.shape == (batch_size, *window), "a batch has another shape."
            for found in batch:
                start = np.unravel_index(int(found.flat[0]), shape)
                where = tuple(slice(a, a + n) for a, n in zip(start, window, strict=True))
                assert np.array_equal(found, array[where]), "a window is none of the array."
                seen[epoch].append(tuple(a // n for a, n in zip(start, every, strict=True)))
    for found in seen.values():
        assert len(found) == len(set(found)) == steps * batch_size * processes, "a cell comes twice"
    lost = cuts.count - steps * batch_size * processes
    assert {part.left_out for part in parts} == {lost}, "left_out is another number."


def check_order(names) -> None:
    """The order follows from the seed and the epoch alone, whatever was read before."""
    Cuts, Windows = names["Cuts"], names["Windows"]
    array = numbered((400, 3))

    def made(seed=0):
        return Windows(Cuts(array, (2, 2), block=(20, 3)), 8, seed)

    one, steps = made(), made().steps
    there = [one[step] for step in range(2 * steps)]
    for step in (2 * steps - 1, 0, steps, 7):
        assert np.array_equal(made()[step], there[step]), "a resumed step is another one."
        assert np.array_equal(one[step], there[step]), "asked again, a step is another."
    firsts = [[batch[:, 0, 0] for batch in part] for part in (there[:steps], there[steps:])]
    first, second = (np.concatenate(part) // 3 for part in firsts)
    assert (first != second).mean() > 0.9, "each epoch has the same order."
    others = [made(1)[step] for step in range(steps)]
    assert any((a != b).any() for a, b in zip(others, there, strict=False)), "the seed is not used."
    assert abs(np.corrcoef(first, np.arange(len(first)))[0, 1]) < 0.6, "it is not shuffled."
    in_batch = [len(np.unique(part // 60)) for part in firsts[0]]
    assert np.mean(in_batch) > 2, "a batch has windows of one block."
    columns = Windows(Cuts(array, (2, 1), every=(1, 3)), 8)
    found = {int(value) % 3 for step in range(columns.steps) for value in columns[step][:, 0, 0]}
    assert found == {0, 1, 2}, "a window is always at the same place of its cell."


def check_reads(names) -> None:
    """Each block is read once, and those of two groups, or of three at a border, are held."""
    source = Counted(numbered((1_000, 4)), (10, 4))
    windows = names["Windows"](names["Cuts"](source, (3, 2), block=(20, 4)), 16, mix=3)
    held = []
    for step in range(windows.steps):
        windows[step]
        held.append(len(windows.held))
        if not step:  # of the first group, or of the two that a batch spans, and of the next one
            assert len(windows.held) >= 6, "the next group is not read ahead."
    read = [part[0].start for part in source.parts]
    assert len(set(read)) == 50, "a block is not read."
    assert len(read) <= 50 + 3, f"{len(read)} blocks are read of 50."  # 3 of the next epoch
    assert max(held) <= 9, f"{max(held)} blocks are held."
    assert max(part[0].stop - part[0].start for part in source.parts) <= 22, "it reads too much."
    chosen = Counted(numbered((1_000, 4)), (10, 4))
    block = names["Cuts"](chosen, (3, 4)).block
    assert block.tolist() == [40, 4], f"blocks of {block} for chunks of 10 and windows of 3."
    parts = []
    for process in range(3):
        source = Counted(numbered((1_000, 4)), (10, 4))
        cuts = names["Cuts"](source, (3, 4), block=(20, 4))
        own = names["Windows"](cuts, 16, mix=3, process=process, processes=3)
        for step in range(own.steps - 8):  # not yet of the next epoch
            own[step]
        parts.append({part[0].start for part in source.parts})
    assert max(map(len, parts)) <= 20, "a process reads what others do."


def check_dtypes(names) -> None:
    """Each dtype and byte order comes as JAX has it, or is refused in a sentence."""
    Cuts, Windows = names["Cuts"], names["Windows"]

    def batch(array, library="numpy"):
        source = on_disk(array, (3, 2), library)
        return Windows(Cuts(source, (2, 2), missing=None), 4)[0]

    kinds = {"u1": "uint8", ">i2": "int16", "<f8": "float32", ">f4": "float32", "i8": "int32"}
    kinds |= {"f2": "float16", "?": "bool", "c16": "complex64", ">u4": "uint32"}
    for kind, wanted in kinds.items():
        for library in LIBRARIES:
            if library == "tensorstore" and kind.startswith(">"):
                continue  # it has native arrays alone
            found = batch(np.ones((7, 2), kind), library)
            assert found.dtype == wanted and found.dtype.isnative, f"{kind}: {found.dtype}"
            assert (found == 1).all(), f"{kind}, {library}: other values."
    assert np.allclose(batch(np.full((7, 2), 0.1)), 0.1), "fractions are not rounded."
    for large in (np.full((7, 2), 2**40), np.full((7, 2), 2**24 + 1.0)):
        said = refusal("large numbers", lambda large=large: batch(large))
        assert "do not fit" in said, f"large numbers: {said}"
    for other in ("S3", "O", "M8[s]", "m8[s]"):
        said = refusal(other, lambda other=other: batch(np.zeros((7, 2), other)))
        assert "numbers" in said, f"{other}: {said}"


def check_missing(names) -> None:
    """A window with a missing value is refused with its place, or kept as it is."""
    Cuts, Windows = names["Cuts"], names["Windows"]

    def all_of(array, **options):
        windows = Windows(Cuts(array, (3, 2), **options), 2)
        return np.concatenate([windows[step] for step in range(windows.steps)])

    for array, mark in ((numbered((40, 4), "f4"), np.nan), (numbered((40, 4), "i2"), -9)):
        assert len(all_of(array, missing=mark)) == 76, "a window without a gap is refused."
        array[17, 3] = mark
        said = refusal("a missing value", lambda a=array, m=mark: all_of(a, missing=m))
        assert "missing" in said and any(f"[{n}, " in said for n in (15, 16, 17)), said
        known = [start for start in range(38) if start not in (15, 16, 17)]
        assert len(all_of(array, starts=known, missing=mark)) == 70, "windows are lost."
        masked = np.ma.masked_equal(np.where(np.isnan(array), -1, array), -1)
        said = refusal("a mask", lambda a=masked, m=mark: all_of(a, missing=m))
        assert "masked" in said and "missing=" in said, f"a mask: {said}"
        refusal("a mask to count", lambda a=masked, m=mark: names["missing_in"](a, m))
        kept = all_of(array, missing=None)
        lost = np.isnan(kept) if np.isnan(mark) else kept == mark
        assert len(kept) == 76 and lost.sum() == 3, "missing=None does not keep it."


@tried(4, steps=st.sets(st.integers(0, 37), min_size=2), every=st.integers(1, 5))
def check_starts(names, steps, every) -> None:
    """Windows begin at the given steps alone, one in each cell that has any."""
    cuts = names["Cuts"](numbered((40, 2)), (3, 2), (every, 1), starts=sorted(steps))
    windows = names["Windows"](cuts, 1)
    cells = {step // every for step in steps}
    assert windows.steps == len(cells), "a cell is lost."
    found = {int(windows[step][0, 0, 0]) // 2 for step in range(windows.steps)}
    assert found <= steps, "a window begins elsewhere."
    assert {start // every for start in found} == cells, "a cell comes twice."


def check_inputs(names) -> None:
    """What cannot work is refused in a sentence that names it."""
    Cuts, Windows, array = names["Cuts"], names["Windows"], numbered((9, 4))
    wrong = {
        "window": [(10, 4), (3,), (3, 4, 1), (0, 4), (2.0, 4), ()],
        "every": [(1,), (0, 1), (1, 1.5)],
        "block": [(4,), (0, 4)],
        "starts": [[7], [-1], [0.5], [True, False], []],
    }
    for name, values in wrong.items():
        for value in values:
            options = {"window": (3, 4)} | {name: value}
            said = refusal(f"{name}={value}", lambda o=options: Cuts(array, **o))
            assert name in said, f"{name}={value}: {said}"
    said = refusal("a step too few", lambda: Cuts(array[:4], (5, 4)))
    assert "(5, 4)" in said and "(4, 4)" in said, f"one time step too few: {said}"
    whole = Windows(Cuts(array[:5], (5, 4)), 1)
    assert whole.steps == 1 and np.array_equal(whole[3][0], array[:5]), "one window is too few."
    cuts = Cuts(array, (3, 4))
    bad = [{"batch_size": 8}, {"batch_size": 0}, {"mix": 0}, {"process": 2, "processes": 2}]
    for options in [*bad, {"process": -1}, {"processes": 8}]:
        said = refusal(f"{options}", lambda o=options: Windows(cuts, **({"batch_size": 2} | o)))
        assert all(f"{key}={value}" in said for key, value in options.items()), said
    part = on_disk(array, (3, 4), "tensorstore")[4:]
    said = refusal("a part of a TensorStore", lambda: Cuts(part, (3, 4)))
    assert "translate_to" in said, said
    moved = Windows(Cuts(part.translate_to[0], (5, 4)), 1)
    assert np.array_equal(moved[0][0], array[4:]), "a moved part is another."


@tried(
    4,
    shape=st.tuples(*[st.integers(1, 7)] * 3),
    chunk=st.integers(1, 5),
    axis=st.integers(1, 2),
    holes=st.integers(0, 9),
    until=st.integers(1, 9),
    seed=st.integers(0, 9),
)
def check_survey(names, shape, chunk, axis, holes, until, seed) -> None:
    """Mean and deviation are NumPy's, of the known values of the first steps."""
    random = np.random.default_rng(seed)
    array = random.normal(1e4, 1, shape)
    array.flat[random.integers(array.size, size=holes)] = np.nan
    source = Counted(array, (chunk, *shape[1:]))
    first = np.moveaxis(array[:until], axis, 0).reshape(shape[axis], -1)
    known = ~np.isnan(first)
    if not known.any(axis=1).all():
        refusal("no value", lambda: names["survey"](source, axis, until))
        return
    mean, deviation = names["survey"](source, axis, until)
    wanted = np.nanmean(first, axis=1), np.nanstd(first, axis=1)
    assert np.allclose(mean, wanted[0], rtol=1e-9), "the mean is another."
    spread = np.where(known.sum(axis=1) > 1, wanted[1], 1)
    assert np.allclose(deviation, spread, rtol=1e-4), "the deviation is another."
    counts = np.isnan(array).reshape(len(array), -1).sum(axis=1)
    assert np.array_equal(names["missing_in"](source), counts), "missing values: a wrong count."


@tried(
    4,
    gaps=st.sets(st.integers(1, 29)),
    bad=st.sets(st.integers(0, 29)),
    length=st.integers(1, 8),
    kind=st.sampled_from(["datetime64[h]", "int64", "float64"]),
)
def check_unbroken(names, gaps, bad, length, kind) -> None:
    """The starts are those whose windows have neither a gap nor a bad step."""
    gaps = set(sorted(gaps)[:9])  # most steps are usual ones
    times = np.cumsum([0] + [7 if step in gaps else 1 for step in range(1, 30)]).astype(kind)
    lacks = np.isin(np.arange(30), sorted(bad))
    wanted = [
        start
        for start in range(30 - length + 1)
        if not gaps & {*range(start + 1, start + length)}
        and not bad & {*range(start, start + length)}
    ]
    found = names["unbroken"](times, length, lacks)
    assert found.tolist() == wanted, "other starts are left."


def check_slow_reads(names) -> None:
    """What is read ahead is read side by side."""

    class Slow(Counted):
        def __getitem__(self, part):
            time.sleep(0.2)
            self.parts.append(time.monotonic())
            return self.array[part]

    source = Slow(numbered((400, 4)), (10, 4))
    windows = names["Windows"](names["Cuts"](source, (1, 4), block=(10, 4)), 4, mix=4)
    windows[0]
    while len(source.parts) < 8:
        time.sleep(0.05)
    ended = source.parts[:8]
    assert max(ended) - min(ended) < 0.2 * 7 * 0.8, "blocks are read one after the other."


BROKEN = [
    (
        "check_windows",
        "first = starts % self.block",
        "first = starts % self.block * 0",
        "none of|twice",
    ),
    ("check_windows", "slice(process * length,", "slice(0 * length,", "twice"),
    ("check_windows", "self.block - 1 + self.window", "self.block", "raises ValueError|none of"),
    ("check_order", "default_rng((self.seed, epoch))", "default_rng(self.seed)", "same order"),
    (
        "check_order",
        "random.permutation(self.blocks)",
        "np.arange(self.blocks)",
        "not sh",
    ),
    ("check_order", "(random.random(len(room)) * room)", "(0 * room)", "same place"),
    ("check_reads", "held[b] if b in held else read(b)", "read(b)", "blocks are read|raises"),
    ("check_reads", "[first, last + 1, last + 2]", "[first, last + 1, last + 1]", "ahead"),
    ("check_reads", "self.held = held  #", "self.held |= held  #", "blocks are held"),
    ("check_dtypes", 'array.dtype.newbyteorder("=")', "array.dtype", ">i2"),
    (
        "check_dtypes",
        "(fitting != array) & (np.rint",
        "(array != array) & (np.rint",
        "goes through",
    ),
    ("check_dtypes", 'dtype.kind == "m"', "False", "m8"),
    (
        "check_missing",
        "if (lost := lacking(windows, self.missing)).any():",
        "if False:",
        "goes through",
    ),
    ("check_missing", "np.isnan(array) if np.isnan(missing) else", "", "goes through"),
    ("check_missing", "if np.ma.isMaskedArray(found):", "if False:", "a mask: goes through"),
    ("check_starts", "starts // size, return_index", "starts, return_index", "cell"),
    ("check_inputs", "if (self.window > self.shape).any():", "if False:", "raises|window"),
    ("check_inputs", "not np.isin(found, range(count)).all()", "False", "goes through|raises"),
    ("check_inputs", 'any(getattr(array, "origin", ()))', "False", "translate_to|goes through"),
    ("check_survey", "(middle - mean) ** 2 * count", "0 * count", "deviation"),
    ("check_survey", "min(start + chunks[0], until)", "start + chunks[0]", "mean|goes through"),
    ("check_unbroken", "gaps[first] == gaps[last]", "gaps[first] <= gaps[last]", "other starts"),
    ("check_unbroken", "bad[first] == bad[last + 1]", "bad[first] == bad[last]", "other starts"),
    ("check_slow_reads", "ThreadPoolExecutor(8)", "ThreadPoolExecutor(1)", "one after the other"),
]
