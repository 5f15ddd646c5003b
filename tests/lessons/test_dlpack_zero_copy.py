"""What a reader copies from the lesson on DLPack hands over tensors and arrays of any kind."""

import dlpack_zero_copy_checks
import pytest
from copied_cells import assert_refused, checks_of

# The check, what a cell says, what is put in its place, what the check says then.
BROKEN = [
    ("check_to_jax", ".resolve_neg()", "", "wrong values"),
    ("check_to_jax", ".resolve_conj()", "", "raises BufferError"),
    ("check_to_jax", ".resolve_neg())", ".resolve_neg().contiguous())", "an unexplained copy"),
    ("check_to_jax", "in_place and tensor.numel() > 0", "in_place", "shared=True, and the memory"),
    (
        "check_to_torch",
        "copy=copy or None",
        "copy=None",
        "shared=False, and the memory is the same",
    ),
    ("check_later_writes", "return narrow", "return tensor", "int64: a later write|raises"),
    ("check_devices", "device_put(np.asarray(array))", "device_put(array)", "not free on"),
    ("check_gradients", "to_torch(result, copy=True)", "to_torch(result)", "gradients differ"),
    ("check_gradients", ".conj_physical()", "", "of torch.complex64: the gradients differ"),
    ("check_gradients", "context.saved_tensors", "context", "changed before `backward`"),
    ("check_inputs", "if not torch.equal(", "if 0 and torch.equal(", "no int32: goes through"),
    ("check_inputs", "if (count := len(array.devices())) > 1:", "if False:", "does not say how"),
    (
        "check_inputs",
        "not isinstance(tensor, torch.Tensor)",
        "False",
        "list: raises AttributeError",
    ),
]


@pytest.mark.parametrize("check", checks_of(dlpack_zero_copy_checks))
def test_copied_cells_carry_over(lesson, check):
    lesson.call("attempt", check)


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_copy_is_refused(lesson, broken):
    assert_refused(lesson, *broken)
