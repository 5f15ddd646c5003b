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
import pyarrow.parquet as pq
import pytest
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


def rows_of(stream, count):
    """The column `row` of the next `count` batches, as lists."""
    return [batch["row"].tolist() for batch in itertools.islice(stream, count)]


def views():
    """Datasets whose rows are not those of their table, by the rows that are left."""
    whole = Dataset.from_dict({"row": np.arange(90), "name": [f"{n}" for n in range(90)]})
    split = whole.train_test_split(0.3, seed=2)
    return [
        whole,
        whole.filter(lambda row: row["row"] % 3),
        whole.select([7, 80, 9, 33, 1]),
        whole.shard(4, 1, contiguous=False),
        whole.shuffle(seed=1).select(range(20)),
        split["train"],
        split["test"].with_format("torch"),
    ]


def test_batches_from():
    """Each row that is left once in an epoch, in a new order; and the same from any step on."""
    for view in views():
        left = view.with_format(None)["row"][:]
        rows = view.select_columns("row").with_format("numpy", dtype=None)
        for batch_size in (1, 3, len(left)):
            steps = len(left) // batch_size
            whole = rows_of(lesson.batches_from(rows, batch_size), 3 * steps)
            parts = whole[:steps], whole[steps : 2 * steps], whole[2 * steps :]
            epochs = [[row for batch in part for row in batch] for part in parts]
            for epoch in epochs:
                assert len({*epoch}) == len(epoch) == steps * batch_size, "not each row once"
                assert {*epoch} <= {*left}, "rows that were taken out"
            several = 3 if len(left) > 5 else 2  # of few rows there are few orders
            assert len({*map(tuple, epochs)}) >= several, "epochs have the same order"
            for step in (1, steps - 1, steps, steps + 1, 2 * steps, 3 * steps - 1):
                resumed = lesson.batches_from(rows, batch_size, step)
                assert rows_of(resumed, 3 * steps - step) == whole[step:], "another batch"
    rows = Dataset.from_dict({"row": range(4)}).with_format("numpy")
    for few in ((5,), (2, 0, 0, 3)):
        said = refusal("too few", lambda few=few: next(lesson.batches_from(rows, *few)))
        assert said.startswith("4 rows do not fill a batch of"), said
    refusal("none left", lambda: next(lesson.batches_from(rows.select([]), 1)))


def test_batches_from_for_processes():
    """Any number of processes shares each global batch, in as many steps, from any step on."""
    for total, global_batch in itertools.product((23, 24, 25, 39), (6, 12)):
        rows = Dataset.from_dict({"row": range(total)}).with_format("numpy")
        alone = rows_of(lesson.batches_from(rows, global_batch), 12)
        for processes, step in itertools.product((1, 2, 3, 6), (0, 1, 4, 7)):
            size = global_batch // processes
            parts = [
                rows_of(lesson.batches_from(rows, size, step, process, processes), 12 - step)
                for process in range(processes)
            ]
            joined = [sorted(itertools.chain(*batches)) for batches in zip(*parts, strict=True)]
            assert joined == [sorted(batch) for batch in alone[step:]], "other rows"
    refusal("a process too many", lambda: next(lesson.batches_from(rows, 2, 0, 2, 2)))


def test_batches_from_of_other_columns():
    """A batch has the dtypes of the format, all columns by name, and what a transform makes."""
    kinds = Features(b=Array2D((2, 3), "uint8"), a=Value("float16"), c=Value("bool"))
    columns = {"b": np.arange(24).reshape(4, 2, 3), "a": [0.5] * 4, "c": [True, False] * 2}
    rows = Dataset.from_dict(columns, kinds)
    kept = next(lesson.batches_from(rows.with_format("numpy", dtype=None), 2))
    assert {name: column.dtype.name for name, column in kept.items()} == {
        "b": "uint8",
        "a": "float16",
        "c": "bool",
    }
    changed = next(lesson.batches_from(rows.with_format("numpy"), 2))
    assert (changed["b"].dtype, changed["a"].dtype) == (np.int64, np.float32), (
        "say it in the lesson"
    )
    numbers = Dataset.from_dict({"row": range(20)})
    twice = numbers.with_transform(lambda rows: {"row": np.array(rows["row"]) * 2})
    order = lesson.batches_from(numbers.with_format("numpy"), 6)
    expected = [[2 * row for row in batch] for batch in rows_of(order, 7)]
    assert rows_of(lesson.batches_from(twice, 6), 7) == expected, "other rows"


