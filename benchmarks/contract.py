"""What a pipeline promises. Checks that raise Refused, in one sentence, where it breaks a promise.

The data names itself: each example, each photograph says which one it is, whatever the pipeline
does with it. So what is lost, repeated, mixed up or changed is found, on data of any size. The
benchmark runs these checks before it times a lesson, and tests/lessons/test_carry_over.py with
many cases.
"""

import collections
import contextlib
import dataclasses
import errno
import functools
import inspect
import io
import itertools
import math
import re
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import ClassVar

import numpy as np
from PIL import Image

Batch = tuple[np.ndarray, np.ndarray]

PATIENCE_S = 180  # for what takes seconds: a pipeline that loops without a batch never ends
EPOCHS = 3  # are collected: what goes wrong at the border of two, or from the second on, is seen
LATE = 1_000  # an epoch that no check reaches from the first
DECK = 20  # examples: two orders of as many are not equal by accident
NEGLIGIBLE = 1e-9  # the chance of an accident that need not be thought of
# What the operating system says of the machine, whoever asks: no pipeline breaks a promise by it.
FULL = {errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM}


class Refused(Exception):
    """One sentence: what a pipeline does wrong. Such a pipeline is not timed."""


@contextlib.contextmanager
def patience() -> Iterator[None]:
    """Raises Refused when the body takes longer. Only in the main thread, where signals arrive."""

    def stop(*_):
        raise Refused(f"gives no batch, and no error, within {PATIENCE_S:g} s.")

    main = threading.current_thread() is threading.main_thread()
    if not main or not hasattr(signal, "setitimer"):  # Windows
        yield
        return
    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def refusing() -> Iterator[None]:
    """Raises Refused for any error of the body, its cause, and where the body takes too long.

    An error of the machine, as a full disk is one, goes up as it is.
    """
    try:
        with patience():
            yield
    except Refused:
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno in FULL:
            raise
        raise Refused(f"raises {type(error).__name__}: {first_line(error)}") from error


def first_line(error: Exception) -> str:
    return (str(error).strip() or "without a message").splitlines()[0]


# Arrays --------------------------------------------------------------------------------------


def examples(
    count: int, shape: tuple[int, ...], dtype: str, label_dtype: str = "int32"
) -> tuple[np.ndarray, np.ndarray]:
    """Images (count, *shape) that are all different, and labels (count,) from 0 to 100.

    The first elements of an image are the digits of its index, and the others follow from it. With
    wide dtypes there are negative values and fractions, so that a cast or a scale changes them.
    """
    dtype, places = np.dtype(dtype), math.prod(shape)
    base = {"bool": 2, "uint8": 251, "int16": 251}.get(dtype.name, 2**20)
    depth = math.ceil(math.log(max(count, 2), base))  # digits that hold an index
    if depth > places:
        raise ValueError(f"{places} elements of {dtype} cannot name {count:,} examples.")
    index, place = np.arange(count, dtype=np.int64)[:, None], np.arange(places)
    digits = np.where(
        place < depth,
        index // base ** np.minimum(place, depth - 1),
        index * (2 * place + 1) + 7 * place,
    )
    images = digits % base
    if dtype.kind == "f":
        images = images / 8 - 1_000
    elif dtype.name not in ("bool", "uint8"):
        images = images * 97 - 11_000
    labels = np.arange(count) * 37 % 101
    return images.astype(dtype).reshape(count, *shape), labels.astype(label_dtype)


def raw(array: np.ndarray) -> list[bytes]:
    """The bytes of each row."""
    if not array.size:
        return []
    rows = np.ascontiguousarray(array).reshape(len(array), -1)
    return rows.view(f"V{rows.itemsize * rows.shape[1]}")[:, 0].tolist()


