"""Ray Data: a stream of blocks that tasks of a cluster make, here one of this machine.

An epoch is an execution of its own: its shuffle begins when the epoch before has ended. It starts
at an epoch; within one it makes again what was seen. Processes get blocks, not rows of a batch.
"""

import functools
import itertools

import numpy as np
import pyarrow
import pyarrow.fs
import pyarrow.parquet
import ray

from benchmarks.without_lesson.shared import BUCKET, ROWS, crop, not_split, photographs_in, steps_of

BLOCKS = 8
SPLIT = "Ray Data gives a process other blocks, not rows of a batch."


def started():
    """The cluster of this process, whose order is that of the input, whatever ends first."""
    if not ray.is_initialized():
        quiet = {"log_to_driver": False, "logging_level": "error"}
        ray.init("local", include_dashboard=False, **quiet)  # not one that was found
    context = ray.data.DataContext.get_current()
    context.execution_options.preserve_order = True
    context.enable_progress_bars = False


def epochs(dataset, count, batch_size, seed, start, prepared):
    """The columns of each batch; `prepared(dataset, epoch)` is what an epoch still does."""
    first, skipped = divmod(start, steps_of(count, batch_size))
    for epoch in itertools.count(first):
        order = int(np.random.SeedSequence((seed, epoch)).generate_state(1)[0])
        shuffled = prepared(dataset.random_shuffle(seed=order), epoch)
        batches = shuffled.iter_batches(batch_size=batch_size, drop_last=True, prefetch_batches=2)
        yield from itertools.islice(batches, skipped, None)
        skipped = 0


def tuned_batches(images, labels, batch_size, seed, start=0, process=0, processes=1):
    steps_of(len(images), batch_size)
    not_split(SPLIT, batch_size, processes)
    dataset = dataset_of(images, labels).materialize()
    for batch in epochs(dataset, len(images), batch_size, seed, start, lambda ds, _: ds):
        yield batch["image"], batch["label"]


def dataset_of(images, labels):
    started()
    arrays = [ray.put((images, labels))]  # in a list, it travels as a reference
    rows = ray.data.range(len(images), override_num_blocks=min(BLOCKS, len(images)))
    return rows.map_batches(gathered, fn_kwargs={"arrays": arrays}, batch_size=None)


def gathered(rows, arrays):
    images, labels = ray.get(arrays[0])
    return {"image": images[rows["id"]], "label": labels[rows["id"]]}


def cropped(example, size, seed, epoch):
    pixels = crop(example["file"], size, (seed, epoch, example["row"]))
    return {"image": pixels, "label": np.int32(example["label"])}


def file_batches(folder, batch_size, size, seed, start=0, workers=0, process=0, processes=1):
    not_split(SPLIT, batch_size, processes)
    files, labels, _ = photographs_in(folder)
    steps_of(len(files), batch_size)
    started()
    rows = enumerate(zip(files, labels.tolist(), strict=True))
    examples = [
        {"row": row, "file": file.absolute(), "label": label} for row, (file, label) in rows
    ]

    def prepared(dataset, epoch):
        cut = functools.partial(cropped, size=size, seed=seed, epoch=epoch)
        return dataset.map(cut, concurrency=max(workers, 1))

    dataset = ray.data.from_items(examples, override_num_blocks=min(BLOCKS, len(examples)))
    for batch in epochs(dataset.materialize(), len(files), batch_size, seed, start, prepared):
        yield batch["image"], batch["label"]


def write_rows(images, labels, to):
    to.mkdir()
    pixels = pyarrow.FixedSizeListArray.from_arrays(images.ravel(), images.shape[1])
    table = pyarrow.table({"image": pixels, "label": labels})
    rows = 2**22 // images[0].nbytes
    for number, first in enumerate(range(0, len(images), rows)):
        pyarrow.parquet.write_table(table.slice(first, rows), to / f"{number:06}.parquet")


def stored_batches(urls, count, batch_size, seed):
    """`urls` are below the folder that is read, from one store."""
    started()
    keys = {"access_key": "any", "secret_key": "any", "region": "us-east-1"}
    files = pyarrow.fs.S3FileSystem(endpoint_override=urls[0].split("/")[2], scheme="http", **keys)
    dataset = ray.data.read_parquet(f"{BUCKET}/{ROWS}", filesystem=files)
    for batch in epochs(dataset, count, batch_size, seed, 0, lambda ds, _: ds):
        yield np.stack(batch["image"]), batch["label"]
