"""What a reader copies from the TFDS lesson and its depth, on datasets that they do not have.

It runs in a process of its own: TensorFlow and PyTorch do not share one in every order.
"""

import itertools
import tempfile
from pathlib import Path

import feed_tensorflow_datasets as lesson
import feed_tensorflow_datasets_in_depth as depth
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_datasets as tfds
from expecting import refusal, refuses_lost_arrays, same, write_deep_rgb
from hypothesis import strategies as st
from hypothesis_cases import tried
from PIL import Image


def test_any_split():
    """A dict, a pair, what was filtered or mapped: its rows, as the seed and the step give them."""
    dataset = tf.data.Dataset
    images, rows = np.arange(90 * 6).astype(np.uint8).reshape(90, 2, 3), np.arange(90)
    whole = dataset.from_tensor_slices({"image": images, "more": {"row": rows}})
    for kind, split, left in (
        ("whole", whole, rows),
        ("filtered", whole.filter(lambda x: x["more"]["row"] % 3 > 0), rows[rows % 3 > 0]),
        ("a part", whole.skip(7).take(40), rows[7:47]),
        ("cached", whole.cache(), rows),
    ):
        arrays = {"image": images[left], "more": {"row": left}}
        for batch_size in (1, 7):
            order = depth.Batches(arrays, batch_size, seed=4)
            stream = depth.batches(split, batch_size, seed=4, start=3)
            found = [*itertools.islice(stream, 57)]
            for step, batch in enumerate(found, 3):
                assert same(batch, order[step]), f"{kind}: other rows"
                assert batch["more"]["row"].dtype == np.int32, f"{kind}: another dtype"


def test_refusals():
    """What cannot work raises a sentence when it is called, with the name of what is wrong."""
    batches = depth.batches
    dataset = tf.data.Dataset
    for says, split in (
        ("example['text'] is no dense", dataset.from_tensor_slices({"text": ["a", "b"]})),
        ("example[1] is no dense", dataset.from_tensors((1, tf.ragged.constant([[1], [2, 3]])))),
        (
            "example['id']: the array: 1099511627776",
            dataset.from_tensors({"id": np.int64(2**40)}),
        ),
        ("one split that ends", dataset.range(3).repeat()),
        ("one split that ends", {"train": dataset.range(3)}),
        ("different shapes", dataset.range(3).map(tf.range)),
        ("empty", dataset.range(0)),
    ):
        said = refusal(says, lambda split=split: batches(split, 1))
        assert says in said, f"the cause is not said: {said}"
    refusal("four of three", lambda: batches(dataset.range(3), 4))
    refusal("none", lambda: batches(dataset.range(3), 0))
    refusal("start=-1", lambda: batches(dataset.range(3), 1, start=-1))


def test_stored():
    """Examples of any features come back, each once, also by index, and a version stays."""
    features = {"x": tfds.features.Tensor(shape=(2,), dtype=np.float32), "row": np.int64}
    examples = [{"x": np.float32([n, -n]), "row": n} for n in range(23)]
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("tfrecord", "array_record"):
            given = f"own_{kind}", "1.0.0", features, iter(examples), folder
            builder = depth.stored(*given, file_format=kind)
            if kind == "tfrecord":
                found = depth.whole(builder.as_dataset(split="train"))
            else:
                found = depth.source_batches(builder.as_data_source("train"), 23)
                found = next(found)
            order = np.argsort(found["row"])
            assert np.array_equal(found["row"][order], range(23)), f"{kind}: other rows"
            assert np.array_equal(found["x"][order, 0], range(23)), f"{kind}: rows are mixed up"
        other = features | {"row": np.uint8}
        again = depth.stored("own_tfrecord", "1.0.0", other, iter(examples), folder)
        assert again.info.features["row"].np_dtype == np.int64, "read as it was not written"


class Source(list):
    """A data source of TFDS, as far as it is read."""

    def __getitems__(self, rows):
        return [self[row] for row in rows]


def test_arrays_that_would_be_lost():
    refuses_lost_arrays(depth.dataset_of)


