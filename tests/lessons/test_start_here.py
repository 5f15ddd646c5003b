"""What a reader copies from the first lesson, on arrays that it does not have."""

import functools
import tempfile
from pathlib import Path

import feed_start_here as lesson
import jax
import numpy as np
import optax
import pandas as pd
from expecting import refusal, same
from flax import nnx
from hypothesis import strategies as st
from hypothesis_cases import tried

SIZES = {
    "examples": st.integers(1, 200),
    "batch_size": st.integers(1, 20),
    "processes": st.integers(1, 4),
    "epoch": st.integers(0, 3),
    "seed": st.integers(0, 9),
}


def numbered(examples: int) -> dict[str, np.ndarray]:
    """Arrays in whose rows stands their number."""
    row = np.arange(examples, dtype=np.int32)
    return {"row": row, "image": row[:, None, None] + np.zeros((2, 3), np.int32)}


def test_epochs():
    """Each epoch is full batches of other rows each time, the same on any number of processes."""

    @tried(**SIZES)
    def check(examples, batch_size, processes, epoch, seed):
        arrays, together = numbered(examples), batch_size * processes
        if together > examples:
            with_too_many = {"batch_size": batch_size, "processes": processes}
            refusal("too few", lambda: lesson.Batches(arrays, **with_too_many))
            return
        whole = lesson.Batches(arrays, together, seed)
        parts = [lesson.Batches(arrays, batch_size, seed, p, processes) for p in range(processes)]
        assert whole.steps == examples // together, "another number of steps in an epoch"
        lost = examples - whole.steps * together
        assert {one.left_out for one in (whole, *parts)} == {lost}, "left_out is another number"
        steps = range(epoch * whole.steps, (epoch + 1) * whole.steps)
        seen = [whole[step] for step in steps]
        rows = np.concatenate([batch["row"] for batch in seen])
        assert len(rows) == len(set(rows)) == whole.steps * together, "rows twice in an epoch"
        for step, batch in zip(steps, seen, strict=True):
            split = [part[step] for part in parts]
            assert all(len(part["row"]) == batch_size for part in split), "not batch_size rows"
            joined = jax.tree.map(lambda *found: np.concatenate(found), *split)
            assert same(joined, batch), "processes differ"
            images = batch["row"][:, None, None] + np.zeros((2, 3))
            assert np.array_equal(batch["image"], images), "the columns are shuffled apart"

    check()


def test_orders():
    """The order follows from the seed and the epoch, and from nothing else."""
    orders = {
        (seed, epoch): tuple(lesson.Batches(numbered(50), 50, seed)[epoch]["row"])
        for seed in (0, 1)
        for epoch in (0, 1)
    }
    assert len(set(orders.values())) == 4, "two epochs or two seeds have the same order"
    again = lesson.Batches(numbered(50), 50, 1)
    back = [tuple(again[epoch]["row"]) for epoch in (1, 0, 1)]
    assert back == [orders[1, epoch] for epoch in (1, 0, 1)], "an epoch has two orders"


def test_layouts():
    """Whatever their layout in memory, arrays of numbers come as they are, in one piece."""
    plain = np.arange(24, dtype=np.float32).reshape(6, 4)
    for kind, array in {
        "Fortran": np.asfortranarray(plain),
        "a transposed view": np.ascontiguousarray(plain.T).T,
        "every second row": np.repeat(plain, 2, axis=0)[::2],
        "big-endian": plain.astype(">f4"),
        "64 bits": plain.astype(np.float64),
        "a table": pd.DataFrame(plain),
        "integers": plain.astype(np.int64),
        "bfloat16": plain.astype(jax.numpy.bfloat16),
    }.items():
        batches = lesson.Batches([array], 6)
        [column], [found] = batches.columns, batches[0]
        assert column.flags.c_contiguous, f"{kind}: not in one piece of memory"
        assert np.array_equal(found, plain[batches.rows(0)]), f"{kind}: other values"
        assert jax.device_put(found).dtype == found.dtype, f"{kind}: JAX changes the dtype"