def test_squares():
    """Photographs of any size and mode become equal squares, upright, with their labels."""
    exif = Image.Exif()
    exif[0x0112] = 6  # turned to the right
    images = []
    for size, mode in (((40, 30), "RGB"), ((9, 70), "L"), ((5, 5), "P"), ((33, 32), "CMYK")):
        Image.new("RGB", size, (200, 200, 200)).convert(mode).save(png := io.BytesIO(), "TIFF")
        images.append({"bytes": png.getvalue()})
    half = Image.new("RGB", (40, 40))
    half.paste((255, 255, 255), (0, 0, 20, 40))  # white on the left, so above when turned
    half.save(png := io.BytesIO(), "JPEG", exif=exif)
    images.append({"bytes": png.getvalue()})
    kinds = Features(image=datasets.Image(mode="RGB"), label=Value("int32"))
    rows = Dataset.from_dict({"image": images, "label": [4, 3, 2, 1, 0]}, kinds)
    batch = next(lesson.batches_from(rows.with_transform(lesson.squares), 5))
    pixels = batch["image"][np.argsort(-batch["label"])]
    assert pixels.shape == (5, 32, 32, 3) and pixels.dtype == np.uint8, pixels.shape
    assert np.abs(pixels[:4].astype(int) - 200).max() < 5, "other colours"  # P has 204
    assert pixels[4, :14].min() > 200 and pixels[4, -14:].max() < 50, "it is not upright"
    small = lesson.squares({"image": [half], "label": [7]}, size=8)
    assert small["image"].shape == (1, 8, 8, 3) and small["label"].tolist() == [7]


def test_changes_without_an_error():
    """What the lesson says that the library does in silence, on other data; or say so there."""
    kinds = {"a": [7, None], "b": ["x", None], "c": [[1], [2, 3]], "d": [2**24 + 1, -1]}
    rows = Dataset.from_dict(kinds)
    kept = rows.with_format("numpy", dtype=None)[:]
    assert [column.dtype.kind for column in kept.values()] == ["f", "O", "O", "i"]
    assert rows.with_format("numpy", dtype=np.float32)["d"][:].tolist() == [2**24, -1]
    for name, says in {"a": "NaN", "b": "numbers", "c": "numbers"}.items():
        said = refusal(name, lambda name=name: lesson.Batches({name: kept[name]}, 1))
        assert f"'{name}'" in said and says in said, said
    for labels in (kept["a"], kept["b"], kept["d"]):
        refusal("labels", lambda labels=labels: lesson.check_labels(labels, 2**25))
    structs = Dataset.from_dict({"x": [{"a": 1}, {"a": 2}]})
    assert structs.with_format("numpy")["x"][:].dtype == object
    assert structs.flatten().with_format("numpy")["x.a"][:].tolist() == [1, 2]
    names = Dataset.from_dict({"x": range(12)}).class_encode_column("x").features["x"].names
    assert names[:4] == ["0", "1", "10", "11"], names
    ordered = Dataset.from_dict({"row": range(99)})
    assert ordered.shuffle(seed=1)["row"][:] == ordered.shuffle(seed=1)["row"][:]
    runs = [
        ordered.shuffle(generator=np.random.default_rng(key), keep_in_memory=True)["row"][:]
        for key in ((0, 1), (0, 1), (1, 0))
    ]
    assert runs[0] == runs[1] != runs[2], "the generator gives other orders"


