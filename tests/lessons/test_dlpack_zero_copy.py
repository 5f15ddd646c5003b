"""The functions to copy of the lesson on DLPack, on tensors and arrays of many kinds.

What has to arrive are the bytes that PyTorch reads from the tensor.
"""

import contextlib
import re
import warnings
from unittest import mock

import feed_dlpack_zero_copy as lesson
import feed_dlpack_zero_copy_in_depth as depth
import hypothesis
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from expecting import Refused, refusal
from hypothesis import strategies as st
from hypothesis_cases import tried
from torch._subclasses.fake_tensor import FakeTensorMode

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


def memory(torch, dtype: str, seed: int = 0, fits: bool = False, pin: bool = False):
    """BUFFER elements of any bits, as a tensor. Where it `fits`, 32 bits hold those of 64."""
    held = getattr(torch, dtype)
    if fits and dtype in ("int64", "uint64"):
        wide = memory(torch, WIDE[dtype], seed).to(held)
        return wide.pin_memory() if pin else wide
    below = 2 if dtype == "bool" else 256
    rng, size = torch.Generator().manual_seed(seed), (BUFFER * held.itemsize,)
    raw = torch.randint(below, size, generator=rng, dtype=torch.uint8)
    return (raw.pin_memory() if pin else raw).view(held)


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


def as_pinned():
    """Where there is no GPU, an import arrives in the CPU's own memory of the kind pinned_host."""
    cpu = jax.local_devices(backend="cpu")[0]
    place = jax.sharding.SingleDeviceSharding(cpu, memory_kind="pinned_host")
    bare = jnp.from_dlpack

    def from_dlpack(tensor, copy=None):
        return jax.device_put(bare(tensor, copy=copy), place).block_until_ready()

    return mock.patch.object(jnp, "from_dlpack", from_dlpack)


@tried(
    dtype=st.sampled_from(DTYPES),
    view=views(),
    flags=FLAGS,
    seed=st.integers(0, 100),
    x64=st.booleans(),
    fits=st.booleans(),
    pinned=st.sampled_from([False, False, False, True]),
    to=st.sampled_from([None, None, 0, 1]),
)
def test_to_jax(dtype, view, flags, seed, x64, fits, pinned, to):
    """The values are right, a copy has a reason and is finished, or one sentence."""
    has_gpu = torch.cuda.is_available() and jax.default_backend() == "gpu"
    device = None if to is None else jax.local_devices(backend="cpu")[to]
    if to == 0 and has_gpu:
        device = jax.local_devices()[0]
    tensor = memory(torch, dtype, seed, fits, pinned and has_gpu).as_strided(*view)
    tensor = flagged(torch, tensor, dtype, flags)
    values, arrives = tensor.detach().resolve_conj().resolve_neg(), WIDE.get(dtype, dtype)
    narrowed = not x64 and arrives != dtype
    expected = values.to(getattr(torch, arrives)) if narrowed else values
    same = bytes_of(torch, expected.to(values.dtype)) == bytes_of(torch, values)
    emulated = as_pinned() if pinned and not has_gpu else contextlib.nullcontext()
    with jax.enable_x64(x64), emulated:
        if narrowed and ("int" not in dtype or not same):
            refusal(dtype, lambda: lesson.to_jax(tensor, device))
            return
        array = lesson.to_jax(tensor, device)
    assert array.is_ready(), "a copy is not done."
    assert array.dtype.name == (arrives if narrowed else dtype), f"arrives as {array.dtype}."
    assert array.shape == expected.shape, f"arrives as {array.shape}."
    assert np.asarray(array).tobytes() == bytes_of(torch, expected), "wrong values."
    if device is not None:
        kind = array.sharding.memory_kind
        usual = device.default_memory().kind
        assert array.device == device, f"arrives on {array.device}, not on {device}."
        assert kind == usual, f"arrives in {kind}, where no step takes it."
    shared = lesson.shares_memory(array, tensor)
    if not pinned and not (has_gpu and to == 0):
        lazy, whole = tensor.is_conj() or tensor.is_neg(), torch.arange(BUFFER).as_strided(*view)
        reason = lazy or narrowed or not compact(whole) or tensor.data_ptr() % 64 or to == 1
        assert shared is not bool(reason), f"{'shares' if shared else 'an unexplained copy'}."
    if not shared:
        before = np.asarray(array).tobytes()
        if tensor.untyped_storage().nbytes():
            tensor.untyped_storage().fill_(0)
        assert np.asarray(array).tobytes() == before, "a later write changes the array."


@contextlib.contextmanager
def slow_transfers(jax):
    """A transfer that has begun, and reads its source when somebody waits for it, or too late."""
    put = jax.device_put

    class Waiting:
        def __init__(self, source, place):
            self.arguments = source, place

        def block_until_ready(self):
            return put(*self.arguments).block_until_ready()

        def __getattr__(self, name):
            raise Refused("a transfer is not waited for.")

    with mock.patch.object(jax, "device_put", Waiting):
        yield


