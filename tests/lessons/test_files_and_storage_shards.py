"""What a reader copies from the lesson on files and storage: shards, and copies of files."""

import contextlib
import os
import tempfile
from pathlib import Path
from unittest import mock

import feed_files_and_storage as lesson
import numpy as np
import obstore
from expecting import refusal
from hypothesis import strategies as st
from hypothesis_cases import tried
from storage_made import arrays_of, memory

DTYPES = ("uint8", "int16", "int32", "int64", "uint64", "float16", "float32", "bool", "complex64")


SHAPES = ((), (1,), (5,), (0,), (4, 3), (2, 3, 3))


@tried(
    2,
    sizes=st.lists(st.integers(0, 30), min_size=1, max_size=9),
    dtype=st.sampled_from(DTYPES),
    shape=st.sampled_from(SHAPES),
    strided=st.booleans(),
)
def test_shards(sizes, dtype, shape, strided):
    """Arrays come back as they were written, in the dtypes of JAX, group by group."""
    import jax

    store, starts = memory(), np.cumsum([0, *sizes])
    groups = [
        arrays_of(n, dtype, shape, strided, int(at)) for n, at in zip(sizes, starts, strict=False)
    ]
    rows = lesson.write_shards(iter(groups), store, "a/b")
    source = lesson.Shards(store, "a/b")
    assert rows == sum(sizes) and source.sizes == sizes, f"{rows} rows in groups of {source.sizes}."
    for number, group in enumerate(groups):
        found = source.read(number)
        for name, written in group.items():
            dtype = jax.dtypes.canonicalize_dtype(written.dtype)
            same = found[name].dtype == dtype and np.array_equal(found[name], written)
            assert same, f"{found[name].dtype} {found[name].shape} is not what was written."


def test_kinds():
    """Columns of any name, big-endian, of bfloat16, lists of numbers; and what would be lost."""
    import jax.numpy as jnp
    import torch

    def back(**group):
        store = memory()
        lesson.write_shards([group], store, "p")
        return lesson.Shards(store, "p").read(0)

    half = np.asarray(jnp.arange(4, dtype="bfloat16"))
    columns = {"file": half, "a/b": np.arange(4, dtype=">i4"), "ä": [1, 2, 3, 4]}
    found = back(**columns, torch=torch.arange(4))
    assert found["file"].dtype == half.dtype, "bfloat16 comes back as another dtype."
    for name, column in columns.items():
        assert np.array_equal(found[name], np.asarray(column)), f"{name} came back as other numbers"
    for said, column in {
        "text": ["a", "b"],
        "bytes": [b"a", b"b"],
        "pointers": np.array([{}, None]),
        "ragged lists": [[1], [2, 3]],
        "dates": np.array(["2020-01-01"], "M8[D]"),
        "a masked array": np.ma.masked_equal(np.arange(6).reshape(3, 2), 3),
        "a number": np.float32(3),
        "large numbers": np.array([1, 2**40]),
        "large unsigned": np.array([2**63], np.uint64),
    }.items():
        said_of_it = refusal(said, lambda column=column: back(x=column))
        assert "'x'" in said_of_it or said == "ragged lists", f"{said}: the column is not named."


def test_version():
    """The same data have the same version, also in a copy; all else has another one."""
    write, Shards, store = lesson.write_shards, lesson.Shards, memory()
    groups = [arrays_of(9, "uint8", (2,), first=i) for i in range(3)]
    write(groups, store, "p")
    first = Shards(store, "p").version
    with mock.patch("time.time", lambda: 2e9), mock.patch("time.localtime", lambda *_: (2001,) * 9):
        write(groups, store, "p")
    assert Shards(store, "p", first).version == first, "the same data have another version."
    with tempfile.TemporaryDirectory() as folder:
        lesson.copied(store, "p", folder)
        local = obstore.store.LocalStore(folder)
        copy = Shards(local, "p", first)
        assert np.array_equal(copy.read(2)["x"], groups[2]["x"]), "a copy has other rows."
    changed = [{"x": groups[0]["x"] + 1, "y": groups[0]["y"]}, *groups[1:]]
    for other in (changed, groups[:2], [*groups, groups[0]], groups[::-1]):
        opened = Shards(store, "p")
        write(other, store, "p")
        said = refusal("another dataset", lambda: Shards(store, "p", first))
        assert first in said and "'p'" in said, f"the error does not say what changed: {said}"
        opened.read(0)  # what is open goes on with what it has opened


