"""The cells to copy of the lesson on files and object storage, on other data and other stores."""

import contextlib
import io
import itertools
import json
import tarfile
import tempfile
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import hypothesis
import numpy as np
import torch
from copied_cells import refusal
from hypothesis import strategies as st
from hypothesis_cases import tried

from benchmarks.contract import Refused

DTYPES = ("uint8", "int16", "int32", "int64", "float32", "float64", "bool")
SHAPES = ((), (1,), (5,), (4, 3), (2, 3, 3))


# The stream ----------------------------------------------------------------------------------


def source_of(sizes):
    """Rows that are their own places."""
    parts = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
    return SimpleNamespace(sizes=sizes, read=lambda number: (parts[number], parts[number] * 2))


def taken(batches, steps, *arguments, **options):
    with contextlib.closing(batches(*arguments, **options)) as stream:
        return list(itertools.islice(stream, steps))


@tried(
    sizes=st.lists(st.integers(1, 40) | st.integers(1, 400), min_size=1, max_size=14),
    lanes=st.sampled_from([1, 2, 4, 6, 8]),
    rows=st.integers(1, 5),
    start=st.integers(0, 200),
    seed=st.integers(0, 99),
    ahead=st.integers(0, 3),
)
def check_rows(names, sizes, lanes, rows, start, seed, ahead) -> None:
    """An epoch has each row once, at any step, on any processes."""
    batches = names["batches"]
    source, batch_size = source_of(sizes), rows * lanes
    options = {"lanes": lanes, "ahead": ahead}
    if batch_size > sum(sizes):
        refusal("too few rows", lambda: taken(batches, 1, source, batch_size, seed, **options))
        return
    steps = sum(sizes) // batch_size
    whole = taken(batches, 2 * steps + 3, source, batch_size, seed, **options)
    assert all(np.array_equal(a * 2, b) for a, b in whole), "columns do not belong together."
    assert {len(a) for a, _ in whole} == {batch_size}, "batches have other sizes."
    places = np.array([a for a, _ in whole])
    for epoch in (places[:steps], places[steps : 2 * steps]):
        assert len(np.unique(epoch)) == epoch.size, "a row comes twice in an epoch."
    same = np.array_equal(places[:steps], places[steps : 2 * steps])
    assert not same or steps <= 3, "two epochs have the same order."
    if steps * batch_size > 50:
        other = taken(batches, 1, source, batch_size, seed + 1, **options)[0][0]
        same = np.array_equal(other, places[0])
        assert not same or len(sizes) <= 3, "another seed has the same order."
    start %= 2 * steps
    for processes in [n for n in (1, 2, 3, 4) if lanes % n == 0]:
        parts = [
            taken(batches, 3, source, batch_size, seed, start, p, processes, **options)
            for p in range(processes)
        ]
        for step, expected in enumerate(places[start : start + 3]):
            shares = [part[step][0] for part in parts]
            assert {len(share) for share in shares} == {batch_size // processes}, "unequal shares."
            same = np.array_equal(np.concatenate(shares), expected)
            assert same, f"{processes} processes do not share batch {start + step}."


def check_order(names) -> None:
    """Groups and rows follow the seed and the epoch, each on its own."""

    def epochs(sizes, seed):
        """The first two, of one lane: nothing but the two shuffles gives their order."""
        read = taken(names["batches"], 20, source_of(sizes), 10, seed, lanes=1)
        return [tuple(part) for part in np.concatenate([a for a, _ in read]).reshape(2, -1)]

    for said, sizes in {"rows of a group": [100], "groups": [1] * 100}.items():
        orders = [*epochs(sizes, 7), *epochs(sizes, 8), tuple(range(100))]
        assert len(set(orders)) == len(orders), f"{said}: another seed or epoch has the same order."
        assert epochs(sizes, 2**32)[0] != epochs(sizes, 0)[1], f"{said}: seed 2**32 is seed 0."
    pieces = [*itertools.islice(names["pieces_of"]([20] * 20, 1, 3, 0, 0, 1), 20)]
    order = [group for group, _ in pieces]
    assert order not in [chosen.tolist() for _, chosen in pieces], "groups are shuffled alike."


# Shards --------------------------------------------------------------------------------------


def same_array(found, written) -> bool:
    return found.dtype == written.dtype and np.array_equal(found, written)


def arrays_of(rows, dtype, shape, strided=False, first=0):
    count = rows * int(np.prod(shape, dtype=int))
    values = (np.arange(2 * count) + first).reshape(2 * rows, *shape).astype(dtype)
    return {"x": values[::2] if strided else values[:rows], "y": np.arange(rows) + first}


@tried(
    2,
    sizes=st.lists(st.integers(0, 30), min_size=1, max_size=9),
    in_shard=st.integers(1, 5),
    dtype=st.sampled_from(DTYPES),
    shape=st.sampled_from(SHAPES),
    strided=st.booleans(),
)
def check_shards(names, sizes, in_shard, dtype, shape, strided) -> None:
    """Arrays come back as they were written, group by group, but for empty groups."""
    hypothesis.assume(any(sizes))
    store = names["obstore"].store.MemoryStore()
    starts = np.cumsum([0, *sizes])
    groups = [
        arrays_of(n, dtype, shape, strided, int(at)) for n, at in zip(sizes, starts, strict=False)
    ]
    rows = names["write_shards"](iter(groups), store, "/a/b/", in_shard)
    source = names["Parquet"](store, "a/b/")
    groups, sizes = [group for group in groups if len(group["y"])], [*filter(None, sizes)]
    read = [source.read(number) for number in range(len(sizes))]
    assert rows == sum(sizes) and source.sizes == sizes, f"{rows} rows in groups of {source.sizes}."
    for group, columns in zip(groups, read, strict=True):
        for written, found in zip(group.values(), columns, strict=True):
            assert same_array(found, written), (
                f"{found.dtype} {found.shape} is not what was written."
            )
    objects = list(itertools.chain(*names["obstore"].list(store, "a/b")))
    assert len(objects) == -(-len(sizes) // in_shard), f"{len(objects)} objects."


def check_kinds(names) -> None:
    """Bytes of many lengths, with zeros at the end, and text."""

    def back(**group):
        store = names["obstore"].store.MemoryStore()
        names["write_shards"]([group], store, "p")
        return names["Parquet"](store, "p").read(0)

    texts = np.array([b"a\0b", b"ab"]), np.array(["a\0b", "ä"])  # Arrow ends at a NUL
    files = [b"", b"a\0\0", b"\0", b"abc"], ["ä", "", "b", "c"], np.arange(4)
    for columns in ([texts[0]], [texts[1]], files):
        read = back(**{str(number): column for number, column in enumerate(columns)})
        for written, found in zip(columns, read, strict=True):
            assert [*written] == [*found], f"text: {written} came back as {found}."
    for dtype in ("complex64", "datetime64[s]", "timedelta64[ms]", "U3", "S3", ">i4"):
        written = np.arange(6).reshape(3, 2).astype("i4").astype(dtype)
        [found] = back(x=written)
        assert same_array(found, written), f"{dtype}: {written} came back as {found}."


def check_own_files(names) -> None:
    """Parquet files that pandas, `datasets` and others have written."""
    pa, vectors = names["pa"], np.arange(24, dtype="float32")
    fixed, whole, other = pa.FixedSizeListArray.from_arrays, pa.array([1, 2]), pa.array([3.0, 4.0])

    def opened(*files):
        store = names["obstore"].store.MemoryStore()
        for number, columns in enumerate(files):
            sink, note = io.BytesIO(), {"pandas": f"file {number}"}  # of the index, in each file
            names["pq"].write_table(pa.table(columns).replace_schema_metadata(note), sink)
            names["obstore"].put(store, f"p/{number}.parquet", sink.getvalue())
        return names["Parquet"](store, "p")

    for name, column, shape in (
        ("vectors", fixed(pa.array(vectors), 4), (6, 4)),
        ("images", fixed(fixed(pa.array(vectors), 3), 2), (4, 2, 3)),
    ):
        [found] = opened({"x": column}).read(0)
        same = same_array(found, vectors.reshape(shape))
        assert same, f"{name}: came back as {found.dtype} {found.shape}."
    [found] = opened({"x": [[1, 2], [], [3]]}).read(0)
    assert [list(row) for row in found] == [[1, 2], [], [3]], f"lists: came back as {found}."
    for name, column in {
        "a missing value": pa.array([1, None, 3]),
        "a null in a list": pa.array([[1, None], [2, 3]]),
        "a null in a vector": fixed(pa.array([1, None, 2, 3]), 2),
        "a null for a list": pa.array([[1], None]),
        "a null in a list of lists": pa.array([[[1], [2, None]], [[3]]]),
    }.items():
        said = refusal(name, lambda c=column: opened({"wrong": c}).read(0))
        assert "'wrong'" in said, f"{name}: the column is not named: {said}"
    for name, first, second in (
        ("columns in another order", {"a": whole, "b": whole}, {"b": whole, "a": whole}),
        ("another dtype", {"a": whole}, {"a": other}),
        ("another column", {"a": whole}, {"a": whole, "b": whole}),
    ):
        refusal(name, lambda files=(first, second): opened(*files))
    opened({"a": whole}, {"a": whole})


def check_large_footer(names) -> None:
    """A footer of more than 64 kB: hundreds of groups of many columns."""
    store = names["obstore"].store.MemoryStore()
    columns = [f"a column with a long name, number {number}" for number in range(40)]
    groups = ({name: np.arange(2) + i for name in columns} for i in range(60))
    names["write_shards"](groups, store, "p", groups_in_shard=60)
    found = names["Parquet"](store, "p").read(59)
    assert [[*column] for column in found] == [[59, 60]] * 40, "a large footer: another group."


def check_copies(names) -> None:
    """A copy is whole, goes on, and asks for nothing that it has."""
    obstore = names["obstore"]
    store = obstore.store.MemoryStore()
    objects = {f"p/{i}/{i:03}.bin": bytes([i]) * (i * 1000) for i in range(12)}
    for path, data in objects.items():
        obstore.put(store, path, data)
    obstore.put(store, "q/other", b"x")
    with tempfile.TemporaryDirectory() as folder:
        half = Path(folder, "p/7/007.bin")
        half.parent.mkdir(parents=True)
        half.write_bytes(objects["p/7/007.bin"][:10])  # as an interrupted copy by others leaves it
        files = names["copied"](store, "p", folder)
        found = {str(file.relative_to(folder)): file.read_bytes() for file in files}
        assert found == {path: objects[path] for path in objects if objects[path]}, "it differs."
        times = [file.stat().st_mtime_ns for file in files]
        again = [file.stat().st_mtime_ns for file in names["copied"](store, "p", folder)]
        assert again == times, "what was there is copied again."
        every = {path for path in Path(folder).rglob("*") if path.is_file()}
        assert every == set(files), "the copy leaves other files behind."
        typo = refusal(
            "a wrong prefix", lambda: names["copied"](store, "z", folder), FileNotFoundError
        )
        assert "'z'" in typo, f"a wrong prefix: it is not named: {typo}"
    # What the page advises for a slow line is known to the client.
    names["S3Store"]("b", region="r", client_options={"timeout": "1h", "read_timeout": "30s"})


def check_killed_copy(names) -> None:
    """What a copy leaves that ends between its last byte and the file's name is no data."""
    obstore = names["obstore"]
    store, get = obstore.store.MemoryStore(), obstore.get
    names["write_shards"]([arrays_of(9, "uint8", (2,))], store, "p")

    def cut(*arguments, **options):
        yield get(*arguments, **options).bytes()
        raise InterruptedError

    with tempfile.TemporaryDirectory() as folder:
        with (
            mock.patch("os.getpid", return_value=1),  # another process
            mock.patch.object(Path, "unlink"),  # which has no time to clean up
            mock.patch.object(obstore, "get", cut),
            contextlib.suppress(InterruptedError),
        ):
            names["copied"](store, "p", folder)
        left = any(path.is_file() for path in Path(folder).rglob("*"))
        assert left, "a killed copy: nothing was written, so nothing is tried."
        names["copied"](store, "p", folder)
        sizes = names["Parquet"](names["LocalStore"](folder), "p").sizes
        assert sizes == [9], f"a killed copy: its rest is read as data, groups of {sizes}."


def check_without_etag(names) -> None:
    """A store that lists no ETag can be copied; `fetch` reads from it, too."""
    obstore = names["obstore"]
    store = obstore.store.MemoryStore()
    obstore.put(store, "p/a.bin", b"data")
    listed = [found | {"e_tag": None} for found in itertools.chain(*obstore.list(store, "p"))]
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.object(obstore, "list", lambda *_: iter([listed])),
    ):
        [file] = names["copied"](store, "p", folder)
        assert file.read_bytes() == b"data", "no ETag: the copy differs."


def check_writers(names) -> None:
    """Of two that write at once, one stops: no dataset is of both."""
    store = names["obstore"].store.MemoryStore()
    write, group = names["write_shards"], {"x": np.zeros(3)}

    def groups():  # the other one starts when this one has found the prefix empty
        write([{"x": np.ones(3)}] * 2, store, "p", groups_in_shard=1)
        yield group

    try:
        write(groups(), store, "p", groups_in_shard=1)
    except Exception as error:
        if "exist" not in str(error):
            raise Refused(f"a second writer: {error}") from error
    else:
        raise Refused("a second writer: overwrites the first.")
    assert names["Parquet"](store, "p").read(0)[0].sum() == 3, "a second writer: overwrites."


def check_version(names) -> None:
    """The version is the same for all who open the dataset, and another after each change."""
    obstore, Parquet = names["obstore"], names["Parquet"]
    store = obstore.store.MemoryStore()
    names["write_shards"]([arrays_of(9, "uint8", (2,), first=i) for i in range(3)], store, "p", 2)
    first = Parquet(store, "p").version
    assert Parquet(store, "p").version == json.loads(json.dumps(first)), "another version."
    data = bytes(obstore.get(store, "p/00000.parquet").bytes())
    obstore.put(store, "p/00000.parquet", data)
    assert Parquet(store, "p").version != first, "version: an object written anew changes nothing."


def check_forms(names) -> None:
    """Tar, TFRecord and ArrayRecord hold each example once."""
    import tensorflow as tf
    from array_record.python.array_record_module import ArrayRecordReader

    files = "cat/001.jpg", "dog/001.jpg", "IMG.1.jpg", "IMG.2.JPG", "a/b.c/7.png"
    examples = [
        (files[i % 5], bytes([i]) * (i * 100), (int, np.int32, np.uint8)[i % 3](i % 4))
        for i in range(12)
    ]
    records = [int(label).to_bytes(4, "little") + data for _, data, label in examples]
    with tempfile.TemporaryDirectory() as folder:
        tar, tfrecord = Path(folder, "a.tar"), Path(folder, "a.tfrecord")
        array_record = Path(folder, "a.array_record")
        names["write_tar"](examples, tar)
        names["write_records"](examples, tfrecord)
        names["write_records"](examples, array_record)
        with tarfile.open(fileobj=io.BytesIO(tar.read_bytes())) as opened:
            found = [(member.name, opened.extractfile(member).read()) for member in opened]
        expected = []  # a key of its own for each example, up to the first dot
        for i, (name, data, label) in enumerate(examples):
            expected += [(f"{i:06}{name[-4:]}", data), (f"{i:06}.cls", b"%d" % label)]
        assert found == expected, f"the tar holds {[name for name, _ in found]}."
        found = list(tf.data.TFRecordDataset(str(tfrecord)).as_numpy_iterator())
        assert found == records, "the TFRecord file differs."
        found = ArrayRecordReader(str(array_record)).read_all()
        assert found == records, "the ArrayRecord file differs."


# What cannot work ----------------------------------------------------------------------------


def check_inputs(names) -> None:
    """What cannot work gets one sentence."""
    obstore, batches, Parquet = names["obstore"], names["batches"], names["Parquet"]
    source = source_of([10, 7, 30])
    given = {"batch_size": 8, "seed": 0, "lanes": 4}
    for name, values in {
        "batch_size": (48, 0, 10),
        "lanes": (0, 3),
        "processes": (3, 8, 0),
        "process": (1, -1),
        "seed": (None, -1),
        "start": (-1,),
    }.items():
        for value in values:
            wrong = given | {name: value}
            refusal(f"{name}={value}", lambda w=wrong: taken(batches, 1, source, **w))
    store, write = obstore.store.MemoryStore(), names["write_shards"]
    group = {"x": np.arange(3)}
    write([group], store, "p")
    refusal("a prefix in use", lambda: write([group], store, "p"))
    refusal("unequal lengths", lambda: write([{"x": [1], "y": [1, 2]}], store, "u"))
    refusal("other columns", lambda: write([group, {"y": np.arange(3)}], store, "o"))
    turned = [{"x": np.zeros((2, 3, 4))}, {"x": np.zeros((2, 4, 3))}]
    refusal("other shapes", lambda: write(turned, store, "t", groups_in_shard=1))
    for said, column in {
        "pointers": np.array([["a", None]], object),
        "records": np.zeros((2, 2), [("a", "i4"), ("b", "i4")]),
        "bfloat16": names["jnp"].zeros((2, 3), "bfloat16"),
        "a row without a value": ["a", None],
        "a masked array": np.ma.masked_equal(np.arange(6).reshape(3, 2), 3),
        "a masked column": np.ma.masked_equal(np.arange(3), 1),
        "a PyTorch tensor": torch.zeros(3, 2),
    }.items():
        found = refusal(said, lambda c=column: write([{"x": c}], store, "k"))
        assert "'x'" in found, f"{said}: the column is not named."
    unequal = {"x": np.zeros((8, 2)), "y": np.zeros(12)}
    refusal("columns of unequal length", lambda: [*names["groups_of"](unequal, 4)])
    refusal("no object", lambda: Parquet(store, "nothing"), FileNotFoundError)
    obstore.put(store, "bad/a.parquet", b"no parquet at all")
    said = refusal("another file", lambda: Parquet(store, "bad"))
    assert "bad/a.parquet" in said, "another file: its name is not said."
    data = bytes(obstore.get(store, "p/00000.parquet").bytes())
    obstore.put(store, "half/a.parquet", data[: len(data) // 2])
    refusal("half a file", lambda: Parquet(store, "half"))
    opened = Parquet(store, "p")
    obstore.delete(store, "p/00000.parquet")
    refusal("an object that is gone", lambda: opened.read(0), FileNotFoundError)


BROKEN = [
    ("check_rows", "chosen[max(begin - low, 0) :]", "chosen", "do not share"),
    ("check_rows", "range(process * share, (process + 1) * share)", "range(share)", "not share"),
    ("check_order", "seed, epoch, 1, lane, group)", "seed, 0, 1, lane, group)", "rows of a group"),
    ("check_order", "SeedSequence(seed, spawn_key=key)", "SeedSequence((seed, *key))", "seed 2"),
    ("check_shards", 'about[b"dtype"].decode()', "np.uint8", "is not what was written|raises"),
    ("check_kinds", 'elif kind in "SU":', "elif False:", "text: .* came back"),
    ("check_large_footer", "return footer_of(store, file, fetch, needed)", "pass", "raises"),
    ("check_shards", "filter(len, map(as_table, groups))", "map(as_table, groups)", "raises"),
    ("check_writers", ', mode="create"', "", "a second writer: overwrites"),
    ("check_own_files", "if flat.null_count:", "if column.null_count:", "in a list: goes through"),
    ("check_own_files", "schema.equals(first, True)", "True", "goes through"),
    ("check_version", 'f["e_tag"], n]', 'f["size"], n]', "written anew changes nothing"),
    ("check_copies", "if not file.exists() or", "if True or", "copied again"),
    (
        "check_killed_copy",
        ".{file.name}.{uuid.uuid4().hex}",
        ".{os.getpid()}-{file.name}",
        "its rest|check_killed_copy raises",
    ),
    ("check_without_etag", ' if found["e_tag"] else None', "", "check_without_etag raises"),
    ("check_forms", '{number:06}{suffix}"', '{Path(name).stem}{suffix}"', "the tar holds"),
    ("check_inputs", "if seed is None or min(seed, start) < 0:", "if False:", "goes through"),
]