SIZES = {
    "examples": st.integers(1, 90),
    "rows": st.integers(1, 9),
    "processes": st.integers(1, 4),
    "start": st.integers(0, 200),
}


def test_by_index():
    """A source goes by the step on any number of processes, and random numbers by the row."""

    def drawn(example, random):
        return example["row"], random.integers(2**31)

    @tried(4, **SIZES)
    def check(examples, rows, processes, start):
        source = Source({"row": np.int64(n)} for n in range(examples))
        together = rows * processes
        make, options = depth.source_batches, {"seed": 3, "start": start, "make": drawn}
        if together > examples:
            refusal("too few", lambda: make(source, rows, processes=processes))
            return
        stream = [*itertools.islice(make(source, together, **options), 5)]
        parts = [
            itertools.islice(make(source, rows, process=p, processes=processes, **options), 5)
            for p in range(processes)
        ]
        joined = [
            tuple(map(np.concatenate, zip(*split, strict=True)))
            for split in zip(*parts, strict=True)
        ]
        assert same(joined, stream), "processes differ from one"
        order = depth.Batches(np.arange(examples), together, seed=3)
        for step, (found, _) in enumerate(stream, start):
            assert np.array_equal(found, order[step]), "other rows"

    check()


def test_folder():
    """A photograph that cannot be decoded is named before the dataset is there; others come."""
    make = depth.dataset_of_folder
    with tempfile.TemporaryDirectory() as folder:
        (file := Path(folder, "photographs", "cat", "one.PNG")).parent.mkdir(parents=True)
        Path(folder, "photographs", "ant").mkdir()
        given = file.parent.parent, "own_folder"
        refusal("nothing", lambda: make(*given, "1.0.0", folder))
        file.write_text("no photograph")
        said = refusal("text", lambda: make(*given, "1.0.0", folder))
        assert "one.PNG" in said, f"the file is not named: {said}"
        Image.new("L", (80, 64), 99).save(file)
        skip = {"image": tfds.decode.SkipDecoding()}
        source = make(*given, "1.0.1", folder).as_data_source(split="train", decoders=skip)
        [[image], [label]] = next(depth.source_batches(source, 1, make=depth.random_square))
        assert (image == 99).all() and image.shape == (32, 32, 3), "other pixels"
        assert label == 1, "the empty class lost its number"
        file.parent.with_name("bee").mkdir()
        said = refusal("another class", lambda: make(*given, "1.0.1", folder))
        assert "has the classes" in said, f"the cause is not said: {said}"


def folder_of(tmp_path):
    (folder := tmp_path / "train" / "cat").mkdir(parents=True)
    return folder


def squares_in(tmp_path):
    """What the lesson reads of a folder, one example at a time."""
    skip = {"image": tfds.decode.SkipDecoding()}
    split = tfds.ImageFolder(str(tmp_path)).as_dataset(split="train", decoders=skip)
    return split.map(lesson.square, tf.data.AUTOTUNE).as_numpy_iterator()


def test_a_photograph_of_any_kind_becomes_an_upright_square(tmp_path):
    folder = folder_of(tmp_path)
    turned = Image.Exif()
    turned[0x0112] = 6  # the camera was held upright
    halves = np.zeros((64, 64, 3), np.uint8)
    halves[:32] = 255  # of the picture as it is stored: the right half when it is turned
    Image.fromarray(halves).save(folder / "turned.jpg", exif=turned, quality=95)
    [[image, label]] = squares_in(tmp_path)
    assert image.shape == (32, 32, 3) and image.dtype == np.uint8 and label == 0
    assert image[:, 20:].mean() - image[:, :12].mean() > 150, "it lies on its side"
    for mode in ("L", "P", "CMYK", "RGBA"):
        name = "one.jpeg" if mode == "CMYK" else f"{mode}.PNG"
        Image.fromarray(halves[:, :40]).convert(mode).save(folder / name)
    assert [image.shape for image, _ in squares_in(tmp_path)] == 5 * [(32, 32, 3)]


