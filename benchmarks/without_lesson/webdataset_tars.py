"""WebDataset: tar files read from front to back, shuffled by shards and in a buffer.

Whole only where the buffer holds all. It starts at an epoch; within one it reads again what was
seen, and throws it away. Workers, and processes, take shards: each drops its own last batch, so
their number changes the batches. The order follows from the seed plus the epoch: seeds far apart.
"""

import itertools
import json

import webdataset as wds

from benchmarks.without_lesson.shared import converted, crop_bytes, not_split, stacked, steps_of

BUFFER = 5_000  # encoded photographs
SHARDS = 8


def write(examples, to):
    to.mkdir()
    part = -(-len(examples) // SHARDS)
    with wds.ShardWriter(f"{to}/%06d.tar", maxcount=part, encoder=False, verbose=0) as shards:
        for row, label, file in examples:
            about = json.dumps({"label": label, "name": f"{file}"}).encode()
            shards.write({"__key__": f"{row:08}", "photo": file.read_bytes(), "json": about})


class Crops:
    """A stage. It counts the epochs, as detshuffle does: a pipeline that repeats runs it again."""

    def __init__(self, size, seed, epoch):
        self.size, self.seed, self.epoch = size, seed, epoch

    def __call__(self, samples):
        self.epoch += 1
        for sample in samples:
            about, key = json.loads(sample["json"]), (self.seed, self.epoch, int(sample["__key__"]))
            yield crop_bytes(sample["photo"], about["name"], self.size, key), about["label"]


def as_it_is(batch):
    return batch


def epochs(urls, seed, epoch, *stages):
    """One pipeline for all epochs from this one on. Each run of it shuffles by the next number."""
    far = {"seed": seed << 32, "epoch": epoch - 1}
    return wds.DataPipeline(
        wds.SimpleShardList(urls),
        wds.detshuffle(len(urls), len(urls), **far),
        wds.split_by_worker,
        wds.tarfile_to_samples(),
        wds.detshuffle(BUFFER, BUFFER, **far),
        *stages,
    ).repeat()


def file_batches(folder, batch_size, size, seed, start=0, workers=0, process=0, processes=1):
    not_split("WebDataset splits shards, not the rows of a batch.", batch_size, processes)
    to, count = converted(folder, write)
    epoch, skipped = divmod(start, steps_of(count, batch_size))
    pipeline = epochs(
        sorted(map(str, to.iterdir())),
        seed,
        epoch,
        Crops(size, seed, epoch - 1),
        wds.batched(batch_size, collation_fn=stacked, partial=False),
    )
    if workers:
        options = {"multiprocessing_context": "spawn", "collate_fn": as_it_is, "batch_size": None}
        pipeline = wds.WebLoader(pipeline, num_workers=workers, **options)
    yield from itertools.islice(pipeline, skipped, None)


def write_rows(images, labels, to):
    to.mkdir()
    with wds.ShardWriter(f"{to}/%06d.tar", maxsize=2**22, verbose=0) as shards:
        for row, (image, label) in enumerate(zip(images, labels, strict=True)):
            shards.write({"__key__": f"{row:08}", "image.npy": image, "label.npy": label})


def stored_batches(urls, count, batch_size, seed):
    """`urls`: of the tar files, by HTTP: curl reads them, one after the other."""
    yield from epochs(
        urls,
        seed,
        0,
        wds.decode(),
        wds.to_tuple("image.npy", "label.npy"),
        wds.batched(batch_size, collation_fn=stacked, partial=False),
    )
