"""The promises of a pipeline of arrays or texts, on one input after the other."""

import dataclasses
import functools
import inspect
from collections.abc import Callable

import numpy as np

from benchmarks.contract.streams import (
    Batch,
    Examples,
    Refused,
    Stream,
    check_refusal,
    check_shuffle,
    check_start,
    check_stream,
    examples,
)


@dataclasses.dataclass(frozen=True)
class Case:
    """One input of `tuned_batches`. What is printed of a case makes it again."""

    count: int
    batch_size: int
    shape: tuple[int, ...] = (8, 8)
    dtype: str = "uint8"
    label_dtype: str = "int32"
    layout: str = "own"  # or "strided", every second row of another array; or "read-only"
    seed: int = 0
    start: int = 1  # taken modulo the batches of EPOCHS epochs
    processes: int = 1  # divides the batch size

    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        arrays = examples(self.count, self.shape, self.dtype, self.label_dtype)
        if self.layout == "strided":
            arrays = tuple(np.repeat(array, 2, axis=0)[::2] for array in arrays)
        for array in arrays:
            array.flags.writeable = self.layout != "read-only"
        return arrays


# What the benchmark tries before it times a lesson.
CASES = (
    Case(0, 4),
    Case(3, 4),
    Case(4, 4),
    Case(1_000, 30, (5,), "float32", "int64", "read-only", 7, 33, 3),
    Case(1_797, 128, (8, 8), processes=2, start=14),
    Case(2_050, 50, (6, 6, 3), "int16", layout="strided", seed=2**32 - 1, processes=5),
)


def takes_dataset(pipeline: Callable) -> bool:
    """Whether its first argument, by its name, is a dataset in place of the two arrays."""
    return takes_first(pipeline) == "dataset"


def takes_first(pipeline: Callable) -> str:
    return next(iter(inspect.signature(pipeline).parameters))


def listed(images: np.ndarray, labels: np.ndarray) -> list[tuple]:
    """A dataset that has an example by its number, as PyTorch and Grain want it."""
    return list(zip(images, labels, strict=True))


def given(pipeline: Callable, arrays: Batch, dataset_of: Callable = listed) -> tuple:
    """What a pipeline takes first: two arrays, the two as one argument `arrays`, or a `dataset`."""
    if takes_dataset(pipeline):
        return (dataset_of(*arrays),)
    return (arrays,) if takes_first(pipeline) == "arrays" else arrays


def case_stream(pipeline: Callable, case: Case, dataset_of: Callable = listed) -> Stream:
    """What the pipeline makes of the arrays of a case, or of the dataset that they make."""
    arrays = case.arrays()
    make = functools.partial(pipeline, *given(pipeline, arrays, dataset_of))
    return Stream(make, Examples(*arrays), case.batch_size, case.seed)


def check_case(tuned: Callable, case: Case, dataset_of: Callable = listed) -> None:
    """Raises Refused if `tuned` breaks a promise on the case, whose parameters are named."""
    try:
        check_stream(case_stream(tuned, case, dataset_of), case.start, case.processes)
    except Refused as refused:
        raise Refused(f"{refused} [{case}]") from refused.__cause__


def check_idiom(batches: Callable, case: Case, dataset_of: Callable = listed) -> None:
    """Raises Refused unless `batches(images, labels, batch_size, seed)` begins with a whole epoch.

    For the short answer of a lesson: whole batches, no example twice, none of them changed.
    """
    stream = case_stream(batches, case, dataset_of)
    # By position: a short answer calls its arguments as it likes.
    stream.make = functools.partial(stream.make, case.batch_size, case.seed)
    order = stream.order(stream.collect(stream.make, stream.steps))[0]
    if len(np.unique(order)) < len(order):
        raise Refused(f"the first epoch gives examples again. [{case}]")


def some_of(dataset_of: Callable) -> Callable:
    """The same, but of a Hugging Face dataset that had other rows, too, which were taken out."""

    def selected(images, labels):
        twice = dataset_of(*(np.concatenate([array, array]) for array in (images, labels)))
        return twice.select(range(len(images))[::-1])

    return selected


def check_text(text_batches: Callable) -> None:
    """Raises Refused unless `text_batches(dataset, batch_size, length, seed, start)` pads texts.

    A batch is tokens and their mask, (batch_size, length). The dataset may have been filtered.
    """
    from datasets import Dataset, Features, List, Value

    length, kinds = 30, Features(tokens=List(Value("uint16")))
    texts = [[n + 1, 0] * (n % 15 + (n > 0)) for n in range(203)]  # 0 is a token, too
    whole = Dataset.from_dict({"tokens": texts}, features=kinds)
    odd = whole.filter(lambda _, number: number % 2, with_indices=True)

    def with_lengths(dataset, batch_size, seed, start=0):
        """A stream of tokens and of how many of them are text, as one of images and labels."""
        for tokens, mask in text_batches(dataset, batch_size, length, seed, start):
            if mask.shape != tokens.shape or (np.diff(mask.astype(int), axis=1) > 0).any():
                raise Refused("a mask is not of the tokens, or leaves out some before the last.")
            yield tokens, mask.sum(1)

    for dataset in (whole, odd):
        lengths = np.array([len(text) for text in dataset["tokens"]])
        padded = np.array([text + [0] * (length - len(text)) for text in dataset["tokens"]])
        source = Examples(padded.astype(np.uint16), lengths)
        stream = Stream(functools.partial(with_lengths, dataset), source, 20, seed=3)
        check_shuffle(stream)
        check_start(stream, stream.steps + 1)
    check_refusal(lambda: text_batches(whole, 20, 29, 0), "30 tokens for a length of 29", [30])
    check_refusal(lambda: text_batches(whole, 204, 30, 0), "203 texts for batches of 204", [203])
