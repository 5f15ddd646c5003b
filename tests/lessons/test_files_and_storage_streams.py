"""What a reader copies from the lesson on files and storage: streams of any source."""

import io
import itertools
import tarfile
import tempfile
from pathlib import Path

import feed_files_and_storage as lesson
import feed_files_and_storage_in_depth as depth
import numpy as np
import obstore
import pyarrow as pa
import pyarrow.parquet as pq
from expecting import refusal
from hypothesis import strategies as st
from hypothesis_cases import tried
from storage_made import memory, source_of, taken


@tried(
    4,
    sizes=st.lists(st.integers(0, 40) | st.integers(1, 400), min_size=1, max_size=14),
    batch_size=st.integers(1, 30),
    processes=st.integers(1, 5),
    mix=st.integers(1, 9),
    start=st.integers(0, 200),
    seed=st.integers(0, 99),
)
def test_rows(sizes, batch_size, processes, mix, start, seed):
    """An epoch has each row once, on any number of processes, and any step can be the first."""
    batches, source = lesson.batches, source_of(sizes)
    steps = sum(sizes) // (batch_size * processes)
    options = {"processes": processes, "mix": mix}
    if not steps:
        refusal("too few rows", lambda: batches(source, batch_size, seed, **options))
        return
    streams = [
        taken(batches, 2 * steps + 3, source, batch_size, seed, process=process, **options)
        for process in range(processes)
    ]
    assert all(len(batch["x"]) == batch_size for stream in streams for batch in stream)
    places = np.array([[batch["x"] for batch in stream] for stream in streams])
    twice = np.array([[batch["y"] for batch in stream] for stream in streams])
    assert np.array_equal(2 * places, twice), "columns do not belong together."
    for epoch in (places[:, :steps], places[:, steps : 2 * steps]):
        assert len(np.unique(epoch)) == epoch.size, "a row comes twice in an epoch."
    if sum(sizes) > 60:
        same = np.array_equal(places[:, :steps], places[:, steps : 2 * steps])
        assert not same or steps < 4, "two epochs have the same order."
    start %= 2 * steps
    for process, stream in enumerate(streams):
        options["process"] = process
        resumed = taken(batches, 3, source, batch_size, seed, start, **options)
        for batch, expected in zip(resumed, stream[start:], strict=False):
            assert np.array_equal(batch["x"], expected["x"]), f"from step {start} others come."


def test_order():
    """Groups and rows follow the seed and the epoch, each on its own; what is left out changes."""

    def epochs(sizes, seed, steps=10, **options):
        read = taken(lesson.batches, 2 * steps, source_of(sizes), 10, seed, **options)
        return [tuple(part) for part in np.array([a["x"] for a in read]).reshape(2, -1)]

    for said, sizes in {"rows of a group": [100], "groups": [1] * 100}.items():
        orders = [*epochs(sizes, 7, mix=1), *epochs(sizes, 8, mix=1), tuple(range(100))]
        assert len(set(orders)) == len(orders), f"{said}: another seed or epoch has the same order."
        other = epochs(sizes, 2**32, mix=1)[0] != epochs(sizes, 0, mix=1)[1]
        assert other, f"{said}: seed 2**32 is seed 0."
    one, two = (set(range(109)) - set(epoch) for epoch in epochs([109], 0))
    assert one != two, "each epoch leaves out the same rows."
    [mixed, _] = epochs([50, 50], 0, mix=2)
    halves = (np.array(mixed).reshape(10, 10) < 50).mean(axis=1)
    assert 0.1 < halves.std() + 0.1 < 0.4 and halves.min() > 0, "two groups are not mixed."


def test_reads():
    """An epoch reads each group once, and one more for each border between two processes."""
    read, source = [], source_of([20] * 30)
    part = source.read
    source.read = lambda number: read.append(number) or part(number)
    for process in range(4):
        taken(lesson.batches, 15, source, 10, process=process, processes=4, mix=1)
    assert len(read) < 30 + 3 + 4 * 2, f"{len(read)} groups are read of 30."


# Files of others -----------------------------------------------------------------------------


