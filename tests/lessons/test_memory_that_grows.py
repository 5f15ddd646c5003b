"""What the lesson on memory hands out: `memory`, and `fit_in_shm`."""

import mmap
import re
import shutil
import subprocess
import sys
import types
from pathlib import Path
from unittest import mock

import jax
import numpy as np
import pytest
import torch

from tools import lessons

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def cell(start: str) -> str:
    cells = lessons.code_cells(lessons.read_md("memory_that_grows"))
    [source] = [cell.source for cell in cells if start in cell.source.split("\n\n")[0]]
    return source


@pytest.fixture(scope="module")
def numbers() -> types.ModuleType:
    module = types.ModuleType("memory_numbers")
    exec(cell("%%writefile memory_numbers.py").partition("\n")[2], vars(module))
    return module


@pytest.fixture(scope="module")
def fit_in_shm():
    names = {"jax": jax, "mmap": mmap, "shutil": shutil, "torch": torch}
    exec(cell("def fit_in_shm("), names)
    return names["fit_in_shm"]


HOLD = (
    "import sys; kept = bytes(range(200)) * 500_000; print('holds', flush=True); sys.stdin.read()"
)
NESTED = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {HOLD!r}])"


@pytest.mark.parametrize("program", [HOLD, NESTED], ids=["child", "its child"])
def test_children_and_theirs_are_counted(numbers, program):
    before = numbers.memory()["own"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", program], **pipes) as child:
        child.stdout.readline()
        assert numbers.memory()["own"] - before > 90
        assert numbers.memory(child.pid)["own"] > 90
        child.stdin.close()
    assert numbers.memory()["own"] - before < 50


def test_bytes_are_counted_as_they_are(numbers):
    before = numbers.memory()
    kept = np.ones(200_000_000, np.uint8)
    assert numbers.memory()["own"] - before["own"] == pytest.approx(kept.nbytes / 1e6, abs=4)
    with mmap.mmap(-1, 50_000_000) as shared:  # of no file, and not in /dev/shm
        shared.write(bytes(len(shared)))
        assert numbers.memory()["shared"] - before["shared"] == pytest.approx(50, abs=1)


def forbidden(name: str):
    def read_text(path, read_text=Path.read_text, **options):
        if str(path) == name:
            raise PermissionError(13, "Permission denied", name)
        return read_text(path, **options)

    return mock.patch.object(Path, "read_text", read_text)


def test_other_users(numbers):
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as child:
        with forbidden(f"/proc/{child.pid}/stat"):  # a stranger, where /proc hides them
            assert str(child.pid) not in numbers.family()
            assert numbers.memory()["own"] > 0
        with forbidden(f"/proc/{child.pid}/smaps_rollup"), pytest.raises(PermissionError):
            numbers.memory()
        child.stdin.close()


def test_a_machine_without_dev_shm(numbers):
    with mock.patch.object(Path, "is_dir", lambda path: False):
        assert numbers.memory()["/dev/shm"] == 0


def test_a_process_that_has_ended_is_refused(numbers):
    with subprocess.Popen(["true"]) as ended:
        pass
    with pytest.raises(ValueError, match=rf"memory\({ended.pid}\) needs a process that runs"):
        numbers.memory(ended.pid)


def test_an_old_kernel_is_refused(numbers):
    def without(path, read=numbers.read, **options):
        return re.sub(r"Pss_.*\n", "", read(path, **options))

    old = mock.patch.object(numbers, "read", without)
    with old, pytest.raises(ValueError, match=r"on Linux 5\.3 or newer"):
        numbers.memory()


def test_batches_fit_exactly_or_are_refused(fit_in_shm):
    page = mmap.PAGESIZE
    image = torch.zeros((10, page), dtype=torch.uint8)
    batch = {"image": image, "again": image[:5], "label": torch.zeros(3), "name": ["a"], "n": 3}
    needed = 6 * (10 + 1) * page  # whole pages, and the storage of two views once
    for free, fits in ((needed, True), (needed - 1, False)):
        usage = mock.Mock(free=free)
        with mock.patch.object(shutil, "disk_usage", return_value=usage):
            if fits:
                assert fit_in_shm(batch, workers=2, prefetch_factor=2) == needed
            else:
                with pytest.raises(ValueError, match=r"6 batches need .* MB of /dev/shm"):
                    fit_in_shm(batch, workers=2, prefetch_factor=2)
    assert fit_in_shm(batch, workers=0) == 0
    for workers, factor in ((-1, 2), (1, 0)):
        with pytest.raises(ValueError, match="must not be negative"):
            fit_in_shm(batch, workers, factor)
    with pytest.raises(ValueError, match="no tensor"):
        fit_in_shm({"image": np.zeros(3)}, workers=2)
