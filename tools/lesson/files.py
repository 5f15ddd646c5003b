"""Files that are replaced at once: whoever reads one finds the old one or the new one, whole.

Needs nothing but Python itself.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def replacing(file: Path) -> Iterator[Path]:
    """Give a path beside `file`. What the body writes there takes its place when the body ends.

    An error or an interruption leaves `file` as it was. One process at a time: give others a lock.
    Raises OSError.
    """
    scratch = file.with_name(f".{file.name}.new")
    try:
        yield scratch
        scratch.replace(file)
    finally:
        scratch.unlink(missing_ok=True)
