"""What a reader copies from the Grain lesson and its depth, on data that they do not have."""

import itertools

import feed_grain as lesson
import feed_grain_in_depth as depth
import grain
import numpy as np
from expecting import refusal, same, write_deep_rgb
from hypothesis import strategies as st
from hypothesis_cases import tried
from PIL import Image

SIZES = {
    "examples": st.integers(1, 90),
    "rows": st.integers(1, 9),
    "processes": st.integers(1, 4),
    "epoch": st.integers(0, 3),
}


class Indexed:
    """A source as Grain's documentation has it: a length, and an example by its index."""

    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return {"row": self.rows[index], "image": np.full((2, 3), self.rows[index], np.uint8)}


class Negated(grain.transforms.Map):
    def map(self, row):
        return -row


class Drawn(grain.transforms.RandomMap):
    def random_map(self, row, rng):
        return np.array([row, rng.integers(2**30)])


def test_arrays():
    """`batches` moves what `Batches` gathers, of any pytree, from any step on; its state too."""
    images = np.asfortranarray(np.arange(24 * 6).reshape(24, 2, 3))
    arrays = {"image": images, "more": (np.arange(24) * 7,)}
    order = depth.Batches(arrays, 5, seed=3)
    for make in (
        lambda start: depth.batches(arrays, 5, seed=3, start=start),
        lambda start: iter(depth.InMemory(order, start)),
    ):
        for step, batch in enumerate(itertools.islice(make(2), 12), 2):
            assert same(batch, order[step]), "another batch"
        stream, resumed = make(0), make(0)
        [*itertools.islice(stream, 6)]
        resumed.set_state(stream.get_state())
        assert same(next(stream), next(resumed)), "the state names another batch"
    assert same(next(depth.batches(arrays, 5)), depth.Batches(arrays, 5)[0]), "begins elsewhere"
    assert same(next(iter(depth.InMemory(order))), order[0]), "begins elsewhere"
    refusal("two lengths", lambda: depth.batches((np.arange(9), np.arange(8)), 2))
    refusal("before the first", lambda: depth.batches(np.arange(9), 2, start=-1))
    refusal("too few", lambda: depth.batches(np.arange(9), 10))


def test_examples():
    """Of any source each epoch has each row once, whole, other ones left out; or it refuses."""

    @tried(6, **SIZES)
    def check(examples, rows, processes, epoch):
        source, steps = Indexed(np.arange(examples) + 7), examples // rows
        if not steps:
            refusal("too few", lambda: depth.example_batches(source, rows))
            return
        stream = depth.example_batches(source, rows, seed=5, start=epoch * steps)
        seen = [*itertools.islice(stream, 2 * steps)]
        for part in (seen[:steps], seen[steps:]):
            found = np.concatenate([batch["row"] for batch in part])
            assert len(found) == len({*found.tolist()}) == steps * rows, "not each row once"
        batch = seen[-1]
        assert same(batch["image"], np.tile(batch["row"][:, None, None], (1, 2, 3))), "mixed up"

    check()
    made = depth.example_batches
    for rows in ([*range(20)], np.arange(20), grain.MapDataset.range(20)):
        batch = next(made(rows, 20, transforms=[Negated()]))
        assert same(np.sort(batch), np.arange(-19, 1)), "transformed otherwise"
    whole = [*itertools.islice(made(range(20), 5, transforms=[Drawn()]), 16)]
    again = made(range(20), 5, start=9, transforms=[Drawn()])
    assert same(next(again), whole[9]), "random numbers that do not follow from the step"
    drawn = np.concatenate(whole)[:, 1]
    assert len({*drawn.tolist()}) == len(drawn), "the same random numbers again"
    assert same(next(made(range(20), 5)), next(made(range(20), 5, 0, 0))), "another default"
    refusal("no rows", lambda: made(range(5), 0))
    refusal("nothing", lambda: made([], 1))
    refusal("before the first", lambda: made(range(5), 2, start=-1))
    refusal("text", lambda: next(made(["cat", "dog"], 2)))
    refusal("33 bits", lambda: next(made([2**33, 1], 2)))


