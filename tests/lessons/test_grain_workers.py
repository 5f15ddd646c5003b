"""Workers of Grain end with their program, however it ends.

The pipelines of the lesson are tried in test_carry_over.py, as those of all lessons.
"""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from copied_cells import write_modules

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
    """One with the module of what a worker does first, and a program."""
    write_modules("grain_in_depth", tmp_path)
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
