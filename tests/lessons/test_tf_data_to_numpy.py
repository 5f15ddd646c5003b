"""What a reader copies from the lesson on tf.data works on other elements, sequences and rows."""

import pytest
import tf_data_to_numpy_checks
from copied_cells import assert_refused, checks_of

# The check, what a cell says, what is put in its place, what the check says then.
BROKEN = [
    ("check_refused", "(held != leaf).any()", "False", "goes through"),
    ("check_whole", "return held", "return leaf", "JAX holds"),
    ("check_whole", '"NoneTensorSpec()"', '"no"', "raises ValueError"),
    (
        "check_whole",
        "if element is None and iterator is None:",
        "if False:",
        "raises StopIteration",
    ),
    (
        "check_tokens",
        "boundary=True,",
        "boundary=True, drop_remainder=True,",
        "are lost|ValueError",
    ),
    ("check_tokens", "tf.fill([length], True)", "tokens != 0", "holes"),
    ("check_tokens", "tf.debugging.assert_less_equal(", "print(", "goes through|raises|lost"),
    ("check_streams", "Dataset.range(first,", "Dataset.range(0,", "from batch 1 is not the rest"),
    (
        "check_streams",
        "skipped + process : usable : processes",
        "skipped:usable",
        "processes lack 20",
    ),
    ("check_fixed_lengths", 'padded_shapes={"tokens": [None], "mask": [None]},', "", "batches of"),
    ("check_iterator", "iterator or dataset", "dataset", "an iterator gives"),
    ("check_inputs", "{*map(int, bounds)}", "set(bounds)", "raises TypeError"),
    ("check_inputs", "start < 0", "False", "'start': -1}: goes through"),
]


@pytest.mark.parametrize("check", checks_of(tf_data_to_numpy_checks))
def test_copied_cells_carry_over(lesson, check):
    lesson.call("attempt", check)


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_copy_is_refused(lesson, broken):
    assert_refused(lesson, *broken)