def test_processes():
    """All processes together have the rows of one, with the same random numbers."""

    @tried(3, **SIZES)
    def check(examples, rows, processes, epoch):
        together, data = rows * processes, range(examples)
        if together > examples:
            make = (data, rows, 0, 0, (), 0, processes)
            refusal("too few", lambda: depth.chain_of(*make))
            return
        first = epoch * (examples // together)
        whole = depth.example_batches(data, together, 4, first, [Drawn()])
        parts = [
            depth.chain_of(data, rows, 4, first, [Drawn()], process, processes)
            for process in range(processes)
        ]
        for step, batch in enumerate(itertools.islice(whole, 3)):
            joined = np.concatenate([part[step] for part in parts])
            assert same(*(np.sort(found, axis=0) for found in (joined, batch))), "other rows"
        arrays = [
            depth.array_batches(np.arange(examples), rows, 4, first, process, processes)
            for process in range(processes)
        ]
        joined = np.concatenate([next(part) for part in arrays])
        assert same(joined, depth.Batches(np.arange(examples), together, 4)[first]), "arrays"

    check()
    for said, place in (
        ("too few", (21, 0, 0, 1)),
        ("no rows", (0, 0, 0, 1)),
        ("before the first", (4, -1, 0, 1)),
        ("a process too many", (4, 0, 2, 2)),
        ("a process before the first", (4, 0, -1, 2)),
    ):
        batch_size, start, process, processes = place
        make = range(20), batch_size, 0, start, (), process, processes
        message = refusal(said, lambda make=make: depth.chain_of(*make))
        assert f"20 examples give no batch: {batch_size=}, {start=}" in message, message


def test_failures(capsys):
    """`without_failures` leaves out the batches that fail, one by one, and no more than allowed."""

    class Fails(grain.transforms.Map):
        def map(self, row):
            if row == 3:
                raise LookupError  # an error without a text
            if row == 11:
                raise ValueError(f"row {row} is broken")
            return row

    def stream(start):
        return depth.example_batches(range(24), 4, 1, start, [Fails()])

    whole = [*itertools.islice(depth.example_batches(range(24), 4, 1), 12)]
    broken = {step for step, rows in enumerate(whole) if {3, 11} & {*rows.tolist()}}
    right = [(step, rows) for step, rows in enumerate(whole) if step not in broken]
    for start in (0, 4):
        got = depth.without_failures(stream, start, most=len(broken))
        expected = [found for found in right if found[0] >= start]
        assert same([*itertools.islice(got, len(expected))], expected), "other batches"
    said = capsys.readouterr().out
    assert "row 11 is broken" in said and "LookupError()" in said, "the reason is not told"
    none = depth.without_failures(stream)
    refusal("one by default", lambda: [*itertools.islice(none, 12)], LookupError)
    few = depth.without_failures(stream, most=len(broken) - 1)
    refusal("one too many", lambda: [*itertools.islice(few, 12)])


def test_a_stream_of_the_hub():
    """The state of a stream of Hugging Face goes through Grain's, twice in a row, loses no row."""
    from datasets import Dataset

    def stream():
        rows = Dataset.from_dict({"row": [*range(60)]}).to_iterable_dataset(num_shards=4)
        return iter(depth.Stream(rows.shuffle(seed=1, buffer_size=1)).batch(4))

    whole = [batch["row"] for batch in stream()]
    assert same(np.sort(np.concatenate(whole)), np.arange(60)), "rows are lost"
    one = stream()
    [*itertools.islice(one, 3)]
    two = stream()
    two.set_state(one.get_state())
    [*itertools.islice(two, 5)]
    three = stream()
    three.set_state(two.get_state())
    assert same([batch["row"] for batch in three], whole[8:]), "after two resumes other rows"


def test_photographs(tmp_path):
    """Any size and mode becomes a square with its label; a crop follows from seed and position."""
    examples = []
    for number, mode in enumerate(("RGB", "L", "P", "CMYK", "RGBA")):
        file = tmp_path / f"{number}.png" if mode != "CMYK" else tmp_path / f"{number}.jpg"
        noise = np.random.default_rng(number).integers(256, size=(40 + number, 60, 3))
        Image.fromarray(noise.astype(np.uint8)).convert(mode).save(file)
        examples.append((file, number))
    source = grain.MapDataset.source(examples).seed(3).shuffle()
    chain = source.random_map(lesson.RandomSquare(16)).repeat().batch(2)
    whole = [chain[step] for step in range(10)]  # four epochs
    for epoch in np.concatenate([labels for _, labels in whole]).reshape(4, 5):
        assert sorted(epoch) == [0, 1, 2, 3, 4]
    iterator = iter(chain.to_iter_dataset())
    [*itertools.islice(iterator, 7)]
    resumed = iter(chain.to_iter_dataset())
    resumed.set_state(iterator.get_state())
    for expected in whole[7:]:
        images, labels = next(resumed)
        assert images.shape == (2, 16, 16, 3) and images.dtype == np.uint8
        assert same((images, labels), expected), "another crop after a resume"
    crops = {images[labels == 0].tobytes() for images, labels in whole if 0 in labels}
    assert len(crops) == 4, "the same crop in each epoch"
    iterator.close()
    resumed.close()


def test_a_photograph_that_cannot_be_decoded_is_named(tmp_path):
    turned = Image.Exif()
    turned[0x0112] = 6
    Image.new("RGB", (40, 20)).save(tmp_path / "turned.jpg", exif=turned)
    assert lesson.upright(tmp_path / "turned.jpg").size == (20, 40)
    whole = (tmp_path / "turned.jpg").read_bytes()
    (tmp_path / "cut.jpg").write_bytes(whole[: len(whole) // 2])
    Image.new("I;16", (9, 9)).save(tmp_path / "deep.png")
    write_deep_rgb(tmp_path / "deep_rgb.png")
    for name in ("cut.jpg", "deep.png", "deep_rgb.png", "missing.jpg"):
        said = refusal(name, lambda name=name: lesson.upright(tmp_path / name))
        assert name in said, said
