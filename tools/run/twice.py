"""Run each cell of a lesson twice in a row, and then the whole notebook a second time.

    python -m tools.run.twice [--limit SECONDS] [NAME ...]

A reader runs a cell again after an edit, and a notebook again on another day in the same folder:
neither may fail. What the cells print is not compared: `pytest --nbval` does that. Cells that need
a GPU are left out where there is none.
"""

import argparse
import sys
from collections.abc import Iterator

from offline.problem import told
from tools.lesson import lessons
from tools.run import execute, kernels, runner

IN_A_ROW = ("at its first run, below cells that ran twice", "when it is run again")
ANOTHER_DAY = ("when the notebook is run again in the same folder",)


def faults(name: str, limit: float) -> Iterator[str]:
    """A sentence for each cell that fails in one of its runs. Raises Problem.

    A cell that does not end within `limit` seconds, or whose kernel dies, ends the notebook.
    """
    for runs in (IN_A_ROW, ANOTHER_DAY):
        notebook = lessons.read_md(name)
        with runner.Kernel(notebook, lessons.NOTEBOOKS, limit) as kernel:
            for number, cell in enumerate(lessons.code_cells(notebook)):
                if execute.skipped(cell):
                    continue
                try:
                    for when in runs:  # noqa: B007 (the sentence below has it)
                        kernel.run(cell)
                except runner.Failed as error:
                    yield f"{name}, cell {number} fails {when}: {error}."
                    if isinstance(error, runner.Ended):
                        break


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="lessons; all when none is named")
    parser.add_argument("--limit", type=float, default=300, help="seconds for a cell (300)")
    arguments = parser.parse_args()
    failed = False
    with told("twice"):
        kernels.lay_out_data()
        for name in arguments.names or lessons.in_order():
            print(name, flush=True)
            for sentence in faults(name, arguments.limit):
                print(f"  {sentence}", flush=True)
                failed = True
    sys.exit(failed)


if __name__ == "__main__":
    main()
