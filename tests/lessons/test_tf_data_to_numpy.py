"""What a reader copies from the lesson on tf.data works on other elements, sequences and rows."""

import pytest
import tf_data_to_numpy_checks
from copied_cells import assert_refused, checks_of

# The check, the function, what it says, what is put in its place, what the check says then.
BROKEN = [
    ("check_refused", "numpy_batches", "(held != leaf).any()", "False", "goes through"),
    ("check_whole", "numpy_batches", "return held", "return leaf", "JAX holds"),
    ("check_whole", "numpy_batches", '"NoneTensorSpec()"', '"no"', "raises ValueError"),
    (
        "check_whole",
        "numpy_batches",
        "if element is None and iterator is None:",
        "if False:",
        "raises StopIteration",
    ),
    (
        "check_tokens",
        "token_batches",
        "pad_to_bucket_boundary=True,",
        "pad_to_bucket_boundary=True, drop_remainder=True,",
        "are lost|raises ValueError",
    ),
    ("check_tokens", "token_batches", "tf.fill([length], True)", "tokens != 0", "holes"),
    (
        "check_tokens",
        "token_batches",
        "length = tf.size(tokens)",
        "tokens = tokens[: bounds[-1]]\n        length = tf.size(tokens)",
        "goes through",
    ),
    (
        "check_streams",
        "stream_of",
        "Dataset.range(first, 2**62)",
        "Dataset.range(0, 2**62)",
        "a stream from batch 1 is not the rest",
    ),
    (
        "check_streams",
        "stream_of",
        "order[skipped + process : usable : processes]",
        "order[skipped : usable]",
        "processes lack 20 of the 30 rows",
    ),
    (
        "check_fixed_lengths",
        "token_batches",
        'padded_shapes={"tokens": [None], "mask": [None]},',
        "",
        "fixed length=100: batches of",
    ),
    ("check_iterator", "numpy_batches", "iterator or dataset", "dataset", "an iterator gives"),
    ("check_inputs", "token_batches", "{*map(int, bounds)}", "set(bounds)", "raises TypeError"),
    ("check_inputs", "stream_of", "start < 0", "False", "'start': -1}: goes through"),
]


@pytest.mark.parametrize("check", checks_of(tf_data_to_numpy_checks))
def test_copied_cells_carry_over(lesson, check):
    lesson.call("attempt", check)


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_copy_is_refused(lesson, broken):
    assert_refused(lesson, *broken)