@pytest.mark.parametrize("values", [["b", "a", "cat"], [10, 2, 7], ["4", "10", "-1"]])
def test_classes_of_two_splits(values):
    """The test has the numbers of the training part; what is no class of it is named."""
    train = Dataset.from_dict({"label": values}).class_encode_column("label")
    kind = train.features["label"]
    for test in (values[::-1], values[1:], [*values, values[0]], [values[0]] * 3):
        found = lesson.cast_labels(Dataset.from_dict({"label": test}), kind)
        assert kind.int2str(found["label"][:]) == [str(value) for value in test]
    for unknown in ("1", "0", "zebra"):
        test = Dataset.from_dict({"label": [str(values[0]), unknown]})
        said = refusal("an unknown class", lambda test=test: lesson.cast_labels(test, kind))
        assert f"'{unknown}'" in said


def folder_of(folder, names):
    for name in names:
        file = Path(folder, name)
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (4, 4)).save(file)


def test_names_of_a_folder(tmp_path):
    """`data_files` finds every photograph; a stray one costs the labels, as the lesson says."""
    reads = {"path": "imagefolder", "cache_dir": str(tmp_path / "cache")}
    words = "train/0.png", "red-test/0.png", "val/0.png", "bus/test_1.png"
    folder_of(tmp_path / "words", words)
    every = datasets.load_dataset(data_files=f"{tmp_path}/words/**", split="train", **reads)
    assert every.features["label"].names == ["bus", "red-test", "train", "val"]
    assert len(every) == 4
    by_name = datasets.load_dataset(data_dir=f"{tmp_path}/words", **reads)
    assert {*by_name} > {"train"}, "names decide about no split: say so in the lesson"
    for stray in ("stray.png", "bus/old/0.png"):
        folder = tmp_path / stray.replace("/", "-")
        folder_of(folder, ["bus/0.png", "car/0.png", stray])
        place = {"data_files": f"{folder}/**", "split": "train"} | reads
        rows = datasets.load_dataset(**place)
        assert [*rows.features] == ["image"], f"labels in spite of {stray}: say so in the lesson"
        kept = datasets.load_dataset(**place, drop_labels=False).features["label"].names
        assert len(kept) == 3 and {*kept} > {"bus", "car"}, "the stray one has no class of its own"
    folder_of(tmp_path / "two", ["train/a/0.png", "train/b/0.png", "test/b/0.png"])
    both = datasets.load_dataset(data_dir=f"{tmp_path}/two", **reads)
    assert both["test"]["label"][:] == [1], "the test numbers its classes by itself"


@pytest.mark.parametrize("empty", [0, 1, 2])
def test_a_parquet_file_without_rows(tmp_path, empty):
    """It adds nothing, wherever it stands among the others, read into the cache or streamed."""
    parts = [[1, 2, 3], [4, 5]]
    parts.insert(empty, [])
    for number, rows in enumerate(parts):
        table = pa.table({"row": pa.array(rows, pa.int64())})
        pq.write_table(table, tmp_path / f"{number}.parquet")
    place = {"path": "parquet", "data_files": f"{tmp_path}/*.parquet", "split": "train"}
    place |= {"cache_dir": str(tmp_path / "cache"), "batch_size": 1_000}
    rows = datasets.load_dataset(**place).with_format("numpy")
    assert rows["row"][:].tolist() == [1, 2, 3, 4, 5]
    assert sorted(rows_of(lesson.batches_from(rows, 5), 1)[0]) == [1, 2, 3, 4, 5]
    stream = datasets.load_dataset(**place, streaming=True)
    for epoch in (0, 1):
        tables = depth.shuffled_stream(stream, 0, epoch, 2).iter(2)
        seen = [row for table in tables for row in table["row"].to_pylist()]
        assert sorted(seen) == [1, 2, 3, 4, 5], "other rows from the stream"
    assert depth.steps_of_all([*map(len, parts)], 2, 0, 0, 1) == (2, 1)


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
            stream = depth.batches(view, batch_size, start=steps, stop=3 * steps, **options)
            found = [*stream]
            assert len(found) == 2 * steps, "another number of steps"
            order = depth.Batches(np.array(left), batch_size, seed=3)
            for step, (twice, rows) in enumerate(found, steps):
                assert np.array_equal(rows, order[step]), "other rows, or in another order"
                assert np.array_equal(twice, rows * 2), "columns are mixed up"
    for in_memory in (True, False):
        chosen = whole.with_format("numpy", columns=["row"])
        (rows,) = next(depth.batches(chosen, 90, in_memory=in_memory))
        assert np.array_equal(np.sort(rows), numbers), "other columns than those asked for"


