"""Lay out the embedded data where each library looks for it before it downloads.

    python offline/lay_out.py [--data notebooks/data] [--installed] [LAYOUT ...]

Afterwards these calls find the dataset below `data/` and need no network:

    torchvision.datasets.MNIST("data", download=True)
    tfds.load("mnist", data_dir="data")
    tfds.data_source("mnist", data_dir="data/array_record")
    datasets.load_dataset("ylecun/mnist", cache_dir="data")      # with HF_HUB_OFFLINE=1

and the plays and poems of Shakespeare are the text files of `data/shakespeare/`.

A layout is written into a temporary folder and renamed into place when it is whole and on the disk.
So a run that is killed loses nothing, nor does a power cut, and a second run at the same time waits
and finds the work done.
"""

import argparse
import contextlib
import errno
import gzip
import hashlib
import importlib.util
import io
import multiprocessing
import os
import shutil
import signal
import sys
import tarfile
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path

import filelock
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tools import files
from tools.problem import INSTALL, Problem

HERE = Path(__file__).resolve().parent
MNIST = HERE / "mnist"
SHAKESPEARE = HERE / "shakespeare"
MANIFEST = ".sha256sums"

# The commit of ylecun/mnist on the Hugging Face hub that these images equal.
HUB_COMMIT = "77f3279092a1c1579b2250db8eafed0ad422088c"


@dataclass(frozen=True)
class Layout:
    path: Path  # below the data folder; renamed into place as one
    package: str | None  # what has to be installed to write it
    megabytes: int  # once laid out
    write: Callable[[Path], None]  # given the folder that stands for `data`
    holds: Callable[[Path], bool]  # whether a folder that somebody else wrote is whole


# The embedded files --------------------------------------------------------------------------


def verified(packed: Path) -> bytes:
    """The bytes of one embedded file, its SHA-256 verified.

    Raises Problem when the file is missing or damaged.
    """
    sums = packed.parent / "SHA256SUMS"
    restore = f"restore it with `git checkout -- {packed.parent.relative_to(HERE.parent)}`"
    for file in (sums, packed):
        if not file.is_file():
            raise Problem(f"{file} is missing: {restore}.")
    expected = dict(reversed(line.split()) for line in sums.read_text().splitlines())
    content = packed.read_bytes()
    if hashlib.sha256(content).hexdigest() != expected.get(packed.name):
        raise Problem(f"{packed} is damaged (its SHA-256 is not the one in SHA256SUMS): {restore}.")
    return content


def read_embedded(name: str) -> bytes:
    """The unpacked bytes of one embedded IDX file. Raises Problem."""
    return gzip.decompress(verified(MNIST / f"{name}.gz"))


def read_plays() -> dict[str, bytes]:
    """The text of each play and poem, by the name of its file. Raises Problem."""
    archive = io.BytesIO(verified(SHAKESPEARE / "plays.tar.xz"))
    with tarfile.open(fileobj=archive) as members:
        return {
            Path(member.name).name: members.extractfile(member).read()
            for member in members
            if member.isfile()
        }


IDX_FILES = {
    "train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
}
ALL_IDX_FILES = IDX_FILES["train"] + IDX_FILES["test"]


def read_split(split: str) -> tuple[np.ndarray, np.ndarray]:
    """Images uint8 (n, 28, 28) and labels uint8 (n,) of the split "train" or "test".

    Raises Problem for a file that is missing or damaged.
    """
    images, labels = map(read_embedded, IDX_FILES[split])
    return (
        np.frombuffer(images, np.uint8, offset=16).reshape(-1, 28, 28),
        np.frombuffer(labels, np.uint8, offset=8),
    )


def examples(split: str):
    """Yield each example of the split: the image as PNG bytes, the label as int."""
    from PIL import Image

    for image, label in zip(*read_split(split), strict=True):
        png = io.BytesIO()
        Image.fromarray(image).save(png, "PNG")
        yield png.getvalue(), int(label)


# One writer for each library -----------------------------------------------------------------


def write_torchvision(data: Path) -> None:
    raw = data / "MNIST" / "raw"
    raw.mkdir(parents=True)
    for name in ALL_IDX_FILES:
        (raw / name).write_bytes(read_embedded(name))


def write_tfds(data: Path, file_format: str) -> None:
    """TFDS's own MNIST builder writes; only the download is replaced."""
    import tensorflow_datasets as tfds

    tfds.disable_progress_bar()
    with tfds.core.registered.skip_registration():
        from tensorflow_datasets.image_classification.mnist import MNIST

        class EmbeddedMNIST(MNIST):
            name = "mnist"

            def _split_generators(self, dl_manager):
                return {split: self._generate_examples(split) for split in IDX_FILES}

            def _generate_examples(self, split):
                # The index is the key in the original too, so TFDS stores the same order.
                for index, (png, label) in enumerate(examples(split)):
                    yield index, {"image": png, "label": label}

    EmbeddedMNIST(data_dir=data, file_format=file_format).download_and_prepare()


