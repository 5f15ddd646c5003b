"""offline/lay_out.py: libraries find their data; bad input gets one sentence, nothing is lost."""

import hashlib
import inspect
import re
import shutil
import time
from pathlib import Path

import filelock
import numpy as np
import pytest

from offline import lay_out
from offline.problem import Problem
from tools.lesson import lessons
from tools.run import kernels

pytestmark = pytest.mark.slow


def tree(folder: Path) -> dict[str, bytes]:
    """Every file below the folder but the lock, by its path."""
    files = [file for file in folder.rglob("*") if file.is_file() and file.suffix != ".lock"]
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


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
    environment = kernels.kernel_environment() | {"MPLBACKEND": "agg"}
    done = python("-c", LIBRARIES, cwd=data.parent, env=environment)
    assert done.stdout.split() == [expected] * 4, done.stderr
    assert not lay_out.find_missing(list(lay_out.LAYOUTS), data), "a library changed its layout"


def test_the_lessons_digest_is_that_of_the_embedded_files():
    expected = digest(*lay_out.read_split("train"))
    source = lessons.md_path("tensorflow_datasets_in_depth").read_text()
    [start] = re.findall(r'digest\.startswith\("(\w{48,})"\)', source)  # what fits into a line
    assert expected.startswith(start)


def test_the_texts_are_laid_out(data):
    sizes = [file.stat().st_size for file in (data / "shakespeare").glob("*.txt")]
    assert (len(sizes), sum(sizes)) == (42, 5_057_198)


def test_texts_of_the_readers_own_are_left_alone(tmp_path):
    own = tmp_path / "shakespeare/own.txt"
    own.parent.mkdir()
    own.write_text("mine")
    lay_out.lay_out(["shakespeare"], tmp_path)
    assert tree(tmp_path) == {"shakespeare/own.txt": b"mine"}


def test_killed_while_it_writes_then_two_at_once_end_whole(data, tmp_path, in_terminal):
    code = "import sys; from pathlib import Path; from offline import lay_out;"
    code += "lay_out.lay_out(['torchvision', 'huggingface'], Path(sys.argv[1]))"
    process = in_terminal("-c", code, tmp_path, cwd=lessons.ROOT)
    process.wait_until_it_says("2 of 2, huggingface")
    time.sleep(1)
    process.end()
    process.wait()
    assert list(tmp_path.glob(".lay_out-*")), "it was killed too late"
    both = [in_terminal("-c", code, tmp_path, cwd=lessons.ROOT) for _ in range(2)]
    outputs = [process.communicate()[0] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert sum("1 of 1, huggingface" in output for output in outputs) == 1
    assert not list(tmp_path.glob(".lay_out-*"))
    for name in ("torchvision", "huggingface"):
        path = lay_out.LAYOUTS[name].path
        # A lesson that was run in data/ leaves the cache of its `map` beside the dataset, and an
        # earlier version left hashes.
        expected = {file for file in tree(data / path) if not file.startswith(("cache-", "."))}
        assert tree(tmp_path / path).keys() == expected


def test_a_run_that_hangs_is_not_waited_for_without_end(tmp_path, monkeypatch):
    monkeypatch.setattr(lay_out, "WAIT_S", 0.2)
    sentence = pytest.raises(Problem, match=r"for 0\.2 s: wait for it or end it")
    with filelock.FileLock(tmp_path / ".lay_out.lock"), sentence:
        lay_out.lay_out(["torchvision"], tmp_path)


@pytest.mark.parametrize("name", lay_out.LAYOUTS)
def test_an_interrupted_download_is_named_and_left_alone(tmp_path, name):
    theirs = tmp_path / lay_out.LAYOUTS[name].path / "train-images-idx3-ubyte"
    theirs.parent.mkdir(parents=True)
    theirs.write_bytes(b"half of it")
    said = f"{theirs.parent} is damaged, or holds a download that was interrupted: move it away"
    with pytest.raises(Problem, match=re.escape(said)):
        lay_out.lay_out([name], tmp_path)
    assert list(tree(tmp_path)) == [str(theirs.relative_to(tmp_path))]


@pytest.mark.parametrize("name", ["mnist/train-labels-idx1-ubyte.gz", "shakespeare/plays.tar.xz"])
def test_an_embedded_file_that_is_missing_or_damaged(tmp_path, monkeypatch, name):
    shutil.copytree(lay_out.HERE, tmp_path / "offline")
    monkeypatch.setattr(lay_out, "HERE", tmp_path / "offline")
    file = tmp_path / "offline" / name
    restore = rf": restore it with `git checkout -- offline/{file.parent.name}`\.$"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    with pytest.raises(Problem, match=rf"is damaged.*{restore}"):
        lay_out.verified(file)
    for missing in (file, file.with_name("SHA256SUMS")):
        missing.unlink()
        with pytest.raises(Problem, match=rf"{missing.name} is missing{restore}"):
            lay_out.verified(file)


@pytest.mark.parametrize(
    ("file", "sentence"),
    [("offline/mnist/SHA256SUMS", "is missing"), ("notebooks", "notebooks/data")],
)
def test_what_stops_a_run_is_said_in_one_sentence(repository, python, file, sentence):
    (repository / file).rename(repository / "away")
    (repository / "notebooks").touch()  # where it is away, a file that stands in the way
    done = python(repository / "offline/lay_out.py")
    assert done.returncode == 1 and sentence in done.stderr
    assert done.stderr.startswith("lay_out: ") and done.stderr.endswith(".\n")
    assert done.stderr.count("\n") == 1