def test_refusals():
    """What JAX would change without an error, and what is no batch, is refused by a sentence."""
    good = np.arange(8)
    for said, arrays, more in (
        ("a list", {"x": [1, 2, 3]}, {}),
        ("text", np.array(["a", "b"]), {}),
        ("objects", np.array([1, None]), {}),
        ("times", np.zeros(3, "M8[s]"), {}),
        (
            "whole numbers in a table of floats",
            pd.DataFrame({"x": [0.5], "id": [2**40 + 7]}),
            {"batch_size": 1},
        ),
        ("what becomes infinite", np.array([1e300, 0.5]), {}),
        ("a mask", np.ma.masked_equal(good, 3), {}),
        ("integers of 33 bits", good + 2**33, {}),
        ("unsigned integers of 33 bits", good.astype(np.uint64) + 2**33, {}),
        ("two lengths", (good, good[:-1]), {}),
        ("nothing", {}, {}),
        ("no batch", good, {"batch_size": 9}),
        ("no rows", good, {"batch_size": 0}),
        ("a process too many", good, {"process": 2, "processes": 2}),
        ("a process before the first", good, {"process": -1, "processes": 2}),
    ):
        options = {"batch_size": 2} | more
        refusal(said, lambda arrays=arrays, options=options: lesson.Batches(arrays, **options))
    batches = lesson.Batches(good, 2)
    refusal("a step before the first", lambda: batches[-1])
    refusal("half a step", lambda: batches[0.5], TypeError)
    for said, labels in (
        ("-1", np.array([0, -1])),
        ("a column", np.array([[0], [1]])),
        ("floats", np.array([0.0, 1.0])),
        ("text", np.array(["cat", "dog"])),
    ):
        refusal(f"labels: {said}", lambda labels=labels: lesson.count_classes(labels))
    assert lesson.count_classes(np.array([0, 4, 2], np.uint8)) == 5


class Noisy(nnx.Module):
    """A model that answers right, and while it is trained wrong nearly always."""

    def __init__(self):
        self.dropout = nnx.Dropout(0.99, rngs=nnx.Rngs(0))

    def __call__(self, images):
        return self.dropout(images)


class Scores(nnx.Module):
    """A model whose scores are the images themselves."""

    def __call__(self, images):
        return images


def test_accuracy():
    """Each row counts once, whatever is left for the last batch."""
    images = np.eye(3, dtype=np.float32)[np.arange(60) % 3]
    found = lesson.accuracy(Noisy(), {"image": images, "label": np.arange(60) % 3})
    assert found == 1, f"the dropout of training is at work: {found} of the rows are right"
    random = np.random.default_rng(0)
    for examples in (1, 9, 10, 11, 25):
        arrays = {
            "image": random.random((examples, 3)),
            "label": random.integers(0, 3, examples),
        }
        right = (arrays["image"].argmax(axis=1) == arrays["label"]).mean()
        found = lesson.accuracy(Scores(), arrays, batch_size=10)
        assert np.isclose(found, right), f"of {examples} rows {found} are right, not {right}"
        for said, labels in (
            ("a column of labels", arrays["label"][:, None]),
            ("a label too few", arrays["label"][1:]),
            ("labels of 33 bits", arrays["label"] + 2**32),
            ("unknown labels", arrays["label"] - 3),
        ):
            others = arrays | {"label": labels}
            refusal(said, lambda others=others: lesson.accuracy(Scores(), others))


def test_a_model_of_any_images():
    """It divides by the largest number, of either sign; black images are images, too."""
    images = np.random.default_rng(0).integers(-9, 5, (6, 9, 5, 2)).astype(np.float32)
    for scale, largest in ((1, 9), (-3, 27), (0, 1)):
        assert lesson.CNN(scale * images, 7, nnx.Rngs(0)).largest == largest
    one, other = (lesson.CNN(scale * images, 7, nnx.Rngs(0))(scale * images) for scale in (1, 8))
    assert np.allclose(one, other), "the scores depend on the scale of the images"


