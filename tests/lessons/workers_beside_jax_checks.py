"""The cells to copy of the lesson on workers, on other objects of batches."""

import contextlib
import importlib
import itertools
import multiprocessing
import pickle
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from copied_cells import refusal, same
from hypothesis import strategies as st
from hypothesis_cases import tried


def left() -> list:
    """The threads and processes of a stream that have not ended."""
    threads = [each for each in threading.enumerate() if each.name.startswith("batches")]
    return threads + multiprocessing.active_children()


def taken(stream, steps: int) -> list:
    with contextlib.closing(stream):
        return list(itertools.islice(stream, steps))


def of_module(name: str, module: str = "loader_examples"):
    """What a module of the lesson defines now: a broken copy is written into it."""
    return getattr(importlib.import_module(module), name)


class Steps:
    """batches[step] is the step, later or sooner; it counts what is made and what runs at once."""

    def __init__(self, fails=None):
        self.made, self.running, self.most, self.fails = [], 0, 0, fails
        self.lock = threading.Lock()

    def __getitem__(self, step):
        with self.lock:
            self.running += 1
            self.most = max(self.most, self.running)
            self.made.append(step)
        time.sleep(0.002 * (step * 7 % 3))
        with self.lock:
            self.running -= 1
        if step == self.fails:
            raise LookupError(f"step {step}")
        return step


# Threads -------------------------------------------------------------------------------------


@tried(
    8,
    threads=st.integers(1, 6),
    start=st.integers(0, 200) | st.just(2**40),
    steps=st.integers(1, 20),
)
def check_threads_in_order(names, threads, start, steps) -> None:
    """Each batch once, in order, from any step on; a bounded number is made ahead."""
    source = Steps()
    with contextlib.closing(names["thread_batches"](source, threads, start)) as stream:
        got = list(itertools.islice(stream, steps))
        time.sleep(0.03)  # for what is made ahead
    assert got == [*range(start, start + steps)], "the batches are not those of the steps."
    assert source.most <= threads, f"{source.most} run at once, of {threads} threads."
    assert len(source.made) <= steps + 2 * threads, "more is made ahead than the bound."
    assert not left(), "threads are left."


def check_thread_errors(names) -> None:
    """An error is raised at its batch, and the threads end, as when a stream is dropped."""
    stream, got = names["thread_batches"](Steps(fails=5), 3), []
    error = refusal("a batch that fails", lambda: got.extend(stream), LookupError)
    assert "step 5" in error and got == [0, 1, 2, 3, 4], f"{got} came before the error."
    assert not left(), "threads are left after an error."
    stream = names["thread_batches"](Steps(), 3)
    assert next(stream) == 0 and len(left()) == 3
    del stream
    assert not left(), "threads are left after the stream is dropped."
    streams = [names["thread_batches"](Steps(), 2, start) for start in (0, 9)]
    pairs = list(itertools.islice(zip(*streams, strict=True), 5))
    assert pairs == [*zip(range(5), range(9, 14), strict=True)], "two streams disturb each other."
    for stream in streams:
        stream.close()


def check_arguments(names) -> None:
    """What cannot work is refused by its name, before a worker starts."""
    for make, workers in (("thread_batches", "threads"), ("process_batches", "workers")):
        for number, start in ((0, 0), (-1, 0), (1, -1)):
            call = lambda make=make, number=number, start=start: next(  # noqa: E731
                names[make]([1, 2, 3], number, start)
            )
            said = refusal("arguments", call)
            assert f"{workers}={number}, {start=}" in said, f"arguments are not named: {said}"
    assert not left()


# Processes -----------------------------------------------------------------------------------


def check_processes(names) -> None:
    """What comes is what batches[step] makes, in any structure; an error at its batch."""
    structure = [
        {"n": np.arange(3) + step, "s": f"{step}", "p": (np.float16(step), np.ones((2, 0)))}
        for step in range(7)
    ]
    stream, got = names["process_batches"](structure, 2, start=2), []
    error = refusal_lines(lambda: got.extend(stream), IndexError)
    assert error[-1] == "IndexError: list index out of range", error
    assert len(got) == 5, f"{len(got)} batches came before the error, not 5."
    for found, made in zip(got, structure[2:], strict=True):
        assert found["s"] == made["s"] and isinstance(found["n"], np.ndarray), found
        assert [*found] == [*made], f"the keys come in another order: {[*found]}"
        assert same([found["n"], *found["p"]], [made["n"], *made["p"]])
        assert found["p"][1].dtype == float and found["n"].dtype == made["n"].dtype
    assert not left(), "processes are left after an error."
    stream, got = names["process_batches"](Ended(), 1), []
    error = refusal_lines(lambda: got.extend(stream), RuntimeError)
    assert got == [0, 1], f"{got} came before the error."


class Ended:
    """batches[step] with a mistake that would look like the end of the stream."""

    def __getitem__(self, step):
        return step if step < 2 else next(iter([]))


def refusal_lines(call, kind) -> list[str]:
    try:
        call()
    except kind as error:
        kept = error  # its frames must not hold the workers
    else:
        raise AssertionError("no error came.")
    assert not left(), "an error that is kept holds the processes."
    return str(kept).strip().splitlines()