def test_own_files():
    """Parquet files of others: numbers and lists of one length; nulls are named, wherever."""
    fixed = pa.FixedSizeListArray.from_arrays

    def groups(column, rows=2):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "x.parquet")
            pq.write_table(pa.table({"x": column}), file)
            found = [group["x"] for group in lesson.groups_in([file], rows)]
        return np.concatenate(found)

    for column in (
        np.arange(5, dtype=np.uint8),
        np.arange(5) / 3,
        np.arange(5) > 2,
        [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]],
        pa.array([[1, 2], [3, 4]], pa.large_list(pa.int64())),
        fixed(pa.array(np.arange(12)), 4),
        [[[1, 2, 3]], [[4, 5, 6]]],
    ):
        found, expected = groups(column), np.array(pa.array(column).to_pylist())
        same = np.array_equal(found, expected) and (found.dtype != object)
        assert same, f"{expected.tolist()} came back as {found.tolist()}."
    for said, column in {
        "a missing value": pa.array([1, None, 3]),
        "a missing truth": pa.array([True, None]),
        "a null in a list": pa.array([[1.0, None], [2.0, 3.0]]),
        "a null in a vector": fixed(pa.array([1, None, 2, 3]), 2),
        "a null for a list": pa.array([[1], None]),
    }.items():
        found = refusal(said, lambda column=column: groups(column))
        assert "'x'" in found and "x.parquet" in found, f"{said}: {found}"
    for said, column in {"lists": [[1], [2, 3]], "lists of lists": [[[1], [2, 3]]]}.items():
        found = refusal(f"{said} of many lengths", lambda column=column: groups(column))
        assert "'x'" in found and "[1, 2]" in found, f"{said} of many lengths: {found}"
    with tempfile.TemporaryDirectory() as folder:
        twice = pa.table([pa.array([1, 2]), pa.array([3, 4])], names=["x", "x"])
        pq.write_table(twice, file := Path(folder, "x.parquet"))
        refusal("two columns of one name", lambda: [*lesson.groups_in([file], 2)], KeyError)
    group = {"x": groups(["a", "b"])}
    refusal("text", lambda: lesson.write_shards([group], memory(), "p"))


# What cannot work ----------------------------------------------------------------------------


def test_inputs():
    """What cannot work raises at the call, in one sentence that names it."""
    source = source_of([10, 7, 30])
    given = {"batch_size": 8, "seed": 0}
    for name, values in {
        "batch_size": (48, 0, -3),
        "processes": (6, 0),
        "process": (1, -1),
        "seed": (-1,),
        "start": (-1,),
        "mix": (0,),
    }.items():
        for value in values:
            wrong = given | {name: value}
            said = refusal(f"{name}={value}", lambda w=wrong: lesson.batches(source, **w))
            assert f"{name}={value}" in said, f"{name}={value} is not named: {said}"
    write, group = lesson.write_shards, {"x": np.arange(3)}
    for said, groups in {
        "no groups": [],
        "no columns": [{}],
        "a dict in place of dicts": group,
        "a tuple": [(np.arange(3), np.arange(3))],
        "unequal lengths": [{"x": [1], "y": [1, 2]}],
        "other columns": [group, {"y": np.arange(3)}],
        "other shapes": [{"x": np.zeros((2, 3, 4))}, {"x": np.zeros((2, 4, 3))}],
        "other dtypes": [group, {"x": np.zeros(3)}],
    }.items():
        store = memory()
        refusal(said, lambda g=groups, s=store: write(g, s, "p"))
        refusal(said, lambda s=store: lesson.Shards(s, "p"), FileNotFoundError)


def test_seven_shards():
    """Seven unequal shards on three processes."""
    sizes = [90, 1, 400, 17, 233, 50, 8]
    ends = np.cumsum(sizes)
    rows = [{"x": np.arange(b - a, b)} for a, b in zip(sizes, ends, strict=True)]
    store = memory()
    lesson.write_shards(rows, store, "seven")
    source = lesson.Shards(store, "seven")
    steps = sum(sizes) // 30
    three = [
        taken(lesson.batches, steps, source, 10, process=process, processes=3)
        for process in range(3)
    ]
    seen = [batch["x"] for stream in three for batch in stream]
    assert len(np.unique(seen)) == 30 * steps > sum(sizes) - 30, "rows are lost, or come twice."


# Sources of the depth ------------------------------------------------------------------------


def put_parquet(store, path, columns, **options):
    pq.write_table(pa.table(columns), file := io.BytesIO(), **options)
    obstore.put(store, path, file.getvalue())


