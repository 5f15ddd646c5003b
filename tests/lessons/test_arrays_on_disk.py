"""The cells to copy of the lesson on arrays on disk, on other arrays, libraries and windows."""

import contextlib
import itertools
import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import feed_arrays_on_disk as lesson
import h5py
import numpy as np
import tensorstore as ts
import zarr
from expecting import refusal
from hypothesis import strategies as st
from hypothesis_cases import tried

LIBRARIES = ("numpy", "zarr", "tensorstore", "h5py")


@contextlib.contextmanager
def on_disk(values, library, chunks=None):
    """The values as an array of this library."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "a"))
        if library == "numpy":
            yield values
        elif library == "h5py":
            with h5py.File(path, "w") as file:
                file.create_dataset("x", data=values, chunks=chunks)
            with h5py.File(path) as file:
                yield file["x"]
        else:
            chunks = chunks or values.shape
            stored = zarr.create_array(
                path, shape=values.shape, chunks=chunks, dtype=values.dtype.newbyteorder("=")
            )
            stored[...] = values
            if library == "zarr":
                yield stored
            else:
                place = {"driver": "zarr3", "kvstore": {"driver": "file", "path": path}}
                yield ts.open(place, read=True).result()


class Steps:
    """An array that notes which of its steps are read."""

    def __init__(self, values, chunks=None):
        self.values, self.chunks, self.log = values, chunks, []
        self.shape, self.dtype = values.shape, values.dtype

    def __getitem__(self, part):
        self.log.append((part.start, part.stop))
        return self.values[part]


def starts(batches, steps):
    """Where the windows of some batches of a range of numbers begin."""
    return np.array([batches[step] for step in steps]).reshape(len(steps), batches.batch_size, -1)[
        ..., 0
    ]


@st.composite
def arrays(draw):
    shape = draw(st.lists(st.integers(1, 9), min_size=0, max_size=3))
    shape = [draw(st.integers(1, 70)), *shape]
    chunks = [draw(st.integers(1, size)) for size in shape]
    window = [draw(st.integers(1, min(size, 5)) | st.none()) for size in shape]
    return shape, chunks, window


# The windows ---------------------------------------------------------------------------------


@tried(
    1,
    array=arrays(),
    library=st.sampled_from(LIBRARIES),
    batch_size=st.integers(1, 9),
    crops=st.integers(1, 3),
    mix=st.integers(1, 5),
    block=st.none() | st.integers(1, 20),
    processes=st.integers(1, 3),
    bad=st.sets(st.integers(0, 69), max_size=3),
    gap=st.none() | st.integers(1, 69),
    seed=st.integers(0, 9),
    start=st.integers(0, 40),
)
def test_windows(array, library, batch_size, crops, mix, block, processes, bad, gap, seed, start):
    """Each window is in the array, each start comes once a crop, on all processes together."""
    shape, chunks, window = array
    values = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    sizes = [size or n for size, n in zip(window, shape, strict=True)]
    usable = ~np.isin(np.arange(shape[0]), list(bad))
    times = np.arange(shape[0]) * 3 + (0 if gap is None else 9 * (np.arange(shape[0]) >= gap))
    free = shape[0] - sizes[0] + 1
    few = gap is not None and shape[0] < 5  # then nobody knows what is usual
    allowed = [
        at
        for at in range(free)
        if usable[at : at + sizes[0]].all()
        and (gap is None or few or not at < gap <= at + sizes[0] - 1)
    ]
    options = dict(seed=seed, crops=crops, usable=usable, mix=mix, block=block)
    options |= {} if few else {"times": times}
    with on_disk(values, library, tuple(chunks)) as stored:
        each = len(allowed) * crops // (batch_size * processes)
        if not each:
            refusal(
                "too few",
                lambda: lesson.Windows(stored, window, batch_size, processes=processes, **options),
            )
            return
        made = [
            lesson.Windows(stored, window, batch_size, process=p, processes=processes, **options)
            for p in range(processes)
        ]
        out, found = made[0].left_out, []
        lost = (free - len(allowed)) * crops + len(allowed) * crops
        assert sum(out.values()) + each * batch_size * processes == lost, f"lost: {out}"
        for batches in made:
            assert batches.steps == each, "processes have other numbers of batches."
            read = np.stack([batches[step] for step in range(2 * each)])
            assert read.dtype == np.int32 and read.shape[2:] == tuple(sizes)
            for one in read.reshape(-1, *sizes):
                corner = np.unravel_index(one.flat[0], shape)
                box = tuple(slice(a, a + n) for a, n in zip(corner, sizes, strict=True))
                assert np.array_equal(one, values[box]), "a window is not in the array."
            firsts = read.reshape(2, each, batch_size, -1)[..., 0] // max(np.prod(shape[1:]), 1)
            found.append(firsts)
            step = start % (2 * each)
            again = lesson.Windows(
                stored, window, batch_size, process=batches.process, processes=processes, **options
            )
            assert np.array_equal(again[step], read[step]), "another step when it goes on."
        for epoch in range(2):
            place, count = np.unique([each[epoch] for each in found], return_counts=True)
            assert np.isin(place, allowed).all(), "a window holds what is not usable."
            assert count.max() <= crops, "a window comes too often in an epoch."


def test_rest():
    """Whatever is left out, all windows of an epoch come once, on any number of processes."""
    for processes, window in itertools.product((1, 2, 3, 7), (1, 2, 5)):
        seen = [
            starts(batches, range(batches.steps)).ravel()
            for p in range(processes)
            for batches in [
                lesson.Windows(np.arange(100), (window,), 3, process=p, processes=processes)
            ]
        ]
        place, count = np.unique(np.concatenate(seen), return_counts=True)
        assert count.max() == 1, "a window comes twice."
        whole = (101 - window) // (3 * processes) * 3 * processes
        assert len(place) == whole, f"{len(place)} windows, not {whole}."


def test_order():
    """The order and the places follow the seed and the epoch, and blocks are mixed."""

    def epochs(seed, **options):
        made = lesson.Windows(np.arange(400), (1,), 20, seed, **options)
        return [tuple(starts(made, range(20 * e, 20 * e + 20)).ravel()) for e in (0, 1)]

    for options in ({"block": 400}, {"block": 1, "mix": 1}, {"block": 20}):
        orders = [*epochs(7, **options), *epochs(8, **options), tuple(range(400))]
        assert len(set(orders)) == len(orders), f"{options}: two orders are equal."
    assert epochs(2**32)[0] != epochs(0)[1], "seed 2**32 is seed 0."
    [order, _] = epochs(0, block=10, mix=4)
    for batch in np.reshape(order, (20, 20)):
        assert len(np.unique(batch // 10)) == 4, "a batch does not mix four blocks."
    one, two = (
        {*starts(batches, range(3 * e, 3 * e + 3)).ravel()}
        for e in (0, 1)
        for batches in [lesson.Windows(np.arange(40), (1,), 12)]
    )
    assert one != two, "each epoch leaves out the same windows."
    square = np.arange(900).reshape(1, 30, 30)
    corners = starts(lesson.Windows(square, (1, 10, 11), 50, crops=4_000), range(80))
    assert {*corners.ravel()} == {*square[0, :21, :20].ravel()}, "a place is never taken."


def test_reads():
    """An epoch reads each step about once, one pool ahead, and no pool twice."""
    array = Steps(np.zeros((640, 3)), chunks=(8, 3))
    batches = lesson.Windows(array, (2, None), 16, mix=3)
    for step in range(batches.steps):
        batches[step]
        assert len(batches.pools) <= 2, "more than two pools are held."
    batches.threads.shutdown()
    read = sum(high - low for low, high in array.log)
    assert batches.block == 32 and read < 1.3 * 640, f"{read} steps are read of 640."
    assert read >= 639 + 3 * 32, "nothing of the next epoch is read ahead."
    far = Steps(np.zeros((640, 3)), chunks=(8, 3))
    lesson.Windows(far, (2, None), 16, usable=np.arange(640) >= 600)[0]
    assert min(low for low, _ in far.log) >= 600, "what no window has is read."


def test_short():
    """One step too few is refused, and exactly enough is one window."""
    for shape, window in {(3, 8): (4, 8), (4, 7): (4, 8), (4, 8): (0, 8), (): ()}.items():
        said = refusal(shape, lambda s=shape, w=window: lesson.Windows(np.zeros(s), w, 1))
        assert f"{window}" in said and f"{shape}" in said, said
    for window in ((2,), (2, 3, 4), (2, -1)):
        refusal(window, lambda window=window: lesson.Windows(np.zeros((9, 9)), window, 1))
    exactly = lesson.Windows(np.arange(4), (4,), 1)
    assert exactly.steps == 1 and exactly[5].tolist() == [[0, 1, 2, 3]]
    for wrong in (
        {"batch_size": 0},
        {"batch_size": 11},
        {"seed": -1},
        {"crops": 0},
        {"mix": 0},
        {"block": 0},
        {"process": 2, "processes": 2},
        {"process": -1},
        {"usable": np.ones(9, bool)},
        {"usable": np.arange(10)},
        {"usable": [True, False]},
        {"usable": np.zeros(10, bool)},
        {"times": np.arange(11)},
        {"times": np.arange(10)[::-1]},
        {"times": np.zeros(10)},
    ):
        options = {"batch_size": 2} | wrong
        refusal(wrong, lambda o=options: lesson.Windows(np.zeros(10), (1,), **o))
    made = lesson.Windows(np.arange(10), (1,), 2)
    refusal("step -1", lambda: made[-1])


def test_dtypes():
    """Batches have the dtypes of JAX; what would be lost is refused."""
    import jax

    for name in ["u1", "i2", ">u2", ">i4", "i8", "u8", "f2", "f4", ">f4", "f8", ">f8", "c8", "?"]:
        values = (np.arange(60) % 2 if name == "?" else np.arange(60)).astype(name).reshape(12, 5)
        for library in LIBRARIES:
            with on_disk(values, library) as stored:
                batch = lesson.Windows(stored, (2, None), 11, block=99)[0]
            dtype = jax.dtypes.canonicalize_dtype(values.dtype.newbyteorder("="))
            assert batch.dtype == dtype and batch.dtype.isnative, f"{name}: {batch.dtype}."
            order = np.argsort(batch[:, 0, -1].real) if name != "?" else range(11)
            expected = np.lib.stride_tricks.sliding_window_view(values, 2, 0).swapaxes(1, 2)
            if name != "?":
                assert np.array_equal(batch[order], expected), f"{name}: other values."
    refusal("large", lambda: lesson.Windows(np.full(9, 2**40), (1,), 2)[0])
    refusal("large floats", lambda: lesson.Windows(np.full(9, 2.0**60 + 2**20), (1,), 2)[0])
    refusal("text", lambda: lesson.Windows(np.array(["a"] * 9), (1,), 2))
    refusal("times", lambda: lesson.Windows(np.zeros(9, "M8[s]"), (1,), 2))
    half = ts.array(np.arange(9).astype(ts.bfloat16.numpy_dtype))
    assert lesson.Windows(half, (1,), 9, block=9)[0].dtype.name == "bfloat16"
    moved = ts.array(np.arange(9))[ts.d[0].translate_by[-100]]
    assert sorted(lesson.Windows(moved, (1,), 9)[0].ravel()) == list(range(9)), "an origin."


def test_missing():
    """Missing values are refused by their step, left out by it, or kept."""
    marks = {"f4": np.nan, "f8": 1e20, "i2": -32_768, "i4": np.int32(-1)}
    marks |= {">f4": np.float64(1e20), "f2": np.inf}
    for dtype, mark in marks.items():
        values = np.arange(600).reshape(100, 6).astype(dtype)
        values[41, 2:5] = mark
        usable = np.arange(100) != 41
        for library in LIBRARIES:
            with on_disk(values, library, (8, 6)) as stored:

                def made(stored=stored, mark=mark, **options):
                    return lesson.Windows(stored, (2, 3), 7, missing=mark, **options)

                said = refusal(mark, lambda made=made: [made()[n] for n in range(14)])
                assert "41" in said and "3 missing" in said, said
                left = made(usable=usable)
                assert left.left_out["with unusable steps"] == 2, left.left_out
                found = np.stack([left[n] for n in range(left.steps)])
                assert (found >= 0).all() and found.max() < 600, "a missing value comes."
    with on_disk(np.zeros((9, 2), "i2"), "zarr") as stored:
        for fill in (np.int16(-32_768), [-32_768]):
            stored.attrs["_FillValue"] = np.asarray(fill).tolist()
            for read in (
                lambda: lesson.Windows(stored, (1, 2), 3),
                lambda: lesson.survey(stored, 1),
            ):
                assert "missing=-32768" in refusal("a _FillValue", read)
            lesson.Windows(stored, (1, 2), 3, missing=-32_768)[0]
        stored.attrs["_FillValue"] = "AAAAAAAA+H8="  # as xarray writes NaN into Zarr 3
        lesson.Windows(stored, (1, 2), 3)[0]
    values = np.full((9, 2), np.nan, np.float32)
    kept = lesson.Windows(values, (1, None), 3, missing=None)[0]
    assert np.isnan(kept).all(), "what is kept is changed."


def test_pairs():
    """Another array of the same block gives what belongs to the windows, wherever these are cut."""
    values = np.arange(300 * 9 * 7).reshape(300, 9, 7)
    usable = np.arange(300) != 150
    options = {"batch_size": 10, "crops": 2, "usable": usable, "seed": 3}
    windows = lesson.Windows(Steps(values, (8, 9, 7)), (2, 4, None), **options)
    second = lesson.Windows(-values, (2, 4, None), block=windows.block, **options)
    labels = lesson.Windows(np.arange(300), (2,), block=windows.block, **options)
    for step in (0, 5, 2 * windows.steps - 1):
        assert np.array_equal(windows[step], -second[step]), "another place."
        assert np.array_equal(windows[step][:, :, 0, 0] // 63, labels[step]), "other labels."


def test_fork():
    """In a forked process it says so, where its threads would wait for ever."""
    windows = lesson.Windows(np.arange(30), (1,), 3)
    read, write = os.pipe()
    if not (child := os.fork()):  # JAX does nothing in the child
        with contextlib.suppress(BaseException):
            os.write(write, refusal("a fork", lambda: windows[0], RuntimeError).encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(write)
    assert b"after a fork" in os.read(read, 1000), "nothing is said."
    os.close(read)


def test_gaps():
    """Windows across a gap are counted; months are none; times may be of any kind."""
    days = np.arange("2000-01", "2009-01", dtype="M8[M]").astype("M8[D]")
    assert len(lesson.starts_of(108, 3, times=days)[0]) == 106, "months have gaps."
    for times in (days, days.astype("M8[ns]"), days.astype(float)):
        lost = np.delete(np.asarray(times), [50, 51])
        begin, out = lesson.starts_of(106, 3, times=lost)
        assert out["across a gap"] == 2 and not {48, 49} & {*begin}, f"{out}"
        assert {47, 50} <= {*begin}, "a window beside a gap is lost."
    twice = np.repeat(np.arange(10), [1, 1, 1, 1, 2, 1, 1, 1, 1, 1])
    assert lesson.starts_of(11, 2, times=twice)[1]["across a gap"] == 1, "a time comes twice."


def test_failures():
    """What fails once is read again; threads may ask at once."""

    class Fails(Steps):
        def __getitem__(self, part):
            if not self.log:
                self.log.append(part)
                raise OSError("not there for a moment")
            return super().__getitem__(part)

    batches = lesson.Windows(Fails(np.arange(100)), (1,), 10, mix=1)
    refusal("a failed read", lambda: batches[0], OSError)
    right = lesson.Windows(np.arange(100), (1,), 10, mix=1)
    assert np.array_equal(batches[0], right[0]), "what failed stays lost."
    asked = [*np.random.default_rng(0).permutation(60)]
    with ThreadPoolExecutor(8) as threads:
        for step, batch in zip(asked, threads.map(batches.__getitem__, asked), strict=True):
            assert np.array_equal(batch, right[step]), "threads get other batches."


# One pass ------------------------------------------------------------------------------------


@tried(
    4,
    shape=st.lists(st.integers(1, 12), min_size=1, max_size=4),
    axis=st.none() | st.integers(1, 3),
    library=st.sampled_from(LIBRARIES),
    mark=st.sampled_from([np.nan, -9_999.0]),
    early=st.booleans(),
)
def test_survey(shape, axis, library, mark, early):
    """Means, deviations and what steps lack, as NumPy has them of the whole array."""
    axis = axis if axis and axis < len(shape) else None
    random = np.random.default_rng(len(shape))
    values = random.normal(280, 5, shape).astype(np.float32)
    lacks = random.random(shape) < 0.2
    values.flat[:: values.size] = 281  # never all of them
    lacks[tuple(slice(0, 1) if n != axis else slice(None) for n in range(len(shape)))] = False
    values[lacks] = mark
    usable = np.arange(shape[0]) <= shape[0] // 2 if early else np.ones(shape[0], bool)
    with on_disk(values, library) as stored:
        mean, deviation, number = lesson.survey(stored, axis, mark, usable)
    lacking = lacks.reshape(len(lacks), -1).sum(1)
    lacks[~usable] = True
    other = tuple(n for n in range(len(shape)) if n != axis)
    right = np.ma.masked_array(values.astype(float), lacks)
    assert np.allclose(mean, right.mean(other), rtol=1e-6), "another mean."
    assert np.allclose(deviation, right.std(other), atol=1e-3), "another deviation."
    assert np.array_equal(number, lacking), "another number lacks."
    wrong = usable.astype(int), usable[:-1], np.flatnonzero(usable)[:-1]
    for flags in wrong:
        refusal("flags", lambda flags=flags: lesson.survey(values, axis, mark, flags))
