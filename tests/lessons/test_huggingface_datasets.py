"""What a reader copies from the Hugging Face lesson and its depth, on data they do not have."""

import io
import itertools
import json
import tempfile
from pathlib import Path

import datasets
import feed_huggingface_datasets as lesson
import feed_huggingface_datasets_in_depth as depth
import numpy as np
import pyarrow as pa
from datasets import Array2D, ClassLabel, Dataset, DatasetDict, Features, List, Value
from datasets.distributed import split_dataset_by_node
from expecting import refusal
from PIL import Image

from benchmarks import contract

SHARDS = [40, 9, 1, 26, 13]  # rows of each: no number of processes divides them
TOTAL = sum(SHARDS)


def uneven():
    """A stream of unequal shards: from_generator makes one of each element of a list."""

    def rows_of(ends):
        for end, count in ends:
            for row in range(end - count, end):
                yield {"row": row}

    ends = list(zip(np.cumsum(SHARDS).tolist(), SHARDS, strict=True))
    return datasets.IterableDataset.from_generator(rows_of, gen_kwargs={"ends": ends})


def test_rows_that_are_left():
    """After filter, select, shard, shuffle, map: these rows, each once, read once or by batch."""
    numbers = np.arange(90, dtype=np.int32)
    whole = Dataset.from_dict({"row": numbers, "name": [f"{n}" for n in numbers]})
    whole = whole.map(lambda row: {"twice": row["row"] * 2}).select_columns(["twice", "row"])
    for view in (
        whole,
        whole.filter(lambda row: row["row"] % 3),
        whole.select([7, 80, 9, 33, 1]),
        whole.shard(4, 1, contiguous=False),
        whole.shuffle(seed=1).select(range(20)),
        whole.train_test_split(0.3, seed=2)["train"].with_format("torch"),
    ):
        left = view.with_format(None)["row"][:]
        for batch_size, in_memory in itertools.product((1, 5), (True, False)):
            steps = len(left) // batch_size
            options = {"seed": 3, "in_memory": in_memory}
            stream = lesson.batches(view, batch_size, start=steps, stop=3 * steps, **options)
            found = [*stream]
            assert len(found) == 2 * steps, "another number of steps"
            order = lesson.Batches(np.array(left), batch_size, seed=3)
            for step, (twice, rows) in enumerate(found, steps):
                assert np.array_equal(rows, order[step]), "other rows, or in another order"
                assert np.array_equal(twice, rows * 2), "columns are mixed up"
    for in_memory in (True, False):
        chosen = whole.with_format("numpy", columns=["row"])
        (rows,) = next(lesson.batches(chosen, 90, in_memory=in_memory))
        assert np.array_equal(np.sort(rows), numbers), "other columns than those asked for"


def test_refusals():
    """What JAX cannot take is refused when it is called, by its column, with the right cause."""
    batches = lesson.batches
    pair, label = List(Value("float32"), length=2), ClassLabel(names=["cat", "dog"])
    two = Features(x=pair, y=Value("float32"))
    for says, columns, features in (
        ("null", {"x": [[1, 2], [1, 2]], "y": [1, None]}, two),
        ("null", {"x": [[1, None], [1, 2]], "y": [1, 2]}, two),
        ("null", {"x": [[1, 2], None], "y": [1, 2]}, two),
        ("null", {"x": [1, None]}, None),
        ("null", {"x": [None, True]}, None),
        ("null", {"x": [None, "cat"]}, None),
        ("shapes", {"x": [[1], [1, 2]]}, None),
        ("<U3", {"x": ["cat", "dog"]}, None),
        ("|S3", {"x": [b"cat", b"dog"]}, None),
        ("-1", {"x": [0, -1]}, Features(x=label)),
        ("-1", {"x": [[0, 1], [1, -1]]}, Features(x=List(label))),
    ):
        rows = Dataset.from_dict(columns, features)
        said = refusal(f"{columns}", lambda rows=rows: batches(rows, 2))
        name = "'y'" if columns.get("y") == [1, None] else "'x'"
        assert says in said and name in said, f"the cause of {columns} is not said: {said}"
        each = refusal(f"{columns}", lambda rows=rows: next(batches(rows, 2, in_memory=False)))
        assert each == said, f"another cause, batch by batch: {each}"
        assert ("class_encode" in said) == (says == "<U3"), f"another way out: {said}"
    said = refusal("41 bits", lambda: batches(Dataset.from_dict({"x": [2**40, 1]}), 1))
    assert "'x'" in said, f"the column is not named: {said}"
    times = Dataset(pa.table({"x": pa.array([1, 2]).cast("duration[ns]")}))
    assert "timedelta64" in refusal("a duration", lambda: batches(times, 1))
    rows = Dataset.from_dict({"x": range(4)})
    refusal("five of four", lambda: batches(rows, 5))
    refusal("none", lambda: batches(rows, 0, in_memory=False))
    refusal("no rows", lambda: batches(rows.select([]), 1))
    assert "DatasetDict" in refusal("splits", lambda: batches(DatasetDict(train=rows), 2))
    assert "Iterable" in refusal("a stream", lambda: batches(rows.to_iterable_dataset(), 2))


