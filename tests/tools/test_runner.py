"""How a cell is run: on busy machines, in kernels that stall or die."""

import contextlib
import re
import time

import psutil
import pytest
from nbformat.v4 import new_code_cell, new_notebook
from processes import running

from offline.problem import Problem
from tools.run import runner

pytestmark = pytest.mark.slow


@pytest.fixture
def started(tmp_path):
    """Start a kernel for cells of these sources. Returns it and the cells."""
    with contextlib.ExitStack() as kernels:

        def start(*sources, **options):
            notebook = new_notebook(cells=[new_code_cell(source) for source in sources])
            options = {"limit": 60} | options
            kernel = kernels.enter_context(runner.Kernel(notebook, tmp_path, **options))
            return kernel, notebook.cells

        yield start


def text(cell):
    return "".join(output.get("text", "") for output in cell.outputs)


def test_cells_share_a_kernel_that_works_in_the_folder(started, tmp_path):
    kernel, (first, second) = started("import os; x = os.getcwd()", "print(x, x); x;")
    assert kernel.run(first) > 0 and first.outputs == []
    kernel.run(second)
    assert text(second) == f"{tmp_path} {tmp_path}\n" and len(second.outputs) == 1


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("get_ipython().showtraceback((OSError, OSError('shown'), None))", "OSError: shown"),
        ("1 +* 2", "SyntaxError: invalid syntax"),
        ("raise SystemExit(3)", "SystemExit: 3"),
    ],
)
def test_after_a_cell_that_fails_the_next_one_runs(started, source, error):
    kernel, [fails, holds] = started(source, "print(1)")
    with pytest.raises(runner.Failed, match=f"^{re.escape(error)}") as failed:
        kernel.run(fails)
    assert not isinstance(failed.value, runner.Ended) and failed.value.traceback
    kernel.run(holds)
    assert text(holds) == "1\n"


# A cell that does not end ----------------------------------------------------------------------

LEAVES_ITS_PROCESSES = """
import os, subprocess
child = subprocess.Popen(["sleep", "600"])
print(os.getpid(), child.pid, flush=True)
"""
SLOW = {
    "interrupted": "import time; time.sleep(600)",
    "the interrupt is shown, and it prints for ever": """
import time
while True:
    try:
        time.sleep(0.5)
        print(1)
    except KeyboardInterrupt:
        get_ipython().showtraceback()
""",
}


@pytest.mark.parametrize("why", SLOW)
def test_a_cell_that_runs_too_long_is_ended(started, why):
    kernel, [leaves, slow] = started(LEAVES_ITS_PROCESSES, SLOW[why], limit=3)
    kernel.run(leaves)
    left = [*map(int, text(leaves).split())]
    assert len(running(left)) == 2
    with pytest.raises(runner.Ended, match="it did not end within 3 s") as ended:
        kernel.run(slow)
    assert "KeyboardInterrupt" in ended.value.traceback  # it says where the cell stood
    kernel.stop()
    assert running(left) == []


def test_the_sign_that_a_cell_ended_may_come_late(started):
    late = """
import sys, time
sys.stdout.flush_timeout = sys.stderr.flush_timeout = 0  # the reply does not wait
get_ipython().kernel.iopub_thread.schedule(lambda: time.sleep(7))
"""
    kernel, [cell] = started(late)
    assert kernel.run(cell) > 6


def test_thousands_of_outputs_arrive_though_nobody_reads_them_yet(started):
    kernel, [cell] = started("for i in range(20_000):\n    print(i, flush=True)", limit=300)
    kernel.client.on_cell_complete = lambda **_: time.sleep(8)  # the machine is busy
    kernel.run(cell)
    assert text(cell) == "".join(f"{i}\n" for i in range(20_000))


# A kernel that dies ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "cause"),
    [
        (
            "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
            "signal SIGKILL: perhaps the system ran out of memory",
        ),
        ("import ctypes; ctypes.string_at(0)", "signal SIGSEGV: compiled code crashed"),
        ("import os; os.abort()", "signal SIGABRT: compiled code gave up"),
        ("import os; os._exit(3)", "exit code 3"),
    ],
)
def test_a_dead_kernel_says_how_it_died_and_leaves_nothing(started, source, cause):
    kernel, [leaves, dies] = started(LEAVES_ITS_PROCESSES, source)
    kernel.run(leaves)
    with pytest.raises(runner.Ended, match=re.escape(f"the kernel died ({cause})")):
        kernel.run(dies)
    kernel.stop()
    assert running(map(int, text(leaves).split())) == []


def test_a_kernel_that_dies_while_it_starts_is_started_once_more(started, tmp_path, monkeypatch):
    startup = tmp_path / "ipython/profile_default/startup"
    startup.mkdir(parents=True)
    first = "import os; os.path.exists('started') or open('started', 'w').close() or os._exit(1)"
    (startup / "first.py").write_text(first)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    kernel, [cell] = started("print(1)")
    kernel.run(cell)
    assert text(cell) == "1\n"


def test_a_kernel_that_cannot_start_is_one_sentence(started):
    before = psutil.Process().children()
    with pytest.raises(Problem, match="did not start: No such kernel named no_such"):
        started("1", name="no_such")
    with pytest.raises(Problem, match="did not start: Kernel died before replying"):
        started("1", arguments=("--no-such-option=1", "--IPKernelApp.ip=no-such-host"))
    assert psutil.Process().children() == before
