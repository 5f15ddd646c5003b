"""What a reader copies from the first lesson, on arrays that it does not have."""

import collections
import tempfile

import feed_start_here as lesson
import grain
import jax
import numpy as np
import pandas as pd
import polars
from expecting import refusal, same
from flax import nnx
from hypothesis import strategies as st
from hypothesis_cases import tried
from torch.utils.data import DataLoader

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
        assert whole.steps_per_epoch == examples // together, "another number of steps in an epoch"
        lost = examples - whole.steps_per_epoch * together
        assert {one.dropped for one in (whole, *parts)} == {lost}, "dropped is another number"
        first = epoch * whole.steps_per_epoch
        steps = range(first, first + whole.steps_per_epoch)
        seen = [*whole.epoch(epoch)]
        assert all(same(whole[step], batch) for step, batch in zip(steps, seen, strict=True))
        rows = np.concatenate([batch["row"] for batch in seen])
        assert len(rows) == len(set(rows)) == whole.steps_per_epoch * together, (
            "rows twice in an epoch"
        )
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
        batches = lesson.Batches(array, 6)
        [column], found = batches.columns, batches[0]
        assert column.flags.c_contiguous, f"{kind}: not in one piece of memory"
        assert np.array_equal(found, plain[batches.rows(0)]), f"{kind}: other values"
        assert jax.device_put(found).dtype == found.dtype, f"{kind}: JAX changes the dtype"


def test_the_column_has_a_name():
    """A value that would change without an error is refused, and the message names its column."""
    row = np.arange(8)
    unix = 1.7e9 + 0.25 * row
    for said, column, words in (
        ("a list", [row, row], "'x' is a list"),
        ("text", np.array(["a"] * 8), "'x': expected an array of numbers, got ndarray of shape"),
        ("a number", np.float32(1), "'x': expected"),
        ("no value", None, "expected arrays of one length"),
        ("a mask", np.ma.masked_equal(row, 3), "'x' has a mask"),
        ("33 bits", row + 2**33, "'x': 8589934592 does not fit into int32"),
        ("the least integer", np.array([-(2**63)] * 8), "'x': -9223372036854775808"),
        ("times", unix, "'x': 1700000000.25 does not fit into float32"),
        ("an odd float", np.full(8, 2.0**24 + 1), "'x': 16777217.0"),
        ("NaN", np.where(row < 3, np.nan, row), "'x' has NaN or infinity in 3 of 8 rows"),
        (
            "NaN in a table",
            np.float32([[0, 0], [0, np.nan]] * 4),
            "'x' has NaN or infinity in 4 of 8 rows",
        ),
        ("nulls", pd.Series([1, None] * 4, dtype="Int64"), "'x'"),
        ("infinity", np.where(row < 1, np.inf, row), "'x' has NaN or infinity in 1 of 8 rows"),
        (
            "bfloat16",
            np.full(8, np.nan, jax.numpy.bfloat16),
            "'x' has NaN or infinity in 8 of 8 rows",
        ),
    ):
        arrays = {"x": column} if column is None else {"y": row, "x": column}
        message = refusal(said, lambda arrays=arrays: lesson.Batches(arrays, 2))
        assert words in message, f"{said}: {message}"
    assert "the array has NaN" in refusal("one array", lambda: lesson.Batches(unix * np.nan, 2))
    nested = {"a": (row, row + 2**33)}
    assert "'a.1'" in refusal("a pytree", lambda: lesson.Batches(nested, 2))
    assert "the array is a list" in refusal("images", lambda: lesson.Batches([unix] * 3, 2))
    for said, column in (
        ("whole numbers up to 2**24", row + 2.0**24 - 7),
        ("large numbers that float32 holds", 2.0 ** (row + 30)),
        ("seven digits", np.linspace(0, 1, 8)),
    ):
        [kept] = lesson.Batches({"x": column}, 2).columns
        assert np.allclose(kept, column, rtol=1e-7), said


def test_a_mapped_file_is_not_read():
    """Its NaN stays unseen, as the page says: a file larger than memory would be read whole."""
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/rows.npy", np.float32([1, np.nan]))
        mapped = np.load(f"{folder}/rows.npy", mmap_mode="r")
        batches = lesson.Batches(mapped, 2)
        assert np.isnan(batches[0]).sum() == 1 and np.shares_memory(batches.columns[0], mapped)


def test_loops():
    """`for batch in batches` is an error that says what to write; loaders take the object."""
    batches = lesson.Batches(numbered(10), 4)
    for call in (lambda: [*batches], lambda: next(iter(batches)), lambda: list(zip(batches))):
        assert "batches.epoch(0)" in refusal("a loop", call, TypeError)
    assert [same(one, batches[n]) for n, one in enumerate(batches.epoch(1), 2)] == [True, True]
    by_grain = grain.MapDataset.source(batches)[5:].to_iter_dataset()
    by_torch = DataLoader(batches, None, sampler=range(5, 7), collate_fn=lambda batch: batch)
    for stream in (by_grain, by_torch):
        for step, batch in zip((5, 6), stream, strict=False):
            assert same(batch, batches[step])


