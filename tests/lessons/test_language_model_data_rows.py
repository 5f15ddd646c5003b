"""What a reader copies from the lesson on text for a language model: rows of tokens, the model."""

import itertools
import time
from collections import Counter

import feed_language_model_data as lesson
import feed_language_model_data_in_depth as depth
import grain
import numpy as np
from expecting import refusal
from hypothesis import strategies as st
from hypothesis_cases import tried

LENGTHS = st.lists(st.integers(1, 40), min_size=1, max_size=40)


LENGTH = st.integers(1, 24)


STREAM = {
    "split": st.sampled_from([(2, 1), (1, 3), (2, 2), (1, 1), (1, 4)]),  # rows, processes
    "seed": st.integers(0, 99),
    "start": st.integers(0, 60),
}


def corpus(lengths, end=0) -> tuple[np.ndarray, list]:
    """Tokens that all differ but for those around documents; first and last place of each."""
    tokens, borders, value = [], [], 2
    for size in lengths:
        if end or not tokens:
            tokens.append(0)
        first = len(tokens) - 1
        tokens += range(value, value + size - 1)
        tokens.append(end)
        borders.append((first, len(tokens) - 1))
        value += size
    return np.array(tokens, np.uint16), borders


def pieces(tokens, borders, length) -> Counter:
    """Inputs and targets of each piece, and how often it is there."""
    found = Counter()
    for begin, end in borders:
        for at in range(begin, end, length):
            to = min(at + length, end)
            found[tuple(tokens[at:to].tolist()), tuple(tokens[at + 1 : to + 1].tolist())] += 1
    return found


def pieces_in(rows) -> Counter:
    """The same, of rows. Asserts that their arrays are well formed."""
    found = Counter()
    for row in rows:
        names = sorted(row)
        assert names == ["inputs", "positions", "segments", "targets"], f"a row has {names}."
        inputs, positions, segments, targets = (row[name] for name in names)
        assert {row[name].dtype.name for name in names} == {"int32"}, "a row is no int32."
        used = np.count_nonzero(segments)
        rest = np.concatenate([segments[used:], inputs[used:], targets[used:]])
        assert not rest.any(), f"a row does not end in padding: {segments}."
        steps = np.diff(segments[:used], prepend=0)
        assert np.isin(steps, (0, 1)).all(), f"the segments are {segments}."
        for number in range(1, segments.max() + 1):
            own = segments == number
            right = positions[own].tolist() == [*range(own.sum())]
            assert right, f"the positions of a document are {positions[own]}."
            found[tuple(inputs[own].tolist()), tuple(targets[own].tolist())] += 1
    return found


def rows_in(batch) -> list[dict]:
    return [dict(zip(batch, row, strict=True)) for row in zip(*batch.values(), strict=True)]


