"""What a reader copies from the lesson on tf.data works on elements, sequences and rows of others.

Each broken copy, which differs in one place, is refused: so every check is seen to bite.
"""

import pytest
from carry_over.broken import assert_refused
from carry_over.tf_data import TfData

from benchmarks import bench


@pytest.fixture(scope="module")
def lesson(lesson_environment):
    with bench.ready(bench.Process("tf_data_to_numpy", kind=TfData)) as [lesson]:
        yield lesson


@pytest.mark.parametrize(
    "check", ["check_structures", "check_tokens", "check_streams", "check_inputs"]
)
def test_copied_cells_carry_over(lesson, check):
    lesson.call(check)


# The function, what it says, what is put in its place, the check, what the check says.
BROKEN = {
    "narrows in silence": (
        "numpy_batches",
        "(held != leaf).any()",
        "False",
        "check_structures",
        "goes through",
    ),
    "refuses every int64": (
        "numpy_batches",
        "(held != leaf).any()",
        "True",
        "check_structures",
        "raises ValueError",
    ),
    "leaves int64 to JAX": (
        "numpy_batches",
        "return held",
        "return leaf",
        "check_structures",
        "JAX holds",
    ),
    "gives scalars": (
        "numpy_batches",
        "leaf = np.asarray(leaf)",
        "leaf = leaf[()] if np.ndim(leaf) == 0 else leaf",
        "check_structures",
        "JAX holds",
    ),
    "minds None": (
        "numpy_batches",
        '"NoneTensorSpec()"',
        '"no"',
        "check_structures",
        "raises ValueError",
    ),
    "takes ragged": (
        "numpy_batches",
        "not isinstance(spec, tf.TensorSpec) or spec.dtype in unheld",
        "isinstance(spec, tf.data.DatasetSpec) or spec.dtype in unheld",
        "check_structures",
        "goes through",
    ),
    "takes strings": (
        "numpy_batches",
        "tf.string, tf.resource",
        "tf.resource",
        "check_structures",
        "goes through",
    ),
    "rounds floats": (
        "numpy_batches",
        "and not spec.dtype.is_integer",
        "and False",
        "check_structures",
        "goes through",
    ),
    "passes over nothing": (
        "numpy_batches",
        "if element is None and iterator is None:",
        "if False:",
        "check_structures",
        "raises StopIteration",
    ),
    "drops the end of a bucket": (
        "token_batches",
        "pad_to_bucket_boundary=True,",
        "pad_to_bucket_boundary=True, drop_remainder=True,",
        "check_tokens",
        "are lost|raises ValueError",
    ),
    "leaves short batches": (
        "token_batches",
        "return batches.map(filled)",
        "return batches",
        "check_tokens",
        "a batch has the shape",
    ),
    "takes zeros for padding": (
        "token_batches",
        "tf.fill([length], True)",
        "tokens != 0",
        "check_tokens",
        "holes",
    ),
    "cuts": (
        "token_batches",
        "length = tf.size(tokens)",
        "tokens = tokens[: bounds[-1]]\n        length = tf.size(tokens)",
        "check_tokens",
        "goes through",
    ),
    "pads too far": (
        "token_batches",
        "[bound + 1 for bound in bounds]",
        "[max(bounds) + 1 + i for i in range(len(bounds))]",
        "check_tokens",
        "tokens take",
    ),
    "starts in the first epoch": (
        "stream_of",
        "Dataset.range(first, 2**62)",
        "Dataset.range(0, 2**62)",
        "check_streams",
        "a stream from batch 1 is not the rest",
    ),
    "skips in every epoch": (
        "stream_of",
        "tf.where(epoch == first, done * batch_size, 0)",
        "done * batch_size",
        "check_streams",
        "a stream from batch 1 is not the rest",
    ),
    "one order for every epoch": (
        "stream_of",
        "seed=[seed, epoch]",
        "seed=[seed, 0]",
        "check_streams",
        "epochs 0 and 1 have the same order",
    ),
    "adds seed and epoch": (
        "stream_of",
        "seed=[seed, epoch]",
        "seed=[0, seed + epoch]",
        "check_streams",
        "has the order of this seed's epoch 1",
    ),
    "gives all rows to each process": (
        "stream_of",
        "order[skipped + process : usable : processes]",
        "order[skipped : usable]",
        "check_streams",
        "processes lack 20 of the 30 rows",
    ),
    "keeps a fixed length": (
        "token_batches",
        'padded_shapes={"tokens": [None], "mask": [None]},',
        "",
        "check_inputs",
        "fixed length=100: batches of",
    ),
    "takes bounds as they are": (
        "token_batches",
        "{*map(int, bounds)}",
        "set(bounds)",
        "check_inputs",
        r"\(4.0, 2.0\) raises TypeError",
    ),
    "takes records": (
        "token_batches",
        "if not one or spec.shape.rank not in (1, None)",
        "if False",
        "check_inputs",
        "dict: ",
    ),
    "starts over": (
        "numpy_batches",
        "iterator or dataset",
        "dataset",
        "check_inputs",
        "an iterator gives",
    ),
    "begins before the first batch": (
        "stream_of",
        "start < 0",
        "False",
        "check_inputs",
        "'start': -1}: goes through",
    ),
    "divides by no rows": (
        "stream_of",
        "max(batch_size, 1)",
        "batch_size",
        "check_inputs",
        "'batch_size': 0}: raises ZeroDivisionError",
    ),
    "divides by no processes": (
        "stream_of",
        "not 0 <= process < processes or batch_size % processes",
        "batch_size % processes or not 0 <= process < processes",
        "check_inputs",
        "'processes': 0}: raises ZeroDivisionError",
    ),
}


@pytest.mark.parametrize("case", BROKEN.values(), ids=BROKEN)
def test_a_broken_copy_is_refused(lesson, case):
    assert_refused(lesson, case)
