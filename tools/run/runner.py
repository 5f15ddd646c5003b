"""The one way to run a notebook here: cell by cell, in a kernel that may fail, stall or die.

`execute`, `pytest --nbval`, `colab` and `twice` run their cells with it, so their outputs agree.
"""

import asyncio
import re
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path

import zmq
from jupyter_client import AsyncKernelManager
from jupyter_client.kernelspec import NoSuchKernel
from nbclient import NotebookClient
from nbclient.exceptions import DeadKernelError
from nbformat import NotebookNode
from nbval.kernel import CURRENT_ENV_KERNEL_NAME, NbvalKernelspecManager

from offline.problem import Problem
from tools.run import kernels

GRACE_S = 5  # what an interrupted cell has to end, and to say where it stood
REASONS = {
    "SIGKILL": "perhaps the system ran out of memory",
    "SIGSEGV": "compiled code crashed",
    "SIGABRT": "compiled code gave up",
}


class Failed(Exception):
    """A cell raised: the last line of its error. `traceback`: all of it. Later cells may run."""

    def __init__(self, sentence: str, traceback: str = ""):
        super().__init__(sentence)
        self.traceback = traceback


class Ended(Failed):
    """The kernel died, or a cell did not end: no other cell can run in this kernel."""


def plain(text: str) -> str:
    """The text without the colours that a terminal would show."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text).strip()


@dataclass
class Kernel:
    """A kernel for the cells of one notebook. As a context it starts, and ends with all it started.

    Without `python` and the name of an installed kernel it is this Python, whatever "python3" is
    elsewhere.
    """

    notebook: NotebookNode
    folder: Path  # where it works
    limit: float  # seconds that a cell may take
    startup: float = 300  # seconds that the kernel may take until it answers
    name: str = CURRENT_ENV_KERNEL_NAME
    python: Path | None = None
    environment: dict[str, str] = field(default_factory=dict)  # beside what every kernel gets
    arguments: tuple[str, ...] = ()  # for ipykernel
    loop: asyncio.Runner | None = None

    def __enter__(self) -> "Kernel":
        """Start the kernel. Raises Problem when it cannot start.

        A port that was free may be taken when the kernel binds it, and then the kernel dies
        (jupyter/jupyter_client#154): the second one gets other ports.
        """
        for last in (False, True):
            try:
                self._start()
            except (RuntimeError, NoSuchKernel) as error:  # it died, or did not answer in time
                if last:
                    raise Problem(f"the kernel did not start: {error}.") from error
            else:
                return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _start(self) -> None:
        self.loop = asyncio.Runner()  # it ends in order after Ctrl-C, and leaves no task
        self.manager = AsyncKernelManager(
            kernel_name=self.name, kernel_spec_manager=NbvalKernelspecManager()
        )
        if self.python:
            self.manager.kernel_spec.argv[0] = str(self.python)
        self.client = NotebookClient(
            self.notebook,
            km=self.manager,
            allow_errors=True,  # then no later cell is aborted; `run` sees the error
            coalesce_streams=True,
            iopub_timeout=2**31,  # a busy machine may send outputs late; `limit` holds for them too
            record_timing=False,
            skip_cells_with_tag="",
            store_widget_state=False,
            on_cell_error=self._note_error,
        )
        self.client.log.setLevel("CRITICAL")
        try:
            self.loop.run(self._connect())
        except BaseException:
            self.stop()
            raise

    async def _connect(self) -> None:
        await self.manager.start_kernel(
            cwd=str(self.folder),
            env=kernels.kernel_environment() | self.environment,
            # Our own sentences say what failed; and pictures are sharp on any screen.
            extra_arguments=[
                "--IPKernelApp.log_level=CRITICAL",
                "--InlineBackend.figure_formats=retina",
                *self.arguments,
            ],
        )
        self.client.kc = client = self.manager.client()
        # No limit to what waits for us: of thousands of outputs, ZeroMQ dropped the last.
        client.context.setsockopt(zmq.RCVHWM, 0)
        client.start_channels()
        await client.wait_for_ready(timeout=self.startup)
        client.allow_stdin = False

    def stop(self) -> None:
        """End the kernel, and the processes that it started. Once more does nothing."""
        if not self.loop:
            return
        loop, self.loop = self.loop, None
        with loop:
            loop.run(self.manager.shutdown_kernel(now=True))
            if self.client.kc:
                self.client.kc.stop_channels()

    def _note_error(self, execute_reply: dict, **_: object) -> None:
        self.error = execute_reply["content"]

    def run(self, cell: NotebookNode) -> float:
        """Run a cell of the notebook, which gets its outputs. Returns the seconds that it took.

        Raises Failed or Ended.
        """
        start, self.error, cell.outputs = time.perf_counter(), None, []
        self.loop.run(self._run(cell))
        shown = next((o for o in cell.outputs if o.output_type == "error"), self.error)
        if shown:
            raise Failed(said(shown), "\n".join(shown["traceback"]))
        return time.perf_counter() - start

    async def _run(self, cell: NotebookNode) -> None:
        index = next(i for i, other in enumerate(self.notebook.cells) if other is cell)
        task = asyncio.create_task(self.client.async_execute_cell(cell, index))
        try:
            if not (await asyncio.wait([task], timeout=self.limit))[0]:
                await self.manager.interrupt_kernel()
                await asyncio.wait([task], timeout=GRACE_S)
                # A cell may catch the interrupt: whether it ended now does not matter.
                errors = [o for o in cell.outputs if o.output_type == "error"]
                traceback = "\n".join(line for error in errors for line in error.traceback)
                raise Ended(f"it did not end within {self.limit:g} s", traceback)
            await task
        except DeadKernelError:
            code = await self.manager.provisioner.poll()
            raise Ended(f"the kernel died ({cause(code)})") from None
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def said(error: dict) -> str:
    """An error in one line: its name, and the first line of what it says."""
    first_line = plain(error["evalue"]).partition("\n")[0].rstrip(".")
    return f"{error['ename']}: {first_line}"[:200]


def cause(code: int) -> str:
    """How a process with this exit code ended."""
    if code >= 0:
        return f"exit code {code}"
    name = signal.Signals(-code).name
    return ": ".join(filter(None, [f"signal {name}", REASONS.get(name)]))
