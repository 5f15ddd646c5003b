"""What the lesson on memory hands out: `memory`, and `fit_in_shm`."""

import re
import shutil
import subprocess
import sys
import types
from unittest import mock

import jax
import numpy as np
import pytest

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
    names = {"jax": jax, "shutil": shutil}
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


def test_a_process_that_has_ended_is_refused(numbers):
    with subprocess.Popen(["true"]) as ended:
        pass
    with pytest.raises(ValueError, match=rf"memory\({ended.pid}\) needs a process that runs"):
        numbers.memory(ended.pid)


def test_an_old_kernel_is_refused(numbers):
    def without(path, read=numbers.read):
        return re.sub(r"Pss_.*\n", "", read(path))

    old = mock.patch.object(numbers, "read", without)
    with old, pytest.raises(ValueError, match=r"on Linux 5\.3 or newer"):
        numbers.memory()


def test_batches_fit_exactly_or_are_refused(fit_in_shm):
    batch = {"image": np.zeros((10, 10), np.uint8), "label": np.zeros(10, np.int32)}
    for free, fits in ((6 * 140, True), (6 * 140 - 1, False)):
        usage = mock.Mock(free=free)
        with mock.patch.object(shutil, "disk_usage", return_value=usage):
            if fits:
                assert fit_in_shm(batch, workers=2, prefetch_factor=2) == 6 * 140
            else:
                with pytest.raises(ValueError, match="6 batches need 0 MB of /dev/shm"):
                    fit_in_shm(batch, workers=2, prefetch_factor=2)
    with pytest.raises(ValueError, match="at least 1"):
        fit_in_shm(batch, workers=0)


# In a /dev/shm of 8 MB of its own, where the kernel lets anybody mount one.
UNSHARE = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
MOUNT = "mount -t tmpfs -o size=8m none /dev/shm"
TOUCH = """
from multiprocessing import shared_memory
block = shared_memory.SharedMemory(create=True, size=20_000_000)
block.unlink()
block.buf[:] = bytes(block.size)
"""
LOAD = """
import sys, torch
torch.multiprocessing.set_sharing_strategy(sys.argv[1])
try:
    torch.ones(20_000_000, dtype=torch.uint8).share_memory_()
except RuntimeError as error:
    print(error)
"""


def in_small_shm(program: str, *arguments: str) -> subprocess.CompletedProcess:
    if not shutil.which("unshare"):
        pytest.skip("needs unshare of util-linux")
    quiet = {"capture_output": True, "text": True}
    if subprocess.run([*UNSHARE, MOUNT], check=False, **quiet).returncode:
        pytest.skip("no user namespaces here")
    command = f'{MOUNT} && exec "$@"'
    run = [*UNSHARE, command, "sh", sys.executable, "-c", program, *arguments]
    return subprocess.run(run, check=False, **quiet)


def test_python_dies_of_a_bus_error_where_shared_memory_is_too_small():
    assert in_small_shm(TOUCH).returncode in (-7, 128 + 7)
    assert in_small_shm(TOUCH.replace("20_000_000", "2_000_000")).returncode == 0


@pytest.mark.parametrize("strategy", ["file_descriptor", "file_system"])
def test_pytorch_says_so_with_either_strategy(strategy):
    done = in_small_shm(LOAD, strategy)
    assert "unable to allocate shared memory(shm)" in done.stdout
    assert not in_small_shm(LOAD.replace("20_000_000", "2_000_000"), strategy).stdout
