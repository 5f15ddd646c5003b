"""offline/lay_out.py: libraries find their data; bad input gets one sentence, nothing is lost."""

import hashlib
import inspect
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest

from offline import lay_out
from tools import lessons

PROGRAM = lessons.ROOT / "offline" / "lay_out.py"


def tree(folder: Path) -> dict[str, bytes]:
    """Every file below the folder but the lock, by its path."""
    files = [file for file in folder.rglob("*") if file.is_file() and file.suffix != ".lock"]
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


def flip_a_byte(file: Path):
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def one_sentence(process) -> str:
    """What a run that failed said: one sentence on stderr, and no traceback."""
    assert process.returncode == 1
    assert process.stderr.startswith("lay_out: ")
    assert process.stderr.count("\n") == 1 and process.stderr.endswith(".\n")
    return process.stderr


def digest(images, labels):
    """The lessons' digest: SHA-256 of the sorted records of images (n, 28, 28), labels (n,)."""
    images, labels = np.asarray(images), np.asarray(labels)
    records = np.column_stack([images.reshape(len(images), 784), labels.astype(np.uint8)])
    return hashlib.sha256(b"".join(sorted(map(bytes, records)))).hexdigest()


LIBRARIES = f"""
import hashlib
import numpy as np
import datasets, torchvision
import tensorflow_datasets as tfds

{inspect.getsource(digest)}

mnist = torchvision.datasets.MNIST("data", train=False, download=True)
print(digest(mnist.data, mnist.targets))
mnist = datasets.load_dataset("ylecun/mnist", cache_dir="data")["test"]
print(digest([np.asarray(image) for image in mnist["image"]], mnist["label"]))
mnist = tfds.data_source("mnist", data_dir="data/array_record", split="test")
print(digest([example["image"] for example in mnist], [example["label"] for example in mnist]))
print(digest(*tfds.as_numpy(
    tfds.load("mnist", data_dir="data", split="test", batch_size=-1, as_supervised=True)
)))
"""


def test_every_library_reads_these_images_by_its_own_call(data, python):
    expected = digest(*lay_out.read_split("test"))
    environment = lessons.kernel_environment() | {"MPLBACKEND": "agg"}
    done = python("-c", LIBRARIES, cwd=data.parent, env=environment)
    assert done.stdout.split() == [expected] * 4, done.stderr
    assert not lay_out.find_missing(list(lay_out.LAYOUTS), data), "a library changed its layout"


def test_the_texts_are_laid_out(data):
    texts = {file.name: file.read_bytes() for file in (data / "shakespeare").glob("*.txt")}
    assert texts == lay_out.read_plays()
    assert (len(texts), sum(map(len, texts.values()))) == (42, 5_057_198)


def test_texts_of_the_readers_own_are_left_alone(tmp_path, python):
    own = tmp_path / "shakespeare/own.txt"
    own.parent.mkdir()
    own.write_text("mine")
    assert python(PROGRAM, "--data", tmp_path, "shakespeare").stdout == ""
    assert tree(tmp_path) == {"shakespeare/own.txt": b"mine"}


def test_the_lessons_digest_is_that_of_the_embedded_files():
    expected = digest(*lay_out.read_split("train"))
    source = lessons.md_path("pytorch_dataloader").read_text()
    [start] = re.findall(r'digest\.startswith\("(\w{48,})"\)', source)  # what fits into a line
    assert expected.startswith(start)


