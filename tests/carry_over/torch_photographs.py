"""The corrected pipeline of photographs in PyTorch. Plain "spawn" workers import this module."""

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, Sampler
from torchvision.io import decode_image
from torchvision.transforms import v2

from .order import index_batches, listed


class Photographs(Dataset):
    def __init__(self, files, labels, size):
        self.files, self.labels = files, labels
        self.augment = v2.Compose([v2.RandomResizedCrop(size), v2.RandomHorizontalFlip()])

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index_and_seed):
        index, seed = index_and_seed
        try:
            photograph = decode_image(
                str(self.files[index]), mode="RGB", apply_exif_orientation=True
            )
        except RuntimeError as error:
            raise ValueError(f"{self.files[index]} cannot be decoded.") from error
        with torch.random.fork_rng(devices=[]):  # leave the caller's generator
            torch.manual_seed(seed)
            photograph = self.augment(photograph)
        return photograph.permute(1, 2, 0).contiguous(), np.int32(self.labels[index])


class Batches(Sampler):
    """Endless lists of (index, seed): what a worker draws follows from its photograph."""

    def __init__(self, seed, *arguments):
        self.seed, self.arguments = seed, arguments

    def __iter__(self):
        count, batch_size, *others = self.arguments
        for epoch, indices in index_batches(count, batch_size, self.seed, *others):
            keys = [(self.seed, epoch, index) for index in indices.tolist()]
            yield [(key[2], int(np.random.SeedSequence(key).generate_state(1)[0])) for key in keys]


def file_batches(folder, batch_size, size, seed, start=0, workers=0, process=0, processes=1):
    files, labels = listed(folder)
    loader = DataLoader(
        Photographs(files, labels, size),
        batch_sampler=Batches(seed, len(files), batch_size, start, process, processes),
        num_workers=workers,
        multiprocessing_context="spawn" if workers else None,
    )
    for images, batch_labels in loader:
        yield images.numpy(), batch_labels.numpy()
