"""What a reader copies from the lesson on feeding the device works on other batches."""

import feed_the_device_checks
import pytest
from copied_cells import assert_refused, checks_of

# The check, the function, what it says, what is put in its place, what the check says then.
BROKEN = [
    ("check_stream", "tuned_batches", "seed, *part", "0, *part", "have the same order"),
    (
        "check_measures",
        "exactly",
        'raise ValueError(f"Too few batches: this needs {count} more.")',
        "return",
        "goes through|raises",
    ),
    (
        "check_measures",
        "seconds_a_step",
        "collections.deque(exactly(batches, ready), 0)",
        "list(exactly(batches, 0))",
        "batches are taken for 15|goes through",
    ),
    ("check_limit", "limit", "near=1.2", "near=2", "not limited by 'turns'"),
    ("check_limit", "joined", "5_000 * kernels", "5_000", "joined over a gap"),
    (
        "check_lanes",
        "lane_of",
        'event.name.startswith("Memcpy")',
        "False",
        "is in the lane compute",
    ),
    (
        "check_stacks",
        "stacked",
        "while run := list(itertools.islice(batches, count)):",
        "while len(run := list(itertools.islice(batches, count))) == count:",
        "stacks of",
    ),
    (
        "check_short_steps",
        "lane_of",
        'if "ThunkExecutor" in event.name or "hlo_op" in dict(event.stats):',
        'if line.startswith("tf_XLAEigen"):',
        "steps are 0 spans",
    ),
    ("check_stacks", "stacked", "if len(shapes) > 1:", "if False:", "stacked says"),
    ("check_training", "train_steps", "*batch", "images[0], labels[0]", "otherwise"),
    (
        "check_bounded",
        "train_bounded",
        "jax.device_get(list(waiting))",
        "[]",
        "are the losses",
    ),
    ("check_threads", "in_thread", "except BaseException", "except Exception", "does not arrive"),
    ("check_threads", "in_thread", "queue.Queue(ahead)", "queue.Queue()", "ahead"),
]


@pytest.mark.parametrize("check", checks_of(feed_the_device_checks))
def test_copied_cells_carry_over(lesson, check):
    lesson.call("attempt", check)


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_copy_is_refused(lesson, broken):
    assert_refused(lesson, *broken)