# Made ----------------------------------------------------------------------------------------


@tried(
    3,
    count=st.integers(0, 300),
    batch_size=st.integers(1, 40),
    seed=st.integers(0, 2**40),
    step=st.integers(0, 500),
)
def check_made(names, count, batch_size, seed, step) -> None:
    """An epoch has each item once; what is random follows from seed, epoch and item."""
    made_of = of_module("Made")

    def make(item, random):
        return {"item": np.int64(item), "drawn": random.random()}

    if count < batch_size:
        refusal("too few items", lambda: made_of(range(count), make, batch_size))
        return
    batches = made_of(range(count), make, batch_size, seed)
    epochs = [
        [batches[n] for n in range(e * batches.steps, (e + 1) * batches.steps)] for e in (0, 1)
    ]
    rows = [np.concatenate([batch["item"] for batch in epoch]) for epoch in epochs]
    draws = [np.concatenate([batch["drawn"] for batch in epoch]) for epoch in epochs]
    for epoch in rows:
        assert len(epoch) == batches.steps * batch_size == len({*epoch}), "an item comes twice."
    assert count - len(rows[0]) < batch_size, "more is left out than the rest."
    if len(rows[0]) > 20:
        assert not np.array_equal(*rows), "two epochs have the same order."
        assert len({*draws[0], *draws[1]}) == 2 * len(draws[0]), "two examples draw the same."
    again = made_of(range(count), make, batch_size, seed)
    assert same(again[step], batches[step]), "another object has another batch."


def check_gathered(names) -> None:
    """A gather has the rows of `Made`."""
    items = np.arange(60).reshape(20, 3)
    options = items, lambda row, random: {"image": row}, 6, 3
    one, other = of_module("Gathered")(*options), of_module("Made")(*options)
    assert all(same(one[step], other[step]) for step in range(9)), "the rows are others."


# The depth -----------------------------------------------------------------------------------


def check_rows(names) -> None:
    """A file of rows travels as a path, and gives copies that can be written to."""
    with tempfile.TemporaryDirectory() as folder:
        array = np.arange(2_400, dtype=np.int16).reshape(600, 4)
        np.save(Path(folder, "rows.npy"), array)
        with contextlib.chdir(folder):
            rows = of_module("Rows", "workers_rows")("rows.npy")
        rows = pickle.loads(pickle.dumps(rows))  # in another folder
        assert len(rows) == 600 and np.array_equal(rows[[5, 0]], array[[5, 0]])
        rows[2][:] = 0
        assert np.array_equal(rows[2], array[2]), "a write reaches the file."
        assert len(pickle.dumps(rows)) < 1_000, "the rows travel."


BROKEN = [
    ("check_threads_in_order", "itertools.count(start):", "itertools.count():", "not those"),
    ("check_threads_in_order", "len(ahead) > 2 * threads", "len(ahead) > 3 * threads", "ahead"),
    ("check_threads_in_order", "yield ahead.popleft()", "yield ahead.pop()", "not those"),
    (
        "check_threads_in_order",
        'ThreadPoolExecutor(threads, "batches")',
        'ThreadPoolExecutor(threads + 1, "batches")',
        "at once|not those|ahead",
    ),
    ("check_thread_errors", "pool.shutdown(cancel_futures=True)", "pass", "left"),
    ("check_arguments", "if threads < 1 or start < 0:", "if start < 0:", "arguments"),
    ("check_arguments", "if workers < 1 or start < 0:", "if workers < 1:", "arguments"),
    (
        "check_processes",
        '"sampler": itertools.count(start)',
        '"sampler": itertools.count(0)',
        "came before",
    ),
    (
        "check_processes",
        "for key, part in batch.items()",
        "for key, part in sorted(batch.items())",
        "another order",
    ),
    (
        "check_processes",
        "        while True:\n            yield as_arrays(next(loader))",
        "        for batch in loader:\n            yield as_arrays(batch)",
        "no error came",
    ),
    (
        "check_processes",
        "traceback.clear_frames(error.__traceback__)  # they hold the workers",
        "pass",
        "holds",
    ),
    (
        "check_processes",
        "return batch.numpy() if torch.is_tensor(batch) else batch",
        "return batch",
        "is refused",
    ),
    ("check_made", "if shuffled[0] != epoch:", "if shuffled[0] is None:", "same order"),
    (
        "check_made",
        "default_rng((self.seed, epoch, row + 1))",
        "default_rng((self.seed, epoch))",
        "draw the same",
    ),
    ("check_made", "if self.steps < 1 or batch_size < 1:", "if batch_size < 1:", "goes through"),
    (
        "check_gathered",
        "self.items.take(self.rows(step), axis=0)",
        "self.items.take(self.rows(0), axis=0)",
        "others",
    ),
    ("check_rows", 'return self.__dict__ | {"rows": None}', "return self.__dict__", "travel"),
    ("check_rows", "Path(path).absolute()", "Path(path)", "is refused"),
    ("check_rows", "np.array(self.rows[index])", "self.rows[index]", "is refused"),
]