def test_transfers():
    """What `to_jax` returns has been waited for: its owner may write into the tensor at once."""
    other = jax.local_devices(backend="cpu")[1]
    with slow_transfers(jax):
        lesson.to_jax(torch.ones(3), other)
    for _ in range(20):
        tensor = torch.full((1_000_000,), 7.0)
        array = lesson.to_jax(tensor, other)
        tensor.zero_()
        assert (np.asarray(array) == 7).all(), "a later write changes the array."


def test_batches():
    """A batch of any structure arrives on the device, also from pinned memory: a step takes it."""
    batch = {
        "x": torch.arange(12.0).reshape(3, 4).T,
        "more": [torch.ones(2, 3).bfloat16(), (torch.ones(3).to(torch.float8_e5m2),)],
        "label": torch.arange(5),
        "grad": torch.ones(4, requires_grad=True),
        "conjugate": torch.ones(3, dtype=torch.complex64).conj(),
        "empty": torch.zeros(0, 2),
        "none": None,
    }
    step = jax.jit(lambda weight, batch: jax.tree.map(lambda array: array + weight, batch))
    for device in (None, *jax.local_devices(backend="cpu")):
        on = device or jax.local_devices()[0]
        for memory_kind in (contextlib.nullcontext(), as_pinned()):
            with memory_kind:
                arrays = lesson.on_device(batch, device)
            assert jax.tree.structure(arrays) == jax.tree.structure(batch), "another structure."
            for array, tensor in zip(jax.tree.leaves(arrays), jax.tree.leaves(batch), strict=True):
                assert array.device == on, f"arrives on {array.device}, not on {on}."
                assert array.tolist() == tensor.to(torch.complex64).tolist(), f"arrives as {array}"
            step(jax.device_put(jnp.int8(1), on), arrays)
    for wrong, kind, place in (
        ({"x": ["a", "b"]}, AttributeError, "in batch['x'][0]"),
        ({"x": np.ones(3)}, AttributeError, "in batch['x']"),
        ([batch, torch.tensor([2**40])], ValueError, "in batch[1]"),
    ):
        with pytest.raises(kind) as caught:
            lesson.on_device(wrong)
        assert caught.value.__notes__ == [place]


def test_models():
    """Parameters go to JAX and come back, tied ones once; buffers stay, and nothing is shared."""
    model = torch.nn.Sequential(
        torch.nn.Linear(3, 3), torch.nn.BatchNorm1d(3), torch.nn.Linear(3, 3)
    )
    model[2].weight = model[0].weight
    model(torch.randn(5, 3))
    cloned = {name: each.clone() for name, each in model.named_parameters()}
    arrays = lesson.on_device(cloned, jax.local_devices(backend="cpu")[0])
    changed = jax.tree.map(lambda array: array + 1, arrays)
    before = {name: each.clone() for name, each in model.state_dict().items()}
    model.load_state_dict(jax.tree.map(torch.from_dlpack, changed), strict=False)
    learnt = {"0.weight", "0.bias", "1.weight", "1.bias", "2.weight", "2.bias"}
    for name, value in model.state_dict().items():
        expected = before[name] + (name in learnt)
        assert torch.equal(value, expected), f"{name} is not what JAX has made."


def wrong_tensors():
    """By name, with the kind of the error and words of its message, of this page or the library."""
    raw = torch.zeros(64, dtype=torch.uint8)
    fake = FakeTensorMode().from_tensor(torch.ones(3))
    with warnings.catch_warnings(action="ignore"):  # prototypes of PyTorch
        nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
        quantised = torch.quantize_per_tensor(torch.ones(3), 1.0, 0, torch.quint8)
        complex32 = torch.ones(3, dtype=torch.complex32)
    return {
        "sparse": (torch.eye(3).to_sparse(), RuntimeError, "doesn't have storage"),
        "sparse labels": (torch.eye(3).int().to_sparse(), RuntimeError, "doesn't have storage"),
        "meta": (torch.ones(3, device="meta"), ValueError, "no memory"),
        "fake": (fake, ValueError, "no memory"),
        "zero tensor": (torch._efficientzerotensor((3,)), ValueError, "no memory"),
        "nested": (nested, RuntimeError, "NestedTensor"),
        "quantised": (quantised, BufferError, "not supported by dlpack"),
        "complex32": (complex32, jax.errors.JaxRuntimeError, "complex width: 32"),
        "int4": (raw.view(torch.int4), ValueError, "int8 of int4"),
        "float4": (raw.view(torch.float4_e2m1fn_x2), jax.errors.JaxRuntimeError, "lanes"),
        "float64": (torch.ones(3).double(), ValueError, "float32 of float64"),
        "complex128": (torch.ones(3).cdouble(), ValueError, "complex64 of complex128"),
        "no int32": (torch.tensor([0, 2**31]), ValueError, "32 bits do not hold"),
        "no uint32": (torch.tensor([2**32]).to(torch.uint64), ValueError, "32 bits do not hold"),
        "list": ([1.0], AttributeError, "list"),
        "NumPy": (np.ones(3), AttributeError, "numpy.ndarray"),
        "JAX": (jnp.ones(3), AttributeError, "ArrayImpl"),
    }


