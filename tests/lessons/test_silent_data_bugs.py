"""The checker of the lesson on silent bugs: what it finds, and what it says of a sound loader."""

import collections
import itertools

import numpy as np
import pytest
from feed_silent_data_bugs import wrong_with
from feed_start_here import Batches

from tools.lesson import lessons

COUNT, SIZE, STEPS = 300, 24, 12
IMAGES = np.arange(COUNT * 16).reshape(COUNT, 4, 4).astype(np.uint8)
LABELS = 2**33 * (np.arange(COUNT) % 2) + np.arange(COUNT) * 37 % 101
EXAMPLES = {"image": IMAGES + LABELS[:, None, None] % 7, "label": LABELS, "row": np.arange(COUNT)}


def order(epoch):
    return np.random.default_rng((0, epoch)).permutation(COUNT)


def of(rows):
    return {name: column[rows] for name, column in EXAMPLES.items()}


def batches(rows, start, process, processes):
    for first in range(start * SIZE, len(rows) - SIZE + 1, SIZE):
        yield of(rows[first : first + SIZE][process::processes])


def sound(epoch, *where):
    return batches(order(epoch), *where)


def whole_epoch(epoch, start, process, processes):
    """With the short last batch."""
    for first in range(start * SIZE, COUNT, SIZE):
        yield of(order(epoch)[first : first + SIZE][process::processes])


