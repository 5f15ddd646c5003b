"""What a reader copies from the PyTorch lesson and its depth, on datasets that they do not have."""

import collections
import io
import itertools
import tempfile
import zlib
from pathlib import Path

import feed_pytorch_dataloader as lesson
import feed_pytorch_dataloader_in_depth as depth
import jax
import numpy as np
import pytest
import torch
from expecting import png_chunk, refusal, same, write_deep_rgb
from hypothesis import strategies as st
from hypothesis_cases import tried
from PIL import Image
from torch.utils.data import ConcatDataset, DataLoader, IterableDataset, Subset, TensorDataset
from torchdata.stateful_dataloader import StatefulDataLoader

Pair = collections.namedtuple("Pair", ["image", "label"])


class Stream(IterableDataset):
    def __iter__(self):
        return iter(range(9))


def test_any_dataset():
    """Whatever indexed dataset: its examples, stacked, of the rows that the seed and step give."""
    images = np.arange(30 * 6, dtype=np.uint8).reshape(30, 2, 3)
    labels = np.arange(30) * 7 % 5
    pairs = list(zip(images, labels, strict=True))
    for kind, dataset in {
        "a list": pairs,
        "tensors": TensorDataset(*map(torch.from_numpy, (images, labels))),
        "two datasets": ConcatDataset([pairs[:11], pairs[11:]]),
        "a part": Subset(pairs + pairs[:7], range(30)),
        "numbers": [(image, int(label)) for image, label in pairs],
    }.items():
        for batch_size in (1, 2, 7):
            order = depth.Batches(np.arange(30), batch_size, seed=4)
            stream = depth.batches(dataset, batch_size, seed=4, start=3)
            for step, (found, of) in enumerate(itertools.islice(stream, 40), 3):
                assert np.array_equal(found, images[order[step]]), f"{kind}: other images"
                assert np.array_equal(of, labels[order[step]]), f"{kind}: other labels"
                assert (found.dtype, of.dtype) == (np.uint8, np.int32), f"{kind}: other dtypes"
    for dataset in (
        [{"image": image, "more": {"label": label}} for image, label in pairs],
        [Pair(*pair) for pair in pairs],
    ):
        found, rows = next(depth.batches(dataset, 7)), depth.Batches(np.arange(30), 7)[0]
        assert type(found) is type(dataset[0]), "the batch has lost its structure"
        assert same(jax.tree.leaves(found), [images[rows], labels[rows]]), "mixed up"


def test_ends_and_refusals():
    """It ends where it is told to, and refuses when it is called what cannot work."""
    batches, rows = depth.batches, list(range(20))
    assert len([*batches(rows, 4, start=3, stop=9)]) == 6, "another number of steps"
    refusal("too few", lambda: batches(rows, 21))
    refusal("no rows", lambda: batches(rows, 0))
    refusal("nothing", lambda: batches([], 1))
    refusal("a stream", lambda: batches(Stream(), 4), TypeError)
    refusal("text", lambda: next(batches(["cat", "dog"], 2)))
    refusal("33 bits", lambda: next(batches([2**33, 1], 2)))


def test_arrays():
    """`array_batches` gives what `batches` gives, and refuses arrays of two lengths at once."""
    images = np.asfortranarray(np.arange(24 * 12, dtype=np.float32).reshape(24, 3, 4))
    labels = np.arange(24)
    one_by_one = depth.batches(list(zip(images, labels, strict=True)), 5, seed=2, start=3)
    whole = depth.array_batches((images, labels), 5, seed=2, start=3)
    for _ in range(12):
        assert same([*next(whole)], [*next(one_by_one)]), "another batch"
    refusal("100 labels for 24 images", lambda: depth.array_batches((images, range(9)), 5))
    refusal("two lengths", lambda: depth.array_batches((images, np.arange(100)), 5))


def test_labels():
    """The shared model trains and tests on labels 0 to C - 1, one for each image, or refuses."""
    images, labels = np.zeros((8, 4), np.uint8), np.arange(8, dtype=np.int32) % 3
    params = depth.init_params(jax.random.key(0), (4, 5, 3))
    weights = np.ones(8, bool)

    def counted(right):
        return depth.count_right(params, images, right, weights, 1)

    for use in (
        lambda labels: depth.train(params, [(images, labels)], 1),
        lambda labels: depth.accuracy(params, images, labels, 1),
        counted,
    ):
        use(labels)
        for said, wrong in {
            "-1": labels - 1,
            "-100": np.where(labels, labels, -100),
            "as many as classes": labels + 1,
            "a column": labels[:, None],
            "too many": np.append(labels, 0),
            "too few": labels[1:],
        }.items():
            refusal(said, lambda wrong=wrong, use=use: use(wrong))
    batches = [(jax.device_put(images), jax.device_put(labels))]
    depth.train(params, batches, 1)