def test_parquet():
    """Seven files of unequal length on three processes; columns, nulls and versions."""
    Parquet = depth.Parquet
    store = memory()
    ends = np.cumsum([0, 90, 1, 400, 17, 233, 50, 8])
    for first, last in itertools.pairwise(ends):
        rows = np.arange(first, last)
        columns = {
            "row": rows,
            "vector": pa.FixedSizeListArray.from_arrays(np.repeat(rows, 3).astype("f4"), 3),
            "list": np.repeat(rows, 2).reshape(-1, 2).tolist(),
            "holes": pa.array([None] * len(rows), pa.int32()),
            "image": [{"bytes": b"%d" % row, "path": None} for row in rows],
        }
        put_parquet(store, f"p/{first:04}.parquet", columns, row_group_size=60)
    said = refusal("nulls", lambda: Parquet(store, "p"))
    assert "'holes'" in said and "0000" in said, f"nulls: where is not said: {said}"
    refusal("nulls in a field", lambda: Parquet(store, "p", ["image"]))
    for name in ("rows", "ro", "image.byte", "image.bytes.x"):
        said = refusal(f"no column {name}", lambda name=name: Parquet(store, "p", ["row", name]))
        assert repr(name) in said, f"no column {name}: {said}"
    put_parquet(store, "s/a.parquet", {"x": [1, None]}, write_statistics=False)
    said = refusal("a file without statistics", lambda: Parquet(store, "s"))
    assert "does not count" in said, f"a file without statistics: {said}"
    source = Parquet(store, "p", ["row", "vector", "list", "image.bytes"])
    seen = []
    for process in range(3):
        for batch in taken(lesson.batches, 799 // 30, source, 10, process=process, processes=3):
            rows = batch["row"]
            seen.extend(rows.tolist())
            assert (batch["vector"] == rows[:, None]).all(), "vectors are of other rows."
            assert batch["list"].shape == (10, 2) and (batch["list"] == rows[:, None]).all()
            assert [*batch["image"]] == [b"%d" % row for row in rows], "bytes are of other rows."
    assert len(set(seen)) == len(seen) == 799 // 30 * 30, "rows are lost, or come twice."
    version = Parquet(store, "p", ["row"]).version
    assert Parquet(store, "p", ["row"], version).sizes == source.sizes
    assert Parquet(store, "p", ["list"]).version != version, "other columns have the same version."
    put_parquet(store, "p/9.parquet", {"row": [1]})
    refusal("other columns", lambda: Parquet(store, "p", ["row"]))
    obstore.delete(store, "p/9.parquet")
    put_parquet(store, "p/0000.parquet", columns)
    refusal("a changed file", lambda: Parquet(store, "p", ["row"], version))
    refusal("no file", lambda: Parquet(store, "z"), FileNotFoundError)
    obstore.put(store, "bad/a.parquet", b"no parquet at all, but longer than that")
    assert "bad/a" in refusal("another file", lambda: Parquet(store, "bad"))
    put_parquet(store, "r/a.parquet", {"x": [[1], [2, 3]]})
    said = refusal("lists of many lengths", lambda: Parquet(store, "r").read(0))
    assert "'x'" in said, f"lists of many lengths: {said}"


def put_tar(store, path, members):
    with tarfile.open(fileobj=(made := io.BytesIO()), mode="w") as tar:
        for name, data in members:
            member = tarfile.TarInfo(name)
            member.type = tarfile.DIRTYPE if data is None else tarfile.REGTYPE
            member.size = len(data or b"")
            tar.addfile(member, io.BytesIO(data or b""))
    obstore.put(store, path, made.getvalue())


def test_tar():
    """Files of one key are one example, in whatever order they stand; what lacks one is named."""

    def decode(files):
        return {"text": np.frombuffer(files["txt"], np.uint8), "row": int(bytes(files["cls"]))}

    store, number = memory(), itertools.count()
    for shard, count in enumerate([9, 1, 40, 17, 23, 5, 8]):
        rows = [next(number) for _ in range(count)]
        texts = [(f"a/b.c/{row:04}.txt", b"%04d" % row) for row in rows]
        kinds = [(f"a/b.c/{row:04}.cls", b"%d" % row) for row in rows]
        order = [
            kinds + texts,
            texts[::-1] + kinds,
            [*itertools.chain(*zip(kinds, texts, strict=True))],
        ]
        put_tar(store, f"p/{shard}.tar", [("a/", None), ("a/b.c/", None), *order[shard % 3]])
    assert depth.index_tars(store, "p") == 103, "an example is lost."
    source, seen = depth.Tar(store, "p", decode, rows=6), []
    for process in range(3):
        for batch in taken(lesson.batches, 103 // 12, source, 4, process=process, processes=3):
            texts = [int(bytes(text)) for text in batch["text"]]
            assert texts == batch["row"].tolist(), "files of two examples are paired."
            seen.extend(texts)
    assert len(set(seen)) == len(seen) == 103 // 12 * 12, "rows are lost, or come twice."
    version = source.version
    put_tar(store, "p/6.tar", [("x.txt", b"0000"), ("x.cls", b"1")])
    depth.index_tars(store, "p")
    refusal("a changed tar", lambda: depth.Tar(store, "p", decode, version=version))
    put_tar(store, "half/0.tar", [("1.cls", b"1"), ("1.txt", b""), ("2.txt", b"")])
    said = refusal("a text without a class", lambda: depth.index_tars(store, "half"))
    assert "/2" in said and "half/0.tar" in said, f"the example is not named: {said}"
    refusal("no tar", lambda: depth.index_tars(store, "z"), FileNotFoundError)
    put_tar(store, "twice/0.tar", [("1.cls", b"1"), ("1.txt", b""), ("1.cls", b"2")])
    said = refusal("a file twice", lambda: depth.index_tars(store, "twice"))
    assert "1.cls" in said and "twice/0.tar" in said, f"a file twice: {said}"
    for path in ("p/6.tar", "p/7.tar"):  # written after the list of their members
        put_tar(store, path, [("y.txt", b"0001"), ("y.cls", b"1")])
        said = refusal("a newer tar", lambda: depth.Tar(store, "p", decode))
        assert path in said, f"a newer tar is not named: {said}"
        depth.index_tars(store, "p")
    put_tar(store, "bad/0.tar", [("1.cls", b"no number"), ("1.txt", b"0001")])
    depth.index_tars(store, "bad")
    try:
        depth.Tar(store, "bad", decode).read(0)
    except ValueError as error:
        assert "bad/0.tar" in str(error.__notes__), "the tar of a damaged example is not named."
    else:
        raise AssertionError("a damaged example: goes through.")


@tried(
    4,
    sizes=st.lists(st.integers(0, 90), min_size=1, max_size=9),
    rows=st.integers(1, 60),
    piles=st.integers(1, 20),
    seed=st.integers(0, 99),
)
def test_shuffled(sizes, rows, piles, seed):
    """Each row comes once, with its others, in an order that follows the seed."""
    source = source_of(sizes)
    with tempfile.TemporaryDirectory() as folder:

        def shuffled(seed):
            groups = map(source.read, range(len(sizes)))
            found = [*depth.shuffled(groups, rows, folder, piles, seed)]
            assert all(0 < len(group["x"]) <= rows for group in found), "groups are too large."
            return [np.concatenate([g[n] for g in found] or [[]]) for n in "xy"]

        x, y = shuffled(seed)
        assert np.array_equal(np.sort(x), np.arange(sum(sizes))), "a row is lost, or comes twice."
        assert np.array_equal(2 * x, y), "columns do not belong together."
        assert np.array_equal(shuffled(seed)[0], x), "the same seed has another order."
        if len(x) > 60:
            places = np.corrcoef(x, np.arange(len(x)))[0, 1]
            assert abs(places) < 0.6 and (shuffled(seed + 1)[0] != x).any(), "it is not shuffled."
        assert not [*Path(folder).iterdir()], "files are left behind."
    unequal = [{"x": np.arange(3), "y": np.arange(4)}]
    refusal("unequal lengths", lambda: [*depth.shuffled(unequal, 2, None)])


def test_parts():
    """A step has the same rows on any number of processes that divides the parts."""
    source, steps = source_of([70, 3, 200, 41, 9]), 323 // 36
    found = {}
    for processes in (1, 2, 3, 4):
        found[processes] = [set() for _ in range(steps)]
        for process in range(processes):
            stream = depth.in_parts(source, 3, 12, process, processes)
            for step, batch in enumerate(itertools.islice(stream, steps)):
                assert len(batch["x"]) == 36 // processes, "a process has another number of rows."
                found[processes][step] |= set(batch["x"].tolist())
    assert all(of == found[1] for of in found.values()), "other processes have other rows."
    assert len(set().union(*found[1])) == steps * 36, "a row comes twice."
    refusal("parts", lambda: next(depth.in_parts(source, 3, 12, 0, 5)))
