"""The photographs of the PyTorch lesson, as the lesson had it, to the letter.

Frozen on purpose: the checks have to refuse it. Run by carry_over.adapters, with the names that
the lesson had defined before.
"""
# ruff: noqa: F821
# fmt: off

import functools

import torch
from torch.utils.data import DataLoader, Sampler, default_collate
from torchvision.datasets import ImageFolder
from torchvision.io import decode_image
from torchvision.transforms import v2

augment = v2.Compose([v2.RandomResizedCrop(224), v2.RandomHorizontalFlip()])
decode = functools.partial(decode_image, mode="RGB")


class Photos(ImageFolder):
    def __init__(self, folder):
        super().__init__(folder, transform=augment, loader=decode)

    def __getitem__(self, batch):
        images, labels = [], []
        with torch.random.fork_rng(devices=[]):  # leave the caller's generator
            for index, seed in batch:
                torch.manual_seed(seed)
                image, label = super().__getitem__(index)
                images.append(image.permute(1, 2, 0))  # height, width, channels
                labels.append(label)
        labels = torch.tensor(labels, dtype=torch.int32)
        return default_collate(images), labels


class SeededBatches(Sampler):
    epoch = 0

    def __iter__(self):
        generator = torch.Generator().manual_seed(self.epoch)
        order = torch.randperm(512, generator=generator)
        seeds = order + 512 * self.epoch
        yield from torch.stack([order, seeds], dim=1).reshape(8, 64, 2).tolist()


@functools.cache  # one loader for all epochs, so that its workers persist
def photo_loader(folder, workers):
    options = {"batch_size": None, "sampler": SeededBatches()}
    if workers:
        options |= WORKERS | {
            "num_workers": workers,
            "persistent_workers": True,
        }
    return DataLoader(Photos(folder), **options)


def file_batches(folder, epoch, workers):
    loader = photo_loader(folder, workers)
    loader.sampler.epoch = epoch  # the sampler stays in this process
    for images, labels in loader:
        yield images.numpy(), labels.numpy()
