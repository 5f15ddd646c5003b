"""Right pipelines in plain NumPy and Pillow: the contract must pass them.

test_contract_bites.py changes this text in one place, and one promise is broken.
"""

import itertools

import numpy as np
from PIL import Image, ImageOps


def index_batches(count, batch_size, seed, start=0, process=0, processes=1):
    """Endless (epoch, indices of a batch's rows) from batch `start` on. Raises ValueError."""
    together = batch_size * processes
    if not 0 < together <= count:
        raise ValueError(f"{count} examples do not fill a batch of {together}.")
    steps = count // together
    first, skipped = divmod(start, steps)
    for epoch in itertools.count(first):
        order = np.random.default_rng((seed, epoch)).permutation(count)
        for indices in order[: steps * together].reshape(steps, together)[skipped:]:
            yield epoch, indices[process * batch_size :][:batch_size]
        skipped = 0


def tuned_batches(images, labels, batch_size, seed, start=0, process=0, processes=1):
    for _, indices in index_batches(len(images), batch_size, seed, start, process, processes):
        yield images.take(indices, axis=0), labels.take(indices)


def shown(path) -> bool:
    return not path.name.startswith(".")


def listed(folder) -> tuple[list, list[int]]:
    """The files of a folder of classes, and their labels. Raises ValueError."""
    files, labels = [], []
    for label, path in enumerate(sorted(filter(shown, folder.iterdir()))):
        for file in sorted(filter(shown, path.iterdir())):
            if file.suffix.lower() not in (".jpg", ".jpeg", ".png"):
                raise ValueError(f"{file} is no photograph.")
            files.append(file)
            labels.append(label)
    if not files:
        raise ValueError(f"There is no photograph in {folder}.")
    return files, labels


def window(width, height, rng):
    """Left, top, right, bottom, as RandomResizedCrop draws them; the whole where no try fits."""
    for _ in range(10):
        area = width * height * rng.uniform(0.08, 1)
        ratio = np.exp(rng.uniform(np.log(3 / 4), np.log(4 / 3)))
        w, h = round((area * ratio) ** 0.5), round((area / ratio) ** 0.5)
        if 0 < w <= width and 0 < h <= height:
            left, top = rng.integers(0, (width - w, height - h), endpoint=True).tolist()
            return left, top, left + w, top + h
    return 0, 0, width, height


def load(file, size, key):
    rng = np.random.default_rng(key)
    try:
        with Image.open(file) as opened:
            if opened.mode.startswith("I"):
                raise OSError("it has more than 8 bits a channel")
            photograph = ImageOps.exif_transpose(opened).convert("RGB")
    except Exception as error:
        raise ValueError(f"{file} is no image.") from error
    box = window(*photograph.size, rng)
    pixels = np.asarray(photograph.resize((size, size), Image.Resampling.BILINEAR, box=box))
    return pixels[:, ::-1] if rng.random() < 0.5 else pixels


def file_batches(folder, batch_size, size, seed, start=0, workers=0, process=0, processes=1):
    files, labels = listed(folder)
    order = index_batches(len(files), batch_size, seed, start, process, processes)
    for epoch, rows in order:
        images = [load(files[row], size, (seed, epoch, row)) for row in rows.tolist()]
        yield np.stack(images), np.array(labels, np.int32)[rows]
