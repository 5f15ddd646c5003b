"""The cells to copy of the lesson on workers, on other objects of batches."""

import contextlib
import itertools
import multiprocessing
import pickle
import tempfile
import threading
import time
from pathlib import Path

import feed_workers_beside_jax as lesson
import feed_workers_beside_jax_in_depth as depth
import numpy as np
from expecting import refusal, same
from hypothesis import strategies as st
from hypothesis_cases import tried


def left() -> list:
    """The threads and processes of a stream that have not ended."""
    threads = [each for each in threading.enumerate() if each.name.startswith("batches")]
    return threads + multiprocessing.active_children()


def taken(stream, steps: int) -> list:
    with contextlib.closing(stream):
        return list(itertools.islice(stream, steps))


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
def test_threads_in_order(threads, start, steps):
    """Each batch once, in order, from any step on; a bounded number is made ahead."""
    source = Steps()
    with contextlib.closing(lesson.thread_batches(source, threads, start)) as stream:
        got = list(itertools.islice(stream, steps))
        time.sleep(0.03)  # for what is made ahead
    assert got == [*range(start, start + steps)], "the batches are not those of the steps."
    assert source.most <= threads, f"{source.most} run at once, of {threads} threads."
    assert len(source.made) <= steps + 2 * threads, "more is made ahead than the bound."
    assert not left(), "threads are left."


def test_thread_errors():
    """An error is raised at its batch, and the threads end, as when a stream is dropped."""
    stream, got = lesson.thread_batches(Steps(fails=5), 3), []
    error = refusal("a batch that fails", lambda: got.extend(stream), LookupError)
    assert "step 5" in error and got == [0, 1, 2, 3, 4], f"{got} came before the error."
    assert not left(), "threads are left after an error."
    stream = lesson.thread_batches(Steps(), 3)
    assert next(stream) == 0 and len(left()) == 3
    del stream
    assert not left(), "threads are left after the stream is dropped."
    streams = [lesson.thread_batches(Steps(), 2, start) for start in (0, 9)]
    pairs = list(itertools.islice(zip(*streams, strict=True), 5))
    assert pairs == [*zip(range(5), range(9, 14), strict=True)], "two streams disturb each other."
    for stream in streams:
        stream.close()


def test_arguments():
    """What cannot work is refused by its name, before a worker starts."""
    for make, workers in (("thread_batches", "threads"), ("process_batches", "workers")):
        for number, start in ((0, 0), (-1, 0), (1, -1)):
            call = lambda make=make, number=number, start=start: next(  # noqa: E731
                getattr(lesson, make)([1, 2, 3], number, start)
            )
            said = refusal("arguments", call)
            assert f"{workers}={number}, {start=}" in said, f"arguments are not named: {said}"
    assert not left()


# Processes -----------------------------------------------------------------------------------


def test_processes():
    """What comes is what batches[step] makes, in any structure; an error at its batch."""
    structure = [
        {"n": np.arange(3) + step, "s": f"{step}", "p": (np.float16(step), np.ones((2, 0)))}
        for step in range(7)
    ]
    stream, got = lesson.process_batches(structure, 2, start=2), []
    error = refusal_lines(lambda: got.extend(stream), IndexError)
    assert error[-1] == "IndexError: list index out of range", error
    assert len(got) == 5, f"{len(got)} batches came before the error, not 5."
    for found, made in zip(got, structure[2:], strict=True):
        assert found["s"] == made["s"] and isinstance(found["n"], np.ndarray), found
        assert [*found] == [*made], f"the keys come in another order: {[*found]}"
        assert same([found["n"], *found["p"]], [made["n"], *made["p"]])
        assert found["p"][1].dtype == float and found["n"].dtype == made["n"].dtype
    assert not left(), "processes are left after an error."
    stream, got = lesson.process_batches(Ended(), 1), []
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
def test_made(count, batch_size, seed, step):
    """An epoch has each item once; what is random follows from seed, epoch and item."""
    made_of = lesson.Made

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


def test_gathered():
    """A gather has the rows of `Made`."""
    items = np.arange(60).reshape(20, 3)
    options = items, lambda row, random: {"image": row}, 6, 3
    one, other = lesson.Gathered(*options), lesson.Made(*options)
    assert all(same(one[step], other[step]) for step in range(9)), "the rows are others."


# The depth -----------------------------------------------------------------------------------


def test_rows():
    """A file of rows travels as a path, and gives copies that can be written to."""
    with tempfile.TemporaryDirectory() as folder:
        array = np.arange(2_400, dtype=np.int16).reshape(600, 4)
        np.save(Path(folder, "rows.npy"), array)
        with contextlib.chdir(folder):
            rows = depth.Rows("rows.npy")
        rows = pickle.loads(pickle.dumps(rows))  # in another folder
        assert len(rows) == 600 and np.array_equal(rows[[5, 0]], array[[5, 0]])
        rows[2][:] = 0
        assert np.array_equal(rows[2], array[2]), "a write reaches the file."
        assert len(pickle.dumps(rows)) < 1_000, "the rows travel."