def test_a_photograph_that_cannot_be_decoded_is_named(tmp_path):
    folder = folder_of(tmp_path)
    Image.new("RGB", (40, 20)).save(folder / "whole.jpg")
    (folder / "cut.jpg").write_bytes((folder / "whole.jpg").read_bytes()[:200])
    (folder / "text.jpg").write_text("no photograph")
    Image.new("I;16", (9, 9)).save(folder / "gray.png")
    write_deep_rgb(folder / "deep.png")
    bad = "cut.jpg", "text.jpg", "gray.png", "deep.png"
    for name in (*bad, "missing.jpg"):
        said = refusal(name, lambda name=name: lesson.upright(folder / name))
        assert name in said, said
    for name in bad:
        for other in folder.iterdir():
            if other.name != name:
                other.rename(tmp_path / other.name)
        with pytest.raises(tf.errors.OpError, match=name):
            next(squares_in(tmp_path))
        for other in tmp_path.glob("*.*"):
            other.rename(folder / other.name)


def chain_of(columns, batch_size):
    """The chain of the short answer, on a new dataset, as in a new program."""
    rows = tf.data.Dataset.from_tensor_slices(columns)
    shuffled = rows.shuffle(len(rows), seed=0).repeat()
    return shuffled.batch(batch_size, drop_remainder=True).prefetch(2)


def test_the_chain_drops_nothing_and_a_checkpoint_resumes_it_in_any_epoch(tmp_path):
    """Of columns in an order that is not the alphabet's, also after a look at a batch."""
    columns = {"row": np.arange(23), "image": np.arange(46.0, dtype=np.float32).reshape(23, 2)}
    for batch_size, looks in itertools.product((1, 5, 23), (0, 1)):
        dataset = chain_of(columns, batch_size)
        for _ in range(looks):
            next(dataset.as_numpy_iterator())
        run = dataset.as_numpy_iterator()
        seen = []
        for step in range(60):
            if step in (0, 3, 24, 47):
                saved = tf.train.Checkpoint(iterator=run).write(f"{tmp_path}/{step}")
                resumed = chain_of(columns, batch_size).as_numpy_iterator()
                tf.train.Checkpoint(iterator=resumed).read(saved).assert_consumed()
            expected = next(run)
            assert same(next(resumed), expected), "another batch"
            assert [*expected] == ["row", "image"], "other columns"
            assert same(expected["image"][:, 0], expected["row"] * 2.0), "mixed up"
            seen += expected["row"].tolist()
        epochs = len(seen) // 23
        for epoch in np.reshape(seen[: epochs * 23], (epochs, 23)):
            assert sorted(epoch) == [*range(23)], "not each row once"


def test_disk_batches():
    """Whatever the names of its columns: each example once an epoch, and an exact start."""
    disk_batches = depth.disk_batches

    shape = tfds.features.Image(shape=(2, 2, 3), encoding_format="png")
    features = {"picture": shape, "number": np.int64}
    examples = [{"picture": np.full((2, 2, 3), n, np.uint8), "number": n} for n in range(41)]
    with tempfile.TemporaryDirectory() as folder:
        builder = depth.stored("own_disk", "1.0.0", features, examples, folder)
        columns = {"image": "picture", "label": "number"}
        run = [*itertools.islice(disk_batches(builder, 5, 1, 9, **columns), 24)]
        numbers = np.concatenate([labels for _, labels in run]).reshape(3, 40)
        assert all(len(np.unique(epoch)) == 40 for epoch in numbers), "rows twice"
        assert not np.array_equal(numbers[0], numbers[1]), "one order"
        for images, labels in run:
            assert (images == labels[:, None, None, None]).all(), "mixed up"
        for start in (3, 8, 13):
            resumed = disk_batches(builder, 5, 1, 9, start, **columns)
            assert same([*itertools.islice(resumed, 3)], run[start : start + 3]), "another start"
        part = disk_batches(builder, 5, 1, 9, process=1, processes=2, split="train[:21]", **columns)
        assert len(np.unique([labels for _, labels in itertools.islice(part, 2)])) == 10, "a part"
        refusal("42 of 41", lambda: disk_batches(builder, 42, 1, 9, **columns))
        refusal("none", lambda: disk_batches(builder, 0, 1, 9, **columns))
        refusal("start", lambda: disk_batches(builder, 5, 1, 9, -1, **columns))
