"""Workers of Grain end with their program, however it ends.

The pipelines of the lesson are tried in test_carry_over.py, as those of all lessons.
"""

import contextlib
import os
import signal
import subprocess
import sys

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="kills process groups"),
]

PROGRAM = '''
"""Read from a worker of Grain, say so, and go on until stopped."""

import signal
import sys

import absl.flags
import grain
from feed_grain_in_depth import start_worker

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
    absl.flags.FLAGS.mark_as_parsed()
    start = {"start_worker": start_worker, "nothing": None}[sys.argv[1]]
    chain = grain.MapDataset.range(1000).repeat().to_iter_dataset()
    stream = iter(chain.mp_prefetch(grain.MultiprocessingOptions(1), start))
    next(stream)
    print("reads", flush=True)
    for _ in stream:
        pass
'''


@pytest.mark.parametrize(
    "end, start, lives",
    [
        ("SIGINT", "start_worker", False),
        ("SIGKILL", "start_worker", False),
        ("SIGKILL", "nothing", True),  # what the lesson's function is for
    ],
)
def test_a_worker_of_grain_ends_with_its_program(tmp_path, end, start, lives):
    (tmp_path / "program.py").write_text(PROGRAM)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    command = [sys.executable, "program.py", start]
    program = subprocess.Popen(command, cwd=tmp_path, process_group=0, **pipes)
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
