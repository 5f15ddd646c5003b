"""Workers of Grain end with their program, however it ends. Threads share no file."""

import contextlib
import os
import signal
import subprocess
import sys
import types
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tools import lessons

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="kills process groups")

PROGRAM = '''
"""Read from a worker of Grain, say so, and go on until stopped."""

import sys

import absl.flags
import grain
from grain_workers import start_worker

if __name__ == "__main__":
    absl.flags.FLAGS.mark_as_parsed()
    start = {"start_worker": start_worker, "nothing": None}[sys.argv[1]]
    chain = grain.MapDataset.range(1000).repeat().to_iter_dataset()
    stream = iter(chain.mp_prefetch(grain.MultiprocessingOptions(1), start))
    next(stream)
    print("reads", flush=True)
    for _ in stream:
        pass
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """One with the lesson's module of what a worker does first, and a program."""
    cells = lessons.code_cells(lessons.read_md("grain"))
    head = "%%writefile grain_workers.py\n"
    [module] = [cell.source for cell in cells if cell.source.startswith(head)]
    (tmp_path / "grain_workers.py").write_text(module.removeprefix(head))
    (tmp_path / "program.py").write_text(PROGRAM)
    return tmp_path


@pytest.mark.parametrize(
    "end, start, lives",
    [
        ("SIGINT", "start_worker", False),
        ("SIGKILL", "start_worker", False),
        ("SIGKILL", "nothing", True),  # what the lesson's function is for
    ],
)
def test_a_worker_of_grain_ends_with_its_program(folder, end, start, lives):
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    command = [sys.executable, "program.py", start]
    program = subprocess.Popen(command, cwd=folder, process_group=0, **pipes)
    try:
        assert program.stdout.readline() == b"reads\n"
        kill = os.killpg if end == "SIGINT" else os.kill
        kill(program.pid, signal.Signals[end])
        if lives:  # the pipe is open as long as somebody has it
            with pytest.raises(subprocess.TimeoutExpired):
                program.communicate(timeout=5)
        else:
            program.communicate(timeout=60)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(program.pid, signal.SIGKILL)
        program.wait()
        program.stdout.close()


KINDS, MAKE = "%%writefile workers_kinds.py\n", "%%writefile workers_make.py\n"
SHARED = ("io.BytesIO(JPEG.getvalue())", "JPEG")  # a file has one position, for all threads


@pytest.mark.parametrize("changed, right", [((), True), (SHARED, False)], ids=["own", "shared"])
def test_threads_decode_as_one_does(monkeypatch, changed, right):
    cells = lessons.code_cells(lessons.read_md("workers_beside_jax"))
    [kinds], [make] = (
        [cell.source.removeprefix(head) for cell in cells if cell.source.startswith(head)]
        for head in (KINDS, MAKE)
    )
    if changed:
        assert make.count(changed[0]) == 1
        make = make.replace(*changed)
    module = types.ModuleType("workers_kinds")
    monkeypatch.setitem(sys.modules, "workers_kinds", module)
    exec(kinds, vars(module))
    names = {}
    exec(make, names)
    alone = names["decode"](0)

    def same(index: int) -> bool:
        try:
            return alone.equal(names["decode"](index))
        except Exception:  # no photograph, or a part of one
            return False

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # the threads take turns all the time
    try:
        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(same, range(256))) == right
    finally:
        sys.setswitchinterval(interval)
