"""The functions to copy of the lesson on DLPack, on tensors and arrays of many kinds.

What has to arrive is computed by NumPy, from the numbers of a buffer and a view of its indices.
"""

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


FLAGS = st.sets(st.sampled_from(["grad", "conjugate", "negative", "read-only"]))


def compact(indices: np.ndarray) -> bool:
    """Whether the view takes each element of one piece of memory once."""
    return indices.size > 0 and np.array_equal(
        np.sort(indices, axis=None), np.arange(indices.min(), indices.min() + indices.size)
    )


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


def numpy_dtype(name: str) -> np.dtype:
    import ml_dtypes

    return np.dtype(getattr(ml_dtypes, name, name))


def numbers(dtype: str, seed: int, fits: bool) -> np.ndarray:
    """The buffer: all bits are used, but no NaN, of which there are many with one name."""
    rng = np.random.default_rng(seed)
    held = numpy_dtype(dtype)
    if dtype == "bool":
        return rng.integers(0, 2, BUFFER).astype(bool)
    if dtype in ("int64", "uint64") and fits:
        narrow = np.iinfo(WIDE[dtype])
        return rng.integers(narrow.min, narrow.max, BUFFER, endpoint=True, dtype=held)
    if held.kind in "iu":
        return rng.integers(0, 256, BUFFER * held.itemsize, np.uint8).view(held)
    values = rng.normal(size=BUFFER).astype(np.float32)
    if held.kind == "c":
        return (values + 1j * rng.normal(size=BUFFER)).astype(held)
    return (np.exp2(values.round()) if dtype == "float8_e8m0fnu" else values).astype(held)


def flagged(torch, tensor, expected: np.ndarray, flags: set):
    """The tensor with its lazy bits, and the numbers that they stand for."""
    if "conjugate" in flags and tensor.is_complex():
        tensor, expected = tensor.conj(), expected.conj()
    signed = tensor.is_complex() or (tensor.dtype.is_signed and tensor.dtype != torch.bool)
    short = tensor.element_size() == 1 and tensor.dtype != torch.int8
    if "negative" in flags and signed and not short:
        tensor, expected = torch._neg_view(tensor), -expected
    if "grad" in flags and (tensor.is_complex() or tensor.is_floating_point()):
        tensor = tensor.detach().requires_grad_()
    return tensor, expected


def aligned(array: np.ndarray) -> np.ndarray:
    """A copy whose address is a multiple of 64."""
    raw = np.empty(array.nbytes + 64, np.uint8)
    start = -raw.ctypes.data % 64
    copy = raw[start : start + array.nbytes].view(array.dtype)
    copy[...] = array
    return copy


def on_torch(torch, buffer: np.ndarray, dtype: str, flags: set):
    """The buffer as a tensor of the memory that the flags name."""
    raw = aligned(buffer.view(np.uint8))
    raw.flags.writeable = "read-only" not in flags
    with warnings.catch_warnings(action="ignore"):  # of a read-only array
        tensor = torch.from_numpy(raw)
    return tensor.view(getattr(torch, dtype))


@tried(
    dtype=st.sampled_from(DTYPES),
    view=views(),
    flags=FLAGS,
    seed=st.integers(0, 100),
    x64=st.booleans(),
    fits=st.booleans(),
)
def check_to_jax(names, x64, **given) -> None:
    """The values are right, a copy has a reason, and `shared` is true."""
    with names["jax"].enable_x64(x64):
        tensor_arrives(names, x64=x64, **given)


def tensor_arrives(names, dtype, view, flags, seed, x64, fits) -> None:
    torch = names["torch"]
    buffer = numbers(dtype, seed, fits)
    shape, strides, offset = view
    indices = np.lib.stride_tricks.as_strided(
        np.arange(BUFFER)[offset:], shape, [8 * stride for stride in strides]
    )
    tensor = on_torch(torch, buffer, dtype, flags).as_strided(shape, strides, offset)
    tensor, expected = flagged(torch, tensor, buffer[indices], flags)
    name = str(tensor.dtype).removeprefix("torch.")
    narrowed = not x64 and name in WIDE
    lossy = narrowed and (
        name in ("float64", "complex128")
        or not np.array_equal(expected.astype(WIDE[name]).astype(name), expected)
    )
    if lossy:
        refusal(name, lambda: names["to_jax"](tensor))
        return
    array, shared = names["to_jax"](tensor)
    array.block_until_ready()
    assert array.dtype.name == (WIDE[name] if narrowed else name), f"arrives as {array.dtype}."
    assert array.shape == expected.shape, f"arrives as {array.shape}."
    assert np.asarray(array).tobytes() == expected.astype(array.dtype).tobytes(), "wrong values."
    same = array.size > 0 and array.unsafe_buffer_pointer() == tensor.data_ptr()
    assert shared is same, f"{shared=}, and the memory is {'the same' if same else 'another'}."
    lazy = tensor.is_conj() or tensor.is_neg()
    reason = lazy or narrowed or not compact(indices) or tensor.data_ptr() % 64
    assert shared is not bool(reason), f"{'shares' if shared else 'an unexplained copy'}."
    if not shared and "read-only" not in flags:
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
    hypothesis.assume(x64 or dtype not in WIDE)
    with names["jax"].enable_x64(x64):
        array_arrives(names, dtype, shape, transposed, copy)


def array_arrives(names, dtype, shape, transposed, copy) -> None:
    jax, jnp, torch = (names[name] for name in ("jax", "jnp", "torch"))
    size = int(np.prod(shape))
    if dtype in OF_JAX_ONLY:
        array = jnp.ones(shape, dtype)
        refusal(dtype, lambda: names["to_torch"](array, copy))
        return
    buffer = numbers(dtype, 0, True)
    expected = buffer[:size].reshape(shape)
    if transposed:  # JAX holds it column by column
        expected = buffer[:size].reshape(shape[::-1]).T
        tensor = on_torch(torch, buffer, dtype, set())[:size].reshape(shape[::-1])
        array, _ = names["to_jax"](tensor.permute(tuple(reversed(range(len(shape))))))
    else:
        array = jax.device_put(expected.copy(), jax.devices("cpu")[0])
    tensor, shared = names["to_torch"](array, copy)
    assert tensor.dtype == getattr(torch, dtype), f"arrives as {tensor.dtype}."
    assert tuple(tensor.shape) == array.shape, f"arrives as {tuple(tensor.shape)}."
    arrived = tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
    assert arrived == expected.tobytes(), "wrong values."
    same = size > 0 and tensor.data_ptr() == array.unsafe_buffer_pointer()
    assert shared is same, f"{shared=}, and the memory is {'the same' if same else 'another'}."
    assert shared is (size > 0 and not copy), f"{shared=}, and {copy=}"
    if copy and size:
        tensor.untyped_storage().fill_(1)
        assert np.asarray(array).tobytes() == expected.tobytes(), "a write changes the array."


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