def half_never_seen(epoch, *where):
    return itertools.islice(sound(epoch, *where), STEPS // 2)


def other_labels(epoch, *where):
    for batch in sound(epoch, *where):
        yield batch | {"label": np.roll(batch["label"], 1)}


def each_worker_all(epoch, start, process, processes):
    return batches(np.repeat(order(epoch), 2), start, process, processes)


def each_process_all(epoch, start, process, processes):
    return sound(epoch, start, 0, 1)


def same_order(epoch, *where):
    return sound(0, *where)


def resume_from_nothing(epoch, start, *where):
    """What lay in a buffer of 50 rows when it stopped does not come."""
    rows = order(epoch)
    return batches(np.concatenate([rows[:1], rows[start * SIZE + 50 * (start > 0) :]]), 0, *where)


def cut_to_32_bits(epoch, *where):
    for batch in sound(epoch, *where):
        yield batch | {"label": batch["label"].astype(np.int32)}


def one_buffer(epoch, *where):
    buffer, ahead = np.empty((SIZE, 4, 4), IMAGES.dtype), None
    for batch in sound(epoch, *where):
        rows = len(batch["image"])
        buffer[:rows] = batch["image"]
        if ahead:
            yield ahead
        ahead = batch | {"image": buffer[:rows]}
    yield ahead


def one_buffer_not_ahead(epoch, *where):
    buffer = np.empty((SIZE, 4, 4), IMAGES.dtype)
    for batch in sound(epoch, *where):
        rows = len(batch["image"])
        buffer[:rows] = batch["image"]
        yield batch | {"image": buffer[:rows]}


def damaged(epoch, *where):
    """One example is gray, as the half of a truncated photograph is."""
    for batch in sound(epoch, *where):
        spoilt = np.where((batch["row"] == order(0)[5])[:, None, None], 128, batch["image"])
        yield batch | {"image": spoilt}


def from_the_second_epoch_on(epoch, *where):
    return other_labels(epoch, *where) if epoch else sound(epoch, *where)


def late_resume(epoch, start, *where):
    return sound(epoch, start if start < 6 else start + 1, *where)


def never_forty(epoch, *where):
    rows = order(epoch)
    return batches(rows[rows >= 40], *where)


def ring_of_two(epoch, *where):
    ring = np.empty((2, SIZE, 4, 4), IMAGES.dtype)
    for number, batch in enumerate(sound(epoch, *where)):
        buffer = ring[number % 2, : len(batch["image"])]
        buffer[:] = batch["image"]
        yield batch | {"image": buffer}


def first_process_only(epoch, start, process, processes):
    rows = sound(epoch, start, process, processes)
    return rows if process == 0 else iter(())


def endless(epoch, *where):
    return itertools.cycle(sound(epoch, *where))


def scaled(epoch, *where):
    for batch in sound(epoch, *where):
        yield batch | {"image": batch["image"] / 255}


def fewer_for_the_second(epoch, start, process, processes):
    """The second process ends two steps earlier: a step that needs both would wait for ever."""
    stop = STEPS - start - 2 * process
    return itertools.islice(sound(epoch, start, process, processes), stop)


def larger_for_the_second(epoch, start, process, processes):
    """The same rows, in fewer and larger batches."""
    mine = [*sound(epoch, start, process, processes)]
    if process == 0:
        return iter(mine)
    pairs = zip(mine[::2], mine[1::2], strict=False)
    return ({key: np.concatenate([a[key], b[key]]) for key in a} for a, b in pairs)


def resume_in_the_first_epoch_only(epoch, start, *where):
    wrong = epoch > 0 and start > 0
    return sound(epoch, start + 1 if wrong else start, *where)


def to_even_steps(epoch, start, *where):
    return sound(epoch, start // 2 * 2, *where)


def to_multiples_of_four(epoch, start, *where):
    return sound(epoch, start // 4 * 4, *where)


def resume_by_rows_of_all(epoch, start, process, processes):
    """Each process skips as many rows as all processes together should."""
    rows = order(epoch)[process::processes]
    size = SIZE // processes
    for first in range(SIZE * start, len(rows) - size + 1, size):
        yield of(rows[first : first + size])


def no_set_epoch_in_processes(epoch, start, process, processes):
    return sound(epoch if processes == 1 else 0, start, process, processes)


def never_the_last(epoch, *where):
    rows = order(epoch)
    return batches(rows[rows < COUNT - 1], *where)


def one_batch(epoch, start, process, processes):
    yield of(order(epoch)[process::processes])


def all_rows_in_the_second_epoch(epoch, start, process, processes):
    return sound(epoch, start, *((process, processes) if epoch == 0 else (0, 1)))


def test_rows_of_the_test_set_are_found():
    """Of a training set of 200 rows, whose loader gives others, too."""
    train = {name: column[:200] for name, column in EXAMPLES.items()}
    assert any("other values or labels" in said for said in wrong_with(sound, train))


@pytest.mark.parametrize(
    ("loader", "said"),
    [
        (half_never_seen, "an epoch: 156 examples never come"),
        (other_labels, "with other values or labels"),
        (each_worker_all, "an epoch: 300 examples come again"),
        (each_process_all, "all processes: 288 examples come again"),
        (same_order, "the next epoch has the same order"),
        (resume_from_nothing, "a start at step 8 gives other batches"),
        (cut_to_32_bits, "with other values or labels"),
        (one_buffer, "with other values or labels"),
        (one_buffer_not_ahead, "a batch changes after it was given"),
        (damaged, "an epoch: 1 examples with other values or labels"),
        (from_the_second_epoch_on, "the next epoch: "),
        (late_resume, "a start at step 8 gives other batches"),
        (never_forty, "an epoch: 60 examples never come"),
        (ring_of_two, "a batch changes after it was given"),
        (first_process_only, "all processes: "),
        (endless, "the epoch has no end"),
        (scaled, "an epoch: 288 examples with other values or labels"),
        (lambda *_: iter(()), "an epoch: 300 examples never come"),
        (resume_by_rows_of_all, "a start at step 8 gives other batches in 2 processes"),
        (no_set_epoch_in_processes, "the next epoch has the same order"),
        (never_the_last, "1 examples come in no epoch"),
        (one_batch, "an epoch has too few batches to check a start"),
        (fewer_for_the_second, "processes get unequal batches"),
        (larger_for_the_second, "processes get unequal batches"),
        (resume_in_the_first_epoch_only, "a start at step 7 of the next epoch gives other batches"),
        (to_even_steps, "a start at step 7 of the next epoch gives other batches"),
        (to_multiples_of_four, "a start at step 7 of the next epoch gives other batches"),
        (all_rows_in_the_second_epoch, "all processes in the next epoch: 288 examples come again"),
    ],
)
def test_a_fault_is_found(loader, said):
    found = [*wrong_with(loader, EXAMPLES)]
    assert any(said in sentence for sentence in found), found


def test_a_skip_that_stays():
    """A loader that skips in all later epochs, once it was resumed, is found by a last epoch."""
    skipped = []

    def loader(epoch, start, *where):
        skipped.append(start)
        return sound(epoch, start or max(skipped), *where)

    assert "epoch 0, read a second time, is different" in wrong_with(loader, EXAMPLES)


@pytest.mark.parametrize("loader", [sound, whole_epoch])
@pytest.mark.parametrize("processes", [1, 2, 3])
def test_a_sound_loader_has_no_fault(loader, processes):
    assert [*wrong_with(loader, EXAMPLES, processes)] == []


@pytest.mark.parametrize("form", [tuple, list, dict])
def test_columns_of_any_structure_and_kind(form):
    text = np.array([f"Nr. {n} ü" for n in range(COUNT)])
    columns = {"image": IMAGES, "text": text, "flag": np.arange(COUNT) % 2 == 0}

    def tree(rows):
        picked = {name: column[rows] for name, column in columns.items()}
        return picked if form is dict else form(picked.values())

    def loader(epoch, start, process, processes):
        for batch in sound(epoch, start, process, processes):
            yield tree(batch["row"])

    def mixed(*where):
        for batch in sound(*where):
            text = {"text": columns["text"][np.roll(batch["row"], 1)]}
            picked = {name: column[batch["row"]] for name, column in columns.items()} | text
            yield picked if form is dict else form(picked.values())

    assert [*wrong_with(loader, tree(np.arange(COUNT)))] == []
    assert any("other values" in said for said in wrong_with(mixed, tree(np.arange(COUNT))))


def test_float64_texts_as_bytes_and_zeros_of_both_signs():
    numbers = np.linspace(-1, 1, COUNT)
    numbers[7] = -0.0
    texts = np.array([f"Nr. {n} ü".encode() for n in range(COUNT)], object)

    def loader(epoch, start, process, processes):
        for batch in sound(epoch, start, process, processes):
            rows = batch["row"]
            yield {"number": numbers[rows].astype(np.float32) + 0.0, "text": texts[rows]}

    assert [*wrong_with(loader, {"number": numbers, "text": texts})] == []


def test_equal_examples_are_counted():
    """A dataset that has an example twice wants it twice."""
    twice = {name: np.concatenate([column, column]) for name, column in EXAMPLES.items()}
    doubled = collections.Counter(np.concatenate([order(0), order(0)]).tolist())
    assert set(doubled.values()) == {2}

    def loader(epoch, start, process, processes):
        rows = np.random.default_rng((0, epoch)).permutation(2 * COUNT)
        for first in range(start * SIZE, 2 * COUNT, SIZE):
            mine = rows[first : first + SIZE][process::processes]
            yield {name: column[mine] for name, column in twice.items()}

    assert [*wrong_with(loader, twice)] == []
    assert any("never come" in said for said in wrong_with(sound, twice))


def test_ids_beyond_what_a_float_holds_are_told_apart():
    ids = {"id": 2**60 + np.arange(COUNT), "more": 2**63 + np.arange(COUNT, dtype=np.uint64)}

    def loader(epoch, start, process, processes):
        for batch in sound(epoch, start, process, processes):
            yield {name: column[batch["row"]] for name, column in ids.items()}

    def through_float(*where):
        for batch in loader(*where):
            yield batch | {"id": batch["id"].astype(np.float64).astype(np.int64)}

    assert [*wrong_with(loader, ids)] == []
    assert any("other values" in said for said in wrong_with(through_float, ids))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16])
def test_another_dtype_with_the_same_values_is_no_fault(dtype):
    """Images that a loader makes float32 without scaling them, and labels that it makes floats."""
    same = {"image": IMAGES, "label": np.arange(COUNT) * 37 % 101}

    def loader(epoch, start, process, processes):
        for batch in sound(epoch, start, process, processes):
            yield {name: column[batch["row"]].astype(dtype) for name, column in same.items()}

    assert [*wrong_with(loader, same)] == []


def stream_of(columns, collate=lambda column, rows: column[rows]):
    """A sound loader of other columns."""

    def loader(epoch, start, process, processes):
        for batch in sound(epoch, start, process, processes):
            yield {name: collate(column, batch["row"]) for name, column in columns.items()}

    return loader


def test_texts_in_lists_as_bytes_and_of_several_columns():
    """As a DataLoader, tf.data and a table give them."""
    texts = np.array([["a" * (n % 7), f"Nr. {n} ü"] for n in range(COUNT)])
    columns = {"pair": texts, "text": texts[:, 1]}
    assert wrong_with(stream_of(columns), columns) == []
    one = {"text": texts[:, 1]}
    as_list = stream_of(one, lambda column, rows: column[rows].tolist())
    as_bytes = stream_of(one, lambda column, rows: np.char.encode(column[rows], "utf-8"))
    for loader in (as_list, as_bytes):
        assert wrong_with(loader, one) == []


def test_objects_that_hold_arrays_are_compared_whole():
    images = np.empty(COUNT, object)
    images[:] = [np.full((40, 40 + n % 3), n) for n in range(COUNT)]
    spoilt = images.copy()
    spoilt[7] = images[7].copy()
    spoilt[7][20] = 0
    assert wrong_with(stream_of({"x": images}), {"x": images}) == []
    found = wrong_with(stream_of({"x": spoilt}), {"x": images})
    assert any(": 1 examples with other values or labels" in said for said in found)


@pytest.mark.parametrize(
    "values",
    [
        np.arange(COUNT) * 1j,
        np.datetime64("2026-11-28") + np.arange(COUNT),
        np.where(np.arange(COUNT) % 3, np.arange(COUNT), np.nan),
        2**53 + np.arange(COUNT),
    ],
    ids=["complex", "dates", "missing values", "at the border of floats"],
)
def test_values_of_other_kinds_are_equal_to_themselves_and_to_no_other(values):
    columns = {"row": np.arange(COUNT), "value": values}
    assert wrong_with(stream_of(columns), columns) == []
    swapped = {"row": np.arange(COUNT), "value": values[::-1]}
    assert "other values" in " ".join(wrong_with(stream_of(swapped), columns))


def test_columns_of_unequal_length_are_an_error():
    columns = {"row": np.arange(COUNT), "label": np.arange(COUNT + 1)}
    with pytest.raises(ValueError, match="zip"):
        wrong_with(stream_of({"row": np.arange(COUNT)}), columns)


@pytest.mark.parametrize("processes", [1, 2, 4])
def test_the_wrapper_that_the_page_gives_for_the_first_lesson(processes):
    """Its two lines stand in a sentence, so no cell runs them."""
    make = "Batches(examples, 32 // processes, process=process, processes=processes)"
    loop = "itertools.islice(batches.epoch(epoch), start, None)"
    page = lessons.md_path("silent_data_bugs").read_text()
    assert f"`batches = {make}`" in page and f"`{loop}`" in page
    examples = {"image": np.concatenate([IMAGES, IMAGES + 1]), "row": np.arange(2 * COUNT)}

    def loader(epoch, start, process, processes):
        names = {"process": process, "processes": processes, "epoch": epoch, "start": start}
        batches = eval(make, {"Batches": Batches, "examples": examples}, names)
        return eval(loop, {"itertools": itertools, "batches": batches}, names)

    assert wrong_with(loader, examples, processes) == []
