"""What readers copy from the lesson on tf.data and its depth, on data that they do not have.

It runs in a process of its own: TensorFlow and PyTorch do not share one in every order.
"""

import collections
import dataclasses
import itertools

import feed_tf_data_to_numpy as lesson
import feed_tf_data_to_numpy_in_depth as depth
import hypothesis
import hypothesis_cases
import numpy as np
import pytest
import tensorflow as tf
from expecting import refusal, refuses_lost_arrays, same
from hypothesis import strategies as st
from hypothesis_cases import tried
from PIL import Image

from benchmarks import contract
from benchmarks.contract import Refused

Pair = collections.namedtuple("Pair", "x y")
INTEGERS = ["uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"]
OTHERS = ["bool", "float16", "bfloat16", "float32", "float64", "complex64", "complex128"]
REFUSED = ["string", "ragged", "sparse", "window", "int64+", "uint64+"]
SHAPES = [(), (0,), (3,), (2, 0), (2, 3)]


@dataclasses.dataclass(frozen=True)
class Leaf:
    """One object to JAX: no tuple of three."""

    kind: str
    shape: tuple[int, ...]
    value: int


KINDS = st.sampled_from(INTEGERS + OTHERS)
LEAVES = st.builds(Leaf, KINDS, st.sampled_from(SHAPES), st.integers(0, 100))
WRONG = st.builds(Leaf, st.sampled_from(REFUSED), st.just((3,)), st.just(1))


def trees(leaves: st.SearchStrategy) -> st.SearchStrategy:
    """Structures of leaves, None and ()."""
    names = st.sampled_from(["a", "b", "images", "label", "x y"])
    return st.recursive(
        leaves | st.none() | st.just(()),
        lambda inner: (
            st.dictionaries(names, inner, min_size=1, max_size=3)
            | st.tuples(inner, inner)
            | st.builds(Pair, inner, inner)
            | st.dictionaries(names, inner, min_size=1).map(collections.OrderedDict)
        ),
        max_leaves=5,
    )


def numbered(count: int) -> tf.data.Dataset:
    """Dicts whose columns are not in the order of their names."""
    rows = np.arange(count)
    return tf.data.Dataset.from_tensor_slices({"row": rows, "image": rows[:, None] * [2, 3]})


