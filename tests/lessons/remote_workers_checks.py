"""The lesson on remote workers: its functions on other photographs, and on late batches."""

import itertools
import tempfile
from pathlib import Path
from unittest import mock

import numpy as np
from copied_cells import refusal
from hypothesis import strategies as st
from hypothesis_cases import tried
from PIL import Image

from benchmarks import contract


def prepare(names) -> None:
    """A dispatcher and two workers of this machine answer."""
    names["ready"](*names["dispatchers"], *names["workers"])


def check_photographs(names) -> None:
    """The stream keeps the contract's promises for photographs."""

    def file_batches(folder, batch_size, size, seed, start=0, workers=0, process=0, processes=1):
        make = names["maker_of"](folder, batch_size, size, seed, process, processes)
        return names["remote_batches"](make, names["DISPATCHER"], start)

    with tempfile.TemporaryDirectory() as folder:
        contract.check_files(file_batches, Path(folder), workers=())


def check_bad_file(names) -> None:
    """A stream with few batches early names a file that is broken."""
    with tempfile.TemporaryDirectory() as folder:
        contract.flat_photographs(Path(folder), 200, [(20, 30)], ["one"], hidden=False)
        path = Path(folder, "one", "broken.png")
        path.write_bytes(b"not a photograph")
        make = names["maker_of"](folder, 4, 8, 0)
        stream = names["remote_batches"](make, names["DISPATCHER"], ahead=1)
        message = refusal("a broken file", lambda: list(itertools.islice(stream, 100)))
        assert f"{path} cannot be decoded" in message, f"a broken file is not named: {message}"


def check_reckoning(names) -> None:
    """The missing cores and the bytes follow from the rates."""
    reckon = names["reckon"]
    for given, cores, gigabytes in (
        ((1_050, 100, 2_000_000, 4), 11, 2.1),
        ((100, 100, 1_000, 4), 0, 0),
        ((100, 100, 1_000, 0), 1, 1e-4),
    ):
        found = reckon(*given)
        right = cores, gigabytes
        assert np.allclose(found, right), f"reckon{given} is {found}, not {right}."
    for given in ((0, 1, 1, 0), (1, 0, 1, 0), (1, 1, 0, 0), (1, 1, 1, -1)):
        refusal(f"reckon{given}", lambda given=given: reckon(*given))


def check_python_maker(names) -> None:
    """A maker in Python gives each photograph once in an epoch."""
    with tempfile.TemporaryDirectory() as folder:
        for number in range(23):
            path = Path(folder, f"class {number % 3}", f"{number}.png")
            path.parent.mkdir(exist_ok=True)
            Image.new("L", (20 + number, 30), 10 * number).save(path)
        for batch_size in (1, 5, 23):
            make = names["python_maker_of"](folder, batch_size, 8, 0)
            steps = 23 // batch_size
            for epoch in range(2):
                batches = [make(np.int64(epoch * steps + step)) for step in range(steps)]
                images = np.concatenate([batch["image"] for batch in batches])
                labels = np.concatenate([batch["label"] for batch in batches])
                numbers = images[:, 0, 0, 0] // 10
                assert len({*numbers.tolist()}) >= steps * batch_size, "a photograph comes twice."
                assert np.array_equal(numbers % 3, labels), "labels are wrong."
                assert images.shape[1:] == (8, 8, 3), f"photographs are {images.shape[1:]}."
        message = refusal("24 in a batch", lambda: names["python_maker_of"](folder, 24, 8, 0))
        assert "23" in message, f"24 in a batch of 23: says {message}"
        deep, cut = Path(folder, "class 0", "deep.png"), Path(folder, "class 0", "cut.jpg")
        Image.new("I;16", (30, 30)).save(deep)
        make = names["python_maker_of"](folder, 24, 8, 0)
        said = refusal("a PNG of 16 bits", lambda: make(0))
        assert "deep.png cannot be decoded" in said, f"a PNG of 16 bits: {said}"
        Image.effect_noise((60, 60), 50).save(deep.rename(cut), "JPEG")
        cut.write_bytes(cut.read_bytes()[:-500])
        make = names["python_maker_of"](folder, 24, 8, 0)
        said = refusal("half a JPEG", lambda: make(0))
        assert "cut.jpg cannot be decoded" in said, f"half a JPEG: {said}"


@tried(
    steps=st.integers(1, 30),
    start=st.integers(0, 1_000),
    ahead=st.integers(1, 12),
    late=st.integers(0, 15),
    lost=st.sets(st.integers(0, 29), max_size=6),
    twice=st.sets(st.integers(0, 29), max_size=6),
    seed=st.integers(0, 99),
)
def check_order(names, steps, start, ahead, late, lost, twice, seed) -> None:
    """Each batch comes once, in order, whatever the workers send.

    `late`: by how many places a batch may come later or earlier than its number.
    """
    import tensorflow as tf

    rng = np.random.default_rng(seed)
    numbers = [n for n in range(steps) if n not in lost]
    numbers += [n for n in numbers if n in twice]
    numbers.sort(key=lambda n: n + rng.uniform(0, late + 0.5))
    last, waiting, most = start - 1, set(), 0

    def numbered(make, dispatcher, first):
        nonlocal most
        for number in itertools.chain(numbers, itertools.count(steps)):
            waiting.add(start + number)
            most = max(most, len([n for n in waiting if n > last]))
            yield start + number, {"step": np.int64(start + number), "sent": np.True_}

    def make(step):
        return {"step": step, "sent": tf.constant(False)}

    with mock.patch.dict(names, numbered=numbered):
        stream = names["remote_batches"](make, "nowhere", start, ahead)
        for step in range(start, start + steps + 3):
            batch = next(stream)
            assert batch["step"] == step, f"batch {batch['step']} comes in place of {step}."
            in_time = late + 2 * len(twice) < ahead and step - start not in lost
            assert not in_time or lost or batch["sent"], f"batch {step} came in time: not again."
            last = step
    assert most <= ahead + 1, f"{most} batches wait, and {ahead=} of them may."


BROKEN = [
    ("check_photographs", "tf.stack([seed, epoch])", "tf.stack([seed, 0 * epoch])", "epoch"),
    ("check_bad_file", "for step in steps:", "for step in steps[:0]:", "not named"),
    ("check_order", "if step not in early:", "if step < 0:", "raises KeyError"),
    ("check_order", "len(early) < ahead:", "len(early) < 40:", "wait"),
    ("check_python_maker", "place * batch_size :", "place :", "twice"),
    ("check_reckoning", "math.ceil", "math.floor", r"reckon\(.*\) is"),
]
