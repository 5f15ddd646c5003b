"""Run each cell of a lesson twice in a row, and then the whole notebook a second time.

    python tools/twice.py [--limit SECONDS] [NAME ...]

A reader runs a cell again after an edit, and a notebook again on another day in the same folder:
neither may fail. What the cells print is not compared: `pytest --nbval` does that. Cells that need
a GPU are left out where there is none.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tools import execute, lessons, runner

IN_A_ROW = ("at its first run, below cells that ran twice", "when it is run again")
ANOTHER_DAY = ("when the notebook is run again in the same folder",)


def faults(name: str, limit: float, runs: tuple[str, ...]) -> Iterator[str]:
    """A sentence for each cell that fails, in a new kernel, in one of its runs. Raises Problem.

    A cell that failed is not run again. One that does not end within `limit` seconds, or whose
    kernel dies, is the last.
    """
    notebook = lessons.read_notebook(name)
    with runner.Kernel(notebook, lessons.NOTEBOOKS, limit) as kernel:
        for number, cell in enumerate(lessons.code_cells(notebook)):
            for when in () if execute.skipped(cell) else runs:
                try:
                    kernel.run(cell)
                except runner.Failed as error:
                    yield f"{name}, cell {number} fails {when}: {error}."
                    if isinstance(error, runner.Ended):
                        return
                    break


def check(names: list[str], limit: float) -> bool:
    """Check the lessons one after the other, and print what fails. Raises lessons.Problem."""
    if unknown := sorted(set(names) - set(lessons.names())):
        known = ", ".join(lessons.names())
        raise lessons.Problem(f"{unknown[0]} is no lesson: the lessons are {known}.")
    lessons.lay_out_data()
    all_hold = True
    for name in names or lessons.in_order():
        lessons.ask_for_packages(name)
        holds = True
        for runs in (IN_A_ROW, ANOTHER_DAY):
            for sentence in faults(name, limit, runs):
                print(sentence, flush=True)
                holds = all_hold = False
        if holds:
            print(f"{name}: each cell can be run again, and so can the notebook.", flush=True)
    return all_hold


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="lessons; all when none is named")
    parser.add_argument("--limit", type=float, default=300, help="seconds for a cell (300)")
    arguments = parser.parse_args()
    try:
        sys.exit(not check(arguments.names, arguments.limit))
    except lessons.Problem as problem:
        sys.exit(f"twice: {problem}")
    except KeyboardInterrupt:
        sys.exit("twice: interrupted; run it again.")
    except OSError as error:  # a full disk, a folder of somebody else
        sys.exit(f"twice: {error}: put that right and run it again.")


if __name__ == "__main__":
    main()