def write_tfrecord(data: Path) -> None:
    write_tfds(data, "tfrecord")


def write_array_record(data: Path) -> None:
    write_tfds(data / "array_record", "array_record")


def write_huggingface(data: Path) -> None:
    import datasets

    datasets.disable_progress_bars()
    features = datasets.Features(
        image=datasets.Image(), label=datasets.ClassLabel(names=[str(digit) for digit in range(10)])
    )

    class EmbeddedMNIST(datasets.GeneratorBasedBuilder):
        def _info(self):
            return datasets.DatasetInfo(features=features)

        def _split_generators(self, dl_manager):
            return [datasets.SplitGenerator(split, {"split": split}) for split in IDX_FILES]

        def _generate_examples(self, split):
            for index, (png, label) in enumerate(examples(split)):
                yield index, {"image": {"bytes": png, "path": None}, "label": label}

    EmbeddedMNIST(
        cache_dir=str(data),
        repo_id="ylecun/mnist",
        dataset_name="mnist",
        config_name="mnist",
        hash=HUB_COMMIT,
    ).download_and_prepare()


def write_shakespeare(data: Path) -> None:
    folder = data / "shakespeare"
    folder.mkdir(parents=True)
    for name, text in read_plays().items():
        (folder / name).write_bytes(text)


# Whether a folder that this program did not write is whole ------------------------------------


def has_info(folder: Path) -> bool:
    """TFDS and Hugging Face write this file last."""
    return (folder / "dataset_info.json").is_file()


def has_idx_files(folder: Path) -> bool:
    return all((folder / name).is_file() for name in ALL_IDX_FILES) and all(
        (folder / name).read_bytes() == read_embedded(name) for name in ALL_IDX_FILES
    )


def has_texts(folder: Path) -> bool:
    """Any text: readers put their own there."""
    return any(folder.glob("*.txt"))


# In order of how long they take: the slowest starts first.
LAYOUTS = {
    "tfds": Layout(Path("mnist/3.0.1"), "tensorflow_datasets", 23, write_tfrecord, has_info),
    "huggingface": Layout(
        Path("ylecun___mnist/mnist/0.0.0", HUB_COMMIT),
        "datasets",
        21,
        write_huggingface,
        has_info,
    ),
    "array_record": Layout(
        Path("array_record/mnist/3.0.1"),
        "tensorflow_datasets",
        27,
        write_array_record,
        has_info,
    ),
    "torchvision": Layout(Path("MNIST/raw"), None, 55, write_torchvision, has_idx_files),
    "shakespeare": Layout(Path("shakespeare"), None, 6, write_shakespeare, has_texts),
}


# What is there, and what is missing ----------------------------------------------------------


def sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def write_manifest(folder: Path) -> None:
    """The SHA-256 of each file in the folder; its last line is that of the lines before."""
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    lines = "".join(f"{sha256(file)}  {file.relative_to(folder)}\n" for file in files)
    (folder / MANIFEST).write_text(f"{lines}{hashlib.sha256(lines.encode()).hexdigest()}\n")


def is_whole(folder: Path) -> bool:
    """Whether every file that a run of this program wrote into `folder` is still as it was."""
    if not (folder / MANIFEST).is_file():
        return False
    *lines, last = (folder / MANIFEST).read_bytes().splitlines(keepends=True) or [b""]
    if last != f"{hashlib.sha256(b''.join(lines)).hexdigest()}\n".encode():
        return False
    for line in lines:
        digest, name = line.decode().rstrip("\n").split(maxsplit=1)
        if not (folder / name).is_file() or sha256(folder / name) != digest:
            return False
    return True


def flush(folder: Path) -> None:
    """Wait until the folder and all that is in it are on the disk, to survive a power cut."""
    for path in (folder, *folder.rglob("*")):
        files.flush(path)


def is_ours(folder: Path) -> bool:
    """Whether this program may write here: it wrote the folder itself, or there is nothing."""
    return (folder / MANIFEST).exists() or not folder.exists() or not any(folder.iterdir())


def find_missing(names: list[str], data: Path) -> list[str]:
    """The layouts of these that have to be written.

    Raises Problem for a folder that this program did not write and that is not whole: it is
    somebody's interrupted download, and not ours to delete.
    """
    missing = []
    for name in names:
        layout, folder = LAYOUTS[name], data / LAYOUTS[name].path
        if is_ours(folder):
            if not is_whole(folder):
                missing.append(name)
        elif not layout.holds(folder):
            raise Problem(
                f"{folder} holds a download that was interrupted or is something else: "
                "move it away or delete it, then run this again."
            )
    return missing


# Writing -------------------------------------------------------------------------------------


def start_worker() -> None:
    """A worker whose parent was killed stops too, and leaves the data folder to the next run."""

    def wait():
        multiprocessing.parent_process().join()
        os._exit(1)

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    threading.Thread(target=wait, daemon=True).start()


