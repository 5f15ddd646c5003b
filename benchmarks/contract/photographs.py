"""The promises of a pipeline of photographs: crops, filter, workers, errors."""

import functools
import io
import itertools
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
from PIL import Image

from benchmarks.contract.folders import SIZE, Photographs, Ramps, flat_photographs
from benchmarks.contract.streams import (
    Batch,
    Promise,
    Refused,
    Stream,
    check_refusal,
    equal,
    promises,
    refusing,
)


def check_windows(stream: Stream) -> None:
    """Raises Refused unless a stream of Ramps crops and flips as RandomResizedCrop does."""
    ramps, epochs = stream.source, 60
    images = [images for images, _ in stream.take(epochs * stream.steps)]
    numbers = ramps.identify(np.concatenate(images), None)
    windows = ramps.windows(np.concatenate(images))
    left, top, width, height, flip = windows.T
    ratio = width / height * np.divide(*ramps.dimensions[numbers].T)
    check_range("crops take", width * height, (0.08, 1), (0.18, 0.8), "of a photograph's area")
    check_range("crops are", ratio, (3 / 4, 4 / 3), (0.85, 1.18), "times as wide as high")
    for of, low, share in (("width", left, width), ("height", top, height)):
        reached = np.array([low.min(), (low + share).max()])
        check_range("crops reach from", reached, (0, 1), (0.03, 0.97), f"of the {of}")
        free = share < 0.9
        place = low[free] / (1 - share[free])
        if not 0.4 < place.mean() < 0.6 or place.std() < 0.2:
            raise Refused(
                f"crops lie at {place.mean():.2f} ± {place.std():.2f} of the free {of}, not "
                "anywhere from 0 to 1."
            )
    if not 0.35 < (flip < 0).mean() < 0.65:
        raise Refused(f"flips {(flip < 0).sum()} of {len(flip)} photographs, not about half.")
    areas = (width * height * flip).reshape(-1, stream.batch_size)
    alike = np.abs(areas[:, :, None] - areas[:, None]) < 0.01  # of 50 pairs one by accident
    if alike.mean() - 1 / stream.batch_size > 0.25:
        raise Refused("photographs of one batch share their crops.")
    check_crops_change(stream)


def check_range(what: str, values: np.ndarray, within: tuple, beyond: tuple, of: str) -> None:
    """Raises Refused unless the values lie within a range, with 6 % of room, and nearly fill it."""
    low, high = values.min(), values.max()
    inside = low > within[0] - 0.06 and high < within[1] * 1.06
    if not inside or low > beyond[0] or high < beyond[1]:
        raise Refused(
            f"{what} {low:.2f} to {high:.2f} {of}, not {within[0]:.3g} to {within[1]:.3g}."
        )


def check_crops_change(stream: Stream) -> None:
    """Raises Refused if a photograph is cropped alike in two epochs, or for two seeds."""

    def crops(**other) -> np.ndarray:
        images, labels = map(np.concatenate, zip(*stream.take(stream.steps, **other), strict=True))
        order = stream.source.identify(images, labels)
        return stream.source.windows(images)[np.argsort(order)]

    first, later = crops(), crops(start=stream.steps)
    other = crops(seed=stream.seed + 1)
    for one, two, what in (
        (first, later, "epochs 0 and 1 crop photographs alike."),
        (first, other, f"seeds {stream.seed} and {stream.seed + 1} crop photographs alike."),
        (later, other, "the next seed's epoch 0 has the crops of this seed's epoch 1."),
    ):
        if (np.abs(one - two).max(1) < 0.01).mean() > 0.3:
            raise Refused(what)


