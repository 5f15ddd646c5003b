"""The order of the contract, which most of the corrected pipelines share."""

import itertools
from collections.abc import Iterator

import numpy as np


def index_batches(
    count: int, batch_size: int, seed: int, start: int = 0, process: int = 0, processes: int = 1
) -> Iterator[tuple[int, np.ndarray]]:
    """Endless (epoch, indices of a batch's rows) from batch `start` on. Raises ValueError."""
    if not 0 < batch_size <= count:
        raise ValueError(f"{count} examples do not fill a batch of {batch_size}.")
    if batch_size % processes:
        raise ValueError(f"{processes} processes do not divide a batch of {batch_size}.")
    steps = count // batch_size
    first, skipped = divmod(start, steps)
    for epoch in itertools.count(first):
        order = np.random.default_rng((seed, epoch)).permutation(count)[: steps * batch_size]
        for indices in order.reshape(steps, batch_size)[skipped:, process::processes]:
            yield epoch, indices
        skipped = 0


def listed(folder) -> tuple[list, list[int]]:
    """The files of a folder of classes, and their labels. Raises ValueError."""
    classes = sorted(path for path in folder.iterdir() if shown(path))
    files, labels = [], []
    for label, path in enumerate(classes):
        for file in sorted(filter(shown, path.iterdir())):
            if file.suffix.lower() not in (".jpg", ".jpeg", ".png"):
                raise ValueError(f"{file} is no photograph.")
            files.append(file)
            labels.append(label)
    if not files:
        raise ValueError(f"There is no photograph in {folder}.")
    return files, labels


def shown(path) -> bool:
    return not path.name.startswith(".")