def test_transforms():
    """A transform sees the rows of each batch, and what it makes is checked like a column."""
    rows = Dataset.from_dict({"row": range(20)})
    twice = rows.with_transform(lambda rows: {"twice": [2 * row for row in rows["row"]]})
    order = lesson.Batches(np.arange(20), 6)
    stream = lesson.batches(twice, 6, in_memory=False)
    for step, (found,) in enumerate(itertools.islice(stream, 9)):
        assert np.array_equal(found, 2 * order[step]), "other rows"
    drawn = rows.with_transform(lambda rows: {"x": np.random.rand(len(rows["row"]))})
    two = np.sort(np.reshape([*itertools.islice(lesson.batches(drawn, 20), 2)], (2, 20)))
    assert (two[0] != two[1]).all(), "one draw for all epochs"
    unequal = rows.with_transform(lambda rows: {"x": [np.zeros(n % 2) for n in rows["row"]]})
    said = refusal("shapes", lambda: next(lesson.batches(unequal, 6, in_memory=False)))
    assert "'x'" in said and "(0,)" in said, said


def test_dataset_of():
    """Arrays come back as they were, whatever their layout; a mask is no array of numbers."""
    make, columns_of = depth.dataset_of, lesson.columns_of
    values = np.where(np.arange(32).reshape(8, 2, 2) % 5, 1.0, -9999.0).astype(np.float32)
    labels = np.arange(8, dtype=np.int32)
    for given in (values, values.astype(">f4"), np.asfortranarray(values), values[:, 0]):
        found, of = columns_of(make(given, labels.astype(">i8")))
        assert np.array_equal(found, given) and np.array_equal(of, labels), "other numbers"
        assert (found.dtype, of.dtype) == (np.float32, np.int32), "other dtypes"
    masked = np.ma.masked_equal(values, -9999)
    assert "has a mask" in refusal("a mask", lambda: make(masked, labels))
    refusal("nine labels", lambda: make(values, np.arange(9)))


def test_texts():
    """Texts are padded as the contract says."""
    contract.check_text(depth.text_batches)
    large = Dataset.from_dict({"tokens": [[2**40], [1]]})
    refusal("a token of 41 bits", lambda: next(depth.text_batches(large, 2, length=1, seed=0)))


def resumed(stops, *order) -> list[int]:
    """The rows of an epoch, stopped after as many batches, and gone on by the state of each."""
    seen, state = [], None
    for stop in (*stops, None):
        stream = depth.shuffled_stream(uneven(), 5, *order, state=state)
        for table in itertools.islice(stream.iter(4), stop):
            seen += table["row"].to_pylist()
        state = json.loads(json.dumps(stream.state_dict()))
    return seen


def skipped(stops, epoch, _, process, processes) -> list[int]:
    """The same by the library's shuffle and `skip`, as it is printed everywhere."""
    seen = []
    for stop in (*stops, None):
        stream = split_dataset_by_node(uneven(), process, processes).shuffle(
            5, buffer_size=8, max_buffer_input_shards=1
        )
        stream.set_epoch(epoch)
        if seen:
            stream = stream.skip(len(seen))
            stream.set_epoch(epoch)
        seen += [row["row"] for row in itertools.islice(stream, stop and 4 * stop)]
    return seen


def test_states():
    """Two resumes are exact in epochs 0, 1, 2 on 1 to 4 processes; by `skip` they are not."""
    for processes in (1, 2, 3, 4):
        orders = set()
        for epoch in (0, 1, 2):
            parts = [(epoch, 7, process, processes) for process in range(processes)]
            whole = [row for part in parts for row in resumed((), *part)]
            found = [row for part in parts for row in resumed((1, 2), *part)]
            assert sorted(whole) == [*range(TOTAL)], f"epoch {epoch} is not each row once"
            assert found == whole, f"a resume of epoch {epoch} on {processes} processes differs"
            by_skip = [row for part in parts for row in skipped((1, 2), *part)]
            exact = sorted(by_skip) == [*range(TOTAL)]
            assert exact <= (epoch == 0), "skip has become exact: say so in the lesson"
            orders.add(tuple(whole))
        assert len(orders) == 3, "epochs have the same order"
    assert resumed((), 0, 7) != [*range(TOTAL)], "nothing is shuffled"


def test_streams_across_epochs():
    """Batches go on over the end of an epoch, also from each state; another seed is refused."""
    stream = depth.stream_batches(uneven(), 6, seed=2, block=7)
    whole = list(itertools.islice(stream, 40))
    rows = [table["row"].to_pylist() for table, _ in whole]
    assert rows[:14] != rows[14:28] != rows[28:], "epochs have the same order"
    for stop in (1, 13, 14, 15, 28):  # an epoch has fourteen batches
        state = json.loads(json.dumps(whole[stop - 1][1]))
        again = depth.stream_batches(uneven(), 6, seed=2, state=state, block=7)
        for (one, _), (other, _) in zip(whole[stop : stop + 9], again, strict=False):
            assert one.equals(other), f"other batches after a state at {stop}"
    for said, size, other in (
        ("another seed", 6, {"seed": 3, "block": 7}),
        ("another block", 6, {"seed": 2, "block": 8}),
        ("another batch size", 7, {"seed": 2, "block": 7}),
    ):
        again = depth.stream_batches(uneven(), size, state=state, **other)
        refusal(said, lambda again=again: next(again))
    refusal("six processes", lambda: next(depth.stream_batches(uneven(), 2, processes=6)))
    refusal("too large", lambda: next(depth.stream_batches(uneven(), 200)))