class Examples:
    """Arrays that a pipeline gets, and what they were before it got them."""

    name = "examples"

    def __init__(self, images: np.ndarray, labels: np.ndarray):
        """`images`: no two are equal."""
        self.given = images, labels
        self.before = images.copy(), labels.copy()
        self.count, self.shape = len(images), images.shape[1:]
        self.dtypes = images.dtype, labels.dtype
        self.index = {record: i for i, record in enumerate(raw(images))}
        assert len(self.index) == self.count, "two images are equal"

    def identify(self, images: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """The index of each row. Raises Refused if one is not of the data."""
        found = np.array([self.index.get(record, -1) for record in raw(images)])
        if strangers := int((found < 0).sum()):
            raise Refused(f"{strangers:,} of {len(found):,} images are none of the data's.")
        if wrong := int((labels != self.before[1][found]).sum()):
            raise Refused(f"{wrong:,} of {len(found):,} images have another label.")
        return found

    def check_unchanged(self) -> None:
        """Raises Refused if the arrays that were given are not what they were."""
        for array, before in zip(self.given, self.before, strict=True):
            if not np.array_equal(array, before):
                raise Refused("writes into the arrays that it was given.")


# Streams, of arrays or photographs -----------------------------------------------------------


def check_batch(
    batch: tuple, rows: int, shape: tuple[int, ...], dtypes: tuple = (np.uint8, np.int32)
) -> None:
    """Raises Refused unless the batch is (images (rows, *shape), labels (rows,)) of `dtypes`."""
    if len(batch) != 2:
        raise Refused(f"a batch has {len(batch)} parts, not images and labels.")
    names, shapes = ("images", "labels"), ((rows, *shape), (rows,))
    for name, array, dtype, whole in zip(names, batch, map(np.dtype, dtypes), shapes, strict=True):
        if not isinstance(array, np.ndarray):
            raise Refused(f"{name} are a {type(array).__name__}, not a NumPy array.")
        narrow = np.dtype(f"{dtype.kind}4") if dtype.itemsize == 8 else dtype  # as JAX has it
        if array.dtype not in (dtype, narrow) or array.shape != whole:
            raise Refused(f"{name} are {array.dtype} {array.shape}, not {dtype.name} {whole}.")


def equal(batch: Batch, other: Batch) -> bool:
    return all(map(np.array_equal, batch, other))


def in_turn(first: Iterable, open_second: Callable[[], Iterable]) -> Iterator:
    """One of each in turn. The second is opened when the first has begun."""
    first = iter(first)
    yield from itertools.islice(first, 1)
    for pair in zip(open_second(), first):  # noqa: B905 they have no end
        yield from pair


@dataclasses.dataclass
class Stream:
    """What a pipeline makes of one dataset, for one batch size and one seed.

    `make(batch_size=…, seed=…, start=…, process=…, processes=…)` calls the pipeline, `source` says
    what comes out of it.
    """

    make: Callable[..., Iterable]
    source: "Examples | Photographs"
    batch_size: int  # rows of a step, those of all processes together
    seed: int
    rows_each: bool = False  # whether the pipeline's batch_size is that of each process

    @property
    def steps(self) -> int:
        """Batches of an epoch."""
        return self.source.count // self.batch_size

    @functools.cached_property
    def batches(self) -> list[Batch]:
        """Those of EPOCHS epochs from the start, taken once. Raises Refused, as `take` does."""
        return self.take(EPOCHS * self.steps)

    def open(self, processes: int = 1, **other) -> Iterable:
        rows = self.batch_size // processes if self.rows_each else self.batch_size
        split = {"processes": processes} if processes > 1 else {}
        return self.make(**{"batch_size": rows, "seed": self.seed} | split | other)

    def take(self, count: int, **other) -> list[Batch]:
        return self.collect(lambda: self.open(**other), count, **other)

    def collect(self, opened: Callable, count: int, processes: int = 1, **_) -> list[Batch]:
        """`count` batches, examined when all are there: some pipelines use their memory again.

        Raises Refused for a batch of the wrong form, an early end, an error.
        """
        batches, copies = [], []
        form = self.batch_size // processes, self.source.shape, self.source.dtypes
        with refusing():
            for batch in itertools.islice(opened(), count):
                check_batch(batch, *form)
                batches.append(batch)
                copies.append(tuple(map(np.copy, batch)))
        if len(batches) < count:
            raise Refused(f"ends after {len(batches):,} batches: a stream has no end.")
        for number, (batch, copy) in enumerate(zip(batches, copies, strict=True)):
            if not equal(batch, copy):
                raise Refused(f"batch {number} changes after it was handed out.")
        self.source.check_unchanged()
        return batches

    def order(self, batches: list[Batch]) -> np.ndarray:
        """The indices of the examples, (epochs, examples of an epoch)."""
        parts = map(np.concatenate, zip(*batches, strict=True))
        return self.source.identify(*parts).reshape(-1, self.steps * self.batch_size)


def check_epochs(stream: Stream, first: int = 0) -> list[Batch]:
    """Raises Refused unless each epoch from the `first` on holds what it should, in its own order.

    Returns the batches of EPOCHS epochs.
    """
    name, count = stream.source.name, stream.source.count
    start = first * stream.steps
    batches = stream.take(EPOCHS * stream.steps, start=start) if first else stream.batches
    orders = stream.order(batches)
    for epoch, order in enumerate(orders, first):
        again = np.ones(len(order), bool)
        again[np.unique(order, return_index=True)[1]] = False
        if again.any():
            raise Refused(
                f"epoch {epoch} gives {again.sum():,} {name} again, from batch "
                f"{again.argmax() // stream.batch_size} of {stream.steps} on, and "
                f"{count - len(np.unique(orders)):,} of {count:,} never come in {EPOCHS} epochs."
            )
    for one, two in itertools.combinations(range(EPOCHS), 2):
        if count >= DECK and np.array_equal(orders[one], orders[two]):
            raise Refused(f"epochs {first + one} and {first + two} have the same order.")
    left_out = {np.setdiff1d(np.arange(count), order).tobytes() for order in orders}
    short = count - orders.shape[1]
    if len(left_out) == 1 and math.comb(count, short) ** (EPOCHS - 1) > 1 / NEGLIGIBLE:
        raise Refused(f"every epoch leaves out the same {short:,} {name}.")
    return batches


def check_shuffle(stream: Stream) -> None:
    """Raises Refused unless the whole data is shuffled, and the seed and the epoch say how."""
    orders, count = stream.order(stream.batches), stream.source.count
    if count < DECK:
        return
    others = stream.order(stream.take(stream.steps, seed=stream.seed + 1))[0]
    if (np.diff(orders[0]) > 0).all():
        raise Refused("epoch 0 is in the order of the data: it is not shuffled.")
    if np.array_equal(orders[0], others):
        raise Refused(f"seeds {stream.seed} and {stream.seed + 1} have the same order.")
    if np.array_equal(orders[1], others):
        raise Refused("the next seed's epoch 0 has the order of this seed's epoch 1.")
    if count >= 1_000:
        steps = np.abs(np.diff(orders[0]))  # on average a third of the dataset
        drift = np.corrcoef(orders[0], np.arange(len(orders[0])))[0, 1]  # about 0 ± 0.03
        if np.median(steps) < count / 20 or abs(drift) > 0.3:
            raise Refused("examples that lie together stay together: the shuffle is not whole.")


def check_together(stream: Stream) -> None:
    """Raises Refused unless the batches come again, and beside a second stream of the same data."""
    count, other = stream.steps + 1, {"seed": stream.seed + 1}
    alone = stream.take(count), stream.take(count, **other)
    if not all(map(equal, alone[0], stream.batches)):
        raise Refused("the same seed gives other batches the second time.")
    together = stream.collect(
        lambda: in_turn(stream.open(), lambda: stream.open(**other)), 2 * count
    )
    if not all(map(equal, itertools.chain(*zip(*alone, strict=True)), together)):
        raise Refused("two streams that are open at once give other batches than alone.")


def check_start(stream: Stream, start: int) -> None:
    """Raises Refused unless a stream from batch `start`, or a border, is the rest of the others.

    And unless a late epoch is whole too, and a stream starts within it.
    """
    late = LATE * stream.steps
    for batches, first, offset in (
        (stream.batches, 0, stream.steps),  # the border of two epochs
        (stream.batches, 0, start),
        (check_epochs(stream, LATE), late, start),
    ):
        expected = batches[offset:][: stream.steps + 1]
        if not all(map(equal, expected, stream.take(len(expected), start=first + offset))):
            raise Refused(
                f"a stream from batch {first + offset:,} is not the rest of one from {first:,}."
            )


def check_processes(stream: Stream, processes: int, start: int) -> None:
    """Raises Refused unless the processes' rows, together, are those of each of the batches."""
    expected = stream.batches[start:][: stream.steps + 1]
    parts = [
        stream.take(len(expected), start=start, process=process, processes=processes)
        for process in range(processes)
    ]
    for number, (batch, *split) in enumerate(zip(expected, *parts, strict=True), start):
        rows = [
            collections.Counter(zip(raw(images), raw(labels), strict=True))
            for images, labels in (batch, *split)
        ]
        if missing := rows[0] - sum(rows[1:], collections.Counter()):
            raise Refused(
                f"{processes} processes lack {missing.total():,} of the {stream.batch_size:,} rows "
                f"of batch {number}."
            )


def check_refusal(make: Callable[[], Iterable], what: str, says: Iterable, any_error=False) -> None:
    """Raises Refused unless `make()` raises ValueError at its first batch at the latest.

    `what` is wrong with the input, and one of `says`, numbers or names, has to be in the message.
    `any_error`: another exception will do, as libraries wrap what a worker raises.
    """
    try:
        with refusing():
            batch = next(iter(make()), None)
    except Refused as refused:
        if not (error := refused.__cause__):
            raise Refused(f"{what}: {refused}") from None
        if not isinstance(error, ValueError) and not any_error:
            raise Refused(f"{what}: raises {type(error).__name__}, not ValueError.") from error
        message = re.sub(r"(?<=\d),(?=\d{3})", "", str(error))
        if not any(re.search(rf"(?<!\w){re.escape(f'{word}')}(?!\w)", message) for word in says):
            raise Refused(f"{what}: the error does not say so: {first_line(error)}") from error
        if "\n" in str(error).strip() and not any_error:
            raise Refused(f"{what}: the error is more than one sentence.") from error
    else:
        instead = "ends without a batch" if batch is None else "gives a batch"
        raise Refused(f"{what}: {instead}, without a ValueError.")


def check_short_refused(stream: Stream, batch_size: int) -> None:
    """Raises Refused unless a batch of more than there are is a ValueError."""
    count = stream.source.count
    check_refusal(
        lambda: stream.open(batch_size=batch_size),
        f"{count} {stream.source.name} for batches of {batch_size}",
        [count, batch_size, *(["no", "No"] if not count else [])],
    )


def check_refusals(stream: Stream) -> None:
    """Raises Refused unless batches that are too large or empty, or do not divide, are ValueErrors.

    The processes, one more than the rows of a batch, do not divide it.
    """
    check_short_refused(stream, stream.source.count + 1)
    processes = stream.batch_size + 1
    check_refusal(
        lambda: stream.open(processes=processes),
        f"{processes} processes for batches of {stream.batch_size}",
        [processes],
    )
    check_short_refused(stream, 0)


Promise = tuple[str, Callable[[], object]]  # what it is called, and what raises Refused


def promises(stream: Stream, start: int, processes: int) -> list[Promise]:
    """Every promise of a stream; of one with fewer examples than a batch that it is a ValueError.

    `start`: a batch, modulo those of EPOCHS epochs. `processes` divide the batch size.
    """
    if not stream.steps:
        return [("refuses", lambda: check_short_refused(stream, stream.batch_size))]
    start %= EPOCHS * stream.steps
    split = ("splits batches", lambda: check_processes(stream, processes, start))
    return [
        ("each once", lambda: check_epochs(stream)),
        ("shuffled whole", lambda: check_shuffle(stream)),
        ("seed decides", lambda: check_together(stream)),
        ("starts anywhere", lambda: check_start(stream, start)),
        *([split] if processes > 1 else []),
        ("refuses", lambda: check_refusals(stream)),
    ]


def check_stream(stream: Stream, start: int, processes: int) -> None:
    """Raises Refused unless the stream keeps every promise of a stream."""
    for _, check in promises(stream, start, processes):
        check()


# The pipeline of arrays ----------------------------------------------------------------------


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


def case_stream(
    pipeline: Callable, case: Case, dataset_of: Callable = listed, rows_each: bool = False
) -> Stream:
    """What the pipeline makes of the arrays of a case, or of the dataset that they make."""
    arrays = case.arrays()
    make = functools.partial(pipeline, *given(pipeline, arrays, dataset_of))
    return Stream(make, Examples(*arrays), case.batch_size, case.seed, rows_each)


def check_case(
    tuned: Callable, case: Case, dataset_of: Callable = listed, rows_each: bool = False
) -> None:
    """Raises Refused if `tuned` breaks a promise on the case, whose parameters are named."""
    try:
        check_stream(case_stream(tuned, case, dataset_of, rows_each), case.start, case.processes)
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


# Folders of photographs ----------------------------------------------------------------------

LEVELS = range(16, 256, 24)  # of a colour's three channels: ten, so that 990 are no gray
FLATNESS = 9  # levels: JPEG and CMYK move a flat colour by 3 at most, the next one is 24 away
CLASSES = ("ant", "bear", "cat", "dog", "eel", "fox", "gnu", "red hare", "zebra")
EMPTY = "dog"  # the class without a photograph, in the middle: the next ones keep their numbers
KINDS = (
    (".jpg", "RGB"),
    (".JPEG", "RGB"),
    (".png", "RGB"),
    (".jpeg", "L"),
    (".JPG", "CMYK"),
    (".jpg", "RGB"),
    (".PNG", "RGB"),
    (".png", "RGBA"),
    (".png", "P"),
)
SIZES = ((100, 150), (320, 240), (375, 500), (1500, 1000), (128, 128), (240, 426), (700, 1100))
SIZES += ((1, 1), (1, 9), (500, 3))  # ten, so that each of the nine kinds has each size
SIZE = 32  # pixels of what comes out, where another is not needed


class Photographs:
    """A folder of flat photographs, whose colours say which one is which."""

    name = "photographs"
    dtypes = (np.dtype(np.uint8), np.dtype(np.int32))

    def __init__(self, folder: Path, colours: list, labels: list[int], size: int = SIZE):
        self.folder, self.size = folder, size
        self.colours, self.labels = np.array(colours), np.array(labels)
        self.count, self.shape = len(labels), (size, size, 3)

    def identify(self, images: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """The number of each photograph. Raises Refused if one is none, or has a wrong label."""
        low, high = images.min((1, 2)).astype(int), images.max((1, 2)).astype(int)
        middle = (low + high) / 2
        found = np.abs(middle[:, None] - self.colours).max(2).argmin(1)
        colours = self.colours[found]
        apart = np.maximum(high - colours, colours - low).max(1)
        if strangers := int((apart > FLATNESS).sum()):
            raise Refused(f"{strangers:,} of {len(found):,} photographs are none of the folder's.")
        if wrong := int((labels != self.labels[found]).sum()):
            raise Refused(
                f"{wrong:,} of {len(found):,} photographs have another label than their class's "
                "number in alphabetical order."
            )
        return found

    def check_unchanged(self) -> None:
        """Raises Refused if a file has come or gone."""
        paths = [path for path in self.folder.rglob("*") if path.is_file()]
        shown = [p for p in paths if "/." not in f"/{p.relative_to(self.folder).as_posix()}"]
        if len(shown) != self.count:
            raise Refused(f"leaves {len(shown):,} files in a folder of {self.count:,}.")


def flat_photographs(
    folder: Path, count: int = 90, sizes=SIZES, classes=CLASSES, hidden: bool = True
) -> Photographs:
    """Make a folder of `count` photographs, each of one colour, which a crop or a flip leaves.

    Nine classes, one of them empty. Widths and heights from 1 to 1,500 pixels; JPEG and PNG with
    suffixes in both cases; grayscale, CMYK, a palette, an alpha channel. `hidden` adds what systems
    leave behind: .DS_Store, `._name.jpg`, a folder of thumbnails, none of which is a photograph.
    """
    colours = itertools.product(LEVELS, repeat=3)
    colours = [colour for colour in colours if len(set(colour)) > 1]
    colours = iter(np.random.default_rng(0).permutation(colours).tolist())
    grays = iter([(level,) * 3 for level in LEVELS])
    for name in reversed(classes):  # in the order in which a disk may list them
        (folder / name).mkdir(parents=True)
    filled = [number for number, name in enumerate(classes) if name != EMPTY]
    used, labels = [], []
    for number in range(count):
        suffix, mode = KINDS[number % len(KINDS)]
        gray = next(grays, None) if mode == "L" else None
        mode = "RGB" if mode == "L" and not gray else mode  # there are ten grays only
        used.append(gray or next(colours))
        labels.append(filled[number * len(filled) // count])
        photograph = Image.new("RGB", sizes[number % len(sizes)], tuple(used[-1]))
        photograph = photograph.quantize(4) if mode == "P" else photograph.convert(mode)
        path = folder / classes[labels[-1]] / f"{number:04}{suffix}"
        photograph.save(path, **{} if suffix.lower() == ".png" else {"quality": 95})
    if hidden:
        (folder / ".DS_Store").write_bytes(b"\0")
        (folder / classes[0] / ".DS_Store").write_bytes(b"\0")
        (folder / classes[1] / "._0000.jpg").write_bytes(b"\0")
        (folder / ".thumbnails").mkdir()
        Image.new("RGB", (100, 100)).save(folder / ".thumbnails" / "0000.jpg")
    return Photographs(folder, used, labels)


class Ramps(Photographs):
    """PNGs whose red grows from left to right and green from top to bottom, from 0 to 255.

    So the window that was cropped, and a flip, can be read from what comes out. Blue says which.
    """

    dimensions: ClassVar = ((160, 120), (120, 160), (144, 144), (150, 120)) * 2
    size = 48

    def __init__(self, folder: Path, dimensions=dimensions):
        (folder / "ramps").mkdir(parents=True)
        self.folder, self.dimensions = folder, np.array(dimensions)
        self.blue = np.linspace(0, 255, len(dimensions)).round()
        for number, (width, height) in enumerate(dimensions):
            photograph = np.empty((height, width, 3), np.uint8)
            photograph[..., 0] = np.linspace(0, 255, width).round()
            photograph[..., 1] = np.linspace(0, 255, height).round()[:, None]
            photograph[..., 2] = self.blue[number]
            Image.fromarray(photograph).save(folder / "ramps" / f"{number}.png")
        self.count, self.shape = len(dimensions), (self.size, self.size, 3)

    def identify(self, images: np.ndarray, labels: np.ndarray) -> np.ndarray:
        return np.abs(images[..., 2].mean((1, 2))[:, None] - self.blue).argmin(1)

    def windows(self, images: np.ndarray) -> np.ndarray:
        """Left, top, width, height of each crop, as shares of the photograph; -1 if flipped, or 1.

        Raises Refused for what is no upright window.
        """
        red, green = images[..., 0].astype(float), images[..., 1].astype(float)
        if max(red.std(1).max(), green.std(2).max()) > 3:
            raise Refused("crops are no upright windows of a photograph.")
        inner = np.arange(4, self.size - 4)  # a filter has less to average at the borders
        found = []
        for profiles, pixels in zip(
            (red.mean(1), green.mean(2)),
            self.dimensions[self.identify(images, None)].T,
            strict=True,
        ):
            slope, level = np.polyfit(inner - (self.size - 1) / 2, profiles[:, inner].T, 1)
            share = np.abs(slope) * self.size / 255 * (1 - 1 / pixels)
            middle = level / 255 * (1 - 1 / pixels) + 0.5 / pixels
            found.append((middle - share / 2, share, np.sign(slope)))
        (left, width, flip), (top, height, upright) = found
        if (upright < 0).any():
            raise Refused("turns photographs upside down.")
        return np.stack([left, top, width, height, flip], axis=1)


def check_windows(stream: Stream) -> None:
    """Raises Refused unless a stream of Ramps crops and flips as RandomResizedCrop does."""
    ramps, epochs = stream.source, 60
    images = [images for images, _ in stream.take(epochs * stream.steps)]
    numbers = ramps.identify(np.concatenate(images), None)
    windows = ramps.windows(np.concatenate(images))
    left, top, width, height, flip = windows.T
    ratio = width / height * np.divide(*ramps.dimensions[numbers].T)
    check_range("crops take", width * height, (0.08, 1), (0.18, 0.8), "of a photograph's area")
    check_range("crops are", ratio, (3 / 4, 4 / 3), (0.85, 1.18), "times as wide as high")
    for of, low, share in (("width", left, width), ("height", top, height)):
        reached = np.array([low.min(), (low + share).max()])
        check_range("crops reach from", reached, (0, 1), (0.03, 0.97), f"of the {of}")
        free = share < 0.9
        place = low[free] / (1 - share[free])
        if not 0.4 < place.mean() < 0.6 or place.std() < 0.2:
            raise Refused(
                f"crops lie at {place.mean():.2f} ± {place.std():.2f} of the free {of}, not "
                "anywhere from 0 to 1."
            )
    if not 0.35 < (flip < 0).mean() < 0.65:
        raise Refused(f"flips {(flip < 0).sum()} of {len(flip)} photographs, not about half.")
    areas = (width * height * flip).reshape(-1, stream.batch_size)
    alike = np.abs(areas[:, :, None] - areas[:, None]) < 0.01  # of 50 pairs one by accident
    if alike.mean() - 1 / stream.batch_size > 0.25:
        raise Refused("photographs of one batch share their crops.")
    check_crops_change(stream)


def check_range(what: str, values: np.ndarray, within: tuple, beyond: tuple, of: str) -> None:
    """Raises Refused unless the values lie within a range, with 6 % of room, and nearly fill it."""
    low, high = values.min(), values.max()
    inside = low > within[0] - 0.06 and high < within[1] * 1.06
    if not inside or low > beyond[0] or high < beyond[1]:
        raise Refused(
            f"{what} {low:.2f} to {high:.2f} {of}, not {within[0]:.3g} to {within[1]:.3g}."
        )


def check_crops_change(stream: Stream) -> None:
    """Raises Refused if a photograph is cropped alike in two epochs, or for two seeds."""

    def crops(**other) -> np.ndarray:
        images, labels = map(np.concatenate, zip(*stream.take(stream.steps, **other), strict=True))
        order = stream.source.identify(images, labels)
        return stream.source.windows(images)[np.argsort(order)]

    first, later = crops(), crops(start=stream.steps)
    other = crops(seed=stream.seed + 1)
    for one, two, what in (
        (first, later, "epochs 0 and 1 crop photographs alike."),
        (first, other, f"seeds {stream.seed} and {stream.seed + 1} crop photographs alike."),
        (later, other, "the next seed's epoch 0 has the crops of this seed's epoch 1."),
    ):
        if (np.abs(one - two).max(1) < 0.01).mean() > 0.3:
            raise Refused(what)


def check_filter(file_batches: Callable, folder: Path) -> None:
    """Raises Refused unless photographs are shrunk with antialiasing, and enlarged bilinearly."""
    fine, edge = folder / "fine", folder / "edge"
    for path in (fine, edge):
        (path / "one").mkdir(parents=True)
    rows, columns = np.indices((1200, 1200)) // 3
    Image.fromarray(((rows + columns) % 2 * 255).astype(np.uint8)).save(fine / "one" / "fine.png")
    steps = np.where(np.indices((24, 24))[1] // 6 % 2, 192, 64).astype(np.uint8)
    Image.fromarray(steps).save(edge / "one" / "edge.png")
    shrunk = take_all(file_batches(fine, 1, SIZE, 0), 8)
    if (spread := shrunk.std((1, 2)).max()) > 20:
        raise Refused(
            f"a fine pattern comes out with a deviation of {spread:.0f} levels: shrinking without "
            "antialiasing."
        )
    enlarged = take_all(file_batches(edge, 1, 48, 0), 8).astype(int)
    if enlarged.min() < 64 - 3 or enlarged.max() > 192 + 3:
        raise Refused(
            f"levels 64 and 192 become {enlarged.min()} to {enlarged.max()}: not bilinear."
        )
    if ((enlarged > 74) & (enlarged < 182)).mean() < 0.05:
        raise Refused("an enlarged edge has no levels in between: not bilinear.")


def take_all(stream: Iterable[Batch], count: int) -> np.ndarray:
    """The images of `count` batches. Raises Refused for an error."""
    with refusing():
        return np.concatenate([images for images, _ in itertools.islice(stream, count)])


def check_workers(stream: Stream, workers: int) -> None:
    """Raises Refused unless workers make the same batches as none, across the border of epochs."""
    count = stream.steps + 2
    alone, helped = stream.take(count), stream.take(count, workers=workers)
    if not all(map(equal, alone, helped)):
        raise Refused(f"{workers} workers make other batches than none.")


def broken_photographs(strict: bool) -> dict[str, bytes]:
    """What is wrong with a file, and its bytes. `strict`: also what some libraries open."""
    noise = Image.effect_noise((64, 64), 64)
    jpeg, png = encoded(noise, "JPEG"), encoded(noise, "PNG")
    found = {
        "text": b"Not a photograph.",
        "no bytes": b"",
        "half a JPEG": jpeg[: len(jpeg) // 2],
        "half a PNG": png[: len(png) // 2],
    }
    if strict:
        deep = Image.fromarray(np.full((9, 9), 999, np.uint16))
        start = jpeg.index(b"\xff\xc0") + 5  # the height and the width
        size = np.array([60_000, 60_000], ">u2").tobytes()
        found["16 bits a channel"] = encoded(deep, "PNG")
        found["a JPEG that promises gigapixels"] = jpeg[:start] + size + jpeg[start + 4 :]
    return found


def check_file_errors(
    file_batches: Callable, folder: Path, workers: int = 0, strict: bool = False
) -> None:
    """Raises Refused unless what is no photograph is named. Makes folders below `folder`."""
    empty, one, notes, broken = (folder / name for name in ("hollow", "one", "notes", "broken"))
    for path in (one, notes, broken):
        flat_photographs(path, 1, ((100, 100),), ("first", "second"), hidden=False)
    (empty / "first").mkdir(parents=True)
    (notes / "first" / "notes.txt").write_bytes(b"Not a photograph.")

    def both():  # photographs are decoded, in one batch each
        yield list(itertools.islice(file_batches(broken, 1, SIZE, 0, workers=workers), 2))

    for what, data in broken_photographs(strict).items():
        (broken / "second" / "broken.jpg").write_bytes(data)
        check_refusal(both, f"a broken.jpg, {what}", ["broken.jpg"], any_error=bool(workers))
        if workers:
            return  # they have raised: once will do
    cases = (
        (empty, 1, "a folder without a photograph", ["hollow"]),
        (notes, 1, "a notes.txt among the photographs", ["notes.txt"]),
        (one, 2, "1 photograph for batches of 2", [1, 2]),
    )
    for path, batch_size, what, says in cases:
        check_refusal(functools.partial(file_batches, path, batch_size, SIZE, 0), what, says)
    if len(take_all(file_batches(one, 1, SIZE, 0), 3)) != 3:
        raise Refused("1 photograph in batches of 1: ends, and a stream has no end.")


def encoded(image: Image.Image, suffix: str) -> bytes:
    image.save(written := io.BytesIO(), suffix)
    return written.getvalue()


def check_turned(file_batches: Callable, folder: Path) -> None:
    """Raises Refused unless the photographs of turned_ramps come as their EXIF notes say."""
    with refusing():
        for images, labels in itertools.islice(file_batches(folder, 4, SIZE, 0), 4):
            for ramp, label in zip(images, labels, strict=True):
                if ramp.std(0).max() > 3 or ramp.std(1).min() < 3:
                    raise Refused(f"the EXIF orientation {label + 1}: does not come out upright.")


def turned_ramps(folder: Path) -> Path:
    """Fill the folder with JPEGs of a ramp from left to right, each turned by its EXIF note."""
    ramp = np.linspace(0, 255, 600).round().astype(np.uint8)
    upright = Image.fromarray(np.tile(ramp, (400, 1))).convert("RGB")
    stored = Image.Transpose
    back = (None, stored.FLIP_LEFT_RIGHT, stored.ROTATE_180, stored.FLIP_TOP_BOTTOM)
    back += (stored.TRANSPOSE, stored.ROTATE_90, stored.TRANSVERSE, stored.ROTATE_270)
    for note, transposition in enumerate(back, start=1):
        exif = Image.Exif()
        exif[0x0112] = note
        image = upright if transposition is None else upright.transpose(transposition)
        (folder / f"{note}").mkdir(parents=True)
        image.save(folder / f"{note}" / "ramp.jpg", exif=exif, quality=95)
    return folder


def files_stream(
    file_batches: Callable, source: Photographs, batch_size: int, rows_each: bool = False
) -> Stream:
    make = functools.partial(file_batches, source.folder, size=source.size)
    return Stream(make, source, batch_size, 3, rows_each)


def file_promises(
    file_batches: Callable,
    folder: Path,
    workers: Iterable[int] = (1, 2),
    rows_each: bool = False,
) -> list[Promise]:
    """Every promise of `file_batches`, on folders that are made below `folder`."""
    mixed = files_stream(file_batches, flat_photographs(folder / "mixed"), 8, rows_each)
    ramps = files_stream(file_batches, Ramps(folder / "ramps"), 4, rows_each)
    errors, by_crops = functools.partial(check_file_errors, file_batches), {"each once", "refuses"}
    return [
        *promises(mixed, start=7, processes=4),
        # What comes out of ramps shows the crops, too: equal batches have equal crops.
        *(promise for promise in promises(ramps, 3, 2) if promise[0] not in by_crops),
        ("crops", lambda: check_windows(ramps)),
        ("filter", lambda: check_filter(file_batches, folder)),
        ("upright", lambda: check_turned(file_batches, turned_ramps(folder / "turned"))),
        ("refuses", lambda: errors(folder / "alone")),
        *(("workers", functools.partial(check_workers, ramps, n)) for n in workers),
        *([("errors of workers", lambda: errors(folder / "in workers", 1))] if workers else []),
    ]


def check_files(
    file_batches: Callable,
    folder: Path,
    workers: Iterable[int] = (1, 2),
    rows_each: bool = False,
) -> None:
    """Raises Refused if `file_batches` breaks a promise on folders that it makes below `folder`."""
    for _, check in file_promises(file_batches, folder, workers, rows_each):
        check()