@tried(4, examples=st.integers(1, 60), batch_size=st.integers(1, 9), epoch=st.integers(0, 3))
def test_batches_from(examples: int, batch_size: int, epoch: int):
    """Each row once an epoch, whole, in an order of its own; the same from any step on."""
    steps, dataset = examples // batch_size, numbered(examples)
    if not steps:
        said = refusal("too few", lambda: next(lesson.batches_from(dataset, batch_size)))
        assert f"{examples} examples do not fill a batch of {batch_size}" in said
        return
    run = [*itertools.islice(lesson.batches_from(dataset, batch_size), (epoch + 2) * steps)]
    assert all(list(batch) == ["row", "image"] for batch in run), "other columns"
    assert all(same(batch["image"], batch["row"][:, None] * [2, 3]) for batch in run), "mixed up"
    for first in range(0, len(run), steps):
        rows = np.concatenate([batch["row"] for batch in run[first : first + steps]])
        assert len({*rows.tolist()}) == len(rows) == steps * batch_size, "rows twice"
    for step in {epoch * steps, epoch * steps + steps // 2, (epoch + 1) * steps - 1}:
        resumed = itertools.islice(lesson.batches_from(dataset, batch_size, step), len(run) - step)
        assert same([*resumed], run[step:]), f"other batches from {step=}"


def test_batches_from_draws_a_new_order_in_each_epoch():
    run = itertools.islice(lesson.batches_from(numbered(60), 60), 4)
    assert len({tuple(batch["row"]) for batch in run}) == 4


@pytest.mark.parametrize(
    "dataset",
    [numbered(9).repeat(), numbered(9).filter(lambda example: True)],
    ids=["endless", "unknown"],
)
def test_batches_from_needs_a_known_length(dataset):
    said = refusal("no length", lambda: next(lesson.batches_from(dataset, 2)))
    assert said.startswith("the length is unknown")


@pytest.mark.parametrize("chain", ["shuffle", "cache, shuffle", "map, shuffle", "filter, shuffle"])
@pytest.mark.parametrize("steps", [0, 5, 23, 40])
def test_a_saved_iterator_resumes_also_in_later_epochs(tmp_path, chain, steps):
    """What the lesson says of its own chain, on sizes that do not divide."""

    def iterator():
        examples = numbered(61)
        if "cache" in chain:
            examples = examples.cache()
        if "map" in chain:
            examples = examples.map(dict, num_parallel_calls=tf.data.AUTOTUNE)
        if "filter" in chain:
            examples = examples.filter(lambda example: example["row"] % 7 != 0)
        shuffled = examples.shuffle(examples.cardinality(), seed=0).repeat()
        return shuffled.batch(6, drop_remainder=True).prefetch(2).as_numpy_iterator()

    whole = [*itertools.islice(iterator(), 90)]
    stopped, resumed = iterator(), iterator()
    [*itertools.islice(stopped, steps)]
    place = tf.train.Checkpoint(iterator=stopped).write(tmp_path / "data")
    tf.train.Checkpoint(iterator=resumed).read(place).assert_consumed()
    assert same([*itertools.islice(resumed, 90 - steps)], whole[steps:])


@pytest.mark.parametrize(
    "value",
    [
        2**31,
        -(2**31) - 1,
        np.uint64(2**32),
        np.float64(2**24 + 1),
        1.7e9 + 0.25,
        -1e-50,
        complex(2e9 + 1),
    ],
)
def test_check_held_names_a_number_that_jax_would_change(value):
    batch = {"rest": (np.arange(3), {"id": np.array([value])})}
    said = refusal(value, lambda: lesson.check_held(batch))
    assert said.startswith("batch['rest'][1]['id']: ") and "does not fit into" in said


@pytest.mark.parametrize("column", [["a", "b"], [b"a"], [[1, 2], [3]]])
def test_check_held_names_a_column_without_numbers(column):
    texts = tf.ragged.constant(column).numpy() if isinstance(column[0], list) else np.array(column)
    said = refusal("objects", lambda: lesson.check_held({"text": texts}))
    assert said.startswith("batch['text']: expected numbers, got ")


def test_check_held_passes_what_jax_holds():
    held = {
        "int": np.array([2**31 - 1, -(2**31)]),
        "unsigned": np.array([2**32 - 1], np.uint64),
        "float": np.array([np.nan, np.inf, 0.1, 2.0**30]),
        "rest": [np.ones(2, bool), np.zeros((0, 2)), np.int64(7), np.uint8(255)],
        "complex": np.array([0.1 + 0.2j]),
        "half": tf.cast([0.1], "bfloat16").numpy(),
        "none": None,
    }
    lesson.check_held(held)


@pytest.mark.parametrize("mode", ["RGB", "L", "CMYK"])
def test_decode_makes_a_square_of_any_photograph(tmp_path, mode):
    file = str(tmp_path / "photograph.jpg")
    Image.new("RGB", (61, 40), (250, 250, 250)).convert(mode).save(file)
    files = tf.data.Dataset.from_tensors((file, 3)).map(lesson.decode)
    [(image, label)] = files.as_numpy_iterator()
    assert image.shape == (32, 32, 3) and image.dtype == np.uint8 and label == 3
    assert image.min() > 240, "not the colours of the photograph"
    image, _ = lesson.decode(file, 0, size=8)
    assert image.shape == (8, 8, 3)


def test_fixed_lengths():
    """Lengths that the dataset knows beforehand are padded to the bound too."""
    for count, length in ((10, 100), (10, 128), (3, 0)):
        rows = np.arange(1, count * length + 1).reshape(count, length)
        sequences = tf.data.Dataset.from_tensor_slices(rows)
        batches = list(depth.to_numpy(depth.token_batches(sequences, [128], 1024)))
        shapes = {batch["tokens"].shape for batch in batches}
        assert shapes == {(8, 128)}, f"fixed {length=}: batches of {shapes}."
        arrived = np.concatenate([batch["tokens"][batch["mask"]] for batch in batches])
        assert np.array_equal(arrived, rows.ravel()), f"fixed {length=}: tokens are lost."


def test_batches():
    """Each example once an epoch, in an order of its own, from any step; refused when called."""
    dataset, batches = tf.data.Dataset, depth.batches
    numbers = dataset.range(50).map(lambda n: {"row": n, "twice": 2 * n})
    for kind, examples in {
        "known length": numbers,
        "unknown length": numbers.filter(lambda x: x["row"] >= 0),
    }.items():
        for buffer in (None, 7):
            stream = batches(examples, 8, seed=2, buffer=buffer)
            run = [*itertools.islice(stream, 18)]
            rows = np.reshape([batch["row"] for batch in run], (3, 48))
            assert all(len(set(epoch)) == 48 for epoch in rows.tolist()), f"{kind}: rows twice"
            assert len({tuple(epoch) for epoch in rows}) == 3, f"{kind}: one order"
            assert all(np.array_equal(2 * b["row"], b["twice"]) for b in run), "mixed up"
            for start in (1, 5, 6, 13):
                again = batches(examples, 8, seed=2, start=start, buffer=buffer)
                for found, right in zip(again, run[start:], strict=False):
                    assert np.array_equal(found["row"], right["row"]), f"another start: {start}"
    reads = []

    def shrinking():
        reads.append(len(reads))
        yield from range(15 if reads[1:] else 20)

    spec = tf.TensorSpec((), "int32")
    changed = dataset.from_generator(shrinking, output_signature=spec)
    try:
        list(itertools.islice(batches(changed, 5), 9))
    except tf.errors.OpError as error:
        assert "expected to contain 4 elements" in str(error), f"another cause: {error}"
    else:
        raise Refused("a shorter epoch goes through.")
    for says, wrong in {
        "repeat": dataset.range(3).repeat(),
        "no dense tensor": dataset.from_tensor_slices(["a", "b", "c"]),
        "0 examples": dataset.range(0),
    }.items():
        said = refusal(says, lambda wrong=wrong: batches(wrong, 2))
        assert says in said, f"the cause is not said: {said}"
    for batch_size in (0, -1, 51):
        refusal(f"{batch_size=}", lambda size=batch_size: batches(numbers, size))
    refusal("start=-1", lambda: batches(numbers, 8, start=-1))


def test_arrays_that_would_be_lost():
    refuses_lost_arrays(depth.dataset_of)


def test_inputs():
    """Bounds of any kind are taken, and bad arguments get one ValueError."""
    dataset = tf.data.Dataset
    token_batches, stream_of = depth.token_batches, depth.stream_of
    ragged = tf.ragged.constant([[1], [2, 3], []], tf.int32)
    rows = dataset.from_tensor_slices(ragged)
    for bounds in ([4, 2], (4.0, 2.0), np.array([4, 2]), {2, 4}):
        batches = [*token_batches(rows, bounds, 8).as_numpy_iterator()]
        shapes = [batch["tokens"].shape for batch in batches]
        assert shapes == [(4, 2)], f"{bounds!r} gives batches of {shapes}."
    records = {
        "dict": rows.map(lambda row: {"tokens": row}),
        "pair": rows.map(lambda row: (row, row)),
        "sparse": dataset.from_tensors(tf.sparse.eye(2)),
        "scalar": dataset.range(3),
        "matrix": dataset.from_tensors(tf.zeros((2, 2))),
    }
    for name, elements in records.items():
        refusal(name, lambda e=elements: token_batches(e, [4], 8))
    given = {"count": 10, "read": lambda epoch, rows: rows, "batch_size": 4, "seed": 0}
    for name, values in {
        "start": (-1,),
        "batch_size": (0, -2, 11),
        "count": (-3,),
        "processes": (0, -1, 3),  # 3 processes would need 12 rows
        "process": (1, -1),
    }.items():
        for value in values:
            wrong = given | {name: value}
            refusal(f"{name}={value}", lambda w=wrong: stream_of(**w))


# Structures ----------------------------------------------------------------------------------


def tensor(leaf: Leaf):
    """What tf.data gets."""
    special = {
        "string": lambda: tf.constant(["a", "b"]),
        "ragged": lambda: tf.ragged.constant([[1, 2], [3]]),
        "sparse": lambda: tf.sparse.eye(2),
        "window": lambda: tf.data.Dataset.range(3),
        "int64+": lambda: tf.constant([1, -(2**31) - 1], tf.int64),
        "uint64+": lambda: tf.constant([1, 2**32], tf.uint64),
    }
    if leaf.kind in special:
        return special[leaf.kind]()
    return tf.cast(array(leaf) % (2 if leaf.kind == "bool" else 128), leaf.kind)


def array(leaf: Leaf) -> np.ndarray:
    """The values, as int64."""
    return leaf.value + np.arange(np.prod(leaf.shape, dtype=int)).reshape(leaf.shape)


@tried(tree=trees(LEAVES), elements=st.integers(0, 3))
def test_whole(tree, elements: int):
    """Each structure arrives as it is."""
    import jax

    hypothesis.assume(jax.tree.leaves(tree))
    given = jax.tree.map(tensor, tree)
    dataset = tf.data.Dataset.from_tensors(given).repeat(elements)
    arrived = list(depth.to_numpy(dataset))
    assert len(arrived) == elements, f"{len(arrived)} elements of {elements}."
    expected = jax.tree.map(lambda leaf: np.asarray(tensor(leaf).numpy()), tree)
    for element in arrived:
        found = jax.tree.structure(element)
        assert found == jax.tree.structure(expected), f"arrives as {found}."
        for leaf, right in zip(jax.tree.leaves(element), jax.tree.leaves(expected), strict=True):
            held = jax.device_put(leaf)
            array = type(leaf) is np.ndarray and leaf.dtype == held.dtype
            assert array, f"a leaf is {leaf!r}, and JAX holds {held.dtype}."
            assert np.array_equal(leaf, right), f"{right!r} arrives as {leaf!r}."
            assert np.array_equal(np.asarray(held), leaf), f"JAX makes {held!r} of {leaf!r}."
            same = right.dtype.name[-2:] in ("64", "28") or leaf.dtype == right.dtype
            assert same, f"{right.dtype} arrives as {leaf.dtype}."


@tried(tree=trees(LEAVES | WRONG))
def test_refused(tree):
    """A structure that JAX cannot hold is refused by a leaf's name."""
    import jax

    hypothesis.assume(any(leaf.kind in REFUSED for leaf in jax.tree.leaves(tree)))
    given = jax.tree.map(tensor, tree)
    dataset = tf.data.Dataset.from_tensors(given)
    paths = {
        "element" + jax.tree_util.keystr(path)
        for path, leaf in jax.tree_util.tree_leaves_with_path(tree)
        if leaf.kind in REFUSED
    }
    message = refusal(tree, lambda: next(depth.to_numpy(dataset)))
    named = message.startswith(tuple(path + end for path in paths for end in " :"))
    assert named, f"names none of {sorted(paths)}: {message}"


# Tokens --------------------------------------------------------------------------------------


@tried(
    4,
    lengths=st.lists(st.integers(0, 40), max_size=40),
    bounds=st.lists(st.integers(1, 40), min_size=1, max_size=4),
    positions=st.integers(1, 200),
    dtype=st.sampled_from(["int32", "int64", "uint16"]),
)
def test_tokens(lengths, bounds, positions, dtype):
    """Each sequence comes once, with the right mask, in few shapes."""
    # All differ, and the first token is the zero with which batches are padded.
    flat = np.arange(sum(lengths)).astype(dtype)
    rows = np.split(flat, np.cumsum(lengths))[:-1]
    borders = tf.constant([0, *np.cumsum(lengths)], tf.int64)
    tokens = tf.constant(flat)
    sequences = tf.data.Dataset.range(len(lengths)).map(
        lambda i: tokens[borders[i] : borders[i + 1]]
    )
    try:
        batches = list(depth.to_numpy(depth.token_batches(sequences, bounds, positions)))
    except ValueError:
        if lengths and positions >= max(bounds):
            raise Refused("raises ValueError.") from None
        return
    except tf.errors.InvalidArgumentError as error:
        if max(lengths) > max(bounds) and f"longer than {max(bounds)} tokens" in str(error):
            return
        raise Refused(f"raises {error}.") from error
    longest = max(lengths, default=0)
    assert longest <= max(bounds) <= positions, "goes through."
    arrived = []
    for batch in batches:
        count, width = batch["tokens"].shape
        assert width in bounds and count == positions // width, f"a batch is {(count, width)}."
        form = batch["mask"].dtype, batch["mask"].shape
        assert form == (bool, (count, width)), f"the mask is {form}."
        for row, mask in zip(batch["tokens"], batch["mask"], strict=True):
            assert not mask[np.argmin(mask) :].any() or mask.all(), f"a mask has holes: {mask}."
            least = min(b for b in bounds if b >= mask.sum())
            assert not mask.any() or least == width, f"{mask.sum()} tokens take {width} positions."
            arrived.append(row[mask].tolist())
    expected = sorted(row.tolist() for row in rows if row.size)
    assert sorted(filter(None, arrived)) == expected, "sequences are lost, repeated or changed."


# Streams -------------------------------------------------------------------------------------


def test_streams():
    """`stream_of` and `gathered_runs` keep the promises of the contract's streams."""

    def by_rows(images, labels, batch_size, seed, *position, **others):
        tensors = tf.constant(images), tf.constant(labels)

        def read(epoch, rows):
            return tuple(tf.gather(tensor, rows) for tensor in tensors)

        given = len(images), read, batch_size, seed
        if len(images) != len(labels):
            raise ValueError(f"{len(images)} images have {len(labels)} labels")
        return depth.to_numpy(depth.stream_of(*given, *position, **others))

    def by_runs(images, labels, *others, **options):
        return depth.gathered_runs((images, labels), *others, **options)

    for tuned in (by_rows, by_runs):
        for case in (*contract.CASES, contract.Case(20_000, 128, processes=4, start=300)):
            contract.check_case(tuned, case)
        hypothesis_cases.run(tuned, share=16)
