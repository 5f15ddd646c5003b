"""Sources, arrays and stores in memory, for the tests of the lesson on files and storage."""

import contextlib
import itertools
from types import SimpleNamespace

import numpy as np
import obstore


def source_of(sizes):
    """Rows that are their own places."""
    parts = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
    return SimpleNamespace(sizes=sizes, read=lambda n: {"x": parts[n], "y": parts[n] * 2})


def taken(batches, steps, *arguments, **options):
    with contextlib.closing(batches(*arguments, **options)) as stream:
        return list(itertools.islice(stream, steps))


def memory():
    return obstore.store.MemoryStore()


def arrays_of(rows, dtype, shape, strided=False, first=0):
    count = rows * int(np.prod(shape, dtype=int))
    values = (np.arange(2 * count) + first).reshape(2 * rows, *shape).astype(dtype)
    return {"x": values[::2] if strided else values[:rows], "y": np.arange(rows) + first}
