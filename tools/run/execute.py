"""Make notebooks from md/, run them, store their outputs, and record with what they pass.

    tox run -e execute -- [--refresh] [NAME ...]

A stored output whose masked text is equal to the new one stays as it is, so that a diff shows only
what changed. `--refresh` takes every new output. A cell that needs a GPU keeps its stored output
where there is none, unless the cell was edited: then it has none until it runs on a GPU.
"""

import argparse
import os
import platform
import re
import sys
import time
from copy import deepcopy

from nbformat import NotebookNode

from offline.problem import Problem, told
from tools.lesson import lessons
from tools.run import kernels, runner

CELL_TIMEOUT = 600  # seconds, as for nbval in tox.ini


def skipped(cell: NotebookNode) -> bool:
    return lessons.GPU_TAG in lessons.tags(cell) and not kernels.has_gpu()


def run(notebook: NotebookNode, name: str) -> None:
    """Run the notebook in a new kernel, in notebooks/. Raises Problem when a cell fails."""
    cells = lessons.code_cells(notebook)
    with runner.Kernel(notebook, lessons.NOTEBOOKS, CELL_TIMEOUT) as kernel:
        for number, cell in enumerate(cells):
            if skipped(cell):
                continue
            try:
                seconds = kernel.run(cell)
            except runner.Failed as error:
                raise Problem(
                    f"{name}, cell {number}: {error}. Nothing was stored.\n\n"
                    f"{cell.source}\n\n{runner.plain(error.traceback)}"
                ) from error
            first_line = cell.source.partition("\n")[0]
            progress = f"{number + 1:>3} of {len(cells)} {seconds:>6.1f} s"
            print(f"  {progress}  {first_line[:60]}", flush=True)


def refuse_traces(notebook: NotebookNode, name: str) -> None:
    """Raises Problem where an output says on which machine, or in which folder, it ran."""
    traces = {str(lessons.ROOT), os.path.expanduser("~"), platform.node()}
    found = re.compile("|".join(rf"(?<!\w){re.escape(trace)}(?!\w)" for trace in traces if trace))
    for number, cell in enumerate(lessons.code_cells(notebook)):
        for output in [] if skipped(cell) else cell.outputs:
            if trace := next(filter(None, map(found.search, lessons.texts(output))), None):
                raise Problem(
                    f"{name}, cell {number}: its output names {trace[0]}, which is of this "
                    "machine: print something else. Nothing was stored."
                )


def settle(notebook: NotebookNode, stored: NotebookNode, refresh: bool) -> None:
    """Keep what is stored where nothing but a masked measurement changed; stamp what ran."""
    changed_above = False  # from the first edited cell or new text on, a picture may be another
    pairs = zip(lessons.code_cells(notebook), lessons.code_cells(stored), strict=True)
    for number, (cell, old) in enumerate(pairs, start=1):
        changed_above |= "stamp" not in old.metadata
        if skipped(cell):
            continue
        same = [*map(lessons.masked, cell.outputs)] == [*map(lessons.masked, old.outputs)]
        changed_above |= not same
        pictures = any(lessons.masked(output)["pictures"] for output in cell.outputs)
        if same and "stamp" in old.metadata and not refresh and not (pictures and changed_above):
            cell.outputs = old.outputs
        cell.metadata["stamp"] = lessons.stamp(cell)
        cell.execution_count = number
        for output in cell.outputs:
            if "execution_count" in output:
                output.execution_count = number


def execute(name: str, refresh: bool) -> None:
    print(name, flush=True)
    start = time.perf_counter()
    notebook = lessons.with_outputs(name)
    stored = deepcopy(notebook)
    run(notebook, name)
    refuse_traces(notebook, name)
    settle(notebook, stored, refresh)
    lessons.store(notebook, name)
    print(f"  stored after {time.perf_counter() - start:.1f} s; now nbval", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="lessons; all when none is named")
    parser.add_argument("--refresh", action="store_true", help="store every output anew")
    arguments = parser.parse_args()
    chosen = arguments.names or lessons.names()
    with told("execute", interrupted="the stored notebooks are as they were"):
        kernels.lay_out_data()
        for name in chosen:
            execute(name, arguments.refresh)
    notebooks = [str(lessons.notebook_path(name)) for name in chosen]
    os.chdir(lessons.ROOT)
    check = [sys.executable, "-m", "pytest", "--nbval", "--record", "-q", *notebooks]
    # In place of this process, so that Ctrl-C is pytest's to handle.
    os.execv(sys.executable, check)


if __name__ == "__main__":
    main()
