"""The lesson on feeding the device in a process of its own: what it hands out, on other data."""

import ast
import collections
import functools
import itertools
import threading
import time

import numpy as np

from benchmarks import contract
from benchmarks.contract import Refused
from benchmarks.lesson import only, tagged

from . import cases
from .lesson import CarryOver

SHAPES = ((8, 8), (5, 7, 3), (11,))


class Feed(CarryOver):
    """Its stream is held to the contract; the rest is called with batches of other shapes."""

    def __init__(self, name: str, copies: int = 1):
        super().__init__(name, copies)
        kinds = ast.Import | ast.ImportFrom | ast.FunctionDef
        exec(only(tagged("resident-epoch"), kinds), self.names)

    def check_stream(self) -> None:
        for case in contract.CASES:
            contract.check_case(self.names["tuned_batches"], case)
        cases.run(self.names["tuned_batches"])

    def check_measures(self) -> None:
        for measure in ("seconds_a_step", "seconds_alone"):
            self._refuses(measure, "need more batches", *self._few(measure, 3))
            self._refuses(measure, "need more batches", *self._few(measure, 12))
        alone = self.names["seconds_alone"]
        load, copy = alone(slow(itertools.repeat(np.zeros(3)), 0.02))
        expect(load >= 0.02 and copy < load, "a slow loader is not seen")
        a_step = self.names["seconds_a_step"](tired, itertools.repeat(0))
        expect(a_step >= 0.01, "a slow loop is not seen")

    def _few(self, measure: str, count: int) -> tuple:
        batches = [np.zeros(3)] * (count if measure == "seconds_a_step" else count - 2)
        return (tired, batches) if measure == "seconds_a_step" else (batches,)

    def check_limit(self) -> None:
        limit, full_lane = self.names["limit"], self.names["full_lane"]
        for seconds, answer in (
            ((10, 9, 1, 1), "step"),
            ((10, 2, 9, 1), "load"),
            ((10, 2, 1, 9), "copy"),
            ((10, 6, 4, 1), "turns"),
        ):
            expect(limit(*seconds) == answer, f"{seconds} are not limited by {answer!r}")
        joined = self.names["joined"]
        spans = joined([(50e6, 60e6), (0, 10e6), (5e6, 8e6), (10.01e6, 12e6)], 0)
        expect(np.allclose(spans, [[0, 12], [50, 60]]), "spans are not joined")
        expect(joined([], 0).shape == (0, 2), "a lane without work has another shape")
        empty = np.zeros((0, 2))
        for load, compute, lane in (
            ([[0.0, 9]], [[9.0, 10]], "load"),
            ([[0.0, 5]], [[5.0, 10]], None),
            ([[0.0, 1]], [[1.0, 10]], "compute"),
        ):
            lanes = {"load": np.array(load), "copy": empty, "compute": np.array(compute)}
            expect(full_lane(lanes) == lane, f"{lane} is not the full lane")

    def check_lanes(self) -> None:
        lane_of = self.names["lane_of"]
        gpu = "/device:GPU:0"
        for (plane, line, event), lane in {
            (gpu, "Stream #13(Compute)", "loop_fusion_2"): "compute",
            (gpu, "Stream #14(MemcpyH2D)", "MemcpyH2D"): "copy",
            (gpu, "Stream #15(MemcpyD2H)", "MemcpyD2H"): "copy",
            (gpu, "Stream #13(Compute)", "MemcpyD2D"): "compute",
            (gpu, "XLA Ops", "loop_fusion_2"): None,
            ("/host:CPU", "python3", "load"): "load",
            ("/host:CPU", "python3", "copy"): "copy",
            ("/host:CPU", "python3", "step"): None,
            ("/host:CPU", "tf_XLAEigen/1", "dot.3"): "compute",
            ("/host:CPU", "tf_XLAEigen/1", "ThreadpoolListener::Record"): None,
            ("/host:CPU", "tf_XLAEigen/1", "end: dot.3"): None,
        }.items():
            found = lane_of(plane, line, event)
            expect(found == lane, f"{plane} {line} {event} is in the lane {found}")

    def check_stacks(self) -> None:
        stacked = self.names["stacked"]
        self._refuses("stacked", "count=0", [np.zeros(2)], 0)
        for shape, dtype in itertools.product(SHAPES, ("uint8", "float32", "int64")):
            rng = np.random.default_rng(0)
            batches = [
                {"x": rng.integers(0, 99, (4, *shape)).astype(dtype), "y": np.full(4, n)}
                for n in range(7)
            ]
            for count in (1, 3, 7, 9):
                stacks = list(stacked(iter(batches), count))
                sizes = [len(stack["y"]) for stack in stacks]
                expect(sizes == [len(b) for b in batched(batches, count)], f"stacks of {sizes}")
                for name in ("x", "y"):
                    joined = np.concatenate([stack[name] for stack in stacks])
                    expected = np.stack([batch[name] for batch in batches])
                    expect(np.array_equal(joined, expected), f"{name} is changed")
                    expect(joined.dtype == expected.dtype, f"{name} is {joined.dtype}")
        expect(list(stacked([], 3)) == [], "no batches make a stack")

    def check_training(self) -> None:
        import jax

        for shape in SHAPES:
            rng = np.random.default_rng(1)
            images = rng.integers(0, 17, (60, *shape)).astype(np.uint8)
            labels = rng.integers(0, 5, 60).astype(np.int32)
            params = self.names["init_params"](jax.random.key(0), (images[0].size, 16, 5))
            batches = list(itertools.islice(self.names["tuned_batches"](images, labels, 7, 0), 6))
            one_by_one = self.names["train"](params, batches, 16)
            [stack] = self.names["stacked"](batches, 6)
            in_one = self.names["train_steps"](params, *stack, largest=16)
            expect(near(one_by_one, in_one), f"{shape}: a scan trains otherwise")
            key = jax.random.key(1)
            epoch = self.names["resident_epoch"](params, key, images, labels, 7, largest=16)
            expect(not near(epoch, params), f"{shape}: the resident epoch trains nothing")
            self._refuses("resident_epoch", "60 examples", params, key, images, labels, 61)
            if len(shape) > 1:
                moved = self.names["shifted"](key, images, by=2)
                same = (moved.shape, moved.dtype) == (images.shape, images.dtype)
                expect(same, f"{shape}: shifted images are {moved.shape}, {moved.dtype}")

    def check_bounded(self) -> None:
        bounded = self.names["train_bounded"]
        for count, behind in itertools.product((0, 1, 2, 7), (0, 1, 2, 9)):
            batches = [(np.float32(n),) for n in range(count)]
            given = list(bounded(lambda total, n: (total + n, n), 0, iter(batches), behind))
            expect([value for _, value in given] == [*range(count)], f"{given} are the losses")
            if given:
                expect(given[-1][0] == sum(range(count)), "the last params are others")

    def check_threads(self) -> None:
        in_thread = self.names["in_thread"]
        expect(list(in_thread(range(50), 1)) == [*range(50)], "a thread changes the order")
        expect(list(in_thread([])) == [], "nothing is something")
        pulled = collections.deque()
        stream = in_thread((pulled.append(n) or n for n in itertools.count()), 3)
        next(stream)
        time.sleep(0.5)
        expect(len(pulled) <= 6, f"{len(pulled)} items are loaded ahead")
        before = threading.active_count()
        stream.close()
        time.sleep(1)
        expect(threading.active_count() == before - 1, "the thread outlives its stream")

    def replace(self, function: str, old: str, new: str) -> None:
        """Define a function of the lesson anew, with a change in one place."""
        [source] = [source for source in self.sources() if f"def {function}(" in source]
        if old not in source:
            raise Refused(f"{function} does not say {old!r}.")
        exec(source.replace(old, new, 1), self.names)

    def sources(self) -> list[str]:
        from tools import lessons

        cells = lessons.code_cells(lessons.read_notebook(self.name))
        return [cell.source for cell in cells if "copy" in lessons.tags(cell)]

    def _refuses(self, function: str, words: str, *arguments) -> None:
        made = functools.partial(self.names[function], *arguments)
        try:
            result = made()
            if hasattr(result, "__next__"):
                next(result)
        except ValueError as error:
            expect(words in str(error), f"{function} says: {error}")
        else:
            raise Refused(f"{function} takes what cannot work.")


def expect(holds: bool, sentence: str) -> None:
    if not holds:
        raise Refused(f"{sentence}.")


def near(a, b) -> bool:
    import jax

    close = functools.partial(np.allclose, atol=1e-4)
    return all(jax.tree.leaves(jax.tree.map(close, a, b)))


def tired(batches) -> int:
    for _ in batches:
        time.sleep(0.01)
    return 0


def slow(batches, seconds):
    for batch in batches:
        time.sleep(seconds)
        yield batch


def batched(items: list, count: int) -> list[list]:
    return [items[start : start + count] for start in range(0, len(items), count)]
