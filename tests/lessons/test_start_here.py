"""What a reader copies from the first lesson works on arrays of other kinds and sizes."""

import pytest
import start_here_checks
from copied_cells import assert_refused, checks_of

# The check, what a cell says, what is put in its place, what the check says then.
BROKEN = [
    ("check_epochs", "place * self.processes + self.process", "place", "processes|twice"),
    (
        "check_epochs",
        "shuffled[1][first : first",
        "shuffled[1][first // 2 : first // 2",
        "twice|diff",
    ),
    ("check_orders", "(self.seed, epoch)", "self.seed", "same order"),
    ("check_orders", "shuffled[0] != epoch", "shuffled[0] is None", "same order|two orders"),
    ("check_layouts", "np.ascontiguousarray(array, dtype)", "array.astype(dtype)", "one piece"),
    ("check_layouts", '.newbyteorder("=")', "", "raises"),
    ("check_refusals", "and not np.ma.isMaskedArray(array)", "", "a mask: goes through"),
    ("check_refusals", "cut and not", "False and not", "33 bits: goes through"),
    ("check_refusals", "or labels.min() < 0", "", "labels: -1: goes through"),
    ("check_accuracy", "[:examples]", "", "rows"),
    ("check_going_on", 'if then["plan"] != plan:', "if False:", "another batch size: goes through"),
    ("check_going_on", 'nnx.update((model, optimizer), then["state"])', "pass", "ends elsewhere"),
]


@pytest.mark.parametrize("check", checks_of(start_here_checks))
def test_copied_cells_carry_over(lesson, check):
    lesson.call("attempt", check)


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_copy_is_refused(lesson, broken):
    assert_refused(lesson, *broken)
