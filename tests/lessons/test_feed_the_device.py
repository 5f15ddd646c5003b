"""The lesson on feeding the device in a process of its own: what it hands out, on other data."""

import collections
import concurrent.futures
import contextlib
import functools
import itertools
import threading
import time
import types

import feed_feed_the_device as lesson
import feed_feed_the_device_in_depth as depth
import numpy as np
from expecting import refusal

SHAPES = ((8, 8), (5, 7, 3), (11,))


def test_diagnose():
    diagnose = lesson.diagnose
    for count, steps, ready in ((0, 5, 0), (1, 5, 0), (12, 5, 0), (16, 5, 4), (106, 20, 64)):
        needed = 2 * steps + ready + 3
        given = iter([np.zeros(3)] * count)
        refuses(f"{needed} batches", diagnose, tired, given, steps, ready)
    refuses("take all batches", diagnose, lambda b: [next(b)], itertools.repeat(np.zeros(3)))
    refuses("has to return", diagnose, lambda _: None, itertools.repeat(np.zeros(3)))
    nested = {"x": {"y": np.zeros((4, 2))}, "number": np.int32(3), "text": np.float32(0)}
    for batch in (np.int32(1), nested, (np.zeros(3), [np.zeros((3, 1))])):
        for verdict, loop, batches, options in (
            ("step", tired, itertools.repeat(batch), {}),
            ("loader", quick, slow(itertools.repeat(batch), 0.02), {}),
            ("turns", tired, slow(itertools.repeat(batch), 0.01), {}),
            ("transfer", sends, itertools.repeat(batch), {"send": late}),
        ):
            found = said(diagnose, loop, batches, steps=9, ready=0, **options)
            assert found == verdict, f"{verdict} is diagnosed as {found}."
    ready = itertools.chain(itertools.repeat(nested, 40), slow(itertools.repeat(nested), 0.02))
    found = said(diagnose, quick, ready, steps=9, ready=37)
    assert found == "loader", f"batches that were ready are measured: {found}."
    taken = []
    counted = (taken.append(n) or np.zeros(3) for n in itertools.count())
    said(diagnose, tired, counted, steps=4, ready=5)
    assert len(taken) == 16, f"{len(taken)} batches are taken for 16."


def test_full_lane():
    joined, full_lane = depth.joined, depth.full_lane
    given = [(50e6, 60e6), (0, 10e6), (5e6, 8e6), (10.004e6, 12e6), (12.01e6, 13e6)]
    spans = joined(given, 0, True)
    assert np.allclose(spans, [[0, 12], [12.01, 13], [50, 60]]), "kernels are not joined."
    assert len(joined(given, 0)) == 4, "copies are joined over a gap."
    assert joined([], 0).shape == (0, 2), "a lane without work has another shape."
    for load, compute, lane in (
        ([[0.0, 9]], [[9.0, 10]], "load"),
        ([[0.0, 5]], [[5.0, 10]], None),
        ([[0.0, 1]], [[1.0, 10]], "compute 0"),
    ):
        lanes = {"load": np.array(load), "compute 0": np.array(compute)}
        assert full_lane(lanes) == lane, f"{lane} is not the full lane."