Pair = collections.namedtuple("Pair", "images labels")


def test_structures():
    """The batches have the structure of the arrays."""
    row = np.arange(6)
    for arrays in (row, (row, row), Pair(row, row), {"a": {"b": row}, "c": (row,)}):
        batch = lesson.Batches(arrays, 3)[1]
        assert type(batch) is type(arrays)
        assert jax.tree.structure(batch) == jax.tree.structure(arrays)


def test_refusals():
    """What JAX would change without an error, and what is no batch, is refused by a sentence."""
    good = np.arange(8)
    for said, arrays, more in (
        ("a list", {"x": [1, 2, 3]}, {}),
        ("objects", np.array([1, None]), {}),
        ("times", np.zeros(3, "M8[s]"), {}),
        (
            "whole numbers in a table of floats",
            pd.DataFrame({"x": [0.5], "id": [2**40 + 7]}),
            {"batch_size": 1},
        ),
        ("what becomes infinite", np.array([1e300, 0.5]), {}),
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
    found = lesson.accuracy(Noisy(), {"inputs": images, "labels": np.arange(60) % 3})
    assert found == 1, f"the dropout of training is at work: {found} of the rows are right"
    random = np.random.default_rng(0)
    for examples in (1, 9, 10, 11, 25):
        arrays = {
            "inputs": random.random((examples, 3)),
            "labels": random.integers(0, 3, examples),
        }
        right = (arrays["inputs"].argmax(axis=1) == arrays["labels"]).mean()
        found = lesson.accuracy(Scores(), arrays, batch_size=10)
        assert np.isclose(found, right), f"of {examples} rows {found} are right, not {right}"
        for said, labels in (
            ("a column of labels", arrays["labels"][:, None]),
            ("a label too few", arrays["labels"][1:]),
            ("labels of 33 bits", arrays["labels"] + 2**32),
            ("unknown labels", arrays["labels"] - 3),
            ("a class that the model does not have", arrays["labels"] + 3),
        ):
            others = arrays | {"labels": labels}
            refusal(said, lambda others=others: lesson.accuracy(Scores(), others))


def test_accuracy_of_numbers_that_are_not_finite():
    """argmax takes NaN for class 0, so such a model would score the share of that class."""
    arrays = {"inputs": np.ones((9, 3), np.float32), "labels": np.zeros(9, np.int32)}
    bad = nnx.Linear(3, 2, rngs=nnx.Rngs(0))
    assert lesson.accuracy(bad, arrays) in (0, 1)
    bad.bias[...] = np.full(2, np.nan)
    refusal("NaN", lambda: lesson.accuracy(bad, arrays), FloatingPointError)


def test_labels():
    """Labels that would train as other classes are refused, with the row of the first."""
    assert lesson.count_classes(np.array([0, 4, 2], np.uint8)) == 5
    for labels, words in (
        (np.array([0, 3, -1]), "got -1 in row 2"),
        (np.array([[0], [1]]), "(2, 1)"),
        (np.array([0.0, 1.0]), "float64"),
        (np.array(["cat", "dog"]), "<U3"),
        (np.array([True, False]), "bool"),
    ):
        message = refusal(words, lambda labels=labels: lesson.count_classes(labels))
        assert words in message, message


def test_a_model_of_any_images():
    """Sizes that 4 does not divide; the scores do not depend on the scale."""
    images = np.random.default_rng(0).random((6, 9, 5, 2), np.float32)
    models = [lesson.CNN((9, 5, 2), 7, largest, rngs=nnx.Rngs(0)) for largest in (1, 8)]
    scores, of_larger = models[0](images), models[1](8 * images)
    assert scores.shape == (6, 7) and np.allclose(scores, of_larger, atol=1e-5)


def test_tables():
    """The recipe of the page gives the same numbers for pandas, nullable pandas and Polars."""
    table = pd.DataFrame({"income": [1.0, np.nan, 3.0, 5.0], "visits": [1, 2, 3, 4]})
    table["plan"] = ["basic", "family", "unknown", "basic"]
    table["loyal"] = [True, False, True, True]
    table["age"] = pd.Series([20, None, 40, 50], dtype="Int64")
    encoder = lesson.table_encoder(["income", "visits", "loyal", "age"], ["plan"])
    expected = encoder.fit_transform(table)
    assert expected.shape == (4, 9) and np.isfinite(expected).all()
    frames = {
        "nullable": table.convert_dtypes(),
        "polars": polars.from_pandas(table),
        "polars with null": polars.from_pandas(table).with_columns(
            polars.col("income").fill_nan(None)
        ),
    }
    for said, frame in frames.items():
        assert np.array_equal(encoder.fit_transform(frame), expected), said
    new = table.assign(plan="never seen", income=None)
    assert lesson.Batches(encoder.transform(new), 4).columns[0].shape == (4, 9)
