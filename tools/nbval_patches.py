"""Patches of nbval 0.11: it runs a cell as `execute` does, and a busy or crashed kernel ends well.

nbval has had no release since March 2024. Each patch says what is wrong, and in which issue of
github.com/computationalmodelling/nbval it is told.
"""

import functools
import math
import signal
import time
from queue import Empty

import nbval.kernel
import pytest
import zmq
from nbval.kernel import RunningKernel
from nbval.plugin import IPyNbCell, IPyNbFile

from tools import lessons

TICK = 0.1  # seconds without a message, after which we look whether the kernel lives
GRACE = 5  # seconds that an interrupted cell has to end, as in nbval
REASONS = {
    "SIGKILL": "perhaps the system ran out of memory",
    "SIGSEGV": "compiled code crashed",
    "SIGABRT": "compiled code gave up",
}
PATCHES = []
# What the patches use beside what they replace: a method, and the names that stand in its code.
USED = [
    (RunningKernel, "__init__", ["km", "kc"]),
    (RunningKernel, "is_alive", []),
    (RunningKernel, "stop", []),
    (IPyNbFile, "__init__", ["timed_out"]),
    (IPyNbFile, "setup", ["kernel"]),
    (IPyNbCell, "__init__", ["cell_num", "output_timeout"]),
    (IPyNbCell, "raise_cell_error", []),
    (IPyNbCell, "runtest", ["get_kernel_message", "await_reply", "output_timeout"]),
    (IPyNbCell, "runtest", ["interrupt", "timed_out"]),
]


class KernelDied(Exception):
    """Nothing more will come from the kernel."""


def patch(owner, name):
    """The function below takes the place of `owner.name`, which it gets as its first argument."""

    def register(function):
        PATCHES.append((owner, name, function))
        return function

    return register


def missing() -> list[str]:
    """What the patches replace or use, and this nbval does not have."""
    gone = {}  # a dict has each once, in order
    for owner, method, names in [*((*patched[:2], []) for patched in PATCHES), *USED]:
        if not hasattr(owner, method):
            gone[f"{owner.__name__}.{method}"] = True
        for name in names if hasattr(owner, method) else []:
            if name not in getattr(owner, method).__code__.co_names:
                gone[f"{owner.__name__}.{method} with {name}"] = True
    return [*gone]


def apply():
    """Patch nbval. A new nbval without what is patched here stops the run with one sentence."""
    if gone := missing():
        raise pytest.UsageError(
            f"this nbval has no {' and no '.join(gone)}, which tools/nbval_patches.py patches: "
            "install the nbval of constraints.txt, or bring the patches up to date."
        )
    for owner, name, function in PATCHES:
        setattr(owner, name, with_original(function, getattr(owner, name)))
    IPyNbCell.stop = stop
    nbval.kernel.KernelManager = PatientManager


def with_original(function, original):
    @functools.wraps(original)
    def patched(*args, **kwargs):
        return function(original, *args, **kwargs)

    return patched


# A cell is run as nbclient, JupyterLab and Colab run it ----------------------------------------


@patch(nbval.kernel, "start_new_kernel")
def start_new_kernel(original, **options):
    """nbval's kernels see that they run under pytest: give them the environment of `execute`.

    A port that was free may be taken when the kernel binds it, and then the kernel dies
    (jupyter/jupyter_client#154): the second one gets other ports.
    """
    try:
        return original(env=lessons.kernel_environment(), **options)
    except RuntimeError:  # it died, or did not answer in time
        return original(env=lessons.kernel_environment(), **options)


@patch(RunningKernel, "execute_cell_input")
def execute_cell_input(original, kernel, cell_input, allow_stdin=None):
    """nbval keeps no history, so that a trailing `;` does not silence a cell."""
    return kernel.kc.execute(
        cell_input, store_history=True, allow_stdin=allow_stdin, stop_on_error=False
    )


# A busy machine, a slow cell, a dead kernel ----------------------------------------------------


class PatientManager(nbval.kernel.KernelManager):
    """Its client loses no output: of thousands that nobody had read yet, ZeroMQ dropped the last.

    With them went the sign that the cell ended (#151, jupyter/nbconvert#659): nbval reads outputs
    only after the reply.
    """

    def client(self, **options):
        client = super().client(**options)
        client.context.setsockopt(zmq.RCVHWM, 0)  # for the sockets made from it: no limit
        return client


@patch(RunningKernel, "_ensure_iopub_up")
def when_started(original, kernel):
    """nbval asks the kernel twice whether it is up, the second time for 10 s at most.

    jupyter_client has heard it on both channels by then, and has waited for
    --nbval-kernel-startup-timeout (#133).
    """
    kernel.ends = math.inf  # for get_message


@patch(RunningKernel, "interrupt")
def interrupt(original, kernel):
    """A cell may go on after the interrupt, and print for ever: nbval would read on for ever."""
    kernel.ends = time.monotonic() + GRACE
    original(kernel)


@patch(RunningKernel, "get_message")
def get_message(original, kernel, stream, timeout):
    """The only place where nbval waits for a kernel; it never looked whether the kernel lives."""
    ends, alive = min(time.monotonic() + timeout, kernel.ends), True
    while time.monotonic() < ends:
        try:
            return original(kernel, stream, timeout=TICK)
        except Empty:
            if not alive:  # for one tick already: what it had sent has been read
                raise KernelDied from None
            alive = kernel.is_alive()
    raise Empty


def stop(cell):
    """nbval calls this when a cell failed and does not end, and has no such method."""
    cell.parent.timed_out = True


@patch(IPyNbCell, "compare_outputs")
def compare_outputs(original, cell, test, *options):
    """nbval names an output that nobody expected, and does not show it.

    What a library says on stderr once in many runs would be lost.
    """
    same = original(cell, test, *options)
    if not same:
        cell.comparison_traceback += [o["text"] for o in test if o.get("name") == "stderr"]
    return same


@patch(IPyNbCell, "runtest")
def runtest(original, cell):
    """Where the kernel died, or a cell ran too long, the notebook ends, with one sentence.

    nbval went on in the same kernel, and expected the later cells to fail, whatever they printed
    (#41). A cell that caught the interrupt had even passed. It also waited no more than 5 s for a
    busy machine to send outputs (#136, #231).
    """
    notebook, kernel = cell.parent, cell.parent.kernel
    if ended := getattr(notebook, "ended", ""):
        pytest.skip(ended)
    cell.output_timeout = cell.config.option.nbval_cell_timeout
    alive, when, traceback = kernel.is_alive(), "before", None
    try:
        if alive:
            when = "in"
            original(cell)
    except KernelDied:
        alive = False
    except Exception as error:
        if not notebook.timed_out:
            raise
        traceback = getattr(error, "inner_traceback", None)
    if not alive:
        notebook.ended = f"the kernel died {when} cell {cell.cell_num} ({cause(kernel)})"
    elif notebook.timed_out:
        notebook.ended = f"cell {cell.cell_num} did not end within {cell.output_timeout:g} s"
    else:
        return
    if hasattr(kernel, "km"):  # nbval has not stopped it yet
        kernel.stop()  # and the processes that it started
    cell.raise_cell_error(f"{notebook.nodeid}: {notebook.ended}", traceback)


def cause(kernel) -> str:
    """How the process of a dead kernel ended."""
    code = kernel.km.provisioner.process.returncode
    if code >= 0:
        return f"exit code {code}"
    name = signal.Signals(-code).name
    return ": ".join(filter(None, [f"signal {name}", REASONS.get(name)]))
