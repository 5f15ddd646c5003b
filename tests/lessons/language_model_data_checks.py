"""The cells to copy of the lesson on text for a language model, on documents of many lengths.

It runs in a process of its own, as the other lessons do.
"""

import itertools
import tempfile
import tracemalloc
from collections import Counter
from pathlib import Path
from unittest import mock

import numpy as np
from copied_cells import refusal
from hypothesis import strategies as st
from hypothesis_cases import tried

# Letters of two scripts, line ends, an emoji, a combining accent, and the name of the end token.
TEXTS = st.text(st.sampled_from("ab \n\r\té€я日🦊\u0301\x00"), max_size=30) | st.just("<|end|>")
LENGTHS = st.lists(st.integers(1, 40), min_size=1, max_size=40)
STREAM = {
    "split": st.sampled_from([(2, 1), (3, 1), (4, 2), (6, 3), (1, 1), (8, 4)]),  # rows, processes
    "seed": st.integers(0, 99),
    "start": st.integers(0, 60),
}


# Text to tokens ------------------------------------------------------------------------------


@tried(4, texts=st.lists(TEXTS, max_size=8), vocabulary=st.integers(257, 300))
def check_texts(names, texts, vocabulary) -> None:
    """Each text comes back from the file, or is refused."""
    tokenizer = names["train_tokenizer"](texts, vocabulary)
    with tempfile.TemporaryDirectory() as folder:
        if not texts:
            refusal("no document", lambda: names["tokenize"](texts, tokenizer, f"{folder}/t"))
            return
        file = names["tokenize"](iter(texts), tokenizer, f"{folder}/t")
        tokens = np.array(names["mapped"](file))
        starts = names["starts_of"](tokens, tokenizer.token_to_id("<|end|>"), chunk=5)
        files = [path.name for path in Path(folder).iterdir()]
        assert files == [f"t.{len(tokens)}.uint16"], "leaves other files behind."
    read = [tokens[a + 1 : b].tolist() for a, b in itertools.pairwise(starts)]
    back = [tokenizer.decode(each, skip_special_tokens=False) for each in read]
    assert back == texts, f"{texts} come back as {back}."