def test_training():
    """The loss of each step, by one optimizer, on the batches of these steps."""
    random = np.random.default_rng(0)
    arrays = {"image": random.random((40, 4, 4, 1), np.float32), "label": np.arange(40) % 3}
    batches = lesson.Batches(arrays, 8)

    def begun():
        model = lesson.CNN(arrays["image"], 3, nnx.Rngs(0))
        return model, nnx.Optimizer(model, optax.sgd(0.1), wrt=nnx.Param)

    model, optimizer = begun()
    expected = []
    for step in range(2, 9):
        loss, gradients = nnx.value_and_grad(lesson.cross_entropy)(model, batches[step])
        optimizer.update(model, gradients)
        expected.append(loss)
    other, its_optimizer = begun()
    losses = lesson.train(other, its_optimizer, batches, range(2, 9), lesson.cross_entropy)
    assert losses.shape == (7,) and np.allclose(losses, expected, atol=1e-5)
    for one, two in zip(*(jax.tree.leaves(nnx.state(m)) for m in (model, other)), strict=True):
        assert np.allclose(one, two, atol=1e-5)
    with tempfile.TemporaryDirectory() as folder:
        kept, its_optimizer = begun()
        lesson.train_for(folder, kept, its_optimizer, batches, 3, lesson.cross_entropy)
    plain, its_optimizer = begun()
    lesson.train(plain, its_optimizer, batches, range(3), lesson.cross_entropy)
    for one, two in zip(*(jax.tree.leaves(nnx.state(m)) for m in (kept, plain)), strict=True):
        assert np.allclose(one, two, atol=1e-5), "another step is the first"


def kept(folder) -> list[int]:
    """The steps of the checkpoints in a folder."""
    return sorted(int(path.name) for path in Path(folder).iterdir())


def test_going_on():
    """A run that goes on ends with the parameters of one that was never stopped."""
    random = np.random.default_rng(0)
    arrays = {
        "image": random.integers(0, 255, (40, 9, 5, 3), dtype=np.uint8),
        "label": np.arange(40) % 7,
    }
    batches = lesson.Batches(arrays, 16)

    def train_for(folder, batches, steps):
        model = lesson.CNN(arrays["image"], 7, nnx.Rngs(0))
        optimizer = nnx.Optimizer(model, optax.adam(3e-3), wrt=nnx.Param)
        lesson.train_for(folder, model, optimizer, batches, steps, lesson.cross_entropy)
        return model

    with tempfile.TemporaryDirectory() as folder:
        whole = train_for(f"{folder}/whole", batches, 23)
        train_for(f"{folder}/parts", batches, 13)
        parts = train_for(f"{folder}/parts", batches, 23)
        assert kept(f"{folder}/parts") == [10, 20], "other checkpoints are kept"
        for one, other in zip(
            jax.tree.leaves(nnx.state(whole)), jax.tree.leaves(nnx.state(parts)), strict=True
        ):
            assert np.allclose(one, other, atol=1e-5), "the run that went on ends elsewhere"
        train_for(f"{folder}/parts", batches, 20)  # its newest checkpoint: nothing is left to do
        again = train_for(f"{folder}/parts", batches, 23)
        for one, other in zip(
            jax.tree.leaves(nnx.state(parts)), jax.tree.leaves(nnx.state(again)), strict=True
        ):
            assert np.array_equal(one, other), "a run that is over ends elsewhere"
        last = {name: np.append(array[:-1], array[:1], axis=0) for name, array in arrays.items()}
        for said, others, steps in (
            ("another batch size", lesson.Batches(arrays, 20), 30),
            ("another seed", lesson.Batches(arrays, 16, seed=1), 30),
            ("one other row", lesson.Batches(last, 16), 30),
            ("twice as many rows", lesson.Batches(arrays, 16, processes=2), 30),
            ("an earlier step", batches, 9),
        ):
            call = functools.partial(train_for, f"{folder}/parts", others, steps)
            refusal(said, call)
        train_for(f"{folder}/parts", lesson.Batches(arrays, 8, processes=2), 31)
        assert kept(f"{folder}/parts") == [20, 30], "other checkpoints are kept"
