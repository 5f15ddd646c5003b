"""Folders of photographs that say which one is which."""

import itertools
from pathlib import Path
from typing import ClassVar

import numpy as np
from PIL import Image

from benchmarks.contract.streams import Refused

LEVELS = range(16, 256, 24)  # of a colour's three channels: ten, so that 990 are no gray
FLATNESS = 9  # levels: JPEG and CMYK move a flat colour by 3 at most, the next one is 24 away
CLASSES = ("ant", "bear", "cat", "dog", "eel", "fox", "gnu", "red hare", "zebra")
EMPTY = "dog"  # the class without a photograph, in the middle: the next ones keep their numbers
KINDS = (
    (".jpg", "RGB"),
    (".JPEG", "RGB"),
    (".png", "RGB"),
    (".jpeg", "L"),
    (".JPG", "CMYK"),
    (".jpg", "RGB"),
    (".PNG", "RGB"),
    (".png", "RGBA"),
    (".png", "P"),
)
SIZES = ((100, 150), (320, 240), (375, 500), (1500, 1000), (128, 128), (240, 426), (700, 1100))
SIZES += ((1, 1), (1, 9), (500, 3))  # ten, so that each of the nine kinds has each size
SIZE = 32  # pixels of what comes out, where another is not needed


class Photographs:
    """A folder of flat photographs, whose colours say which one is which."""

    name = "photographs"
    dtypes = (np.dtype(np.uint8), np.dtype(np.int32))

    def __init__(self, folder: Path, colours: list, labels: list[int], size: int = SIZE):
        self.folder, self.size = folder, size
        self.colours, self.labels = np.array(colours), np.array(labels)
        self.count, self.shape = len(labels), (size, size, 3)

    def identify(self, images: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """The number of each photograph. Raises Refused if one is none, or has a wrong label."""
        low, high = images.min((1, 2)).astype(int), images.max((1, 2)).astype(int)
        middle = (low + high) / 2
        found = np.abs(middle[:, None] - self.colours).max(2).argmin(1)
        colours = self.colours[found]
        apart = np.maximum(high - colours, colours - low).max(1)
        if strangers := int((apart > FLATNESS).sum()):
            raise Refused(f"{strangers:,} of {len(found):,} photographs are none of the folder's.")
        if wrong := int((labels != self.labels[found]).sum()):
            raise Refused(
                f"{wrong:,} of {len(found):,} photographs have another label than their class's "
                "number in alphabetical order."
            )
        return found

    def check_unchanged(self) -> None:
        """Raises Refused if a file has come or gone."""
        paths = [path for path in self.folder.rglob("*") if path.is_file()]
        shown = [p for p in paths if "/." not in f"/{p.relative_to(self.folder).as_posix()}"]
        if len(shown) != self.count:
            raise Refused(f"leaves {len(shown):,} files in a folder of {self.count:,}.")


def flat_photographs(
    folder: Path, count: int = 90, sizes=SIZES, classes=CLASSES, hidden: bool = True
) -> Photographs:
    """Make a folder of `count` photographs, each of one colour, which a crop or a flip leaves.

    Nine classes, one of them empty. Widths and heights from 1 to 1,500 pixels; JPEG and PNG with
    suffixes in both cases; grayscale, CMYK, a palette, an alpha channel. `hidden` adds what systems
    leave behind: .DS_Store, `._name.jpg`, a folder of thumbnails, none of which is a photograph.
    """
    colours = itertools.product(LEVELS, repeat=3)
    colours = [colour for colour in colours if len(set(colour)) > 1]
    colours = iter(np.random.default_rng(0).permutation(colours).tolist())
    grays = iter([(level,) * 3 for level in LEVELS])
    for name in reversed(classes):  # in the order in which a disk may list them
        (folder / name).mkdir(parents=True)
    filled = [number for number, name in enumerate(classes) if name != EMPTY]
    used, labels = [], []
    for number in range(count):
        suffix, mode = KINDS[number % len(KINDS)]
        gray = next(grays, None) if mode == "L" else None
        mode = "RGB" if mode == "L" and not gray else mode  # there are ten grays only
        used.append(gray or next(colours))
        labels.append(filled[number * len(filled) // count])
        photograph = Image.new("RGB", sizes[number % len(sizes)], tuple(used[-1]))
        photograph = photograph.quantize(4) if mode == "P" else photograph.convert(mode)
        path = folder / classes[labels[-1]] / f"{number:04}{suffix}"
        photograph.save(path, **{} if suffix.lower() == ".png" else {"quality": 95})
    if hidden:
        (folder / ".DS_Store").write_bytes(b"\0")
        (folder / classes[0] / ".DS_Store").write_bytes(b"\0")
        (folder / classes[1] / "._0000.jpg").write_bytes(b"\0")
        (folder / ".thumbnails").mkdir()
        Image.new("RGB", (100, 100)).save(folder / ".thumbnails" / "0000.jpg")
    return Photographs(folder, used, labels)


class Ramps(Photographs):
    """PNGs whose red grows from left to right and green from top to bottom, from 0 to 255.

    So the window that was cropped, and a flip, can be read from what comes out. Blue says which.
    """

    dimensions: ClassVar = ((160, 120), (120, 160), (144, 144), (150, 120)) * 2
    size = 48

    def __init__(self, folder: Path, dimensions=dimensions):
        (folder / "ramps").mkdir(parents=True)
        self.folder, self.dimensions = folder, np.array(dimensions)
        self.blue = np.linspace(0, 255, len(dimensions)).round()
        for number, (width, height) in enumerate(dimensions):
            photograph = np.empty((height, width, 3), np.uint8)
            photograph[..., 0] = np.linspace(0, 255, width).round()
            photograph[..., 1] = np.linspace(0, 255, height).round()[:, None]
            photograph[..., 2] = self.blue[number]
            Image.fromarray(photograph).save(folder / "ramps" / f"{number}.png")
        self.count, self.shape = len(dimensions), (self.size, self.size, 3)

    def identify(self, images: np.ndarray, labels: np.ndarray) -> np.ndarray:
        return np.abs(images[..., 2].mean((1, 2))[:, None] - self.blue).argmin(1)

    def windows(self, images: np.ndarray) -> np.ndarray:
        """Left, top, width, height of each crop, as shares of the photograph; -1 if flipped, or 1.

        Raises Refused for what is no upright window.
        """
        red, green = images[..., 0].astype(float), images[..., 1].astype(float)
        if max(red.std(1).max(), green.std(2).max()) > 3:
            raise Refused("crops are no upright windows of a photograph.")
        inner = np.arange(4, self.size - 4)  # a filter has less to average at the borders
        found = []
        for profiles, pixels in zip(
            (red.mean(1), green.mean(2)),
            self.dimensions[self.identify(images, None)].T,
            strict=True,
        ):
            slope, level = np.polyfit(inner - (self.size - 1) / 2, profiles[:, inner].T, 1)
            share = np.abs(slope) * self.size / 255 * (1 - 1 / pixels)
            middle = level / 255 * (1 - 1 / pixels) + 0.5 / pixels
            found.append((middle - share / 2, share, np.sign(slope)))
        (left, width, flip), (top, height, upright) = found
        if (upright < 0).any():
            raise Refused("turns photographs upside down.")
        return np.stack([left, top, width, height, flip], axis=1)
