"""A cell that a reader copies, broken in one place: the checks of its lesson have to see it."""

import pytest

from benchmarks.contract import Refused


def assert_refused(lesson, case: tuple) -> None:
    """The case: the function, what it says, what is put in its place, the check, what it says."""
    defines, old, new, check, sentence = case
    lesson.call("break_cell", defines, old, new)
    try:
        with pytest.raises(Refused, match=sentence):
            lesson.call(check, False)  # without a search for the smallest input
    finally:
        lesson.call("break_cell", defines, old, old)