SIZES = {
    "examples": st.integers(1, 90),
    "rows": st.integers(1, 9),
    "processes": st.integers(1, 4),
    "epoch": st.integers(0, 3),
}


def test_processes_and_epochs():
    """All processes together have the batch of one, and `InEpochs` the epochs of the stream."""

    @tried(4, **SIZES)
    def check(examples, rows, processes, epoch):
        together, data = rows * processes, range(examples)
        if together > examples:
            refusal("too few", lambda: depth.batches_of(data, rows, 0, 0, 0, processes))
            return
        steps = examples // together
        first, last = epoch * steps, (epoch + 1) * steps
        stream = [*depth.batches(data, together, start=first, stop=last)]
        parts = [
            itertools.islice(depth.batches_of(data, rows, 0, first, p, processes), steps)
            for p in range(processes)
        ]
        joined = [np.concatenate(split) for split in zip(*parts, strict=True)]
        assert same(joined, stream), "processes differ from one"
        assert len(set(np.concatenate(stream).tolist())) == steps * together, "rows twice"
        sampler = depth.InEpochs(data, together)
        sampler.set_epoch(epoch)
        assert len(sampler) == steps and same([*sampler], [s.tolist() for s in stream]), "epochs"

    check()


def test_state():
    """A state saved anywhere, also where an epoch ends, goes on with the very next batch."""
    rows = range(22)
    whole = [*depth.batches(rows, 5, stop=13)]

    def loader(state=None):
        made = StatefulDataLoader(rows, batch_sampler=depth.Steps(rows, 5))
        if state:
            made.load_state_dict(state)
        return made

    for stop in (1, 3, 4, 5, 8):  # an epoch has four steps
        first = loader()
        seen = [*map(depth.to_numpy, itertools.islice(first, stop))]
        again = loader(first.state_dict())
        seen += map(depth.to_numpy, itertools.islice(again, 2))
        third = loader(again.state_dict())
        seen += map(depth.to_numpy, itertools.islice(third, 2))
        assert same(seen, whole[: stop + 4]), f"other batches after a state at {stop}"


def test_seeded_transforms():
    """What `BySeed` gives follows from the index, in any order and whatever was drawn before."""
    BySeed = depth.BySeed
    Noisy = depth.Noisy

    keys = [(seed, epoch, row) for seed in (0, 1) for epoch in (0, 1) for row in range(8)]
    dataset = BySeed(Noisy())
    found = {key: dataset[key] for key in keys}
    draws = np.array([drawn[1:] for drawn in found.values()])
    assert len(np.unique(draws)) == draws.size, "two examples share a number"
    torch.manual_seed(9), np.random.seed(9)
    for key in reversed(keys):
        assert np.array_equal(dataset[key], found[key]), "another example the second time"
    with_loader = DataLoader(dataset, 4, sampler=keys[:4])
    assert np.array_equal(next(iter(with_loader)), [found[key] for key in keys[:4]])


def damaged(kind: str) -> bytes:
    """A photograph whose pixels are good, and whose file is unusual."""
    Image.new("RGB", (80, 64), (9, 99, 199)).save(written := io.BytesIO(), "PNG")
    png = written.getvalue()
    chunk = png_chunk(b"zTXt", b"note\0\0" + zlib.compress(bytes(2_000_000)))
    at = png.index(b"IDAT") - 4
    return png[:at] + chunk + png[at:] if kind == "text" else png + b"\0" * 9


def test_photographs():
    """A file that Pillow does not open, whatever it raises, is named; stray bytes do no harm."""
    upright = lesson.upright

    with tempfile.TemporaryDirectory() as folder:
        (file := Path(folder, "class", "photo.png")).parent.mkdir()
        file.write_bytes(damaged("bytes behind the end"))
        [[image], [label]] = next(depth.file_batches(folder, 1, 8))
        assert (image == (9, 99, 199)).all() and label == 0, "other pixels"
        file.write_bytes(damaged("text"))
        for call in (lambda: next(depth.file_batches(folder, 1, 8)), lambda: upright(file)):
            said = refusal("a text too long", call)
            assert "photo.png" in said, f"the file is not named: {said}"
        write_deep_rgb(file)
        for call in (lambda: next(depth.file_batches(folder, 1, 8)), lambda: upright(file)):
            said = refusal("16 bits a channel", call)
            assert "photo.png" in said, f"the file is not named: {said}"
        file.write_bytes(damaged("bytes behind the end"))
        (hidden := Path(file.parent, ".ipynb_checkpoints", "photo.png")).parent.mkdir()
        hidden.write_bytes(file.read_bytes())
        (deep := Path(hidden.parent, "deep", "photo.png")).parent.mkdir()
        deep.write_bytes(file.read_bytes())
        refusal("one photograph", lambda: depth.file_batches(folder, 2, 8))
        for place in (folder, file.parent):
            (notes := Path(place, "notes.txt")).write_text("")
            said = refusal("a file beside", lambda: depth.file_batches(folder, 1, 8))
            assert "notes.txt" in said, f"the file is not named: {said}"
            notes.unlink()


