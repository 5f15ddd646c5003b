"""A cell that a reader copies, broken in one place: the checks of its lesson have to see it."""

import pytest

from benchmarks.contract import Refused


def assert_refused(lesson, case: tuple, arguments: tuple = (False,)) -> None:
    """The case: the function, what it says, what is put in its place, the check, what it says.

    The arguments are the check's: False stands for no search for the smallest input.
    """
    defines, old, new, check, sentence = case
    lesson.call("break_cell", defines, old, new)
    try:
        with pytest.raises(Refused, match=sentence):
            lesson.call(check, *arguments)
    finally:
        lesson.call("break_cell", defines, old, old)
