"""What a reader copies beside the pipelines works on other data: NAME_checks.py says how.

A module there has functions check_…(names) and BROKEN: of each check at least one copy that it has
to refuse, as the check, what a cell says, what is put in its place, and what the check says then.
"""

import contextlib
import functools
import importlib
from pathlib import Path

import pytest
from copied_cells import CheckedCells, assert_refused, checks_of

from benchmarks import bench

FILES = sorted(Path(__file__).parent.glob("*_checks.py"))
CHECKS = {file.stem.removesuffix("_checks"): importlib.import_module(file.stem) for file in FILES}


def cases():
    """Each check with what the lesson has and a first broken copy. The other copies are weekly."""
    for name, checks in CHECKS.items():
        seen = set()
        for check, *broken in (*((check,) for check in checks_of(checks)), *checks.BROKEN):
            marks = [pytest.mark.weekly] if broken and check in seen else []
            yield pytest.param(name, check, broken, marks=marks)
            if broken:
                seen.add(check)


@pytest.fixture(scope="module")
def lesson_of(lesson_environment):
    """The process of the lesson with this name: one at a time."""
    with contextlib.ExitStack() as running:

        @functools.lru_cache(1)
        def start(name):
            running.close()
            [lesson] = running.enter_context(bench.ready(bench.Process(name, kind=CheckedCells)))
            return lesson

        yield start


@pytest.mark.parametrize(("name", "check", "broken"), cases())
def test_a_check_passes_what_the_lesson_has_and_refuses_a_broken_copy(
    lesson_of, name, check, broken
):
    if broken:
        assert_refused(lesson_of(name), check, *broken)
    else:
        lesson_of(name).call("attempt", check)


@pytest.mark.parametrize("checks", CHECKS.values(), ids=CHECKS)
def test_each_check_is_seen_to_bite(checks):
    assert {check for check, *_ in checks.BROKEN} == set(checks_of(checks))