def test_lanes():
    lane_of = depth.lane_of
    gpu = "/device:GPU:0"
    for (plane, line, name, *stats), lane in {
        (gpu, "Stream #13(Compute)", "loop_fusion_2"): "compute 0",
        ("/device:GPU:3", "Stream #13(Compute)", "loop_fusion_2"): "compute 3",
        ("/device:GPU:3", "Stream #19", "ncclDevKernel_AllReduce_Sum_f32"): "collective 3",
        (gpu, "Stream #14(MemcpyH2D)", "MemcpyH2D"): "copy",
        (gpu, "Stream #15(MemcpyD2H)", "MemcpyD2H"): "copy",
        (gpu, "Stream #13(Compute)", "MemcpyD2D"): "compute 0",
        (gpu, "XLA Ops", "loop_fusion_2", ("hlo_op", "loop_fusion_2")): None,
        ("/host:CPU", "python3", "feed: load"): "load",
        ("/host:CPU", "python3", "feed: copy"): "copy",
        ("/host:CPU", "python3", "step", ("step_num", 3)): None,
        ("/host:CPU", "tf_XLAEigen/1", "dot.3", ("hlo_op", "dot.3")): "compute 0",
        ("/host:CPU", "python3", "copy", ("hlo_op", "copy")): "compute 0",
        ("/host:CPU", "tf_XLA", "ThunkExecutor::Execute (wait for completion)"): "compute 0",
        ("/host:CPU", "tf_XLAEigen/1", "ThreadpoolListener::Record"): None,
        ("/host:CPU", "tf_XLAEigen/1", "end: dot.3"): None,
    }.items():
        found = lane_of(plane, line, types.SimpleNamespace(name=name, stats=stats))
        assert found == lane, f"{plane} {line} {name} is in the lane {found}."


def test_stacks():
    stacked = depth.stacked
    refuses("count=0", stacked, [np.zeros(2)], 0)
    uneven = [{"x": np.zeros(4)}, {"x": np.zeros(4)}, {"x": np.zeros(3)}]
    refuses("(3,)", stacked, uneven, 3)
    refuses("differ", stacked, [(np.zeros(3), 1), (np.zeros(3), np.zeros(3))], 2)
    refuses("float16", stacked, [np.zeros(3, np.float16), np.zeros(3, np.float32)], 2)
    for shape, dtype in itertools.product(SHAPES, ("uint8", "float32", "int64")):
        rng = np.random.default_rng(0)
        batches = [
            {"x": rng.integers(0, 99, (4, *shape)).astype(dtype), "y": np.full(4, n)}
            for n in range(7)
        ]
        for count in (1, 3, 7, 9):
            stacks = list(stacked(iter(batches), count))
            sizes = [len(stack["y"]) for stack in stacks]
            full = [min(count, 7 - first) for first in range(0, 7, count)]
            assert sizes == full, f"stacks of {sizes}, not {full}."
            for name in ("x", "y"):
                joined = np.concatenate([stack[name] for stack in stacks])
                expected = np.stack([batch[name] for batch in batches])
                assert np.array_equal(joined, expected), f"{name} is changed."
                assert joined.dtype == expected.dtype, f"{name} is {joined.dtype}."
    assert list(stacked([], 3)) == [], "no batches make a stack."


def test_training():
    import jax
    import jax.numpy as jnp

    def loss(params, batch):
        return ((batch["x"].reshape(len(batch["x"]), -1) @ params["w"]) ** 2).mean()

    def step(params, batch):
        value, gradient = jax.value_and_grad(loss)(params, batch)
        return jax.tree.map(lambda p, g: p - 1e-3 * g, params, gradient), value

    for shape in SHAPES:
        rng = np.random.default_rng(1)
        data = {"x": rng.normal(size=(60, *shape)).astype(np.float32), "row": np.arange(60)}
        params = {"w": jnp.ones((data["x"][0].size, 3))}
        epoch, key = lesson.resident_epoch, jax.random.key(1)
        trained, values = epoch(step, params, key, data, 7)
        assert len(values) == 8, f"{shape}: an epoch of 60 in batches of 7 has {len(values)}."
        assert not near(trained, params), f"{shape}: the resident epoch trains nothing."
        _, rows = epoch(lambda state, batch: (state, batch["row"]), 0, key, data, 7)
        assert len(np.unique(rows)) == rows.size == 56, f"{shape}: rows come twice."
        for size in (61, 0, -3):
            refuses("{60} examples", epoch, step, params, key, data, size)
        uneven = data | {"row": np.arange(30)}
        refuses("30", epoch, step, params, key, uneven, 7)
        parts = {"x": data["x"][:42].reshape(6, 7, *shape)}
        whole = jax.grad(loss)(params, {"x": data["x"][:42]})
        summed = depth.accumulated(loss, params, parts)
        assert near(whole, summed), f"{shape}: gradients are added up to others."
        refuses("without parts", depth.accumulated, loss, params, {"x": parts["x"][:0]})