def check_filter(file_batches: Callable, folder: Path) -> None:
    """Raises Refused unless photographs are shrunk with antialiasing, and enlarged bilinearly."""
    fine, edge = folder / "fine", folder / "edge"
    for path in (fine, edge):
        (path / "one").mkdir(parents=True)
    rows, columns = np.indices((1200, 1200)) // 3
    Image.fromarray(((rows + columns) % 2 * 255).astype(np.uint8)).save(fine / "one" / "fine.png")
    steps = np.where(np.indices((24, 24))[1] // 6 % 2, 192, 64).astype(np.uint8)
    Image.fromarray(steps).save(edge / "one" / "edge.png")
    shrunk = take_all(file_batches(fine, 1, SIZE, 0), 8)
    if (spread := shrunk.std((1, 2)).max()) > 20:
        raise Refused(
            f"a fine pattern comes out with a deviation of {spread:.0f} levels: shrinking without "
            "antialiasing."
        )
    enlarged = take_all(file_batches(edge, 1, 48, 0), 8).astype(int)
    if enlarged.min() < 64 - 3 or enlarged.max() > 192 + 3:
        raise Refused(
            f"levels 64 and 192 become {enlarged.min()} to {enlarged.max()}: not bilinear."
        )
    if ((enlarged > 74) & (enlarged < 182)).mean() < 0.05:
        raise Refused("an enlarged edge has no levels in between: not bilinear.")


def take_all(stream: Iterable[Batch], count: int) -> np.ndarray:
    """The images of `count` batches. Raises Refused for an error."""
    with refusing():
        return np.concatenate([images for images, _ in itertools.islice(stream, count)])


def check_workers(stream: Stream, workers: int) -> None:
    """Raises Refused unless workers make the same batches as none, across the border of epochs."""
    count = stream.steps + 2
    alone, helped = stream.take(count), stream.take(count, workers=workers)
    if not all(map(equal, alone, helped)):
        raise Refused(f"{workers} workers make other batches than none.")


def broken_photographs(strict: bool) -> dict[str, bytes]:
    """What is wrong with a file, and its bytes. `strict`: also what some libraries open."""
    noise = Image.effect_noise((64, 64), 64)
    jpeg, png = encoded(noise, "JPEG"), encoded(noise, "PNG")
    found = {
        "text": b"Not a photograph.",
        "no bytes": b"",
        "half a JPEG": jpeg[: len(jpeg) // 2],
        "half a PNG": png[: len(png) // 2],
    }
    if strict:
        deep = Image.fromarray(np.full((9, 9), 999, np.uint16))
        start = jpeg.index(b"\xff\xc0") + 5  # the height and the width
        size = np.array([60_000, 60_000], ">u2").tobytes()
        found["16 bits a channel"] = encoded(deep, "PNG")
        found["a JPEG that promises gigapixels"] = jpeg[:start] + size + jpeg[start + 4 :]
    return found


def check_file_errors(
    file_batches: Callable, folder: Path, workers: int = 0, strict: bool = False
) -> None:
    """Raises Refused unless what is no photograph is named. Makes folders below `folder`."""
    empty, one, notes, broken = (folder / name for name in ("hollow", "one", "notes", "broken"))
    for path in (one, notes, broken):
        flat_photographs(path, 1, ((100, 100),), ("first", "second"), hidden=False)
    (empty / "first").mkdir(parents=True)
    (notes / "first" / "notes.txt").write_bytes(b"Not a photograph.")

    def both():  # photographs are decoded, in one batch each
        yield list(itertools.islice(file_batches(broken, 1, SIZE, 0, workers=workers), 2))

    for what, data in broken_photographs(strict).items():
        (broken / "second" / "broken.jpg").write_bytes(data)
        check_refusal(both, f"a broken.jpg, {what}", ["broken.jpg"], any_error=bool(workers))
        if workers:
            return  # they have raised: once will do
    cases = (
        (empty, 1, "a folder without a photograph", ["hollow"]),
        (notes, 1, "a notes.txt among the photographs", ["notes.txt"]),
        (one, 2, "1 photograph for batches of 2", [1, 2]),
    )
    for path, batch_size, what, says in cases:
        check_refusal(functools.partial(file_batches, path, batch_size, SIZE, 0), what, says)
    if len(take_all(file_batches(one, 1, SIZE, 0), 3)) != 3:
        raise Refused("1 photograph in batches of 1: ends, and a stream has no end.")


def encoded(image: Image.Image, suffix: str) -> bytes:
    image.save(written := io.BytesIO(), suffix)
    return written.getvalue()


def check_turned(file_batches: Callable, folder: Path) -> None:
    """Raises Refused unless the photographs of turned_ramps come as their EXIF notes say."""
    with refusing():
        for images, labels in itertools.islice(file_batches(folder, 4, SIZE, 0), 4):
            for ramp, label in zip(images, labels, strict=True):
                if ramp.std(0).max() > 3 or ramp.std(1).min() < 3:
                    raise Refused(f"the EXIF orientation {label + 1}: does not come out upright.")


def turned_ramps(folder: Path) -> Path:
    """Fill the folder with JPEGs of a ramp from left to right, each turned by its EXIF note."""
    ramp = np.linspace(0, 255, 600).round().astype(np.uint8)
    upright = Image.fromarray(np.tile(ramp, (400, 1))).convert("RGB")
    stored = Image.Transpose
    back = (None, stored.FLIP_LEFT_RIGHT, stored.ROTATE_180, stored.FLIP_TOP_BOTTOM)
    back += (stored.TRANSPOSE, stored.ROTATE_90, stored.TRANSVERSE, stored.ROTATE_270)
    for note, transposition in enumerate(back, start=1):
        exif = Image.Exif()
        exif[0x0112] = note
        image = upright if transposition is None else upright.transpose(transposition)
        (folder / f"{note}").mkdir(parents=True)
        image.save(folder / f"{note}" / "ramp.jpg", exif=exif, quality=95)
    return folder


def files_stream(file_batches: Callable, source: Photographs, batch_size: int) -> Stream:
    make = functools.partial(file_batches, source.folder, size=source.size)
    return Stream(make, source, batch_size, 3)


def file_promises(
    file_batches: Callable,
    folder: Path,
    workers: Iterable[int] = (1, 2),
) -> list[Promise]:
    """Every promise of `file_batches`, on folders that are made below `folder`."""
    mixed = files_stream(file_batches, flat_photographs(folder / "mixed"), 8)
    ramps = files_stream(file_batches, Ramps(folder / "ramps"), 4)
    errors, by_crops = functools.partial(check_file_errors, file_batches), {"each once", "refuses"}
    return [
        *promises(mixed, start=7, processes=4),
        # What comes out of ramps shows the crops, too: equal batches have equal crops.
        *(promise for promise in promises(ramps, 3, 2) if promise[0] not in by_crops),
        ("crops", lambda: check_windows(ramps)),
        ("filter", lambda: check_filter(file_batches, folder)),
        ("upright", lambda: check_turned(file_batches, turned_ramps(folder / "turned"))),
        ("refuses", lambda: errors(folder / "alone")),
        *(("workers", functools.partial(check_workers, ramps, n)) for n in workers),
        *([("errors of workers", lambda: errors(folder / "in workers", 1))] if workers else []),
    ]


def check_files(
    file_batches: Callable,
    folder: Path,
    workers: Iterable[int] = (1, 2),
) -> None:
    """Raises Refused if `file_batches` breaks a promise on folders that it makes below `folder`."""
    for _, check in file_promises(file_batches, folder, workers):
        check()
