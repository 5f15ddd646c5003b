"""A process for a lesson's cells."""

import importlib
from pathlib import Path

import pytest
from copied_cells import CheckedCells, checks_of

from benchmarks import bench
from tools import lessons


@pytest.fixture(scope="module")
def lesson_environment():
    """What a process that runs a lesson's cells needs: a kernel's environment, and the data."""
    variables = lessons.kernel_environment()
    variables |= {"MPLBACKEND": "agg", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    with pytest.MonkeyPatch.context() as patch:
        for key, value in variables.items():
            patch.setenv(key, value)
        lessons.lay_out_data()
        yield


@pytest.fixture(scope="module")
def lesson(request, lesson_environment):
    """The process of the lesson whose name the test file has, with the checks of the lesson.

    Each of these has to be seen to bite: at least one of the file's BROKEN copies is for it.
    """
    name = Path(request.module.__file__).stem.removeprefix("test_")
    checks = checks_of(importlib.import_module(f"{name}_checks"))
    assert {check for check, *_ in request.module.BROKEN} == set(checks)
    with bench.ready(bench.Process(name, kind=CheckedCells)) as [lesson]:
        yield lesson