@tried(lengths=LENGTHS, length=LENGTH, end=st.integers(0, 1))
def test_rows(lengths, length, end):
    """Each piece is once in the rows, whole, and the rows are full."""
    tokens, borders = corpus(lengths, end=end)
    found = [*lesson.documents_of(tokens)]
    assert found == borders, f"the documents are {found}, not {borders}."
    rows = lesson.PackedRows(tokens, length)
    count = len(rows)
    sizes = [-(-n // length) - 1 for n in lengths]
    assert -(-sum(lengths) // length) <= count <= sum(sizes) + len(lengths), f"{count} rows."
    used = [np.count_nonzero(row["segments"]) for row in rows]
    full = sum(sorted(used)[:2]) > length or count <= 1  # the two that are least full
    assert full, f"rows of {used} tokens."
    right = pieces(tokens, borders, length)
    assert pieces_in(rows) == right, "pieces are lost, repeated or changed."
    last = pieces_in([rows[-1]])
    assert last == pieces_in([rows[count - 1]]), "rows[-1] is not the last row."
    refusal("a row that is not there", lambda: rows[count], IndexError)
    refusal("length 0", lambda: lesson.PackedRows(tokens, 0))


def test_long_rows():
    """Rows that are one longer than a power of two pack as well, and many documents pack soon."""
    sizes = np.random.default_rng(0).normal(4096, 512, 3000).astype(int).clip(100, 8192)
    for length in (8192, 8193, 16384, 16385):
        row_of = lesson.best_fit(sizes.tolist(), length)
        used = np.bincount(row_of, sizes)
        right = used.max() <= length and len(used) < 1.1 * sizes.sum() / length
        assert right, f"rows of {length} hold {used.max()} at most, and there are {len(used)}."
    many = np.random.default_rng(0).integers(1, 2048, 100_000)
    before = time.process_time()
    row_of = lesson.best_fit(many.tolist(), 2048)
    took = time.process_time() - before
    used = np.bincount(row_of, many)
    assert used.max() <= 2048 and len(used) < 1.02 * many.sum() / 2048, f"{len(used)} rows."
    assert took < 10, f"100,000 documents take {took:.0f} s of the processor."  # 0.3 s


def stream_holds(make, batch_size: int, start: int, processes: int) -> None:
    """The step is the position, the processes share each batch, and the seed is used."""
    one, again = make(batch_size * processes), make(batch_size * processes)
    parts = [make(batch_size, process=p, processes=processes) for p in range(processes)]
    for step in range(start, start + 3):
        whole = one[step]
        assert len(whole) == batch_size * processes, f"a batch has {len(whole)} rows."
        assert np.array_equal(whole, again[step]), f"batch {step} is another one when asked again."
        joined = np.stack([part[step] for part in parts], axis=1).reshape(whole.shape)
        assert np.array_equal(joined, whole), f"they do not share batch {step}."


@tried(count=st.integers(0, 60), **STREAM)
def test_stream(count, split, seed, start):
    """An epoch has each row once, in an order of its own, and goes on at any step."""
    numbers, (batch_size, processes) = np.arange(count), split

    def make(batch_size=batch_size, **part):
        return lesson.batches_of(numbers, batch_size, seed, **part)

    if batch_size * processes > count:
        refusal("what cannot work", lambda: make(processes=processes))
        return
    one = make(1)
    epochs = [[int(one[step][0]) for step in range(e * count, (e + 1) * count)] for e in range(2)]
    for epoch in epochs:
        assert sorted(epoch) == [*range(count)], f"an epoch of {count} rows has {sorted(epoch)}."
    assert count < 9 or epochs[0] != epochs[1], "epochs 0 and 1 have the same order."
    other = lesson.batches_of(numbers, 1, seed + 1)
    assert count < 9 or [int(other[s][0]) for s in range(count)] != epochs[0], "the seed is lost."
    stream_holds(make, batch_size, start, processes)
    for wrong in ({"batch_size": 0}, {"process": processes, "processes": processes}):
        refusal(wrong, lambda w=wrong: make(**w))
    refusal("process -1", lambda: make(process=-1, processes=2))


@tried(2, lengths=LENGTHS, length=LENGTH, **STREAM)
def test_packed_stream(lengths, length, split, seed, start):
    """Batches of packed rows have each piece once an epoch, on any number of processes."""
    tokens, borders = corpus(lengths)
    rows, (batch_size, processes) = lesson.PackedRows(tokens, length), split
    if batch_size * processes > len(rows):
        return
    one = lesson.batches_of(rows, 1, seed)
    epoch = [row for step in range(len(rows)) for row in rows_in(one[step])]
    right = pieces(tokens, borders, length)
    assert pieces_in(epoch) == right, "an epoch loses, repeats or changes pieces."

    def make(size, **part):
        batches = lesson.batches_of(rows, size, seed, **part)
        return batches.map(lambda batch: batch["inputs"])

    stream_holds(make, batch_size, start, processes)


# The depth -----------------------------------------------------------------------------------


@tried(
    count=st.integers(0, 900),
    dtype=st.sampled_from(["uint16", "uint32"]),
    length=st.integers(0, 20),
    batch_size=st.sampled_from([1, 2, 3, 4]),
    processes=st.sampled_from([1, 2, 3]),
    seed=st.integers(0, 99),
    start=st.integers(0, 60),
)
def test_windows(count, dtype, length, batch_size, processes, seed, start):
    """An epoch has each target once, and leaves out less than a batch of windows and a window."""
    tokens = np.arange(count, dtype=dtype)

    def make(size, start=0, **part):
        return depth.window_batches(tokens, size, length, seed, start, **part)

    steps = (len(tokens) - 1) // length // (batch_size * processes) if length else 0
    if steps < 1:
        refusal("what cannot work", lambda: make(batch_size, processes=processes))
        return
    stream, seen = make(batch_size * processes), []
    for epoch in range(2):
        windows = np.concatenate(list(itertools.islice(stream, steps)))
        form = windows.dtype, windows.shape[1]
        assert form == (tokens.dtype, length + 1), f"windows are {windows.dtype} {windows.shape}."
        assert (np.diff(windows.astype(int), axis=1) == 1).all(), "a window has a gap."
        targets = np.bincount(windows[:, 1:].ravel(), minlength=len(tokens))
        assert targets.max() <= 1, f"epoch {epoch} has a target twice."
        left_out = len(tokens) - targets.sum()
        bound = (batch_size * processes + 1) * length
        assert left_out <= bound, f"epoch {epoch} leaves out {left_out} targets."
        seen.append(windows)
    assert seen[0].size <= 400 or not np.array_equal(*seen), "epochs 0 and 1 have the same order."
    late = make(batch_size * processes, start)
    whole = itertools.islice(make(batch_size * processes), start, start + 2)
    parts = [make(batch_size, start, process=p, processes=processes) for p in range(processes)]
    for expected, one, *shares in zip(whole, late, *parts, strict=False):
        assert np.array_equal(expected, one), f"a stream from batch {start} is not the rest."
        assert np.array_equal(np.concatenate(shares), one), f"they do not share batch {start}."


@tried(
    4,
    lengths=st.lists(st.integers(1, 12), min_size=60, max_size=80),
    widths=st.sets(st.sampled_from([2, 4, 8, 16]), min_size=1),
    seed=st.integers(0, 9),
)
def test_budget(lengths, widths, seed):
    """Each piece stands alone in the narrowest row that holds it, once in an epoch."""
    tokens, borders = corpus(lengths)
    right = pieces(tokens, borders, max(widths))
    narrowest = Counter(
        min(w for w in widths if w >= len(inputs)) for inputs, _ in right.elements()
    )
    if any(count < 16 // width for width, count in narrowest.items()):
        refusal("few", lambda: depth.budget_batches(tokens, widths, 16, seed))
        return
    batches, found = depth.budget_batches(tokens, widths, 16, seed), Counter()
    for step in range(3 * sum(narrowest.values())):
        batch = batches[step]
        rows, width = batch["inputs"].shape
        assert width in widths and rows == 16 // width, f"a batch is {rows, width}."
        now = pieces_in(rows_in(batch))
        least = {min(w for w in widths if w >= len(inputs)) for inputs, _ in now}
        assert least == {width}, "a piece lies in rows that are too wide."
        found += now
        if not right - found:
            break
    assert not right - found, f"{(right - found).total()} pieces do not come."
    if all(count >= 32 // width for width, count in narrowest.items()):
        halves = [depth.budget_batches(tokens, widths, 32, seed, p, 2) for p in (0, 1)]
        one = depth.budget_batches(tokens, widths, 32, seed)[3]["inputs"]
        both = np.stack([half[3]["inputs"] for half in halves], axis=1).reshape(one.shape)
        assert np.array_equal(both, one), "two processes have other rows than one."
    message = refusal("17", lambda: depth.budget_batches(tokens, widths, 17, seed))
    assert "give no batch" in message, message


def test_mixture():
    """Shares are at most a row off, at any step, and wrong weights are refused."""
    weights = {"a": 11, "b": 6, "c": 3}
    sources = {name: np.arange(20) + 100 * at for at, name in enumerate(weights)}
    batches = depth.mixed_batches(sources, weights, 5)
    rows = np.concatenate([batches[step] for step in range(200)])
    share = np.cumsum((rows // 100)[:, None] == np.arange(3), axis=0)
    off = np.abs(share - np.arange(1, 1001)[:, None] * np.divide([*weights.values()], 20)).max()
    assert off <= 1, f"a source is {off} rows off."
    for at, name in enumerate(weights):
        own = rows[rows // 100 == at][:20]
        assert sorted(own) == [*sources[name]], f"source {name} loses or repeats rows."
    halves = [depth.mixed_batches(sources, weights, 5, process=p, processes=2) for p in (0, 1)]
    both = depth.mixed_batches(sources, weights, 10)
    joined = np.stack([half[7] for half in halves], axis=1).ravel()
    assert np.array_equal(joined, both[7]), "two processes have other rows than one."
    for wrong in (
        *(
            {"a": 1},
            {"a": 1, "b": 1, "d": 1},
            {"a": 1, "b": -1, "c": 1},
            {"a": 0.5, "b": 1, "c": 1},
        ),
        weights | {"d": 1},
    ):
        refusal(wrong, lambda w=wrong: depth.mixed_batches(sources, w, 5))
    refusal("process 2", lambda: depth.mixed_batches(sources, weights, 5, 0, 2, 2))
    equal = {name: np.arange(50) for name in weights}
    rows = depth.mixed_batches(equal, dict.fromkeys(weights, 1), 3)
    same = np.mean([len(set(rows[step].tolist())) == 1 for step in range(50)])
    assert same < 0.5, "sources of one length have one order."
    turned = dict(reversed(weights.items()))
    again = depth.mixed_batches(sources, turned, 5)[3]
    assert np.array_equal(again, batches[3]), "the order of the weights changes their sources."


@tried(4, lengths=LENGTHS, length=st.integers(2, 24))
def test_divided(lengths, length):
    """A window's documents have segments of their own, and positions that begin at 0."""
    tokens, _ = corpus(lengths)
    if len(tokens) <= length:
        refusal("no window", lambda: depth.windows_of(tokens, length))
        return
    windows = depth.windows_of(tokens, length)
    batch = {k: np.asarray(v) for k, v in depth.divided(windows, 0).items()}
    for number, window in enumerate(windows):
        row = {name: array[number] for name, array in batch.items()}
        assert np.array_equal(row["inputs"], window[:-1]), "the inputs are others."
        assert np.array_equal(row["targets"], window[1:]), "the targets are others."
        place, segment = 0, 1
        for at, token in enumerate(window[:-1]):
            if token == 0:
                place, segment = 0, segment + 1
            found = int(row["positions"][at])
            assert found == place, f"position {found} where a document has its {place}."
            place += 1
        assert len(set(row["segments"])) == len(
            [*itertools.groupby(np.cumsum(window[:-1] == 0))]
        ), "the segments do not follow the documents."


def test_held_out():
    """A text's side follows from the text alone, and the share is as asked."""
    texts = [f"text {number}" for number in range(4000)] + ["half \ud83d"]
    for percent in (0, 0.25, 1, 10, 100):
        share = np.mean([depth.held_out(text, percent) for text in texts])
        right = abs(share - percent / 100) < 0.005 + 0.1 * percent / 100
        assert right, f"{share:.2%} are held out, not {percent} %."


@tried(4, lengths=LENGTHS, length=LENGTH, packer=st.booleans())
def test_grain(lengths, length, packer):
    """Grain packs each target once, by either way of packing."""
    tokens, borders = corpus(lengths)
    packers = grain.experimental
    if packer:
        own = lesson.PackedRows(tokens, length).pieces
        options = {"num_packing_bins": 2}
        packer = packers.FirstFitPackIterDataset
    else:
        own = np.array([(a, b - a) for a, b in borders])
        options, packer = {}, packers.ConcatThenSplitIterDataset
    rows = [*depth.grain_rows(tokens, own, length, packer, **options)]
    found = Counter(int(t) for row in rows for t in row["targets"][row["segments"] > 0])
    assert found == Counter(tokens[1:].tolist()), "targets are lost, repeated or changed."


def test_apart():
    """Each document of a batch, in a row of its own, from position 0."""
    tokens, borders = corpus([3, 5, 2, 9, 4])
    rows = [*lesson.PackedRows(tokens, 9)]
    batch = {name: np.stack([row[name] for row in rows]) for name in sorted(rows[0])}
    alone = depth.apart(batch)
    assert alone["segments"].max() == 1, "documents share a row."
    found = pieces_in(rows_in(alone))
    assert found == pieces(tokens, borders, 9), "documents are lost or changed."


# The model -----------------------------------------------------------------------------------


def test_model():
    """Padding does not count, documents do not see each other, and what is out of range is NaN."""
    from flax import nnx

    length = 8
    model = lesson.Transformer(50, length, nnx.Rngs(0), width=16, heads=2, layers=1)
    loss_of = nnx.jit(lesson.mean_loss)  # traced anew, with the cells as they are now

    def loss(counted=length, segments=None, **arrays):
        whole = np.arange(length, dtype=np.int32)[None]
        batch = {"inputs": whole + 1, "targets": whole + 2, "positions": whole} | arrays
        batch["segments"] = (whole < counted) * 1 if segments is None else segments
        return float(loss_of(model, batch))

    far = {"inputs": 50, "targets": 50, "positions": length}
    for name, value in far.items():
        array = np.arange(length, dtype=np.int32)[None]
        array[0, 3] = value
        said = f"the {name} are out of range, and the loss is a number."
        assert np.isnan(loss(**{name: array})), said
    assert np.isnan(loss(0)), "a batch of padding alone has a loss."
    few = np.array([[1, 2, 3, 4, 5, 0, 0, 0]], np.int32)
    other = np.where(few, few, 49)
    one, two = (loss(5, inputs=inputs) for inputs in (few, other))
    assert np.isclose(one, two, rtol=1e-5), f"what padding holds counts: {one}, {two}."
    halves = np.array([[1, 1, 1, 1, 2, 2, 2, 2]], np.int32)

    def last_of(inputs):
        batch = {"inputs": inputs, "targets": inputs, "segments": halves}
        batch["positions"] = np.arange(length, dtype=np.int32)[None] % 4
        return np.asarray(lesson.token_losses(model, batch))[0, 4:]

    inputs = np.arange(1, length + 1, dtype=np.int32)[None]
    changed = np.where(halves == 1, 40, inputs)
    assert np.allclose(last_of(inputs), last_of(changed), atol=1e-5), "documents see each other."
    later = inputs.copy()
    later[0, -1] = 40
    assert np.allclose(last_of(inputs)[:-1], last_of(later)[:-1], atol=1e-5), "it sees the future."