def test_row_batches():
    """From any step on, the rows of `Batches`; each row once in an epoch; too few rows raise."""

    @tried(4, **SIZES)
    def check(examples, rows, processes, epoch):
        start = epoch * (examples // rows) + 1
        stream = lesson.row_batches(examples, rows, processes, start)
        if rows > examples:
            said = refusal("too few", lambda: next(stream))
            assert said == f"{examples} rows do not fill a batch of {rows}"
            return
        batches = depth.Batches(np.arange(examples), rows, seed=processes)
        for step, found in enumerate(itertools.islice(stream, 30), start):
            assert found == batches[step].tolist(), "other rows than Batches"

    check()
    refusal("no rows", lambda: next(lesson.row_batches(5, 0, 0)))
    refusal("before the first", lambda: next(lesson.row_batches(5, 2, 0, start=-1)))


def test_collate():
    """Pairs and dicts, of arrays, tensors or numbers, keep their dtypes, order and names."""
    images = np.arange(7 * 6, dtype=np.uint8).reshape(7, 2, 3)
    labels = np.arange(7) % 3
    tensors = TensorDataset(torch.from_numpy(images).float(), torch.from_numpy(labels))
    for kind, dataset, dtype in (
        ("arrays", list(zip(images, labels, strict=True)), np.uint8),
        (
            "numbers",
            [(image, int(label)) for image, label in zip(images, labels, strict=True)],
            "B",
        ),
        ("tensors", tensors, np.float32),
    ):
        loader = DataLoader(dataset, 3, collate_fn=lesson.numpy_collate)
        found = [*loader]
        assert [len(rows) for rows, _ in found] == [3, 3, 1], kind
        assert all(type(column) is np.ndarray for batch in found for column in batch), kind
        assert same(np.concatenate([rows for rows, _ in found]), images.astype(dtype)), kind
        assert same(np.concatenate([rows for _, rows in found]), labels), kind
    rows = [{"z": image, "a": label} for image, label in zip(images, labels, strict=True)]
    batch = next(iter(DataLoader(rows, 7, collate_fn=lesson.collate_columns)))
    assert list(batch) == ["z", "a"] and same([*batch.values()], [images, labels])
    unequal = [(np.zeros(2), 0), (np.zeros(3), 1)]
    refusal("shapes", lambda: next(iter(DataLoader(unequal, 2, collate_fn=lesson.numpy_collate))))


class DrawnTogether(torch.utils.data.Dataset):
    """Each reading of a row draws once, for both columns; it never raises an IndexError."""

    def __init__(self):
        self.random = np.random.default_rng(0)

    def __len__(self):
        return 9

    def __getitem__(self, row):
        drawn = self.random.integers(1_000)
        return {"image": np.full(2, drawn), "mask": drawn}


def test_columns_of_one_reading():
    """Columns that one reading drew stay together, of a batch and of a whole dataset."""
    for examples in (DrawnTogether(), [DrawnTogether()[0] for _ in range(4)]):
        found = lesson.collate_columns(examples)
        assert len(found["mask"]) == len(examples)
        assert (found["image"] == found["mask"][:, None]).all(), "a row was read twice"


@pytest.mark.parametrize("rows", [5, 6, 7, 23])
def test_array_rows(rows):
    """A batch is a gather: the rows of the order, of any number of arrays, in their dtypes."""
    arrays = np.arange(rows * 6, dtype=np.uint8).reshape(rows, 2, 3), np.arange(rows), np.ones(rows)
    for count in (1, 2, 3):
        dataset = lesson.ArrayRows(*arrays[:count])
        assert len(dataset) == rows
        assert same(dataset[rows - 1], tuple(array[rows - 1] for array in arrays[:count]))
        order = list(itertools.islice(lesson.row_batches(rows, 5, seed=1), 9))
        loader = DataLoader(dataset, batch_sampler=order, collate_fn=lesson.unchanged)
        for batch, expected in zip(loader, order, strict=True):
            assert same(batch, tuple(array[expected] for array in arrays[:count]))
            assert [column.dtype for column in batch] == [array.dtype for array in arrays[:count]]
    refusal("two lengths", lambda: lesson.ArrayRows(arrays[0], arrays[1][1:]))
