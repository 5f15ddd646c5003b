"""Rows on the disk that need not fit into memory: each loader's own way to read and shuffle them.

The same rows lie in the form that each library reads best. The reference gathers the same batches
from a file that NumPy maps into memory. All files were just written, so that the operating system
holds them: what is compared is the work of the loader, not the disk.
"""

import collections
import contextlib
import itertools
import tempfile
import types
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.contract import Refused
from benchmarks.in_process import BATCH, TAKE, Lesson, gathered, rate

SHAPE = (128, 128)
GROUP, SHARD, ROWS = 50, 500, 15_000  # rows: 246 MB in 30 shards
BUFFER = 1000  # rows that a stream shuffles at once
PATTERN = np.random.default_rng(0).integers(0, 256, SHAPE, np.uint8)


def shards() -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Images that differ, uint8 (SHARD, *SHAPE), and their rows, int64."""
    for first in range(0, ROWS, SHARD):
        rows = np.arange(first, first + SHARD)
        yield images_of(rows), rows


def images_of(rows: np.ndarray) -> np.ndarray:
    """The images of these rows: a pattern whose first four pixels hold the number of the row."""
    images = np.broadcast_to(PATTERN, (len(rows), *SHAPE)).copy()
    images[:, 0, :4] = rows.astype("<u4").view(np.uint8).reshape(-1, 4)
    return images


class FromDisk(Lesson):
    """The stream of one lesson, of (images, rows), and NumPy's of a mapped file."""

    keys = ("rows_s", "mapped_rows_s")  # of what `speeds` returns, in the results

    def check(self) -> None:
        """Write the rows. Raises Refused unless an epoch has each row once, as it was written."""
        self.folder = tempfile.TemporaryDirectory()  # as long as this process
        folder = Path(self.folder.name)
        mapped = np.lib.format.open_memmap(folder / "images.npy", "w+", np.uint8, (ROWS, *SHAPE))
        for images, rows in shards():
            mapped[rows] = images
        mapped.flush()
        self.stream = STREAMS[self.name](self.code, folder)
        with contextlib.closing(self.stream()) as stream:
            seen = []
            for images, numbers in itertools.islice(stream, ROWS // BATCH):
                rows = np.asarray(numbers)
                if not np.array_equal(np.asarray(images).reshape(-1, *SHAPE), images_of(rows)):
                    raise Refused("a row from disk is not as it was written.")
                seen.append(rows)
        seen = np.concatenate(seen)
        if len(seen) != ROWS // BATCH * BATCH or len(np.unique(seen)) != len(seen):
            raise Refused("an epoch from disk has a row twice, or lacks some.")
        if (np.diff(seen) == 1).mean() > 0.5:
            raise Refused("an epoch from disk is not shuffled.")

    def mapped(self) -> Iterator:
        """The reference: NumPy gathers shuffled batches from the mapped file."""
        images = np.load(Path(self.folder.name, "images.npy"), mmap_mode="r")
        return gathered(images, np.arange(ROWS), BATCH, TAKE)

    def speeds(self, seconds: float) -> tuple[float, float]:
        """Rows per second, of the loader and of the reference."""
        found = []
        for opened in (self.stream, self.mapped):
            with contextlib.closing(opened()) as stream:
                # An epoch: what threads had ready, and the pages of a new mapping, are not timed.
                collections.deque(itertools.islice(stream, ROWS // BATCH), maxlen=0)
                found.append(rate(stream, seconds))
        return tuple(found)


def torch_mapped(code: types.SimpleNamespace, folder: Path):
    """The DataLoader of the lesson, on an array that NumPy maps."""

    def stream():
        images = np.load(folder / "images.npy", mmap_mode="r")
        yield from code.tuned_batches(images, np.arange(ROWS), BATCH, 0)

    return stream


def grain_records(code: types.SimpleNamespace, folder: Path):
    """ArrayRecord, each record on its own: any row in any order."""
    import grain
    from array_record.python.array_record_module import ArrayRecordWriter

    for number, (images, rows) in enumerate(shards()):
        writer = ArrayRecordWriter(str(folder / f"{number:02}.array_record"), "group_size:1")
        for image, row in zip(images, rows, strict=True):
            writer.write(image.tobytes() + row.tobytes())
        writer.close()
    files = sorted(map(str, folder.glob("*.array_record")))

    def decoded(record):
        image = np.frombuffer(record, np.uint8, count=PATTERN.size).reshape(SHAPE)
        return image, np.frombuffer(record, np.int64, offset=PATTERN.size)[0]

    def stream():
        source = grain.sources.ArrayRecordDataSource(files)
        shuffled = grain.MapDataset.source(source).seed(0).shuffle().map(decoded)
        batches = shuffled.batch(BATCH, drop_remainder=True).repeat().to_iter_dataset()
        yield from batches

    return stream


def parquet_stream(code: types.SimpleNamespace, folder: Path):
    """Parquet in shards: they come in random order, and blocks of rows are shuffled."""
    import datasets
    import pyarrow as pa
    import pyarrow.parquet as pq

    for number, (images, rows) in enumerate(shards()):
        table = pa.table({"image": [image.tobytes() for image in images], "row": rows})
        pq.write_table(table, folder / f"{number:02}.parquet", row_group_size=GROUP)
    files = sorted(map(str, folder.glob("*.parquet")))

    def stream():
        for epoch in itertools.count():
            shards = datasets.load_dataset(
                "parquet", data_files=files, split="train", streaming=True
            )
            mixed = code.shuffled_stream(shards, 0, epoch, block=BUFFER)
            for table in mixed.iter(BATCH, drop_last_batch=True):
                pixels = np.frombuffer(b"".join(table["image"].to_pylist()), np.uint8)
                yield pixels.reshape(-1, *SHAPE), table["row"].to_numpy()

    return stream


def tfrecords(code: types.SimpleNamespace, folder: Path):
    """TFRecord in shards, a part of them by turns, and a buffer of undecoded examples."""
    import tensorflow_datasets as tfds

    pixels = tfds.features.Tensor(shape=SHAPE, dtype=np.uint8, encoding="bytes")
    (home := folder / "rows").mkdir()
    info = tfds.core.DatasetInfo(
        builder=tfds.core.DatasetIdentity("rows", "1.0.0", str(home), ""),
        features=tfds.features.FeaturesDict({"image": pixels, "label": np.int64}),
        supervised_keys=("image", "label"),
    )
    writer = tfds.core.SequentialWriter(info, max_examples_per_shard=SHARD)
    writer.initialize_splits(["train"])
    for images, rows in shards():
        pairs = zip(images, rows, strict=True)
        writer.add_examples({"train": [{"image": i, "label": row} for i, row in pairs]})
    writer.close_all()
    builder = tfds.builder_from_directory(str(home))
    disk_batches = code.disk_batches

    def stream():
        yield from disk_batches(builder, BATCH, 0, BUFFER)

    return stream


def stored_groups(code: types.SimpleNamespace, folder: Path):
    """Groups of rows, some of them mixed, from a folder as from a bucket."""
    from obstore.store import LocalStore

    store = LocalStore(folder)
    arrays = ({"image": images, "row": rows} for images, rows in shards())
    code.write_shards(arrays, store, "rows")

    def stream():
        with contextlib.closing(code.batches(code.Shards(store, "rows"), BATCH)) as stream:
            for batch in stream:
                yield batch["image"], batch["row"]

    return stream


STREAMS = {
    "pytorch_dataloader": torch_mapped,
    "grain": grain_records,
    "huggingface_datasets": parquet_stream,
    "tensorflow_datasets": tfrecords,
    "files_and_storage": stored_groups,
}
