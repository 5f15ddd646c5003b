"""MosaicML streaming: shards whose order is elastic, the same for any number of nodes.

Its state is the epoch and the examples of it that were read. Each stream of one process needs a
local folder of its own. The order follows from the seed plus the epoch: seeds far apart.
"""

import functools
import tempfile

from streaming import MDSWriter, StreamingDataset
from torch.utils.data import DataLoader

from benchmarks.without_lesson.shared import (
    BUCKET,
    ROWS,
    converted,
    crop_bytes,
    not_split,
    stacked,
    steps_of,
)

COLUMNS = {"row": "int", "label": "int", "name": "str", "photo": "bytes"}


def write(examples, to):
    with MDSWriter(out=f"{to}", columns=COLUMNS, size_limit=2**22) as shards:
        for row, label, file in examples:
            photo = file.read_bytes()
            shards.write({"row": row, "label": label, "name": f"{file}", "photo": photo})


class Crops(StreamingDataset):
    def __init__(self, size, seed, **options):
        super().__init__(**options)
        self.side, self.seed = size, seed

    def __getitem__(self, index):
        found = super().__getitem__(index)
        key = self.seed, self.next_epoch - 1, found["row"]
        return crop_bytes(found["photo"], found["name"], self.side, key), found["label"]


def epochs(make, batch_size, seed, place, workers=0):
    """The batches of the dataset that `make(local=…, batch_size=…, …)` makes, from a place on."""
    epoch, skipped = place
    same = {"shuffle_seed": seed << 32, "num_canonical_nodes": 1}
    options = {"persistent_workers": True, "multiprocessing_context": "spawn"} if workers else {}
    with tempfile.TemporaryDirectory() as local:  # it keeps what it has read
        dataset = make(local=local, batch_size=batch_size, shuffle=True, **same)
        if any(place):
            at = {"epoch": epoch, "sample_in_epoch": skipped * batch_size}
            dataset.load_state_dict(at | same | {"initial_physical_nodes": 1})
        options |= {"num_workers": workers, "collate_fn": stacked, "drop_last": True}
        loader = DataLoader(dataset, batch_size, **options)
        while True:
            yield from loader


def file_batches(folder, batch_size, size, seed, start=0, workers=0, process=0, processes=1):
    not_split("MosaicML splits for one torch.distributed group only.", batch_size, processes)
    to, count = converted(folder, write)
    place = divmod(start, steps_of(count, batch_size))
    make = functools.partial(Crops, size, seed, remote=f"{to}")
    yield from epochs(make, batch_size, seed, place, workers)


def write_rows(images, labels, to):
    columns = {"image": "ndarray", "label": "int32"}
    with MDSWriter(out=f"{to}", columns=columns, size_limit=2**22) as shards:
        for image, label in zip(images, labels, strict=True):
            shards.write({"image": image, "label": label})


class Rows(StreamingDataset):
    def __getitem__(self, index):
        found = super().__getitem__(index)
        return found["image"], found["label"]


def stored_batches(urls, count, batch_size, seed):
    """`urls` are below the folder, whose endpoint and keys are in the environment."""
    make = functools.partial(Rows, remote=f"s3://{BUCKET}/{ROWS}")
    yield from epochs(make, batch_size, seed, (0, 0))
