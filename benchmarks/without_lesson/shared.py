"""The order, the list of photographs and the decoder of all loaders without a lesson.

They are the lessons' own cells, so that the work is equal: `check` holds the cells alike.
"""

import contextlib
import functools
import itertools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from obstore.store import S3Store

from benchmarks import lesson
from tools.lesson import lessons

LESSON = lesson.DECODER  # has the order and the decoder
SHARED = ((LESSON, "shared-rows"), ("grain_in_depth", "shared-listing"))
MODULES = ("photo_windows", "photo_crops")


def cells(lesson_name: str, *tags: str) -> list[str]:
    """The sources of a lesson's cells that have one of the tags."""
    return [c.source for c in lessons.code_cells(lessons.read_notebook(lesson_name), *tags)]


names = {"itertools": itertools, "np": np, "Path": Path}
for source in itertools.chain.from_iterable(itertools.starmap(cells, SHARED)):
    exec(source, names)
shuffled_rows, photographs_in = names["shuffled_rows"], names["photographs_in"]

with contextlib.chdir(lessons.NOTEBOOKS):  # where the cells write their modules
    for source in cells(LESSON, "files-pipeline"):
        if source.startswith(tuple(f"%%writefile {name}.py" for name in MODULES)):
            lesson.write_module(source)
if str(lessons.NOTEBOOKS) not in sys.path:
    sys.path.insert(0, str(lessons.NOTEBOOKS))
from photo_crops import decode_crop  # noqa: E402


def make_photographs() -> None:
    """Make the folder of photographs on which the lessons' streams are timed, where it is not."""
    [source] = cells("grain_in_depth", "shared-photographs")
    exec(source, {"np": np})


def crop(file: Path, size: int, key: tuple) -> np.ndarray:
    """The crop of a file that follows from its key, (seed, epoch, row). Raises ValueError."""
    return crop_bytes(file.read_bytes(), str(file), size, key)


def cropped(example: tuple, size: int) -> tuple[np.ndarray, int]:
    """The crop and the label of one of `keys`. Raises ValueError."""
    file, label, key = example
    return crop(file, size, key), label


def crop_bytes(data: bytes, name: str, size: int, key: tuple) -> np.ndarray:
    """The same crop, of the bytes of a file that lie elsewhere. Raises ValueError."""
    try:
        return decode_crop(data, size, np.random.default_rng(key))
    except ValueError as error:
        raise ValueError(f"{name} {error}") from error


def keys(folder, batch_size, seed, start=0, process=0, processes=1):
    """(file, label, key) of each photograph of the stream, one after the other. Endless.

    Raises ValueError at once where no batch can be made.
    """
    files, labels, _ = photographs_in(folder)
    steps_of(len(files), batch_size, processes)
    stream = shuffled_rows(len(files), batch_size, seed, start, process, processes)
    each = ((epoch, row) for epoch, rows in stream for row in rows.tolist())
    return ((files[row], labels[row], (seed, epoch, row)) for epoch, row in each)


def stacked(examples) -> tuple[np.ndarray, np.ndarray]:
    """A batch of (crop, label)."""
    images, labels = zip(*examples, strict=True)
    return np.stack(images), np.array(labels, np.int32)


def not_split(sentence: str, batch_size: int, processes: int) -> None:
    """Say what a library does instead of splitting batches: the check notes the sentence."""
    if batch_size % processes:
        raise ValueError(f"{processes} processes do not split batches of {batch_size}.")
    if processes > 1:
        raise NotImplementedError(sentence)


@functools.cache
def converted(folder: Path, write: Callable) -> tuple[Path, int]:
    """A folder of photographs in a library's own format, and how many they are.

    `write(examples, to)` gets (row, label, file) of each, once in this process: what it writes goes
    with the process. Raises ValueError.
    """
    files, labels, _ = photographs_in(folder)
    scratch = tempfile.TemporaryDirectory(prefix="converted-")
    kept.append(scratch)
    to = Path(scratch.name, "data")
    write(list(zip(range(len(files)), labels.tolist(), files, strict=True)), to)
    return to, len(files)


kept = []


def steps_of(count: int, batch_size: int, processes: int = 1) -> int:
    """Batches of an epoch. Raises ValueError where there is none, or it cannot be split."""
    if not 0 < batch_size <= count:
        raise ValueError(f"{count} examples do not fill batches of {batch_size}.")
    if batch_size % processes:
        raise ValueError(f"{processes} processes do not split batches of {batch_size}.")
    return count // batch_size


BUCKET, ROWS = "data", "rows"  # of the lessons' object store, and a folder in it


def in_a_bucket(folder: Path) -> tuple:
    """Put the files of a folder into the lessons' object store, below ROWS.

    Returns its server, which waits before each answer when it is told to, and the files' URLs. The
    clients of S3 find the server in the environment.
    """
    setup = cells("files_and_storage_in_depth", "setup")
    for source in setup:
        if source.startswith("%%writefile"):
            lesson.write_module(source)
    [source] = [source for source in setup if "class Server:" in source]
    names = {"json": json, "subprocess": subprocess, "sys": sys, "S3Store": S3Store}
    exec(source, names)
    url = names["layer"].url
    os.environ |= dict.fromkeys(("AWS_ENDPOINT_URL", "S3_ENDPOINT_URL"), url)
    os.environ |= dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), "any")
    os.environ["AWS_DEFAULT_REGION"] = "us-east-1"
    store = S3Store(BUCKET, client_options={"allow_http": True})
    files = sorted(folder.iterdir())
    for file in files:
        store.put(f"{ROWS}/{file.name}", file.read_bytes())
    return names["layer"], [f"{url}/{BUCKET}/{ROWS}/{file.name}" for file in files]
