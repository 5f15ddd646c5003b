"""The lesson on remote workers: its functions on other photographs, and on late batches."""

import itertools
import sys
import tempfile
from pathlib import Path
from unittest import mock

import feed_remote_workers as lesson
import feed_remote_workers_in_depth as depth
import numpy as np
import pytest
from expecting import refusal, same, write_deep_rgb
from hypothesis import strategies as st
from hypothesis_cases import tried
from PIL import Image

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True, scope="module")
def ray():
    """Ray on this machine. Its workers get what is defined here by value: no path leads here."""
    import ray
    from ray import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    scratch = tempfile.TemporaryDirectory(dir="/tmp", ignore_cleanup_errors=True)
    options = {"include_dashboard": False, "object_store_memory": 10**8, "log_to_driver": False}
    ray.init("local", num_cpus=2, _temp_dir=scratch.name, logging_level="critical", **options)
    yield
    ray.shutdown()


def made(step):
    """A batch of nested columns that takes a while, another while at each step."""
    random = np.random.default_rng(step)
    __import__("time").sleep(random.uniform(0, 0.02))
    return {"rows": random.random((step % 5, 3)), "more": (np.int64(step), f"text {step}")}


@tried(3, start=st.integers(0, 10**9), ahead=st.integers(1, 20), count=st.integers(1, 30))
def test_order(start, ahead, count):
    """Each batch comes once, in order, from any step, beside another stream."""
    streams = [lesson.batches(made, first, ahead) for first in (start, start + 7)]
    for number in range(count):
        for first, stream in zip((start, start + 7), streams, strict=True):
            batch, right = next(stream), made(first + number)
            assert np.array_equal(batch["rows"], right["rows"]), f"batch {number} is another."
            assert batch["more"] == right["more"], f"batch {number} is another."


def test_refusals():
    """What cannot work is refused at the call, and a failed batch is named."""
    for given in ((3,), (made, -1), (made, 0, 0)):
        refusal(f"batches{given}", lambda given=given: lesson.batches(*given))

    def fails(step):
        raise KeyError(step)

    try:
        next(lesson.batches(fails, 12))
    except KeyError as error:
        said = [*getattr(error, "__notes__", [])]
    assert said == ["This was batch 12."], f"the batch that failed is not named: {said}"


def test_photographs():
    """Each photograph comes once in an epoch, with its label; damaged ones are named."""
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, f"{number}.png") for number in range(23)]
        for number, file in enumerate(files):
            Image.new("L", (20 + number, 30), 10 * number).save(file)
        labels = np.arange(23) % 3
        for batch_size in (1, 5, 23):
            make = lesson.photographs_of(files, labels, batch_size, 8)
            steps = 23 // batch_size
            for epoch in range(2):
                batches = [make(epoch * steps + step) for step in range(steps)]
                images, given = map(np.concatenate, zip(*batches, strict=True))
                numbers = images[:, 0, 0, 0] // 10
                assert len({*numbers.tolist()}) == steps * batch_size, "a photograph comes twice."
                assert np.array_equal(numbers % 3, given), "labels are wrong."
                assert images.shape[1:] == (8, 8, 3), f"photographs are {images.shape[1:]}."
        for given in ((files, labels, 24, 8), (files, labels[1:], 4, 8), ([], [], 1, 8)):
            refusal("no batch", lambda given=given: lesson.photographs_of(*given))
        deep, cut = Path(folder, "deep.png"), Path(folder, "cut.jpg")
        Image.new("I;16", (30, 30)).save(deep)
        Image.effect_noise((60, 60), 50).save(cut)
        cut.write_bytes(cut.read_bytes()[:-500])
        for bad in (deep, cut, write_deep_rgb(Path(folder, "deep_rgb.png"))):
            make = lesson.photographs_of([bad], [0], 1, 8)
            said = refusal(bad.name, lambda make=make: make(0))
            assert bad.name in said, f"{bad.name} is not named: {said}"


def test_shares():
    """The shares of a batch are the same rows on any number of processes."""
    for processes in (1, 2, 3, 6):
        shares = [
            depth.share_of(lambda n: (np.full(2, n),), 6, process, processes)
            for process in range(processes)
        ]
        for step in (0, 5):
            rows = np.concatenate([share(step)[0] for share in shares])
            right = np.repeat(np.arange(6 * step, 6 * step + 6), 2)
            assert np.array_equal(rows, right), f"{processes} processes have other rows: {rows}"
    for given in ((6, 0, 4), (6, 2, 2), (6, -1, 2)):
        refusal(f"share_of{given}", lambda given=given: depth.share_of(made, *given))


def test_service():
    """What the service loses or sends late is made here, and counted."""
    import tensorflow as tf

    def distribute(*_, **__):
        def loses(dataset):
            kept = dataset.filter(lambda n, _: tf.math.floormod(n, 10) != 3)
            return kept.shuffle(5, seed=0)

        return loses

    def make(step):
        return {"step": step}

    service = tf.data.experimental.service
    with mock.patch.object(service, "distribute", distribute):
        stream = depth.service_batches(make, "nowhere", start=20, ahead=100)
        came = [*itertools.islice(stream, 50)]
    steps = [int(batch["step"]) for batch, _ in came]
    assert steps == [*range(20, 70)], f"steps are {steps}."
    assert came[-1][1] == 5, f"5 batches were lost, and {came[-1][1]} are counted."
    assert same(came[3][0], {"step": np.int64(23)})
