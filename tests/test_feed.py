"""What a reader copies from the lesson on feeding the device works on other batches.

Each broken copy, which differs in one place, is refused: so every check is seen to bite.
"""

import pytest
from carry_over.feed import Feed

from benchmarks import bench
from benchmarks.contract import Refused

CHECKS = ["stream", "measures", "limit", "lanes", "stacks", "training", "bounded", "threads"]


@pytest.fixture(scope="module")
def lesson(lesson_environment):
    with bench.ready(bench.Process("feed_the_device", kind=Feed)) as [lesson]:
        yield lesson


@pytest.mark.parametrize("check", CHECKS)
def test_copied_cells_carry_over(lesson, check):
    lesson.call(f"check_{check}")


# The function, what it says, what is put in its place, the check, what the check says.
BROKEN = {
    "drops the last stack": (
        "stacked",
        "while run := list(itertools.islice(batches, count)):",
        "while len(run := list(itertools.islice(batches, count))) == count:",
        "stacks",
        "stacks of",
    ),
    "forgets the last losses": (
        "train_bounded",
        "jax.device_get(list(waiting))",
        "[]",
        "bounded",
        "are the losses",
    ),
    "takes a short measurement": (
        "seconds_a_step",
        "next(batches, None) is None",
        "False",
        "measures",
        "takes what cannot work",
    ),
    "calls taking turns a step": ("limit", "near=1.2", "near=2", "limit", "not limited by 'turns'"),
    "counts copies as computing": (
        "lane_of",
        'event.startswith("Memcpy")',
        "False",
        "lanes",
        "is in the lane compute",
    ),
    "loads without bound": ("in_thread", "queue.Queue(ahead)", "queue.Queue()", "threads", "ahead"),
    "trains on one batch only": (
        "train_steps",
        "*batch",
        "images[0], labels[0]",
        "training",
        "otherwise",
    ),
}


@pytest.mark.parametrize(
    ("function", "old", "new", "check", "sentence"), BROKEN.values(), ids=list(BROKEN)
)
def test_a_broken_copy_is_refused(lesson, function, old, new, check, sentence):
    lesson.call("replace", function, old, new)
    try:
        with pytest.raises(Refused, match=sentence):
            lesson.call(f"check_{check}")
    finally:
        lesson.call("replace", function, "def ", "def ")
