"""Frozen cells behind the signatures of the contract."""

import itertools
from pathlib import Path

import numpy as np

from .order import index_batches, listed

FROZEN = Path(__file__).parent / "frozen"


def defined(name: str, **names) -> dict:
    """What the cells of frozen/NAME.py define, run after `names` were."""
    path = FROZEN / f"{name}.py"
    exec(compile(path.read_text(), path, "exec"), names)
    return names


def chained(batches, start, process, processes):
    """The epochs of `batches(epoch)` one after the other, from batch `start` on."""

    def endless():
        for epoch in itertools.count():
            whole = list(batches(epoch))
            if not whole:  # or it would look for a batch for ever
                return
            yield from whole

    for images, labels in itertools.islice(endless(), start, None):
        yield images[process::processes], labels[process::processes]


def tfds_tuned(images, labels, batch_size, seed, start=0, process=0, processes=1):
    """Frozen: batches of 128, and every seed is the epoch."""
    names = defined("tfds_tuned", train_images=images, train_labels=labels)
    return chained(names["tuned_batches"], start, process, processes)


def huggingface_tuned(dataset, batch_size, seed, start=0, process=0, processes=1):
    """Frozen: the views of all rows, of 28 x 28 pixels. Only the batch size is the caller's."""
    names = defined("huggingface_tuned")
    names["train_images"], names["train_labels"] = names["numpy_views"](dataset)
    names["BATCH_SIZE"] = batch_size
    return chained(names["tuned_batches"], start, process, processes)


def photographs(name):
    """Frozen `file_batches`: batches of 64 photographs of 224 pixels, and the seed is the epoch."""
    lesson = defined(name, start_worker=None)["file_batches"]

    def file_batches(folder, batch_size, size, seed, start=0, workers=0, process=0, processes=1):
        return chained(lambda epoch: lesson(folder, epoch, workers), start, process, processes)

    return file_batches


def crops(load):
    """`file_batches` in the right order, around a frozen crop: `load(file, key)`, 224 pixels."""

    def file_batches(folder, batch_size, size, seed, start=0, workers=0, process=0, processes=1):
        files, labels = listed(folder)
        order = index_batches(len(files), batch_size, seed, start, process, processes)
        for epoch, indices in order:
            images = [load(files[i], (seed, epoch, i)) for i in indices]
            yield np.stack(images), np.array(labels, np.int32)[indices]

    return file_batches
