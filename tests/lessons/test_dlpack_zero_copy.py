"""What a reader copies from the lesson on DLPack hands over tensors and arrays of any kind."""

import dlpack_zero_copy_checks
import pytest
from copied_cells import assert_refused, checks_of

# The check, the function, what it says, what is put in its place, what the check says then.
BROKEN = [
    ("check_to_jax", "to_jax", ".resolve_neg()", "", "wrong values"),
    ("check_to_jax", "to_jax", ".resolve_conj()", "", "raises BufferError"),
    (
        "check_to_jax",
        "to_jax",
        ".resolve_neg())",
        ".resolve_neg().contiguous())",
        "an unexplained copy",
    ),
    (
        "check_to_jax",
        "to_jax",
        "in_place and tensor.numel() > 0",
        "in_place",
        "shared=True, and the memory is another",
    ),
    (
        "check_to_jax",
        "to_jax",
        "return array, in_place and tensor.numel() > 0",
        "return array, False",
        "shared=False, and the memory is the same",
    ),
    (
        "check_to_torch",
        "to_torch",
        "copy=copy or None",
        "copy=None",
        "shared=False, and the memory is the same",
    ),
    (
        "check_later_writes",
        "as_held",
        "return narrow",
        "return tensor",
        "int64: a later write|raises",
    ),
    (
        "check_devices",
        "to_default_device",
        "jax.device_put(np.asarray(array))",
        "jax.device_put(array)",
        "not free on",
    ),
    (
        "check_gradients",
        "forward",
        "to_torch(result, copy=True)",
        "to_torch(result)",
        "exp of torch.float32: the gradients differ",
    ),
    (
        "check_gradients",
        "backward",
        ".conj_physical()",
        "",
        "of torch.complex64: the gradients differ",
    ),
    (
        "check_gradients",
        "backward",
        "context.saved_tensors",
        "context",
        "changed before `backward` goes through",
    ),
    (
        "check_inputs",
        "as_held",
        "not torch.equal(narrow.to(torch.int64), bits)",
        "False",
        "no int32: goes through",
    ),
    (
        "check_inputs",
        "to_torch",
        "if (count := len(array.devices())) > 1:",
        "if False:",
        "spread: the error does not say how",
    ),
    (
        "check_inputs",
        "to_jax",
        "if not isinstance(tensor, torch.Tensor):",
        "if False:",
        "list: raises AttributeError",
    ),
]


@pytest.mark.parametrize("check", checks_of(dlpack_zero_copy_checks))
def test_copied_cells_carry_over(lesson, check):
    lesson.call("attempt", check)


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_copy_is_refused(lesson, broken):
    assert_refused(lesson, *broken)
