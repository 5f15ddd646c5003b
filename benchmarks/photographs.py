"""The folder of small photographs on which all pipelines of photographs are timed."""

import tempfile
from pathlib import Path

import numpy as np
from PIL import Image
from sklearn.datasets import load_sample_images

COUNT = 550
KINDS = (".jpg", "RGB"), (".JPEG", "L"), (".png", "RGB"), (".jpg", "CMYK")


def small_photographs() -> tempfile.TemporaryDirectory:
    """A folder with 550 cuts of two photographs, about 400 by 270 pixels, in nine classes."""
    rng = np.random.default_rng(0)
    china, flower = load_sample_images().images
    columns = np.hsplit(china, 5) + np.hsplit(flower, 4)
    home = tempfile.TemporaryDirectory()
    for number in range(COUNT):
        suffix, mode = KINDS[number % len(KINDS)]
        image = Image.fromarray(columns[number % len(columns)]).convert(mode)
        shape = rng.integers(64, (image.width, 240))
        corner = rng.integers(0, image.size - shape)
        box = *corner, *(corner + shape)
        size = (shape * rng.uniform(1.6, 4)).astype(int)
        folder = Path(home.name, f"part-{number % len(columns)}")
        folder.mkdir(exist_ok=True)
        image.resize(size.tolist(), box=box).save(folder / f"{number:03}{suffix}")
    return home