def test_watched():
    watched_of = lesson.Watched
    assert [*watched_of([])] == [] and [*watched_of(range(3))] == [0, 1, 2]
    for busy, idle in ((0.0, 0.6), (0.25, 0.1), (60, 0)):
        watched = watched_of(slow(range(3), 0.3))
        for _ in watched:
            watched.made({"loss": Done(time.perf_counter() + busy if busy < 60 else None)})
        seen = watched.waited
        watched.thread.shutdown()  # another check counts threads
        assert idle - 0.01 <= seen <= idle + 0.3, f"waited {seen} s of {idle} s."
    watched = watched_of(slow(range(1), 0.02))
    next(watched)
    assert np.isnan(watched.waited), "it has waited though no step was made."


class Done:
    """What a step made, and is there at a time, or after a second."""

    def __init__(self, end):
        self.end = end or time.perf_counter() + 1

    def block_until_ready(self):
        time.sleep(max(0, self.end - time.perf_counter()))
        return self


def test_bounded():
    bounded = depth.train_bounded
    for count, behind in itertools.product((0, 1, 2, 7), (0, 1, 2, 9)):
        batches = [(np.float32(n),) for n in range(count)]
        given = list(bounded(lambda total, n: (total + n[0], n[0]), 0, iter(batches), behind))
        assert [value for _, value in given] == [*range(count)], f"{given} are the losses."
        if given:
            assert given[-1][0] == sum(range(count)), "the last params are others."


def test_threads():
    in_thread = depth.in_thread
    assert list(in_thread(range(50), 1)) == [*range(50)], "a thread changes the order."
    assert list(in_thread([])) == [], "nothing is something."
    for ahead in (0, -1):
        refuses(f"ahead={ahead}", in_thread, itertools.count(), ahead)
    for error in (SystemExit, KeyboardInterrupt, OSError):
        found = error_of(in_thread(raising(error)))
        assert isinstance(found, error), f"{error.__name__} does not arrive."
    pulled = collections.deque()
    stream = in_thread((pulled.append(n) or n for n in itertools.count()), 3)
    next(stream)
    time.sleep(0.5)
    assert len(pulled) <= 6, f"{len(pulled)} items are loaded ahead."
    before = threading.active_count()
    stream.close()
    time.sleep(1)
    assert threading.active_count() == before - 1, "the thread outlives its stream."


def refuses(words: str, function, *arguments, **options) -> None:
    def call():
        result = function(*arguments, **options)
        if hasattr(result, "__next__"):
            next(result)

    name = getattr(function, "func", function).__name__
    message = refusal(f"{name}, {words}", call)
    assert words in message, f"{name} says: {message}."


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


def quick(batches) -> int:
    for _ in batches:
        pass
    return 0


def late(batch):
    import jax

    if not all(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(batch)):
        time.sleep(0.02)
    return jax.device_put(batch)


def sends(batches) -> int:
    return quick(map(late, batches))


def said(diagnose, *arguments, **options):
    with contextlib.redirect_stdout(None):
        return diagnose(*arguments, **options)


def raising(error):
    yield 0
    raise error


def error_of(stream, seconds=20) -> BaseException | None:
    """What the stream ends with, in a thread that may wait for ever: then raises TimeoutError."""
    ended = concurrent.futures.Future()

    def take():
        try:
            ended.set_result(list(stream))
        except BaseException as error:
            ended.set_exception(error)

    threading.Thread(target=take, daemon=True).start()
    return ended.exception(seconds)