WRONG = wrong_tensors()


@pytest.mark.parametrize(("tensor", "kind", "words"), WRONG.values(), ids=WRONG)
def test_what_cannot_cross_raises(tensor, kind, words):
    with pytest.raises(kind, match=re.escape(words)):
        lesson.to_jax(tensor)


def test_a_view_shares_the_memory_that_it_lies_in():
    tensor = torch.zeros(64)
    inside = lesson.to_jax(tensor[16:])
    assert lesson.shares_memory(inside, tensor)
    assert not lesson.shares_memory(lesson.to_jax(tensor[1:]), tensor)
    assert not lesson.shares_memory(lesson.to_jax(tensor[:0]), tensor)
    tensor.fill_(7)
    assert (np.asarray(inside + 0) == 7).all()


def test_a_batch_goes_to_the_default_device():
    other = jax.local_devices(backend="cpu")[1]
    with jax.default_device(other):
        assert lesson.on_device([torch.ones(3)])[0].device == other


@pytest.mark.parametrize("device", ["cpu", 0])
def test_the_name_of_a_device_is_no_device(device):
    with pytest.raises((TypeError, ValueError, AttributeError)):
        lesson.to_jax(torch.ones(3), device)


def apply_to_copies(function, *tensors):
    return function(*tensors).clone()


def gradients(torch, call, dtype):
    """Those of two inputs, which two passes add up. The result is written into."""
    data = torch.linspace(-0.3, 0.3, 128).reshape(2, 8, 8).to(dtype)
    if dtype.is_complex:
        data *= 2 + 1j
    leaves = [part.requires_grad_() for part in data]
    for _ in range(2):
        call(*leaves).mul_(2).abs().square().sum().backward()
    return torch.stack([leaf.grad for leaf in leaves])


def test_gradients():
    """A JAX function inside a PyTorch model acts as one of PyTorch's, and is traced once."""
    wrap, traced = depth.jax_in_torch, []
    for dtype in (torch.float32, torch.bfloat16, torch.complex64):
        for name, of_jax, of_torch in (
            ("add", jnp.add, torch.add),
            ("multiply", jnp.multiply, torch.mul),
            ("exp", lambda a, b: jnp.exp(a @ b), lambda a, b: torch.exp(a @ b)),
            ("first", lambda a, b: a, lambda a, b: a + 0 * b),
            ("columns", lambda a, b: (a * b)[:, ::2], lambda a, b: (a * b)[:, ::2]),
        ):

            def counted(a, b, of_jax=of_jax):
                traced.append(a)
                return of_jax(a, b)

            for jitted in (True, False):
                traced.clear()
                with contextlib.nullcontext() if jitted else jax.disable_jit():
                    ours = gradients(torch, wrap(counted), dtype)
                assert len(traced) == 2 - jitted, f"{name} is traced {len(traced)} times."
                theirs = gradients(torch, lambda a, b, f=of_torch: f(a, b).clone(), dtype)
                rtol = 0.05 if dtype is torch.bfloat16 else 1e-4
                assert torch.allclose(ours, theirs, rtol), f"{name} of {dtype}: they differ."


def test_gradients_of_pytrees():
    """Dicts, tuples, integers in and out; unused results; what has no gradient gets none."""

    def function(params, rows, labels):
        scores = jnp.tanh(rows @ params["w"]) + params["b"]
        return {"chosen": scores[jnp.arange(3), labels], "best": scores.argmax(1)}, rows.sum()

    params = {"w": torch.ones(4, 2) / 3, "b": torch.zeros(2)}
    params = {name: value.requires_grad_() for name, value in params.items()}
    rows, labels = torch.linspace(-1, 1, 12).reshape(3, 4), torch.tensor([1, 0, 1])
    found, total = depth.jax_in_torch(function)(params, rows, labels)
    best = (torch.tanh(rows @ params["w"]) + params["b"]).argmax(1)
    assert found["best"].tolist() == best.tolist(), "a result is wrong."
    assert torch.allclose(total, rows.sum(), atol=1e-6), "a result is wrong."
    found["chosen"].square().sum().backward()  # `total` is not used
    ours = {name: value.grad.clone() for name, value in params.items()}
    for value in params.values():
        value.grad = None
    scores = torch.tanh(rows @ params["w"]) + params["b"]
    scores[torch.arange(3), labels].square().sum().backward()
    for name, value in params.items():
        assert torch.allclose(ours[name], value.grad, atol=1e-6), f"the gradients of {name} differ."
    weight, given = torch.zeros(3, requires_grad=True), torch.ones(3)
    for _ in range(2):  # in the second pass PyTorch adds to the gradient
        with jax.disable_jit():  # as in a debugger: then arrays may be the same
            depth.jax_in_torch(lambda array: array)(weight).backward(given)
    assert given.tolist() == [1, 1, 1], "the gradient that was given is written into."
