"""What a reader copies from the lesson on DLPack hands over tensors and arrays of any kind.

Each broken copy, which differs in one place, is refused: so every check is seen to bite.
"""

import pytest
from carry_over.broken import assert_refused
from carry_over.dlpack import Dlpack

from benchmarks import bench


@pytest.fixture(scope="module")
def lesson(lesson_environment):
    with bench.ready(bench.Process("dlpack_zero_copy", kind=Dlpack)) as [lesson]:
        yield lesson


@pytest.mark.parametrize(
    "check",
    [
        "check_to_jax",
        "check_to_torch",
        "check_later_writes",
        "check_devices",
        "check_gradients",
        "check_inputs",
    ],
)
def test_copied_cells_carry_over(lesson, check):
    lesson.call(check)


LATER = "array = jax.dlpack.from_dlpack(source, copy=False)"
# The function, what it says, what is put in its place, the check, what the check says.
BROKEN = {
    "leaves negative views": (
        "to_jax",
        ".resolve_neg()",
        "",
        "check_to_jax",
        "wrong values",
    ),
    "leaves conjugates": (
        "to_jax",
        ".resolve_conj()",
        "",
        "check_to_jax",
        "raises BufferError",
    ),
    "keeps gradients": (
        "to_jax",
        ".detach()",
        "",
        "check_to_jax",
        "raises BufferError",
    ),
    "copies before it tries": (
        "to_jax",
        ".resolve_neg())",
        ".resolve_neg().contiguous())",
        "check_to_jax",
        "an unexplained copy",
    ),
    "always copies": (
        "to_jax",
        ".resolve_neg())",
        ".resolve_neg().clone())",
        "check_to_jax",
        "an unexplained copy",
    ),
    "copies as JAX likes": (
        "to_jax",
        f"        try:\n            {LATER}",
        "        try:\n            array = jax.dlpack.from_dlpack(source)",
        "check_to_jax",
        "shared=True, and the memory is another",
    ),
    "never copies": (
        "to_jax",
        "except (RuntimeError, TypeError, ValueError):",
        "except ZeroDivisionError:",
        "check_to_jax",
        "raises (ValueError|JaxRuntimeError|XlaRuntimeError)",
    ),
    "copies the layout": (
        "to_jax",
        "        except (RuntimeError, TypeError, ValueError):  # strides or alignment\n"
        "            source = source.clone(memory_format=torch.contiguous_format)",
        "        except (RuntimeError, TypeError, ValueError):\n"
        "            source = source.clone()[..., ::2].repeat_interleave(2, -1)",
        "check_to_jax",
        "wrong values|arrives as|raises",
    ),
    "says always shared": (
        "to_jax",
        "return array, in_place and tensor.numel() > 0",
        "return array, True",
        "check_to_jax",
        "shared=True, and the memory is another",
    ),
    "says never shared": (
        "to_jax",
        "return array, in_place and tensor.numel() > 0",
        "return array, False",
        "check_to_jax",
        "shared=False, and the memory is the same",
    ),
    "shares empty memory": (
        "to_jax",
        "in_place and tensor.numel() > 0",
        "in_place",
        "check_to_jax",
        "shared=True, and the memory is another",
    ),
    "narrows in silence": (
        "as_held",
        "not torch.equal(narrow.to(torch.int64), bits)",
        "False",
        "check_inputs",
        "no int32: goes through",
    ),
    "rounds floats": (
        "as_held",
        'if "int" not in name:',
        'if "int" not in name:\n        return tensor.to(getattr(torch, held))\n    if False:',
        "check_inputs",
        "float64: goes through",
    ),
    "refuses every int64": (
        "as_held",
        "not torch.equal(narrow.to(torch.int64), bits)",
        "True",
        "check_to_jax",
        "raises ValueError",
    ),
    "leaves int64 to JAX": (
        "as_held",
        "return narrow",
        "return tensor",
        "check_later_writes",
        "int64: a later write|raises",
    ),
    "reads half a byte": (
        "as_held",
        "u?int(8|16|32|64)",
        r"u?int\d+",
        "check_inputs",
        "int4: ",
    ),
    "reads what has no memory": (
        "to_jax",
        "if tensor.numel() and not tensor.data_ptr():",
        "if tensor.is_meta:",
        "check_inputs",
        "zero tensor: goes through",
    ),
    "takes anything": (
        "to_jax",
        "if not isinstance(tensor, torch.Tensor):",
        "if False:",
        "check_inputs",
        "list: raises AttributeError",
    ),
    "minds no layout": (
        "to_jax",
        "tensor.layout != torch.strided or tensor.is_nested",
        "tensor.is_nested",
        "check_inputs",
        "sparse: raises",
    ),
    "binds what it sends": (
        "to_default_device",
        "jax.device_put(np.asarray(array))",
        "jax.device_put(array)",
        "check_devices",
        "not free on",
    ),
    "sends by NumPy's dtypes": (
        "to_default_device",
        "jax.device_put(np.asarray(array))",
        "jax.device_put(tensor.numpy())",
        "check_devices",
        "ScalarType",
    ),
    "shares what is asked as a copy": (
        "to_torch",
        "copy=copy or None",
        "copy=None",
        "check_to_torch",
        "shared=False, and the memory is the same",
    ),
    "copies to PyTorch": (
        "to_torch",
        "copy=copy or None",
        "copy=True",
        "check_to_torch",
        "shared=True, and the memory is another",
    ),
    "exports what is deleted": (
        "to_torch",
        "if array.is_deleted():",
        "if False:",
        "check_inputs",
        "deleted: ",
    ),
    "exports tracers": (
        "to_torch",
        "if isinstance(array, jax.core.Tracer):",
        "if False:",
        "check_inputs",
        "tracer: raises",
    ),
    "gives its result in place": (
        "forward",
        "to_torch(result, copy=True)",
        "to_torch(result)",
        "check_gradients",
        "exp of torch.float32: the gradients differ",
    ),
    "gives gradients in place": (
        "backward",
        "to_torch(array, copy=True)",
        "to_torch(array)",
        "check_gradients",
        "the gradients differ|in place, and overwritten",
    ),
    "takes JAX's complex gradients": (
        "backward",
        ".conj_physical()",
        "",
        "check_gradients",
        "of torch.complex64: the gradients differ",
    ),
    "gives PyTorch's complex gradients": (
        "backward",
        "gradient.conj()",
        "gradient",
        "check_gradients",
        "of torch.complex64: the gradients differ",
    ),
    "gives labels gradients": (
        "backward",
        "array.dtype == jax.dtypes.float0",
        "False",
        "check_gradients",
        "2: raises TypeError",
    ),
    "trusts the weights": (
        "backward",
        "context.saved_tensors",
        "context",
        "check_gradients",
        "changed before `backward` goes through",
    ),
    "calls a nested tensor strided": (
        "to_jax",
        '"nested" if tensor.is_nested else ',
        "",
        "check_inputs",
        "nested: the error does not say so",
    ),
    "exports from many devices": (
        "to_torch",
        "if (count := len(array.devices())) > 1:",
        "if False:",
        "check_inputs",
        "spread: the error does not say how",
    ),
}


@pytest.mark.parametrize("case", BROKEN.values(), ids=BROKEN)
def test_a_broken_copy_is_refused(lesson, case):
    assert_refused(lesson, case)
