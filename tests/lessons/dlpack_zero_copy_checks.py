"""The functions to copy of the lesson on DLPack, on tensors and arrays of many kinds.

What has to arrive are the bytes that PyTorch reads from the tensor, or JAX was given.
"""

import re
import warnings

import hypothesis
import numpy as np
from copied_cells import refusal
from hypothesis import strategies as st
from hypothesis_cases import tried

INTEGERS = ["int8", "int16", "int32", "uint8", "uint16", "uint32"]
FLOATS = ["float16", "bfloat16", "float32"]
SHORT_FLOATS = ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"]
WIDE = {
    "int64": "int32",
    "uint64": "uint32",
    "float64": "float32",
    "complex128": "complex64",
}
DTYPES = ["bool", *INTEGERS, *FLOATS, *SHORT_FLOATS, "float8_e8m0fnu", "complex64", *WIDE]
OF_JAX_ONLY = ["float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "int4", "uint4", "int2"]
BUFFER = 4_096  # elements of the memory that a tensor views


@st.composite
def views(draw) -> tuple:
    """(shape, strides, offset) of a view of the buffer, in elements."""
    shape = draw(st.lists(st.integers(0, 6) | st.just(1), max_size=4))
    order = draw(st.permutations(range(len(shape))))
    kind = draw(st.sampled_from(["compact", "compact", "pitched", "any"]))
    strides, stride = [0] * len(shape), 1
    for axis in order:
        strides[axis] = stride
        stride *= max(shape[axis], 1)
        if kind == "pitched":
            stride += draw(st.integers(0, 3))
    for axis, size in enumerate(shape):
        if kind == "any":
            strides[axis] = draw(st.sampled_from([0, 1, 2, 7, 16]))
        elif size == 1 and draw(st.booleans()):
            strides[axis] = draw(st.integers(0, 500))  # of no meaning
    offset = draw(st.sampled_from([0, 0, 64, 1, 3, 16, 31, 128]))
    reach = offset + sum(max(n - 1, 0) * step for n, step in zip(shape, strides, strict=True))
    hypothesis.assume(reach < BUFFER)
    return tuple(shape), tuple(strides), offset


FLAGS = st.sets(st.sampled_from(["grad", "conjugate", "negative"]))
NEGATED = re.compile("int|b?float(16|32|64)|complex")  # the dtypes that PyTorch can negate


def compact(indices) -> bool:
    """Whether the view takes each element of one piece of memory once."""
    places = indices.flatten().sort().values
    return len(places) > 0 and places.tolist() == [*range(places[0], places[0] + len(places))]


def check_devices(names) -> None:
    """A tensor is sent to JAX's default device, bound to none."""
    jax, torch = names["jax"], names["torch"]
    send = names["to_default_device"]
    for device in jax.devices("cpu"):
        with jax.default_device(device):
            for tensor in (
                torch.arange(12.0).reshape(3, 4).T,
                torch.ones(2, 3).bfloat16(),
                torch.ones(3).to(torch.float8_e5m2),
                torch.arange(5),
                torch.ones(4, requires_grad=True),
                torch.ones(3, dtype=torch.complex64).conj(),
                torch.zeros(0, 2),
            ):
                array = send(tensor)
                assert array.device == device and not array.committed, f"not free on {device}"
                assert array.tolist() == tensor.to(torch.complex64).tolist(), f"arrives as {array}"


def check_gradients(names) -> None:
    """A JAX function inside a PyTorch model acts as one of PyTorch's."""
    jnp, torch = names["jnp"], names["torch"]
    through = names["ThroughJax"].apply
    for dtype in (torch.float32, torch.bfloat16, torch.complex64):
        for name, of_jax, of_torch in (
            ("add", jnp.add, torch.add),
            ("multiply", jnp.multiply, torch.mul),
            ("exp", lambda a, b: jnp.exp(a @ b), lambda a, b: torch.exp(a @ b)),
            ("first", lambda a, b: a, lambda a, b: a + 0 * b),
            ("columns", lambda a, b: (a * b)[:, ::2], lambda a, b: (a * b)[:, ::2]),
        ):
            ours, theirs = (
                gradients(torch, call, function, dtype)
                for call, function in ((through, of_jax), (apply_to_copies, of_torch))
            )
            rtol = 0.05 if dtype is torch.bfloat16 else 1e-4
            assert torch.allclose(ours, theirs, rtol), f"{name} of {dtype}: the gradients differ."


def check_inputs(names) -> None:
    """What cannot cross gets one sentence."""
    jax, jnp, torch = (names[name] for name in ("jax", "jnp", "torch"))
    to_jax, to_torch = names["to_jax"], names["to_torch"]
    raw = torch.zeros(64, dtype=torch.uint8)
    with warnings.catch_warnings(action="ignore"):  # prototypes of PyTorch
        wrong = {
            "sparse": torch.eye(3).to_sparse(),
            "meta": torch.ones(3, device="meta"),
            "zero tensor": torch._efficientzerotensor((3,)),
            "nested": torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
            "quantised": torch.quantize_per_tensor(torch.ones(3), 1.0, 0, torch.quint8),
            "complex32": torch.ones(3, dtype=torch.complex32),
            "int4": raw.view(torch.int4),
            "float4": raw.view(torch.float4_e2m1fn_x2),
            "float64": torch.ones(3, dtype=torch.float64),
            "no int32": torch.tensor([0, 2**31]),
            "no uint32": torch.tensor([2**32], dtype=torch.uint64),
        }
    for name, tensor in wrong.items():
        said = refusal(name, lambda t=tensor: to_jax(t))
        assert name != "nested" or name in said, f"{name}: the error does not say so: {said}"
    mesh = jax.make_mesh((2,), ("i",), devices=jax.devices("cpu"))
    spread = jax.device_put(jnp.arange(4), jax.NamedSharding(mesh, jax.P("i")))
    deleted = jnp.ones(3)
    deleted.delete()
    for name, array in {
        "spread": spread,
        "deleted": deleted,
        "key": jax.random.key(0),
        "int4": jnp.ones(3, "int4"),
    }.items():
        said = refusal(name, lambda a=array: to_torch(a))
        assert name != "spread" or "addressable_shards" in said, f"it does not say how: {said}"
    for name, call in {
        "list": lambda: to_jax([1.0]),
        "NumPy": lambda: to_jax(np.ones(3)),
        "JAX": lambda: to_jax(jnp.ones(3)),
        "tensor": lambda: to_torch(torch.ones(3)),
        "tracer": lambda: jax.jit(to_torch)(jnp.ones(3)),
    }.items():
        said = refusal(name, call, TypeError)
        assert said.startswith(("to_jax ", "to_torch ")), f"{name}: {said}"


def apply_to_copies(function, *tensors):
    return function(*tensors).clone()


def gradients(torch, call, function, dtype):
    """Those of two inputs, which two passes add up. The result is written into."""
    data = torch.linspace(-0.3, 0.3, 128).reshape(2, 8, 8).to(dtype)
    if dtype.is_complex:
        data *= 2 + 1j
    leaves = [part.requires_grad_() for part in data]
    for _ in range(2):
        call(function, *leaves).mul_(2).abs().square().sum().backward()
    return torch.stack([leaf.grad for leaf in leaves])


def memory(torch, dtype: str, seed: int = 0, fits: bool = False):
    """BUFFER elements of any bits, as a tensor. Where it `fits`, 32 bits hold those of 64."""
    held = getattr(torch, dtype)
    if fits and dtype in ("int64", "uint64"):
        return memory(torch, WIDE[dtype], seed).to(held)
    below = 2 if dtype == "bool" else 256
    rng, size = torch.Generator().manual_seed(seed), (BUFFER * held.itemsize,)
    return torch.randint(below, size, generator=rng, dtype=torch.uint8).view(held)


def flagged(torch, tensor, dtype: str, flags: set):
    """The tensor with those of the lazy bits that its dtype can have."""
    if "conjugate" in flags:
        tensor = tensor.conj()
    if "negative" in flags and NEGATED.match(dtype):
        tensor = torch._neg_view(tensor)
    if "grad" in flags and (tensor.is_complex() or tensor.is_floating_point()):
        tensor = tensor.detach().requires_grad_()
    return tensor


def bytes_of(torch, tensor) -> bytes:
    alone = tensor.clone(memory_format=torch.contiguous_format)
    return alone.reshape(-1).view(torch.uint8).numpy().tobytes()


@tried(
    dtype=st.sampled_from(DTYPES),
    view=views(),
    flags=FLAGS,
    seed=st.integers(0, 100),
    x64=st.booleans(),
    fits=st.booleans(),
)
def check_to_jax(names, dtype, view, flags, seed, x64, fits) -> None:
    """The values are right, a copy has a reason, and `shared` is true."""
    jax, torch = names["jax"], names["torch"]
    tensor = memory(torch, dtype, seed, fits).as_strided(*view)
    tensor = flagged(torch, tensor, dtype, flags)
    values, arrives = tensor.detach().resolve_conj().resolve_neg(), WIDE.get(dtype, dtype)
    narrowed = not x64 and arrives != dtype
    expected = values.to(getattr(torch, arrives)) if narrowed else values
    same = bytes_of(torch, expected.to(values.dtype)) == bytes_of(torch, values)
    with jax.enable_x64(x64):
        if narrowed and ("int" not in dtype or not same):
            refusal(dtype, lambda: names["to_jax"](tensor))
            return
        array, shared = names["to_jax"](tensor)
        array.block_until_ready()
    assert array.dtype.name == (arrives if narrowed else dtype), f"arrives as {array.dtype}."
    assert array.shape == expected.shape, f"arrives as {array.shape}."
    assert np.asarray(array).tobytes() == bytes_of(torch, expected), "wrong values."
    same = array.size > 0 and array.unsafe_buffer_pointer() == tensor.data_ptr()
    assert shared is same, f"{shared=}, and the memory is {'the same' if same else 'another'}."
    lazy, whole = tensor.is_conj() or tensor.is_neg(), torch.arange(BUFFER).as_strided(*view)
    reason = lazy or narrowed or not compact(whole) or tensor.data_ptr() % 64
    assert shared is not bool(reason), f"{'shares' if shared else 'an unexplained copy'}."
    if not shared:
        before = np.asarray(array).tobytes()
        if tensor.untyped_storage().nbytes():
            tensor.untyped_storage().fill_(0)
        assert np.asarray(array).tobytes() == before, "a later write changes the array."


@tried(
    dtype=st.sampled_from(DTYPES + OF_JAX_ONLY),
    shape=st.lists(st.integers(0, 5), max_size=4),
    transposed=st.booleans(),
    copy=st.booleans(),
    x64=st.booleans(),
)
def check_to_torch(names, dtype, shape, transposed, copy, x64) -> None:
    """The values are right, a copy is one, and `shared` is true."""
    jax, jnp, torch = (names[name] for name in ("jax", "jnp", "torch"))
    hypothesis.assume(x64 or dtype not in WIDE)
    with jax.enable_x64(x64):
        if dtype in OF_JAX_ONLY:
            array = jnp.ones(shape, dtype)
            refusal(dtype, lambda: names["to_torch"](array, copy))
            return
        size = int(np.prod(shape))
        given = memory(torch, dtype)[:size].reshape(shape[::-1] if transposed else shape)
        if transposed:  # JAX holds it column by column
            given = given.permute(tuple(reversed(range(len(shape)))))
        expected, (array, _) = bytes_of(torch, given), names["to_jax"](given)
        array = array if transposed else jnp.copy(array)  # in memory of JAX's own
        tensor, shared = names["to_torch"](array, copy)
    assert tensor.dtype == getattr(torch, dtype), f"arrives as {tensor.dtype}."
    assert tuple(tensor.shape) == array.shape, f"arrives as {tuple(tensor.shape)}."
    assert bytes_of(torch, tensor) == expected, "wrong values."
    same = size > 0 and tensor.data_ptr() == array.unsafe_buffer_pointer()
    assert shared is same, f"{shared=}, and the memory is {'the same' if same else 'another'}."
    assert shared is (size > 0 and not copy), f"{shared=}, and {copy=}"
    if copy and size:
        tensor.untyped_storage().fill_(1)
        assert np.asarray(array).tobytes() == expected, "a write changes the array."


BROKEN = [
    ("check_to_jax", ".resolve_neg())", ".resolve_neg().contiguous())", "an unexplained copy"),
    ("check_to_jax", "in_place and tensor.numel() > 0", "in_place", "shared=True, and the memory"),
    (
        "check_to_torch",
        "copy=copy or None",
        "copy=None",
        "shared=False, and the memory is the same",
    ),
    ("check_devices", "device_put(np.asarray(array))", "device_put(array)", "not free on"),
    ("check_gradients", "to_torch(result, copy=True)", "to_torch(result)", "gradients differ"),
    ("check_inputs", "if not torch.equal(", "if 0 and torch.equal(", "no int32: goes through"),
    ("check_inputs", "if (count := len(array.devices())) > 1:", "if False:", "does not say how"),
]
