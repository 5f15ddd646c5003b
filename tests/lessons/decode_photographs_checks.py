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
