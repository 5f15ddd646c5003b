"""The corrected pipeline of arrays in PyTorch: its sampler yields runs of index arrays."""

import itertools

import numpy as np
from torch.utils.data import DataLoader, Dataset, Sampler

from .order import index_batches

RUN = 12  # batches that one call of the loader gathers


class Arrays(Dataset):
    def __init__(self, *arrays):
        self.arrays = arrays

    def __len__(self):
        return len(self.arrays[0])

    def __getitem__(self, indices):
        return [array.take(indices, axis=0) for array in self.arrays]


class Runs(Sampler):
    def __init__(self, *arguments):
        self.arguments = arguments

    def __iter__(self):
        batches = (indices for _, indices in index_batches(*self.arguments))
        while True:
            yield np.stack(list(itertools.islice(batches, RUN)))


def tuned_batches(images, labels, batch_size, seed, start=0, process=0, processes=1):
    loader = DataLoader(
        Arrays(images, labels),
        batch_size=None,
        sampler=Runs(len(images), batch_size, seed, start, process, processes),
        collate_fn=lambda run: run,
    )
    for run in loader:
        yield from zip(*run, strict=True)
