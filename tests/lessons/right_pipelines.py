"""Right pipelines in plain NumPy and Pillow: the contract must pass them, and refuse what differs.

An order, a list of a folder or a crop can be replaced, and one promise is broken.
"""

import itertools
from collections.abc import Iterator

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError


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


def tuned_batches(images, labels, batch_size, seed, start=0, process=0, processes=1):
    for _, indices in index_batches(len(images), batch_size, seed, start, process, processes):
        yield images.take(indices, axis=0), labels.take(indices)


def shown(path) -> bool:
    return not path.name.startswith(".")


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


def window(width, height, rng):
    """Left, top, right, bottom, as RandomResizedCrop draws them where its first tries succeed."""
    while True:
        area = width * height * rng.uniform(0.08, 1)
        ratio = np.exp(rng.uniform(np.log(3 / 4), np.log(4 / 3)))
        w, h = round((area * ratio) ** 0.5), round((area / ratio) ** 0.5)
        if 0 < w <= width and 0 < h <= height:
            left, top = rng.integers(0, (width - w, height - h), endpoint=True).tolist()
            return left, top, left + w, top + h


def cropping(
    window=window,
    upright=ImageOps.exif_transpose,
    resampling=Image.Resampling.BILINEAR,
    flips=0.5,
):
    """A `load(file, size, key)` whose crop is `window(width, height, rng)`."""

    def load(file, size, key):
        rng = np.random.default_rng(key)
        try:
            with Image.open(file) as opened:
                photograph = upright(opened).convert("RGB")
        except UnidentifiedImageError as error:
            raise ValueError(f"{file} is no image.") from error
        box = window(*photograph.size, rng)
        pixels = np.asarray(photograph.resize((size, size), resampling, box=box))
        return pixels[:, ::-1] if rng.random() < flips else pixels

    return load


load = cropping()


def photographs(load=load, files_of=listed, key=lambda s, e, i, w: (s, e, i)):
    """A `file_batches`. `key(seed, epoch, row, workers)` seeds what is drawn for a photograph."""

    def file_batches(folder, batch_size, size, seed, start=0, workers=0, process=0, processes=1):
        files, labels = files_of(folder)
        labels = np.array(labels, np.int32)
        order = index_batches(len(files), batch_size, seed, start, process, processes)
        for epoch, rows in order:
            keys = [key(seed, epoch, row, workers) for row in rows.tolist()]
            images = [load(files[row], size, k) for row, k in zip(rows, keys, strict=True)]
            yield np.stack(images), labels[rows]

    return file_batches
