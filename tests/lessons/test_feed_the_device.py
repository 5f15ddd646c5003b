"""What a reader copies from the lesson on feeding the device works on other batches."""

import feed_the_device_checks
import pytest
from copied_cells import assert_refused, checks_of

# The check, what a cell says, what is put in its place, what the check says then.
BROKEN = [
    ("check_stream", "seed, *part", "0, *part", "have the same order"),
    (
        "check_measures",
        'raise ValueError(f"Too few',
        'return print(f"Too few',
        "goes through|raises",
    ),
    ("check_limit", "near=1.2", "near=2", "not limited by 'turns'"),
    ("check_limit", "5_000 * kernels", "5_000", "joined over a gap"),
    ("check_lanes", 'event.name.startswith("Memcpy")', "False", "is in the lane compute"),
    ("check_short_steps", '"ThunkExecutor" in event.name or', '"no" in line and', "steps are 0"),
    (
        "check_stacks",
        "islice(batches, count)):",
        "islice(batches, count)) * 2:",
        "stacks of|changed",
    ),
    ("check_stacks", "if len(shapes) > 1:", "if False:", "stacked says"),
    ("check_training", "*batch, rate", "images[0], labels[0], rate", "otherwise"),
    ("check_bounded", "jax.device_get(list(waiting))", "[]", "are the losses"),
    ("check_threads", "except BaseException", "except Exception", "does not arrive"),
    ("check_threads", "queue.Queue(ahead)", "queue.Queue()", "ahead"),
]


@pytest.mark.parametrize("check", checks_of(feed_the_device_checks))
def test_copied_cells_carry_over(lesson, check):
    lesson.call("attempt", check)


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_copy_is_refused(lesson, broken):
    assert_refused(lesson, *broken)
