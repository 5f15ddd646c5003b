"""The lessons on loaders have one form: their first code runs alone, and little code trains."""

import pytest

from tools.lesson import lessons
from tools.run import kernels

# Those that begin with the library's own code.
LOADERS = [
    name
    for name in lessons.names()
    if name != "four_loaders" and lessons.subject_cells(name, "shared-model")
]


def cells_until_trained(name):
    """The code cells of a lesson, up to the first one that has trained a model."""
    cells = lessons.code_cells(lessons.parsed_md(name))
    trained = next(n for n, cell in enumerate(cells) if "trained" in lessons.tags(cell))
    return cells[: trained + 1]


@pytest.mark.slow
@pytest.mark.parametrize("name", LOADERS)
def test_the_short_answer_runs_alone_in_an_empty_folder(python, name, tmp_path):
    """With the settings above it that the site leaves out. It prints, and warns of nothing."""
    (tmp_path / "data").symlink_to(lessons.NOTEBOOKS / "data")
    settings = "remove-cell", "short-answer"
    cells = [cell for cell in cells_until_trained(name) if {*lessons.tags(cell)} & {*settings}]
    program = "\n".join(cell.source for cell in cells).replace("%pip", "pass  # %pip")
    done = python("-c", program, cwd=tmp_path, env=kernels.kernel_environment())
    assert done.returncode == 0, done.stderr
    assert "device" in done.stdout and "(128," in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize("name", LOADERS)
def test_few_lines_train_a_model(name):
    """Not counted are a drawing, and the model with its step and test, which all lessons share."""
    lines = [
        line
        for cell in cells_until_trained(name)
        if lessons.shared_tag(cell) != "shared-model" and "plt." not in cell.source
        for line in cell.source.splitlines()
    ]
    assert 10 < len([line for line in lines if line.strip()]) <= 60
