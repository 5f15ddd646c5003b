"""What a reader copies from the lesson on decoders works on other photographs.

Its pipeline is tried in test_carry_over.py, as those of all lessons.
"""

import pytest
from copied_cells import assert_refused

SMALLER = "check_smaller_copies"
CLASSES = "for name in classes:  # an empty class keeps its number"
# The check, what a cell says, what is put in its place, what the check says then.
BROKEN = [
    (SMALLER, "min(1, side / min(image.size))", "1", r"has \(\d+, \d+\) pixels"),
    (SMALLER, CLASSES, "for name in {f.parent.name for f in files}:", "another label than their"),
    (SMALLER, "ImageOps.exif_transpose(image, in_place=True)", "pass", "does not come out upright"),
]


def test_copied_cells_carry_over(lesson):
    lesson.call("attempt", SMALLER)


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_copy_is_refused(lesson, broken):
    assert_refused(lesson, *broken)
