"""What a reader copies from the lesson on decoders beside its pipelines: smaller copies."""

import tempfile
from pathlib import Path

from PIL import Image

from benchmarks import contract


def check_smaller_copies(names) -> None:
    """They are the same photographs in the same classes, small enough and upright."""
    with tempfile.TemporaryDirectory() as scratch:
        large, small, turned, upright = (Path(scratch, name) for name in "abcd")
        source = contract.flat_photographs(large)
        names["store_smaller"](large, small, side=120)
        for file in names["photographs_in"](small)[0]:
            with Image.open(file) as image:
                assert min(image.size) <= 120, f"{file.name} has {image.size} pixels"
        source.folder = small
        contract.check_epochs(contract.files_stream(names["file_batches"], source, 8))
        names["store_smaller"](contract.turned_ramps(turned), upright, side=120)
        contract.check_turned(names["file_batches"], upright)


SMALLER = "check_smaller_copies"
CLASSES = "for name in classes:  # an empty class keeps its number"
# The check, what a cell says, what is put in its place, what the check says then.
BROKEN = [
    (SMALLER, "min(1, side / min(image.size))", "1", r"has \(\d+, \d+\) pixels"),
    (SMALLER, CLASSES, "for name in {f.parent.name for f in files}:", "another label than their"),
    (SMALLER, "ImageOps.exif_transpose(image, in_place=True)", "pass", "does not come out upright"),
]