def test_held_out():
    """Rows held out by a filter are none of the others, in their types; `take` is refused."""
    kinds = Features(
        row=Value("int32"), label=ClassLabel(num_classes=3), image=Array2D((2, 2), "uint8")
    )
    numbers = np.arange(90)
    columns = {"row": numbers, "label": numbers % 3, "image": np.full((90, 2, 2), 7)}
    columns["image"] += numbers[:, None, None]
    rows = Dataset.from_dict(columns, kinds).to_iterable_dataset(num_shards=4)
    for chosen in (rows.skip(20), rows.take(20), rows.skip(20).map(lambda row: row)):
        for make in (
            lambda chosen=chosen: depth.shuffled_stream(chosen, 0, 0),
            lambda chosen=chosen: next(depth.stream_batches(chosen, 8)),
        ):
            assert "filter" in refusal("take or skip", make)
    one = Dataset.from_dict(columns, kinds).to_iterable_dataset().skip(20)
    rest = rows.filter(lambda row: row["row"] >= 20)
    renamed = rest.rename_column("image", "pixels")
    for stream in (one, rest, renamed):
        found = []
        for table in depth.shuffled_stream(stream, 0, 0, 16).iter(8):
            row, label, image = depth.arrays_of(table, stream.features)
            assert (row.dtype, label.dtype, image.dtype) == (np.int32, np.int32, np.uint8)
            assert np.array_equal(label, row % 3), "other labels"
            assert (image == (row + 7)[:, None, None]).all(), "other images"
            found += row.tolist()
        assert sorted(found) == [*range(20, 90)] != found, "other rows"


def test_steps_of_all():
    """The common number of steps is the smallest that a process has, in each epoch."""
    for epoch, processes in itertools.product((0, 1, 2), (1, 2, 3, 4)):
        steps, lost = depth.steps_of_all(SHARDS, 3, 5, epoch, processes)
        found = []
        for process in range(processes):
            stream = depth.shuffled_stream(uneven(), 5, epoch, 7, process, processes)
            found.append(sum(1 for _ in stream.iter(3, drop_last_batch=True)))
        assert steps == min(found), f"{steps} steps, but the processes have {found}"
        assert lost == TOTAL - 3 * steps * processes, "another loss"
    steps, _ = depth.steps_of_all(SHARDS, 3, 5, 0, 2)
    options = {"steps": steps, "processes": 2}
    parts = [depth.stream_batches(uneven(), 3, 5, process=p, **options) for p in range(2)]
    ends = [[s["epoch"] for _, s in itertools.islice(part, steps + 1)] for part in parts]
    assert ends == [[0] * steps + [1]] * 2, "the processes are in different epochs"


def test_photographs():
    """A null, a file that is none and a label that is null are named; bytes and paths are alike."""
    make = depth.photograph_batches
    Image.new("RGB", (40, 30), (9, 99, 199)).save(png := io.BytesIO(), "PNG")
    kinds = Features(image=datasets.Image(), label=Value("int64"))
    with tempfile.TemporaryDirectory() as folder:
        (file := Path(folder, "photo.png")).write_bytes(png.getvalue())
        bad = Path(folder, "bad.png")
        bad.write_bytes(png.getvalue()[:60])
        images = [{"bytes": png.getvalue()}, {"path": str(file)}]
        rows = Dataset.from_dict({"image": images, "label": [3, 4]}, kinds)
        pixels, labels = next(make(rows, 2, 8, 0))
        assert (pixels == (9, 99, 199)).all() and sorted(labels) == [3, 4], "other photographs"
        for image, label, says in (
            ({"path": str(bad)}, 1, "bad.png"),
            (None, 1, "row 1"),
            ({"path": str(file)}, None, "null"),
        ):
            columns = {"image": [images[0], image], "label": [0, label]}
            rows = Dataset.from_dict(columns, kinds)
            said = refusal(says, lambda rows=rows: next(make(rows, 2, 8, 0, workers=1)))
            assert says in said, f"it is not named: {said}"


def test_formats():
    """An array column and a table of any number of columns keep their dtypes and their order."""
    kinds = Features(b=Array2D((2, 3), "uint8"), a=Value("float16"), c=Value("bool"))
    columns = {"b": np.arange(24).reshape(4, 2, 3), "a": [0.5] * 4, "c": [True, False] * 2}
    rows = Dataset.from_dict(columns, kinds).select_columns(["c", "b", "a"])
    for in_memory in (True, False):
        batch = next(lesson.batches(rows, 2, in_memory=in_memory))
        found = [(array.dtype.name, array.shape) for array in batch]
        assert found == [("bool", (2,)), ("uint8", (2, 2, 3)), ("float16", (2,))], found
