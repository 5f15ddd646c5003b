"""Files that are replaced at once: whoever reads one finds the old one or the new one, whole.

Needs nothing but Python itself.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path


def flush(path: Path) -> None:
    """Wait until a file, or the list of what a folder holds, is on the disk. Raises OSError."""
    if path.is_dir() and os.name != "posix":  # elsewhere a folder cannot be opened
        return
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def replacing(file: Path) -> Iterator[Path]:
    """Give a path beside `file`. What the body writes there takes the place of `file`.

    It does so when the body ends, and is on the disk by then: an error, an interruption or a power
    cut leaves `file` as it was. One process at a time: give others a lock. Raises OSError.
    """
    scratch = file.with_name(f".{file.name}.new")
    try:
        yield scratch
        flush(scratch)
        scratch.replace(file)
        flush(file.parent)
    finally:
        scratch.unlink(missing_ok=True)
