"""What a reader copies from the lesson on Hugging Face works on other texts and shards.

Its pipelines are tried in test_carry_over.py, as those of all lessons.
"""

import huggingface_datasets_checks
import pytest
from copied_cells import assert_refused, checks_of

# The check, what a cell says, what is put in its place, what the check says then.
BROKEN = [
    (
        "check_texts",
        "len(tokens), batch_size, seed, start",
        "len(tokens), batch_size, seed",
        "not the rest",
    ),
    (
        "check_shards",
        "stream.set_epoch(epoch)",
        "stream.set_epoch(0)",
        "epochs 3 and 4 have the same",
    ),
    ("check_shards", "shuffle(seed=seed, **one)", "shuffle(seed=0, **one)", "seeds 0 and 1"),
    (
        "check_shards",
        'state["epoch"] != epoch',
        "False",
        "a state of epoch 3 in epoch 4: goes through",
    ),
]


@pytest.mark.parametrize("check", checks_of(huggingface_datasets_checks))
def test_copied_cells_carry_over(lesson, check):
    lesson.call("attempt", check)


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_copy_is_refused(lesson, broken):
    assert_refused(lesson, *broken)
