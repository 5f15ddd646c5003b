"""What a reader copies from the lesson on feeding the device works on other batches.

Each broken copy, which differs in one place, is refused: so every check is seen to bite.
"""

import pytest
from carry_over.broken import assert_refused
from carry_over.feed import Feed

from benchmarks import bench

CHECKS = [
    "check_stream",
    "check_measures",
    "check_limit",
    "check_lanes",
    "check_short_steps",
    "check_stacks",
    "check_training",
    "check_bounded",
    "check_threads",
]


@pytest.fixture(scope="module")
def lesson(lesson_environment):
    with bench.ready(bench.Process("feed_the_device", kind=Feed)) as [lesson]:
        yield lesson


@pytest.mark.parametrize("check", CHECKS)
def test_copied_cells_carry_over(lesson, check):
    lesson.call(check)


# The function, what it says, what is put in its place, the check, what the check says.
BROKEN = {
    "drops the last stack": (
        "stacked",
        "while run := list(itertools.islice(batches, count)):",
        "while len(run := list(itertools.islice(batches, count))) == count:",
        "check_stacks",
        "stacks of",
    ),
    "forgets the last losses": (
        "train_bounded",
        "jax.device_get(list(waiting))",
        "[]",
        "check_bounded",
        "are the losses",
    ),
    "takes a short measurement": (
        "exactly",
        'raise ValueError(f"Too few batches: this needs {count} more.")',
        "return",
        "check_measures",
        "goes through|raises",
    ),
    "times what was ready": (
        "seconds_a_step",
        "collections.deque(exactly(batches, ready), 0)",
        "list(exactly(batches, 0))",
        "check_measures",
        "batches are taken for 15|goes through",
    ),
    "loads what was ready": (
        "seconds_alone",
        "collections.deque(exactly(batches, ready), 0)",
        "list(exactly(batches, 0))",
        "check_measures",
        "were ready are measured|goes through",
    ),
    "records what was ready": (
        "record",
        "collections.deque(exactly(batches, ready), 0)",
        "list(exactly(batches, 0))",
        "check_measures",
        "were ready are recorded|goes through",
    ),
    "sends to one device": (
        "diagnose",
        "record(loop, batches, steps, ready, send)",
        "record(loop, batches, steps, ready)",
        "check_measures",
        "`send` is called",
    ),
    "waits for no result": (
        "seconds_a_step",
        "if not jax.tree.leaves(made):",
        "if False:",
        "check_measures",
        "goes through",
    ),
    "calls a short step a copy": (
        "limit",
        "if loop < max(near * step, 1e-4):",
        "if False:",
        "check_limit",
        "not limited by 'step'",
    ),
    "answers without having seen": (
        "full_lane",
        'if not len(lanes["compute"]):',
        "if False:",
        "check_limit",
        "nothing was compared",
    ),
    "joins copies": ("joined", "5_000 * kernels", "5_000", "check_limit", "joined over a gap"),
    "loses steps in the caller's thread": (
        "lane_of",
        'or "hlo_op" in dict(event.stats):',
        'or line.startswith("tf_XLA"):',
        "check_lanes",
        "copy is in the lane None",
    ),
    "sees no work that a thread shares": (
        "lane_of",
        '"ThunkExecutor" in event.name or',
        "",
        "check_lanes",
        "is in the lane None",
    ),
    "mixes up shapes": (
        "stacked",
        "if len(shapes) > 1:",
        "if False:",
        "check_stacks",
        "stacked says",
    ),
    "loads everything at once": (
        "in_thread",
        "if ahead < 1:",
        "if False:",
        "check_threads",
        "goes through",
    ),
    "loses the thread's end": (
        "in_thread",
        "except BaseException",
        "except Exception",
        "check_threads",
        "does not arrive",
    ),
    "calls taking turns a step": (
        "limit",
        "near=1.2",
        "near=2",
        "check_limit",
        "not limited by 'turns'",
    ),
    "counts copies as computing": (
        "lane_of",
        'event.name.startswith("Memcpy")',
        "False",
        "check_lanes",
        "is in the lane compute",
    ),
    "loads without bound": (
        "in_thread",
        "queue.Queue(ahead)",
        "queue.Queue()",
        "check_threads",
        "ahead",
    ),
    "trains on one batch only": (
        "train_steps",
        "*batch",
        "images[0], labels[0]",
        "check_training",
        "otherwise",
    ),
}


@pytest.mark.parametrize("case", BROKEN.values(), ids=BROKEN)
def test_a_broken_copy_is_refused(lesson, case):
    assert_refused(lesson, case, ())
