"""A cell or a notebook that cannot be run twice is found, on tiny notebooks in real kernels."""

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from tools import lessons, twice


@pytest.fixture
def check(repository, monkeypatch, capsys):
    """Check the lesson `tiny` of these sources. Returns whether it holds, and what is said."""
    monkeypatch.setattr(lessons, "lay_out_data", lambda: None)
    monkeypatch.setattr(lessons, "has_gpu", lambda: False)

    def run(*sources, limit=60, tags=()):
        cells = [new_code_cell(source, metadata={"tags": [*tags]}) for source in sources]
        nbformat.write(new_notebook(cells=cells), lessons.notebook_path("tiny"))
        holds = twice.check(["tiny"], limit)
        return holds, capsys.readouterr().out.splitlines()

    return run


def test_what_can_be_run_twice_holds_whatever_it_prints(check):
    counts = "n = 1 + globals().get('n', 0)\nprint(n)"
    assert check(counts, "n = n + 1") == (
        True,
        ["tiny: each cell can be run again, and so can the notebook."],
    )


def test_a_cell_that_fails_when_it_is_run_again_is_named(check):
    assert check("x = [1]", "x.pop()", "x.append(1)") == (
        False,
        ["tiny, cell 1 fails when it is run again: IndexError: pop from empty list."],
    )


def test_a_notebook_that_fails_in_the_folder_that_it_leaves_is_named(check):
    once = "import pathlib\nif 'done' not in globals():\n    pathlib.Path('made').mkdir()\ndone = 1"
    error = "FileExistsError: [Errno 17] File exists: 'made'"
    assert check("1", once) == (
        False,
        [f"tiny, cell 1 fails when the notebook is run again in the same folder: {error}."],
    )


def test_a_cell_that_fails_the_first_time_is_another_sentence(check):
    holds, said = check("1 / 0")
    error = "ZeroDivisionError: division by zero."
    assert not holds and said == [
        f"tiny, cell 0 fails at its first run, below cells that ran twice: {error}",
        f"tiny, cell 0 fails when the notebook is run again in the same folder: {error}",
    ]


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("import time; time.sleep(60)", "it did not end within 3 s"),
        ("import os; os._exit(3)", "the kernel died (exit code 3)"),
    ],
)
def test_a_cell_that_stands_still_or_kills_ends_its_notebook(check, source, why):
    holds, said = check(source, "1 / 0", limit=3)
    assert not holds and [line.partition(": ")[2] for line in said] == [f"{why}."] * 2


def test_a_cell_that_needs_a_gpu_is_left_out_where_there_is_none(check):
    assert check("1 / 0", tags=[lessons.GPU_TAG])[0]


def test_the_program_says_by_its_status_what_it_found(workshop, python):
    for source, status in (("1", 0), ("1 / 0", 1)):
        notebook = new_notebook(cells=[new_code_cell(source)])
        nbformat.write(notebook, lessons.notebook_path("tiny"))
        done = python("tools/twice.py", "--limit=60", "tiny", cwd=workshop)
        assert (done.returncode, done.stderr) == (status, "")
    done = python("tools/twice.py", "no_such", cwd=workshop)
    assert done.returncode == 1
    assert done.stderr.startswith("twice: no_such is no lesson: the lessons are choose_a_loader,")
