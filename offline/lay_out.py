"""Lay out the embedded data where each library looks for it before it downloads.

    python offline/lay_out.py

Afterwards these calls find the dataset in notebooks/, below `data/`, and need no network, as far as
their library is installed here:

    torchvision.datasets.MNIST("data", download=True)
    tfds.load("mnist", data_dir="data")
    tfds.data_source("mnist", data_dir="data/array_record")
    datasets.load_dataset("ylecun/mnist", cache_dir="data")      # with HF_HUB_OFFLINE=1

and the plays and poems of Shakespeare are the text files of `data/shakespeare/`.

A layout is written into a temporary folder and renamed into place when it is whole. So a run that
is killed leaves nothing half written, and a second run at the same time waits and finds the work
done.
"""

import contextlib
import functools
import gzip
import hashlib
import importlib.util
import io
import itertools
import os
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import filelock

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from offline.problem import Problem, told

HERE = Path(__file__).resolve().parent
MNIST = HERE / "mnist"
SHAKESPEARE = HERE / "shakespeare"
WAIT_S = 600  # for another run, which takes a minute on a slow machine

# The commit of ylecun/mnist on the Hugging Face hub that these images equal.
HUB_COMMIT = "77f3279092a1c1579b2250db8eafed0ad422088c"


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


IDX_FILES = {
    "train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
}


def read_split(split: str) -> tuple:
    """Images uint8 (n, 28, 28) and labels uint8 (n,) of the split "train" or "test".

    Raises Problem for a file that is missing or damaged.
    """
    import numpy as np  # the light environments have none

    images, labels = map(read_embedded, IDX_FILES[split])
    return (
        np.frombuffer(images, np.uint8, offset=16).reshape(-1, 28, 28),
        np.frombuffer(labels, np.uint8, offset=8),
    )


@functools.cache
def examples(split: str) -> list[tuple[bytes, int]]:
    """Each example of the split: the image as PNG, and the label. Raises Problem."""
    from PIL import Image

    found = []
    for image, label in zip(*read_split(split), strict=True):
        png = io.BytesIO()
        Image.fromarray(image).save(png, "PNG")
        found.append((png.getvalue(), int(label)))
    return found


# One writer for each library, given the folder that stands for `data` --------------------------


def write_torchvision(data: Path) -> None:
    raw = data / "MNIST" / "raw"
    raw.mkdir(parents=True)
    for name in itertools.chain(*IDX_FILES.values()):
        (raw / name).write_bytes(read_embedded(name))


def write_tfds(data: Path, file_format: str = "tfrecord") -> None:
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
    packed = io.BytesIO(verified(SHAKESPEARE / "plays.tar.xz"))
    with tarfile.open(fileobj=packed) as plays:
        plays.extractall(data / "shakespeare", filter="data")


class Layout(NamedTuple):
    path: Path  # below the data folder; renamed into place as one
    package: str | None  # what has to be installed to write it
    write: Callable[[Path], None]
    last: str  # what is there once it is whole, also where a download of the library made it


HUB = Path("ylecun___mnist/mnist/0.0.0", HUB_COMMIT)
RECORDS = Path("array_record/mnist/3.0.1")
INFO = "dataset_info.json"
LAYOUTS = {
    "torchvision": Layout(Path("MNIST/raw"), None, write_torchvision, "t10k-labels-idx1-ubyte"),
    "shakespeare": Layout(Path("shakespeare"), None, write_shakespeare, "*.txt"),  # or your own
    "huggingface": Layout(HUB, "datasets", write_huggingface, INFO),
    "tfds": Layout(Path("mnist/3.0.1"), "tensorflow_datasets", write_tfds, INFO),
    "array_record": Layout(RECORDS, "tensorflow_datasets", write_array_record, INFO),
}


def folders(data: Path) -> list[Path]:
    """What is laid out in `data`, as whole folders, without what lessons wrote beside it."""
    names = {layout.path.parts[0] for layout in LAYOUTS.values()}
    return [data / name for name in sorted(names) if (data / name).is_dir()]


# Laying out ----------------------------------------------------------------------------------


def find_missing(names: Iterable[str], data: Path) -> list[str]:
    """The layouts of these that have to be written.

    Raises Problem for a folder that is there and not whole: it may be a download of somebody's that
    was interrupted, and is not ours to delete.
    """
    missing = []
    for name in names:
        folder = data / LAYOUTS[name].path
        if not folder.exists() or not any(folder.iterdir()):
            missing.append(name)
        elif not any(folder.glob(LAYOUTS[name].last)):
            raise Problem(
                f"{folder} is damaged, or holds a download that was interrupted: "
                "move it away or delete it, then run this again."
            )
    return missing


def write_one(name: str, data: Path) -> None:
    """Write the layout beside its place, then rename it into place. Raises OSError."""
    layout = LAYOUTS[name]
    target = data / layout.path
    with tempfile.TemporaryDirectory(dir=data, prefix=".lay_out-") as scratch:
        # TFDS and Hugging Face report what they prepare; our own lines are the progress.
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
            layout.write(Path(scratch))
        target.mkdir(parents=True, exist_ok=True)
        target.rmdir()  # it is empty; Windows renames onto no folder at all
        (Path(scratch) / layout.path).rename(target)


def lay_out(names: Iterable[str], data: Path) -> None:
    """Write the named layouts that are not below `data` yet. Raises Problem and OSError.

    The system takes the lock from whoever is killed.
    """
    if not find_missing(names, data):  # needs no lock, so it works in a read-only checkout too
        return
    data.mkdir(parents=True, exist_ok=True)
    try:
        with filelock.FileLock(data / ".lay_out.lock", timeout=WAIT_S):
            for leftover in data.glob(".lay_out-*"):  # of a run that was killed
                shutil.rmtree(leftover)
            missing = find_missing(names, data)
            for number, name in enumerate(missing, start=1):
                print(f"laying out in {data}: {number} of {len(missing)}, {name}", flush=True)
                write_one(name, data)
    except filelock.Timeout as error:
        raise Problem(
            f"another run has been laying out {data} for {WAIT_S} s: "
            "wait for it or end it, then run this again."
        ) from error


def main() -> None:
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"  # or newer CPUs make TensorFlow log
    packages = {name: layout.package for name, layout in LAYOUTS.items()}
    with told("lay_out"):
        names = [n for n, p in packages.items() if not p or importlib.util.find_spec(p)]
        lay_out(names, HERE.parent / "notebooks" / "data")


if __name__ == "__main__":
    main()
