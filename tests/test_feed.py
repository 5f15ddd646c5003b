"""What a reader copies from the lesson on feeding the device works on other batches.

Each broken copy, which differs in one place, is refused: so every check is seen to bite.
"""

import pytest
from carry_over.feed import Feed

from benchmarks import bench
from benchmarks.contract import Refused

CHECKS = [
    "stream",
    "measures",
    "limit",
    "lanes",
    "short_steps",
    "stacks",
    "training",
    "bounded",
    "threads",
]


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
        "exactly",
        'raise ValueError(f"Too few batches: this needs {count} more.")',
        "return",
        "measures",
        "takes what cannot work|ends with",
    ),
    "times what was ready": (
        "seconds_a_step",
        "collections.deque(exactly(batches, ready), 0)",
        "list(exactly(batches, 0))",
        "measures",
        "batches are taken for 15|takes what cannot work",
    ),
    "loads what was ready": (
        "seconds_alone",
        "collections.deque(exactly(batches, ready), 0)",
        "list(exactly(batches, 0))",
        "measures",
        "were ready are measured|takes what cannot work",
    ),
    "records what was ready": (
        "record",
        "collections.deque(exactly(batches, ready), 0)",
        "list(exactly(batches, 0))",
        "measures",
        "were ready are recorded|takes what cannot work",
    ),
    "sends to one device": (
        "diagnose",
        "record(loop, batches, steps, ready, send)",
        "record(loop, batches, steps, ready)",
        "measures",
        "`send` is called",
    ),
    "waits for no result": (
        "seconds_a_step",
        "if not jax.tree.leaves(made):",
        "if False:",
        "measures",
        "takes what cannot work",
    ),
    "calls a short step a copy": (
        "limit",
        "if loop < max(near * step, 1e-4):",
        "if False:",
        "limit",
        "not limited by 'step'",
    ),
    "answers without having seen": (
        "full_lane",
        'if not len(lanes["compute"]):',
        "if False:",
        "limit",
        "nothing was compared",
    ),
    "joins copies": ("joined", "5_000 * kernels", "5_000", "limit", "joined over a gap"),
    "loses steps in the caller's thread": (
        "lane_of",
        'if any(key == "hlo_op" for key, _ in event.stats):',
        'if line.startswith("tf_XLA"):',
        "lanes",
        "copy is in the lane None",
    ),
    "mixes up shapes": ("stacked", "if len(shapes) > 1:", "if False:", "stacks", "stacked says"),
    "loads everything at once": (
        "in_thread",
        "if ahead < 1:",
        "if False:",
        "threads",
        "in_thread takes",
    ),
    "loses the thread's end": (
        "in_thread",
        "except BaseException",
        "except Exception",
        "threads",
        "does not arrive",
    ),
    "calls taking turns a step": ("limit", "near=1.2", "near=2", "limit", "not limited by 'turns'"),
    "counts copies as computing": (
        "lane_of",
        'event.name.startswith("Memcpy")',
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
