"""Parts of a global batch on pretended devices, and what they have to be: those of one process."""

import dataclasses
import itertools
from unittest import mock

import feed_grain_in_depth
import feed_many_devices as lesson
import feed_many_devices_in_depth as depth
import feed_pytorch_dataloader_in_depth
import feed_start_here
import jax
import numpy as np
import pytest

# Pretended devices --------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Pretended:
    id: int
    process_index: int
    platform: str = "gpu"
    device_kind: str = "none"


def layouts():
    """Meshes of up to 6 processes with up to 4 devices: by process, and by turns."""
    for processes, devices in itertools.product(range(1, 7), range(1, 5)):
        made = [Pretended(n, n // devices) for n in range(processes * devices)]
        turns = np.reshape(made, (processes, devices)).T.ravel()
        for model in range(1, len(made) + 1):
            if len(made) % model == 0:
                for order in (np.array(made), turns):
                    yield processes, jax.sharding.Mesh(order.reshape(-1, model), ("data", "model"))


SPECS = [("data",), (("data", "model"),), ("model",), (), (None,), ("data", None, "model")]


def test_parts_of_any_layout_are_right_or_refused_by_all():
    kinds = set()
    for (processes, mesh), spec in itertools.product(layouts(), SPECS):
        sharding = jax.NamedSharding(mesh, jax.P(*spec))
        rows = 2 * mesh.size
        shape = (rows,) + (mesh.size,) * (len(spec) - 1)
        held = [set() for _ in range(processes)]
        for device, (place, *_) in sharding.devices_indices_map(shape).items():
            held[device.process_index].update(range(rows)[place])
        found = []
        for process in range(processes):
            lesson.part_of.cache_clear()
            with mock.patch.object(jax, "process_index", lambda process=process: process):
                try:
                    found.append(lesson.part_of(sharding, rows))
                except ValueError as error:
                    assert "no equal parts in order" in str(error)
                    assert "\n" not in str(error)
                    found.append(None)
        if found[0] is None:
            assert found == [None] * processes  # or some would wait for the others
            sizes = {len(part) for part in held}
            apart = [part for part in held if max(part) - min(part) >= len(part)]
            others = {frozenset(part) for part in held}
            assert apart or len(sizes) > 1 or sum(map(len, others)) > rows
        else:
            [parts] = {parts for _, parts in found}
            for (part, _), mine in zip(found, held, strict=True):
                assert mine == {*np.split(np.arange(rows), parts)[part].tolist()}
            assert {part for part, _ in found} == {*range(parts)}
        kinds.add((found[0] is None, len({*found}) == processes))
    assert len(kinds) == 3  # with shared parts, with others, refused


def test_a_process_without_a_device_and_rows_that_do_not_divide_are_refused():
    made = np.array([Pretended(n, n) for n in range(6)])
    sharding = jax.NamedSharding(jax.sharding.Mesh(made, ("data",)), jax.P("data"))
    outside = mock.patch.object(jax, "process_index", lambda: 6)
    with outside, pytest.raises(ValueError, match="no equal parts"):
        lesson.part_of(sharding)
    with mock.patch.object(jax, "process_index", lambda: 5):
        assert lesson.part_of(sharding, 12) == lesson.part_of(sharding) == (5, 6)
        for rows, near in ((128, 126), (1, 6), (11, 12), (0, 6), (-6, 6)):
            with pytest.raises(ValueError, match=f"{rows} are not 6 equal parts: take {near}$"):
                lesson.part_of(sharding, rows)


def test_the_parts_of_three_loaders_are_equal():
    """Of 1 to 6 processes: joined, they are the batch of one."""
    arrays = np.random.default_rng(0).random((397, 3)), np.arange(397, dtype=np.int32)
    arrays = arrays[0].astype(np.float32), arrays[1]
    examples = [*zip(*arrays, strict=True)]
    loaders = (
        (feed_pytorch_dataloader_in_depth.batches_of, examples),
        (feed_grain_in_depth.array_batches, arrays),
    )
    whole = feed_start_here.Batches(arrays, 60, 7)
    for processes in range(1, 7):
        streams = [
            make(data, 60 // processes, 7, 5, process, processes)
            for process in range(processes)
            for make, data in loaders
        ]
        for step in (5, 6, 7):  # the last is of the next epoch
            for first in (0, 1):
                parts = [next(stream) for stream in streams[first::2]]
                for array, *mine in zip(whole[step], *parts, strict=True):
                    assert np.array_equal(np.concatenate(mine), array), (processes, step)


# A position in examples ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("examples", "size"), [(1, 4), (7, 8), (8, 8), (13, 4), (100, 12), (997, 64), (50, 132)]
)
@pytest.mark.parametrize("processes", [1, 2, 4])
def test_rows_come_once_an_epoch_and_any_position_goes_on(examples, size, processes):
    def wholes(position, size, processes):
        streams = [
            depth.rows_from(position, examples, size, 3, p, processes) for p in range(processes)
        ]
        for parts in zip(*streams, strict=True):
            assert {len(part) for part in parts} == {size // processes}
            yield np.concatenate(parts)  # one behind the other

    steps = 3 * examples // size + 2
    alone = np.concatenate([*itertools.islice(wholes(0, size, 1), steps)])
    for epoch in range(3):
        assert sorted(alone[epoch * examples :][:examples]) == list(range(examples))
    split = np.concatenate([*itertools.islice(wholes(0, size, processes), steps)])
    assert np.array_equal(split, alone)
    position = size * (steps // 2)
    resumed = itertools.islice(wholes(position, 2 * processes, processes), 5)
    resumed = np.concatenate([*resumed])[: len(alone) - position]
    assert np.array_equal(resumed, alone[position:][: len(resumed)])
    if examples > 10:
        assert not np.array_equal(alone[:examples], alone[examples : 2 * examples])
        other = next(depth.rows_from(0, examples, size, 4))
        assert not np.array_equal(other, alone[:size])


@pytest.mark.parametrize(
    "arguments",
    [(-1, 9, 4, 0), (0, 0, 4, 0), (0, 9, 0, 0), (0, 9, 4, 0, 0, 3), (0, 9, 4, 0, 2, 2)],
)
def test_what_is_no_stream_is_refused_in_a_sentence(arguments):
    with pytest.raises(ValueError, match=r"no stream|cannot split") as refusal:
        next(depth.rows_from(*arguments))
    assert "\n" not in str(refusal.value)