def test_refusals():
    """What JAX cannot take is refused when it is called, by its column, with the right cause."""
    batches = depth.batches
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
    order = depth.Batches(np.arange(20), 6)
    stream = depth.batches(twice, 6, in_memory=False)
    for step, (found,) in enumerate(itertools.islice(stream, 9)):
        assert np.array_equal(found, 2 * order[step]), "other rows"
    drawn = rows.with_transform(lambda rows: {"x": np.random.rand(len(rows["row"]))})
    two = np.sort(np.reshape([*itertools.islice(depth.batches(drawn, 20), 2)], (2, 20)))
    assert (two[0] != two[1]).all(), "one draw for all epochs"
    unequal = rows.with_transform(lambda rows: {"x": [np.zeros(n % 2) for n in rows["row"]]})
    said = refusal("shapes", lambda: next(depth.batches(unequal, 6, in_memory=False)))
    assert "'x'" in said and "(0,)" in said, said


def test_dataset_of():
    """Arrays come back as they were, whatever their layout; a mask is no array of numbers."""
    make, columns_of = depth.dataset_of, depth.columns_of
    values = np.where(np.arange(32).reshape(8, 2, 2) % 5, 1.0, -9999.0).astype(np.float32)
    labels = np.arange(8, dtype=np.int32)
    for given in (values, values.astype(">f4"), np.asfortranarray(values), values[:, 0]):
        found, of = columns_of(make(given, labels.astype(">i8")))
        assert np.array_equal(found, given) and np.array_equal(of, labels), "other numbers"
        assert (found.dtype, of.dtype) == (np.float32, np.int32), "other dtypes"
    masked = np.ma.masked_equal(values, -9999)
    assert "has a mask" in refusal("a mask", lambda: make(masked, labels))
    refusal("nine labels", lambda: make(values, np.arange(9)))


@pytest.mark.parametrize("kind", ["uint8", "int64", "float32", "bool"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (1, 2, 5)])
def test_array_of(kind, shape):
    """Columns of one shape are the arrays they were: whole, chosen, cut, joined, of no row."""
    random = np.random.default_rng(0)
    values = random.integers(0, 2, (37, *shape)).astype(kind)
    feature = Value(kind)
    for length in reversed(shape):
        feature = List(feature, length=length)
    rows = Dataset.from_dict({"x": values.tolist()}, features=Features(x=feature))
    chosen = random.permutation(37)[:11]
    for dataset, expected in {
        rows: values,
        rows.select(chosen): values[chosen],
        rows.select(range(5, 20)): values[5:20],
        datasets.concatenate_datasets([rows, rows.select([4])]): [*values, values[4]],
        rows.select([]): values[:0],
    }.items():
        found = depth.array_of(dataset.with_format("arrow")[:]["x"])
        assert found.dtype == kind and np.array_equal(found, np.reshape(expected, found.shape))
        assert found.shape == (len(dataset), *shape)


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
        batch = next(depth.batches(rows, 2, in_memory=in_memory))
        found = [(array.dtype.name, array.shape) for array in batch]
        assert found == [("bool", (2,)), ("uint8", (2, 2, 3)), ("float16", (2,))], found
