"""Which processes still run, for tests of what must end."""

import contextlib
from collections.abc import Iterable

import psutil


def running(pids: Iterable[int]) -> list[psutil.Process]:
    """Those of the processes that have not ended. A zombie has."""
    found = []
    for pid in pids:
        with contextlib.suppress(psutil.NoSuchProcess):
            process = psutil.Process(pid)
            if process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found
