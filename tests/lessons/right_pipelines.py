"""A corrected pipeline of photographs in Pillow and NumPy, with threads for workers."""

import itertools
from collections import deque
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from .order import index_batches, listed


def window(width, height, rng):
    """Left, top, right, bottom, as RandomResizedCrop draws them."""
    for _ in range(10):
        area = width * height * rng.uniform(0.08, 1)
        ratio = np.exp(rng.uniform(np.log(3 / 4), np.log(4 / 3)))
        w, h = round((area * ratio) ** 0.5), round((area / ratio) ** 0.5)
        if 0 < w <= width and 0 < h <= height:
            left, top = rng.integers(0, (width - w, height - h), endpoint=True).tolist()
            return left, top, left + w, top + h
    w, h = min(width, round(height * 4 / 3)), min(height, round(width * 4 / 3))
    left, top = (width - w) // 2, (height - h) // 2
    return left, top, left + w, top + h


def load(file, size, key):
    rng = np.random.default_rng(key)
    try:
        with Image.open(file) as opened:
            photograph = ImageOps.exif_transpose(opened).convert("RGB")
    except UnidentifiedImageError as error:
        raise ValueError(f"{file} is no image.") from error
    box = window(*photograph.size, rng)
    pixels = np.asarray(photograph.resize((size, size), Image.Resampling.BILINEAR, box=box))
    return pixels[:, ::-1] if rng.random() < 0.5 else pixels


def file_batches(folder, batch_size, size, seed, start=0, workers=0, process=0, processes=1):
    files, labels = listed(folder)
    labels = np.array(labels, np.int32)

    def batch(epoch_and_indices):
        epoch, indices = epoch_and_indices
        return np.stack([load(files[i], size, (seed, epoch, i)) for i in indices]), labels[indices]

    order = index_batches(len(files), batch_size, seed, start, process, processes)
    if not workers:
        yield from map(batch, order)
    with ThreadPoolExecutor(workers) as threads:
        waiting = deque(threads.submit(batch, one) for one in itertools.islice(order, workers + 1))
        while True:
            waiting.append(threads.submit(batch, next(order)))
            yield waiting.popleft().result()
