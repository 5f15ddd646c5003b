"""The pytest plugin that lets `pytest --nbval` run its cells with tools/run/runner.py.

nbval 0.11 collects and compares; it has had no release since March 2024, and its own way of running
a cell does not notice a dead kernel, and gives other outputs than JupyterLab and Colab.
"""

import tempfile
from copy import deepcopy
from pathlib import Path

import pytest
from nbval import plugin
from nbval.kernel import CURRENT_ENV_KERNEL_NAME

from offline import lay_out
from offline.problem import Problem
from tools.lesson import lessons
from tools.run import runner


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path, parent):
    """Ours take the place of nbval's files."""
    collected = yield
    return [
        Notebook.from_parent(parent, path=file_path) if isinstance(file, plugin.IPyNbFile) else file
        for file in collected
    ]


class Notebook(plugin.IPyNbFile):
    """A notebook, whose cells share a kernel. `ended`: why no further cell runs, or ""."""

    ended = ""
    folder = None

    def collect(self):
        """The cells. Of all that nbval obeys, in comments and tags, only one tag is obeyed here."""
        for item in super().collect():
            check = {"check": "nbval-ignore-output" not in lessons.tags(item.cell)}
            given = {"name": item.name, "cell_num": item.cell_num, "cell": item.cell}
            yield Cell.from_parent(self, **given, options=item.options | check)

    def kernel_options(self) -> dict:
        """Where and how the kernel runs: `runner.Kernel` takes it.

        In a folder of its own, as in Colab: what two notebooks write that run at once, one half of
        a file of the other, is no fault of theirs. What was laid out is there by links.
        """
        data = self.path.parent / "data"
        self.folder = tempfile.TemporaryDirectory(
            dir=data if data.is_dir() else None, prefix=".run-", ignore_cleanup_errors=True
        )
        own = Path(self.folder.name, "data")
        for laid_out in lay_out.folders(data):
            own.mkdir(exist_ok=True)
            (own / laid_out.name).symlink_to(laid_out)
        return {
            "folder": Path(self.folder.name),
            "name": self.config.option.nbval_kernel_name or CURRENT_ENV_KERNEL_NAME,
        }

    def setup(self):
        self.setup_sanitize_files()
        options = self.config.option
        self.ran = deepcopy(self.nb)
        self.digest = lessons.digest(self.nb)
        self.kernel = runner.Kernel(
            self.ran,
            limit=options.nbval_cell_timeout,
            startup=options.nbval_kernel_startup_timeout,
            **self.kernel_options(),
        )
        try:
            self.kernel.__enter__()
        except Problem as problem:
            pytest.fail(f"{self.nodeid}: {problem}", pytrace=False)

    def teardown(self):
        if self.kernel:
            self.kernel.stop()
        if self.folder:
            self.folder.cleanup()


class Cell(plugin.IPyNbCell):
    """A cell that is run, and then compared strictly by nbval."""

    def runtest(self):
        notebook = self.parent
        if notebook.ended:
            pytest.skip(notebook.ended)
        self.user_properties.append(("digest", notebook.digest))  # of what ran, for the record
        ran = lessons.code_cells(notebook.ran)[self.cell_num]
        try:
            notebook.kernel.run(ran)
        except runner.Ended as error:
            notebook.ended = f"cell {self.cell_num}: {error}"
            notebook.kernel.stop()
            self.raise_cell_error(f"{notebook.nodeid}, {notebook.ended}", error.traceback)
        except runner.Failed as error:
            self.raise_cell_error("Cell execution caused an exception", error.traceback)
        if self.cell.execution_count is None:
            if self.cell.outputs:
                self.raise_cell_error("Unrun reference cell has outputs")
            return
        outputs = plugin.coalesce_streams(ran.outputs)
        if self.options["check"] and not self.compare_outputs(
            outputs, plugin.coalesce_streams(self.cell.outputs)
        ):
            # nbval names an output that nobody expected, and does not show it: what a library says
            # on stderr once in many runs would be lost.
            unexpected = [output.text for output in outputs if output.get("name") == "stderr"]
            self.raise_cell_error(
                "Cell outputs differ", "\n".join([*self.comparison_traceback, *unexpected])
            )