def write_one(name: str, scratch: Path) -> float:
    """Write the layout into a folder below `scratch`. Returns the seconds it took."""
    start = time.perf_counter()
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"  # or newer CPUs make TensorFlow log
    layout = LAYOUTS[name]
    # TFDS and Hugging Face report what they prepare; our own lines are the progress.
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        layout.write(scratch / name)
    write_manifest(scratch / name / layout.path)
    flush(scratch / name)
    return time.perf_counter() - start


def move_into_place(name: str, scratch: Path, data: Path) -> None:
    path = LAYOUTS[name].path
    target = data / path
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists():  # damaged, and ours: the manifest says so
        os.replace(target, scratch / f"{name}-damaged")
    os.replace(scratch / name / path, target)


def lay_out(names: list[str], data: Path) -> None:
    """Write the named layouts that are not below `data` yet. Raises Problem."""
    if not find_missing(names, data):  # needs no lock, so it works in a read-only checkout too
        return
    data.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(data / ".lay_out.lock")
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        print(f"waiting for another run that lays out {data}", flush=True)
        lock.acquire()
    with lock:
        for leftover in data.glob(".lay_out-*"):  # of a run that was killed
            shutil.rmtree(leftover)
        if missing := find_missing(names, data):
            write_missing(missing, data)


def write_missing(names: list[str], data: Path) -> None:
    needed = sum(LAYOUTS[name].megabytes for name in names)
    if free_megabytes(data) < needed:
        raise disk_full(data, needed)
    for file in ALL_IDX_FILES:
        read_embedded(file)  # a damaged file is found here, not by every worker
    read_plays()
    print(f"laying out in {data}: {', '.join(names)} ({needed} MB)", flush=True)
    # spawn: forking a process that has threads can deadlock, and the libraries start threads.
    workers = ProcessPoolExecutor(
        max_workers=2,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=start_worker,
    )
    with tempfile.TemporaryDirectory(dir=data, prefix=".lay_out-") as scratch, workers:
        try:
            jobs = {workers.submit(write_one, name, Path(scratch)): name for name in names}
            for done, job in enumerate(as_completed(jobs), start=1):
                seconds = job.result()
                move_into_place(jobs[job], Path(scratch), data)
                print(f"  {done} of {len(names)}: {jobs[job]} ({seconds:.1f} s)", flush=True)
        except BaseException as error:
            # Each library has an exception of its own for a full disk.
            full = free_megabytes(data) < max(LAYOUTS[name].megabytes for name in names)
            for worker in multiprocessing.active_children():
                worker.kill()
            if full and isinstance(error, Exception):
                raise disk_full(data, needed) from error
            if isinstance(error, BrokenProcessPool):
                raise Problem(
                    "a worker was killed, perhaps for want of memory: run this again."
                ) from error
            raise


def free_megabytes(folder: Path) -> int:
    return shutil.disk_usage(folder).free // 10**6


def disk_full(data: Path, needed: int) -> Problem:
    return Problem(
        f"the disk that holds {data} is full: {needed} MB are needed and "
        f"{free_megabytes(data)} MB are free, so free some space and run this again."
    )


@contextlib.contextmanager
def explaining_the_disk(data: Path):
    """Raises Problem in place of the body's OSError, where the disk of `data` is the reason."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            needed = sum(layout.megabytes for layout in LAYOUTS.values())
            raise disk_full(data, needed) from error
        if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
            raise Problem(
                f"{data} cannot be written to: choose another folder with --data."
            ) from error
        raise


def names_to_write(names: list[str], installed: bool) -> list[str]:
    """The chosen layouts, or all, of the libraries that are installed.

    Raises Problem where a library is not installed, unless `installed` passes over it.
    """
    chosen = [name for name in LAYOUTS if not names or name in names]
    absent = {
        name: LAYOUTS[name].package
        for name in chosen
        if LAYOUTS[name].package and not importlib.util.find_spec(LAYOUTS[name].package)
    }
    if absent and not installed:
        packages = " and ".join(sorted({p.replace("_", "-") for p in absent.values()}))
        raise Problem(f"{packages} must be installed first: {INSTALL}.")
    return [name for name in chosen if name not in absent]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("layouts", nargs="*", metavar="LAYOUT", help=", ".join(LAYOUTS))
    parser.add_argument("--data", type=Path, default=HERE.parent / "notebooks" / "data")
    parser.add_argument(
        "--installed", action="store_true", help="pass over libraries that are not installed"
    )
    arguments = parser.parse_args()
    if unknown := set(arguments.layouts) - set(LAYOUTS):
        parser.error(f"unknown layout {', '.join(unknown)}: choose from {', '.join(LAYOUTS)}")
    # A worker that is killed leaves its semaphores to Python's tracker, which would say so.
    os.environ["PYTHONWARNINGS"] = "ignore:resource_tracker"
    try:
        with explaining_the_disk(arguments.data):
            lay_out(names_to_write(arguments.layouts, arguments.installed), arguments.data)
    except Problem as problem:
        sys.exit(f"lay_out: {problem}")
    except KeyboardInterrupt:
        sys.exit("lay_out: interrupted; run it again to finish.")


if __name__ == "__main__":
    main()