def test_a_second_run_does_nothing(tmp_path, python):
    assert "1 of 1: torchvision" in python(PROGRAM, "--data", tmp_path, "torchvision").stdout
    before = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*")}
    again = python(PROGRAM, "--data", tmp_path, "torchvision")
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")
    assert before == {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*")}


def test_killed_at_any_moment_then_two_at_once_end_whole(data, tmp_path, in_terminal):
    command = [sys.executable, str(PROGRAM), "--data", str(tmp_path)]
    for moment in ("laying out", "  1 of 5", "  1 of 4"):
        process = in_terminal(*command[1:])
        process.wait_until_it_says(moment)
        workers = process.descendants()
        process.kill()
        process.wait()
        _, alive = psutil.wait_procs(workers, timeout=10)
        assert not alive, "workers outlive their parent"
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    outputs = [process.communicate()[0] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert sum("waiting for another run" in output for output in outputs) <= 1
    assert sum("laying out" in output for output in outputs) == 1
    left = [name.name for name in tmp_path.iterdir() if name.name.startswith(".lay_out-")]
    assert not left
    for layout in lay_out.LAYOUTS.values():
        written, expected = tree(tmp_path / layout.path), tree(data / layout.path)
        # A lesson that was run in data/ leaves the cache of its `map` beside the dataset.
        expected = {name for name in expected if not Path(name).name.startswith("cache-")}
        assert written.keys() == expected
        assert lay_out.is_whole(tmp_path / layout.path)


def test_interrupted_by_ctrl_c_leaves_nothing_half_written(tmp_path, in_terminal):
    process = in_terminal(PROGRAM, "--data", tmp_path, "huggingface")
    process.stdout.readline()  # it has started to write
    time.sleep(1)
    _, said = process.press_ctrl_c()
    assert (process.returncode, said) == (1, "lay_out: interrupted; run it again to finish.\n")
    assert not tree(tmp_path)


def test_a_damaged_layout_of_ours_is_laid_out_anew(tmp_path, python):
    python(PROGRAM, "--data", tmp_path, "torchvision")
    whole = tree(tmp_path)
    flip_a_byte(tmp_path / "MNIST/raw/train-labels-idx1-ubyte")
    assert tree(tmp_path) != whole
    assert python(PROGRAM, "--data", tmp_path, "torchvision").returncode == 0
    assert tree(tmp_path) == whole


def zeroed(content: bytes) -> bytes:
    return bytes(len(content))


# What a file system may show after a power cut: no bytes, some of them, or others.
@pytest.mark.parametrize("left", [lambda content: b"", lambda content: content[:-80], zeroed])
@pytest.mark.parametrize("file", [lay_out.MANIFEST, "train-labels-idx1-ubyte"])
def test_after_a_power_cut_it_is_laid_out_anew(tmp_path, python, file, left):
    python(PROGRAM, "--data", tmp_path, "torchvision")
    whole = tree(tmp_path)
    hurt = tmp_path / "MNIST/raw" / file
    hurt.write_bytes(left(hurt.read_bytes()))
    assert lay_out.find_missing(["torchvision"], tmp_path) == ["torchvision"]
    done = python(PROGRAM, "--data", tmp_path, "torchvision")
    assert (done.returncode, tree(tmp_path)) == (0, whole), done.stderr


def test_what_is_renamed_into_place_is_on_the_disk(tmp_path, monkeypatch):
    flushed = []
    monkeypatch.setattr(os, "fsync", lambda fd: flushed.append(os.readlink(f"/proc/self/fd/{fd}")))
    lay_out.write_one("torchvision", tmp_path)
    assert {*flushed} == {
        *map(str, [tmp_path / "torchvision", *tmp_path.rglob("torchvision/**/*")])
    }


@pytest.mark.parametrize("name", lay_out.LAYOUTS)
def test_somebody_elses_interrupted_download_is_left_alone(tmp_path, python, name):
    theirs = tmp_path / lay_out.LAYOUTS[name].path / "train-images-idx3-ubyte"
    theirs.parent.mkdir(parents=True)
    theirs.write_bytes(b"half of it")
    sentence = one_sentence(python(PROGRAM, "--data", tmp_path, name))
    assert "interrupted" in sentence and str(theirs.parent) in sentence
    assert list(tree(tmp_path)) == [str(theirs.relative_to(tmp_path))]


EMBEDDED = {
    "mnist/train-labels-idx1-ubyte.gz": "torchvision",
    "mnist/SHA256SUMS": "torchvision",
    "shakespeare/plays.tar.xz": "shakespeare",
    "shakespeare/SHA256SUMS": "shakespeare",
}


@pytest.mark.parametrize("file", [file for file in EMBEDDED if "SUMS" not in file])
def test_a_flipped_byte_in_an_embedded_file(repository, tmp_path, python, file):
    flip_a_byte(repository / "offline" / file)
    data = tmp_path / "data"
    program = repository / "offline/lay_out.py"
    sentence = one_sentence(python(program, "--data", data, EMBEDDED[file]))
    assert f"{file} is damaged" in sentence and "git checkout" in sentence
    assert not tree(data)


@pytest.mark.parametrize("file", EMBEDDED)
def test_a_missing_embedded_file(repository, tmp_path, python, file):
    (repository / "offline" / file).unlink()
    data = tmp_path / "data"
    program = repository / "offline/lay_out.py"
    sentence = one_sentence(python(program, "--data", data, EMBEDDED[file]))
    assert f"{file} is missing" in sentence and "git checkout" in sentence
    assert not tree(data)


def test_a_read_only_folder(tmp_path, python, mounted):
    prefix = mounted("-t tmpfs -o ro tmpfs", tmp_path)
    done = python(PROGRAM, "--data", tmp_path / "data", "torchvision", prefix=prefix)
    assert "cannot be written to" in one_sentence(done)


def test_a_disk_that_is_too_small(tmp_path, python, mounted):
    prefix = mounted("-t tmpfs -o size=20m tmpfs", tmp_path)
    done = python(PROGRAM, "--data", tmp_path, "torchvision", prefix=prefix)
    assert "is full: 55 MB are needed" in one_sentence(done)


@pytest.mark.parametrize("name", ["huggingface", "array_record", "tfds"])
def test_a_disk_that_fills_up_meanwhile(tmp_path, python, mounted, name):
    fill = 'sleep 2; head -c 95M /dev/zero > "$0/filler" 2>/dev/null'
    prefix = mounted("-t tmpfs -o size=100m tmpfs", tmp_path, meanwhile=fill)
    done = python(PROGRAM, "--data", tmp_path, name, prefix=prefix)
    assert "is full" in one_sentence(done)


def test_a_library_that_is_not_installed(tmp_path, python):
    hide_datasets = (
        "import importlib.util, runpy, sys\n"
        "find = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name: None if name == 'datasets' else find(name)\n"
        "sys.argv = sys.argv[1:]\n"
        "runpy.run_path(sys.argv[0], run_name='__main__')\n"
    )
    done = python("-c", hide_datasets, PROGRAM, "--data", tmp_path, "huggingface")
    assert "datasets must be installed first: `python -m pip install" in one_sentence(done)
    done = python(
        "-c",
        hide_datasets,
        PROGRAM,
        "--data",
        tmp_path,
        "--installed",
        "huggingface",
        "torchvision",
    )
    assert done.returncode == 0 and "1 of 1: torchvision" in done.stdout


def test_an_unknown_layout(tmp_path, python):
    done = python(PROGRAM, "--data", tmp_path, "keras")
    assert done.returncode == 2
    assert "unknown layout keras: choose from tfds, huggingface" in done.stderr
