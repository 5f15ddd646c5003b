"""What every stream of batches promises, and the errors in which a broken promise is told."""

import collections
import contextlib
import dataclasses
import errno
import functools
import itertools
import math
import re
import signal
import threading
from collections.abc import Callable, Iterable, Iterator

import numpy as np

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
    source: "Examples"  # or Photographs
    batch_size: int  # rows of a step, those of all processes together
    seed: int

    @property
    def steps(self) -> int:
        """Batches of an epoch."""
        return self.source.count // self.batch_size

    @functools.cached_property
    def batches(self) -> list[Batch]:
        """Those of EPOCHS epochs from the start, taken once. Raises Refused, as `take` does."""
        return self.take(EPOCHS * self.steps)

    def open(self, processes: int = 1, **other) -> Iterable:
        split = {"processes": processes} if processes > 1 else {}
        rows = self.batch_size // processes  # of each process
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
    """Raises Refused unless batches that are too large or empty are ValueErrors.

    They are too large for one process, or for several together.
    """
    check_short_refused(stream, stream.source.count + 1)
    processes = stream.steps + 1
    check_refusal(
        lambda: stream.open(batch_size=stream.batch_size, processes=processes),
        f"{processes} processes for batches of {stream.batch_size}",
        [processes, processes * stream.batch_size],
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