def test_killed_write():
    """A write that dies leaves the dataset that was there, or none."""
    store, group = memory(), {"x": np.arange(5)}

    def dies():
        yield {"x": np.arange(7)}
        raise InterruptedError

    with contextlib.suppress(InterruptedError):
        lesson.write_shards(dies(), store, "p")
    refusal("half a write", lambda: lesson.Shards(store, "p"), FileNotFoundError)
    lesson.write_shards([group], store, "p")
    with contextlib.suppress(InterruptedError):
        lesson.write_shards(dies(), store, "p")
    assert lesson.Shards(store, "p").sizes == [5], "half a write replaces the dataset."


def test_damage():
    """An object whose bytes have changed is an error, not other numbers."""
    store = memory()
    lesson.write_shards([arrays_of(99, "uint8", (20,))], store, "p")
    [path] = [f["path"] for some in obstore.list(store) for f in some if "npz" in f["path"]]
    data = bytearray(obstore.get(store, path).bytes())
    data[900] ^= 255
    lesson.write_shards([arrays_of(99, "uint8", (20,), first=1)], other := memory(), "p")
    [newer] = [f["path"] for some in obstore.list(other) for f in some if "npz" in f["path"]]
    for wrong in (bytes(data), bytes(data[:500]), obstore.get(other, newer).bytes()):
        obstore.put(store, path, wrong)
        said = refusal("other bytes", lambda: lesson.Shards(store, "p").read(0))
        assert path in said, f"other bytes: the object is not named: {said}"


# Copies --------------------------------------------------------------------------------------


def test_copies():
    """A copy is whole, goes on, fetches what has changed, and nothing that it has."""
    store = memory()
    objects = {f"p/{i}/{i:03}.bin": bytes([i]) * (i * 1000) for i in range(12)}
    for path, data in objects.items():
        obstore.put(store, path, data)
    obstore.put(store, "q/other", b"x")
    obstore.put(store, "p/3", b"")  # the mark of a folder, as consoles of S3 make it
    with tempfile.TemporaryDirectory() as folder:
        half = Path(folder, "p/7/007.bin")
        half.parent.mkdir(parents=True)
        half.write_bytes(objects["p/7/007.bin"][:10])  # as an interrupted copy by others leaves it
        files = lesson.copied(store, "p", folder)
        found = {str(file.relative_to(folder)): file.read_bytes() for file in files}
        assert found == objects, "it differs."
        inodes = [file.stat().st_ino for file in files]
        again = [file.stat().st_ino for file in lesson.copied(store, "p", folder)]
        assert again == inodes, "what was there is copied again."
        every = {path for path in Path(folder).rglob("*") if path.is_file()}
        assert every == set(files), "the copy leaves other files behind."
        obstore.put(store, "p/5/005.bin", bytes(5000))  # of the same size
        lesson.copied(store, "p", folder)
        assert Path(folder, "p/5/005.bin").read_bytes() == bytes(5000), "a change is not copied."
        obstore.put(store, "p/1/001.bin", b"longer")  # of the same time, as far as a list says
        time = round(obstore.head(store, "p/1/001.bin")["last_modified"].timestamp() * 1e6) * 1_000
        os.utime(Path(folder, "p/1/001.bin"), ns=(time, time))
        lesson.copied(store, "p", folder)
        assert Path(folder, "p/1/001.bin").read_bytes() == b"longer", "a change is not copied."
        typo = refusal(
            "a wrong prefix", lambda: lesson.copied(store, "z", folder), FileNotFoundError
        )
        assert "'z'" in typo, f"a wrong prefix: it is not named: {typo}"


def test_killed_copy():
    """What a copy leaves that ends before the file has its name is no data."""
    store, get = memory(), obstore.get
    obstore.put(store, "p/a.bin", bytes(1000))

    def cut(*arguments, **options):
        yield bytes(get(*arguments, **options).bytes())[:500]
        raise InterruptedError

    with tempfile.TemporaryDirectory() as folder:
        with mock.patch.object(obstore, "get", cut), contextlib.suppress(InterruptedError):
            lesson.copied(store, "p", folder)
        assert not Path(folder, "p/a.bin").exists(), "half a file has the name of the whole."
        [file] = lesson.copied(store, "p", folder)
        assert file.read_bytes() == bytes(1000), "a killed copy: its rest is taken for the file."
