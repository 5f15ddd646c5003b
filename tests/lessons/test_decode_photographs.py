"""What a reader copies from the lesson on photographs: a folder as it comes from outside."""

import contextlib
import io
import itertools
import tempfile
from pathlib import Path

import feed_decode_photographs as lesson
import numpy as np
from PIL import Image

from benchmarks import contract

NOISE = np.random.default_rng(0).integers(0, 256, (300, 400, 3), np.uint8)


def folder_from_outside(folder: Path) -> tuple[contract.Photographs, set[str]]:
    """300 files: photographs of many kinds, of which it says what they are, and the bad ones."""
    source = contract.flat_photographs(folder, 296)
    good = [path for path in folder.glob("*/*.jpg") if not path.name.startswith(".")]
    jpeg = contract.encoded(Image.fromarray(NOISE), "JPEG")
    half = len(jpeg) // 2
    garbage = bytes(np.random.default_rng(1).integers(0, 255, half // 2, np.uint8))  # no marker
    bad = {
        "cut 1.jpg": jpeg[:half],
        "cut 2.jpg": jpeg[: half + 99],
        "damaged.jpg": jpeg[:half] + garbage + jpeg[half + len(garbage) :],
        "notes.txt": b"These are no photographs.",
    }
    for name, data in bad.items():
        (good[0].parent / name).write_bytes(data)
    (below := good[1].parent / "below").mkdir()  # its photograph is one of the class above
    with Image.open(good[1]) as image:
        image.convert("RGB").save(below / "moved.webp", quality=95)
    good[1].unlink()
    return source, set(bad)


def test_bad_files():
    """They are named, each once, and nothing comes of them; all others come, upright and small."""
    with tempfile.TemporaryDirectory() as scratch:
        large, small, turned, upright = (Path(scratch, name) for name in "abcd")
        source, bad = folder_from_outside(large)
        found = lesson.store_smaller(large, small, side=120)
        named = sorted(file.name for file in found)
        assert named == sorted(bad), f"named are {named}"
        stored = lesson.photographs_in(small)[0]
        assert len(stored) == source.count, f"{len(stored)} are stored of {source.count}"
        for file in stored:
            with Image.open(file) as image:
                assert min(image.size) <= 120, f"{file.name} has {image.size} pixels"
        for folder, skip in ((large, len(bad)), (small, 0)):
            assert_all_come(lesson.file_batches, folder, skip, source, bad)
        lesson.store_smaller(contract.turned_ramps(turned), upright, side=120)
        contract.check_turned(lesson.file_batches, upright)


def assert_all_come(file_batches, folder: Path, skip: int, source, bad: set[str]) -> None:
    """Two epochs have each photograph; each bad file is skipped by its name, or ends the stream."""
    listed = source.count + max(skip - 1, 0)  # notes.txt is in no order
    batch = next(size for size in (13, 8, 23) if not listed % size)
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        stream = file_batches(folder, batch, contract.SIZE, 0, workers=2, skip=skip)
        some = [*itertools.islice(stream, 2 * listed // batch)]
    for epoch in (some[: len(some) // 2], some[len(some) // 2 :]):
        images, labels = map(np.concatenate, zip(*epoch, strict=True))
        missing = source.count - len(np.unique(source.identify(images, labels)))
        assert not missing, f"{missing} photographs never come"
    with contextlib.redirect_stdout(io.StringIO()):
        resumed = next(file_batches(folder, batch, contract.SIZE, 0, start=5, skip=skip))
    assert all(map(np.array_equal, resumed, some[5])), "a resume makes another batch"
    lines = said.getvalue().splitlines()
    assert len(lines) == skip, f"skip={skip}, and it says: {lines}"
    assert all(sum(name in line for line in lines) == 1 for name in bad if skip)
    if skip:

        def one_too_many():
            fewer = file_batches(folder, batch, contract.SIZE, 0, skip=skip - 1)
            yield [*itertools.islice(fewer, len(some))]

        with contextlib.redirect_stdout(said):
            contract.check_refusal(one_too_many, "one bad file too many", [skip - 1])


BAD = "check_bad_files"
CLASSES = "for name in classes:  # an empty class keeps its number"