def check_files(names) -> None:
    """Folders, tokenizers that lose text, tokens without an end token."""
    from tokenizers import Tokenizer, normalizers

    tokenize, mapped, starts_of = names["tokenize"], names["mapped"], names["starts_of"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        refusal("an empty folder", lambda: list(names["documents_in"](folder)))
        (folder / "b.txt").write_bytes(b"third\r\n\r\n\r\n \r\n  fourth,\r\nof two lines\r\n")
        (folder / "a.txt").write_bytes("first €\n\t\n\nsecond".encode())
        (folder / "empty.txt").write_bytes(b"")
        found = list(names["documents_in"](folder))
        right = ["first €", "second", "third", "  fourth,\r\nof two lines\r\n"]
        assert found == right, f"the documents of a folder are {found}."
        (folder / "c.txt").write_bytes(b"\xff")
        refusal("no UTF-8", lambda: list(names["documents_in"](folder)))
        tokenizer = names["train_tokenizer"](found, 300)
        refusal("no end", lambda: tokenize(found, tokenizer, folder / "s", end="<eos>"))
        refusal("one str", lambda: tokenize("first", tokenizer, folder / "s"))
        lower = Tokenizer.from_str(tokenizer.to_str())
        lower.normalizer = normalizers.Lowercase()
        texts = ["as it is", "early " * 9 + "and Late " + "in it " * 9]
        message = refusal("lower case", lambda: tokenize(texts, lower, folder / "s"))
        said = "'arly and Late in it in it in i' becomes 'arly and late in it in it in i'."
        assert message == f"document 1 does not decode: {said}", f"it is told as: {message}"
        assert not list(folder.glob("s*")), "what is refused leaves a file behind."
        loaded = Tokenizer.from_str(tokenizer.to_str())  # it forgets `encode_special_tokens`
        tokens = mapped(tokenize(["x <|end|> y"], loaded, folder / "l"))
        assert np.count_nonzero(tokens == 0) == 2, "a text's <|end|> becomes the end token."
        for bad in ([0, 5], [5, 0], [5], [0]):
            refusal(bad, lambda b=bad: starts_of(np.array(b)))


def check_saved(names) -> None:
    """Files of a large vocabulary, that are damaged, of other dtypes, that are missing."""
    from tokenizers import AddedToken, Tokenizer, models

    tokenize, mapped = names["tokenize"], names["mapped"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        large = Tokenizer(models.WordLevel({"<|end|>": 0, "a": 1, "?": 2, "far": 70_000}, "?"))
        large.add_special_tokens([AddedToken("<|end|>", special=True)])
        file = tokenize(["far"], large, folder / "w")
        assert file.name == "w.3.uint32", f"a large vocabulary gives {file.name}."
        assert mapped(file).tolist() == [0, 70_000, 0], f"a large vocabulary: {mapped(file)}."
        file = tokenize(["a", "far", "a"], large, folder / "w")
        whole = file.read_bytes()
        for bad in (whole[:-1], whole[:-8], whole[:4], b"", whole + whole[:4]):  # -8: an end token
            file.write_bytes(bad)
            message = refusal(f"{len(bad)} bytes", lambda: mapped(file))
            right = f"damaged: it should have {len(whole)} bytes"
            assert right in message, f"{len(bad)} bytes: the sentence is {message}"
        for other in ("x.bin", "x.uint16", "x", "x.7.float16", "x.7.uint8", "x.y.uint16"):
            (folder / other).write_bytes(bytes(14))
            message = refusal(other, lambda n=other: mapped(folder / n))
            right = f"{other} must be named NAME.COUNT.uint16 or .uint32."
            assert message.endswith(right), f"{other}: the sentence is {message}"
        missing = folder / "missing.7.uint16"
        refusal("a file that is missing", lambda: mapped(missing), FileNotFoundError)


def check_blocks(names) -> None:
    """Many documents and long ones: in blocks of a million characters, and none is lost."""
    real = names["train_tokenizer"](["ab "], 257)
    tokenizer, half = mock.Mock(wraps=real), 2**19 - 1  # with its end, half a block
    lengths = [half, half, 0, half, half - 1, 1, *[0] * 1500, 2**20 + 9, 0, 3]
    given = [("ab " * (length // 3 + 1))[:length] for length in lengths]
    found = [real.decode(ids) for ids in names["encoded"](iter(given), tokenizer, stop=0)]
    assert found == given, f"of {len(given)} documents in blocks, {len(found)} come, or other ones."
    calls = tokenizer.encode_batch_fast.call_args_list
    sizes = [sum(map(len, call.args[0])) for call in calls]
    right = max(sizes) <= max(lengths) + 2**20 and len(sizes) >= 3
    assert right, f"blocks of {sizes} characters are encoded at once."


# Streams -------------------------------------------------------------------------------------


def rows_of(batch) -> list[bytes]:
    return [row.tobytes() for row in (batch if batch.ndim == 2 else batch.swapaxes(0, 1))]


def stream_holds(make, start: int, processes: int) -> None:
    """A start is the rest, the processes share each batch, and the seed is used."""
    whole = itertools.islice(make(), start, start + 3)
    late = make(start=start)
    parts = [make(start=start, process=p, processes=processes) for p in range(processes)]
    for expected, one, *shares in zip(whole, late, *parts, strict=False):
        assert np.array_equal(expected, one), f"a stream from batch {start} is not the rest."
        together = list(itertools.chain.from_iterable(map(rows_of, shares)))
        assert sorted(together) == sorted(rows_of(one)), f"they do not share batch {start}."
        assert len({share.shape for share in shares}) == 1, "shares have different shapes."


@tried(
    count=st.integers(0, 900),
    dtype=st.sampled_from(["uint16", "uint32"]),
    length=st.integers(0, 20),
    **STREAM,
)
def check_windows(names, count, dtype, length, split, seed, start) -> None:
    """An epoch has each target once, and few are left out."""
    tokens, (batch_size, processes) = np.arange(count, dtype=dtype), split

    def make(**part):
        return names["window_batches"](tokens, batch_size, length, seed, **part)

    steps = (len(tokens) // length - 1) // batch_size if length else 0
    if steps < 1:
        refusal("what cannot work", lambda: next(make()))
        return
    stream = make()
    seen = []
    for epoch in range(2):
        windows = np.concatenate(list(itertools.islice(stream, steps)))
        form = windows.dtype, windows.shape[1]
        assert form == (tokens.dtype, length + 1), f"windows are {windows.dtype} {windows.shape}."
        assert (np.diff(windows.astype(int), axis=1) == 1).all(), "a window has a gap."
        targets = np.bincount(windows[:, 1:].ravel(), minlength=len(tokens))
        assert targets.max() <= 1, f"epoch {epoch} has a target twice."
        left_out = len(tokens) - targets.sum()
        assert left_out < (batch_size + 2) * length, f"epoch {epoch} leaves out {left_out} targets."
        seen.append(windows)
    assert seen[0].size <= 400 or not np.array_equal(*seen), "epochs 0 and 1 have the same order."
    stream_holds(make, start, processes)


def corpus(lengths) -> tuple[np.ndarray, np.ndarray]:
    """Tokens that all differ but for the zeros around documents, and where these stand."""
    starts = np.cumsum([0, *lengths])
    tokens = np.arange(1, starts[-1] + 2).astype(np.uint16)
    tokens[starts] = 0
    return tokens, starts


def pieces(tokens, starts, length) -> Counter:
    """Inputs and targets of each piece, and how often it is there."""
    found = Counter()
    for begin, end in itertools.pairwise(starts.tolist()):
        for at in range(begin, end, length):
            to = min(at + length, end)
            found[tuple(tokens[at:to].tolist()), tuple(tokens[at + 1 : to + 1].tolist())] += 1
    return found


def pieces_in(batch) -> Counter:
    """The same, of a batch. Asserts that its arrays are well formed."""
    assert batch.dtype == np.int32 and len(batch) == 4, f"a batch is {batch.dtype} {batch.shape}."
    found = Counter()
    for inputs, targets, segments, positions in batch.swapaxes(0, 1):
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


@tried(lengths=LENGTHS, length=st.integers(1, 24), **STREAM)
def check_packs(names, lengths, length, split, seed, start) -> None:
    """An epoch has each piece once, whole, in rows that are full."""
    batch_size, processes = split
    tokens, starts = corpus(lengths)
    packs = names["packs_of"](starts, length)
    count = len(packs[2]) - 1
    sizes = [-(-n // length) - 1 for n in lengths]
    assert -(-sum(lengths) // length) <= count <= sum(sizes) + len(lengths), f"{count} packs."
    used = np.add.reduceat(packs[1], packs[2][:-1])
    full = np.sort(used)[:2].sum() > length or count <= 1  # the two that are least full
    assert used.max() <= length and full, f"packs of {used} tokens."

    def make(batch_size=batch_size, **part):
        return names["pack_batches"](tokens, packs, batch_size, seed, **part)

    stream = make(batch_size=1)
    right = pieces(tokens, starts, length)
    for epoch in range(2):
        batches = itertools.islice(stream, count)
        found = sum((pieces_in(batch) for batch in batches), Counter())
        assert found == right, f"pieces of epoch {epoch} are lost, repeated or changed."
    rows = next(names["shuffled_rows"](count, 1, seed))[1]
    same = np.array_equal(names["packed_row"](tokens, packs, rows[0]), next(make(batch_size=1)))
    assert same, f"`packed_row` makes another row {rows[0]}."
    if count < batch_size:
        refusal("what cannot work", lambda: next(make()))
        return
    stream_holds(make, start, processes)


@tried(
    4,
    lengths=LENGTHS,
    way=st.sampled_from(["FirstFitPackIterDataset", "BestFitPackIterDataset"]),
    bins=st.integers(1, 8),
    length=st.integers(1, 24),
    seed=st.integers(0, 99),
)
def check_grain(names, lengths, way, length, bins, seed) -> None:
    """Grain packs each piece once and whole, by either way of packing."""
    tokens, starts = corpus(lengths)
    source = names["Pieces"](tokens, starts, length)
    pack = getattr(names["grain"].experimental, way)
    rows = [*map(names["four_arrays"], names["grain_packs"](source, pack, length, bins, seed))]
    right = pieces(tokens, starts, length)
    assert len(source) == right.total(), f"{len(source)} pieces, not {right.total()}."
    assert pieces_in(np.stack(rows, axis=1)) == right, "pieces are lost, repeated or changed."


@tried(
    lengths=LENGTHS,
    bounds=st.lists(st.integers(1, 24), min_size=1, max_size=4),
    **STREAM,
)
def check_buckets(names, lengths, bounds, split, seed, start) -> None:
    """An epoch has each piece once, in the narrowest bucket."""
    batch_size, processes = split
    tokens, starts = corpus(lengths)
    widths = sorted(set(bounds))
    budget = batch_size * widths[-1]

    def make(**part):
        return names["bucket_batches"](tokens, starts, bounds, budget, seed, **part)

    if any(budget // width % processes for width in widths):
        refusal("what cannot work", lambda: next(make(processes=processes)))
        processes = 1
    right = pieces(tokens, starts, widths[-1])
    counts = Counter(
        min(width for width in widths if width >= len(inputs)) for inputs, _ in right.elements()
    )
    steps = sum(-(-count // (budget // width)) for width, count in counts.items())
    stream = make()
    for epoch in range(2):
        found = Counter()
        for batch in itertools.islice(stream, steps):
            _, rows, width = batch.shape
            assert width in widths and rows == budget // width, f"a batch is {batch.shape}."
            now = pieces_in(batch)
            narrowest = {min(w for w in widths if w >= len(inputs)) for inputs, _ in now}
            assert narrowest <= {width}, "a piece lies in the wrong bucket."
            found += now
        assert found == right, f"pieces of epoch {epoch} are lost, repeated or changed."
    stream_holds(make, start, processes)


def check_many(names) -> None:
    """An epoch of many documents stays in a few arrays: no Python object for each."""
    count = 100_000
    tokens, starts = corpus([1] * count)
    tracemalloc.start()
    try:
        next(names["bucket_batches"](tokens, starts, [1, 2], 2, seed=0))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= 120 * count, f"buckets take {peak / count:.0f} bytes of each document."


# The model -----------------------------------------------------------------------------------


def check_model(names) -> None:
    """Padding does not count, and numbers out of range are NaN, of a model that is small."""
    import jax

    length = 8
    params = names["init_model"](jax.random.key(0), 50, length, width=16, layers=1)

    @jax.jit
    def mean_loss(batch):  # traced anew, with the cells as they are now
        return names["mean_loss"](params, batch)

    def loss_of(windows, counted=length):
        batch = np.array(names["as_batch"](np.array(windows)))
        batch[2, :, counted:] = 0
        return float(mean_loss(batch))

    row = list(range(length + 1))
    far = {"input": [50, *row[1:]], "target": [*row[:-1], 50], "position": [*row, 9]}
    for name, window in far.items():
        assert np.isnan(loss_of([window])), f"the {name} is out of range, and the loss is a number."
    padded, shorter = loss_of([row], 5), loss_of([row[:6]])
    same = np.isclose(padded, shorter, rtol=1e-3) and loss_of([row], 0) == 0
    assert same, f"padding counts: {padded}, without it {shorter}."


# What cannot work ----------------------------------------------------------------------------


def check_inputs(names) -> None:
    """Bad arguments get one ValueError of one sentence."""
    tokens, starts = np.arange(101, dtype=np.uint16), np.array([0, 40, 100])
    window, bucket = names["window_batches"], names["bucket_batches"]
    pack, packs_of = names["pack_batches"], names["packs_of"]
    packs = packs_of(starts, 8)
    for wrong in ({"batch_size": 99}, {"processes": 3}, {"process": 2, "processes": 2}):
        given = {"batch_size": 4, "seed": 0} | wrong
        refusal(wrong, lambda g=given | {"length": 8}: next(window(tokens, **g)))
        refusal(wrong, lambda g=given: next(pack(tokens, packs, **g)))
    for length in (0, -1, 101):
        refusal(length, lambda n=length: next(window(tokens, 1, n, seed=0)))
    for wrong in (
        *({"budget": 7}, {"processes": 3}, {"process": 1}, {"process": -1}),
        *({"bounds": [0, 8]}, {"bounds": 0}, {"bounds": []}, {"bounds": [-4, 8]}),
    ):
        given = {"bounds": [4, 8], "budget": 16, "seed": 0} | wrong
        message = refusal(wrong, lambda g=given: next(bucket(tokens, starts, **g)))
        assert "has no rows of [" in message, f"{wrong}: the sentence is {message}"
    for wrong in ([0, 40, 40, 100], [0], [0, 50, 40]):
        refusal(wrong, lambda w=wrong: packs_of(np.array(w), 8))
    refusal("length 0", lambda: packs_of(starts, 0))


BROKEN = [
    ("check_texts", "special_tokens = True", "special_tokens = False", "raises ValueError"),
    ("check_files", r'r"\r?\n(?:[ \t]*\r?\n)+"', r'r"\n\n"', "the documents of a folder"),
    ("check_files", "if again != text or stop in tokens:", "if False:", "lower case: goes through"),
    ("check_saved", "getsize(file) != whole", "getsize(file) % 2", "goes through"),
    ("check_blocks", "next(ends) >> 20", "next(ends) >> 30", "characters are encoded at once"),
    ("check_windows", "grid = view[rng.integers(length) :: length]", "grid = view[::2]", "twice"),
    ("check_packs", "number, within", "number, places % length", "the positions of a document"),
    ("check_packs", "tokens[source + 1]", "tokens[source]", "lost, repeated or changed"),
    ("check_grain", "[: self.sizes[index] + 1]", "[: self.sizes[index]]", "pieces are lost|raises"),
    ("check_buckets", "rows][process::processes]", "rows][: rows // processes]", "do not share"),
    ("check_model", 'embedding.at[targets].get(mode="fill")', "embedding[targets]", "target is"),
    (
        "check_many",
        "(start // ends[-1]):",
        "(start // ends[-1]):\n        kept = [(n, np.arange(1)) for n in range(ends[-1])]",
        "bytes of each",
    ),
    ("check_inputs", "lengths.min() < 1", "False", "goes through|raises"),
]
