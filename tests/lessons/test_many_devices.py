"""What a reader copies from the lesson on many devices, on other numbers of everything.

The modules that its cells write are used as they stand: in this process where they need NumPy only,
and in groups of processes, started by the lesson's own launcher, where they need JAX.
"""

import importlib
import itertools

import numpy as np
import pytest
from copied_cells import write_modules

SECONDS = 200  # generous: other tests run beside this one

# Each process checks its own devices against the whole batch, on 8 devices of 4 processes.
PLACES = """
import sys, jax, numpy as np
from jax.sharding import Mesh
from many_check import check_replicas
from many_ends import filled, lengths_of_all
from many_feed import by_callback, by_loaders, by_process
from many_place import mesh_of, rows_of

address, process, processes = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
jax.distributed.initialize(address, processes, process)
source = np.random.default_rng(0).integers(0, 60_000, (397, 6, 4, 3)).astype(np.uint16)
rows = np.random.default_rng(1).permutation(len(source))[:48]

def refuses(said, call):
    try:
        call()
    except ValueError as error:
        assert said in str(error) and "\\n" not in str(error), error
    else:
        raise AssertionError(said)

def holds(array, spec_rows=rows):
    whole = source[spec_rows]
    assert array.shape == whole.shape and array.dtype == whole.dtype
    for shard in array.addressable_shards:
        assert np.array_equal(shard.data, whole[shard.index])
    check_replicas(array)

within, across = mesh_of(model=2), Mesh(np.reshape(jax.devices(), (4, 2)).T, ("data", "model"))
for mesh in (mesh_of(), within, across):
    sharding = jax.NamedSharding(mesh, jax.P("data"))
    holds(by_process(source, rows, sharding))
    holds(by_callback(source, rows, sharding))
    for loaders in (1, 2, 3, 4):
        holds(by_loaders(source, rows, sharding, loaders))
    refuses("loaders=5", lambda: by_loaders(source, rows, sharding, 5))
    refuses("loaders=0", lambda: by_loaders(source, rows, sharding, 0))
holds(by_callback(source, rows, jax.NamedSharding(across, jax.P("data", None, "model"))))
for model in (0, 3, 16):
    refuses(f"model={model}", lambda: mesh_of(model))

# The processes of an `across` mesh share rows: one wrong pixel on one process is found by all.
sharding = jax.NamedSharding(across, jax.P("data"))
mine = source[rows[rows_of(sharding, 48)]]
mine[1, 2, 3, 0] += process == 3
shape = 48, *source.shape[1:]
bad = jax.make_array_from_process_local_data(sharding, mine, shape)
refuses("1 of 2 parts differ", lambda: check_replicas(bad))

lengths = lengths_of_all(5 + process)
assert lengths == [5, 6, 7, 8]
batches = [(np.full((3, 2), n, np.uint8),) for n in range(lengths[process])]
steps = list(filled(iter(batches), max(lengths), batches[0]))
assert len(steps) == 8 and sum(weights.sum() for _, weights in steps) == 3 * lengths[process]
refuses("more than", lambda: list(filled(batches, 4, batches[0])))
refuses("more than 2", lambda: list(filled(batches, 9, [np.zeros((2, 2), np.uint8)])))
print("holds")
"""


@pytest.fixture(scope="module")
def modules(tmp_path_factory):
    """The modules of the lesson in a folder of their own, on the path."""
    folder = tmp_path_factory.mktemp("many")
    write_modules("many_devices", folder)
    (folder / "places.py").write_text(PLACES)
    (folder / "fails.py").write_text("import sys\nif sys.argv[2] == '1':\n    1 / 0\ninput()\n")
    (folder / "waits.py").write_text("import time\ntime.sleep(600)\n")
    (folder / "says.py").write_text("import sys\nprint(*sys.argv[1:])\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.syspath_prepend(folder)
        yield importlib.import_module


@pytest.fixture(scope="module")
def rows_from(modules):
    return modules("many_rows").rows_from


@pytest.mark.parametrize(
    ("examples", "size"), [(1, 4), (7, 8), (8, 8), (13, 4), (100, 12), (997, 64), (50, 132)]
)
@pytest.mark.parametrize("processes", [1, 2, 4])
def test_rows_come_once_an_epoch_and_any_position_goes_on(rows_from, examples, size, processes):
    def wholes(position, size, processes):
        streams = [rows_from(position, examples, size, 3, p, processes) for p in range(processes)]
        for parts in zip(*streams, strict=True):
            assert {len(part) for part in parts} == {size // processes}
            yield np.stack(parts, axis=1).ravel()  # the rows are dealt in turn

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
        other = next(rows_from(0, examples, size, 4))
        assert not np.array_equal(other, alone[:size])


@pytest.mark.parametrize(
    "arguments",
    [(-1, 9, 4, 0), (0, 0, 4, 0), (0, 9, 0, 0), (0, 9, 4, 0, 0, 3), (0, 9, 4, 0, 2, 2)],
)
def test_what_is_no_stream_is_refused_in_a_sentence(rows_from, arguments):
    with pytest.raises(ValueError, match=r"no stream|cannot split") as refusal:
        next(rows_from(*arguments))
    assert "\n" not in str(refusal.value)


def test_the_first_failure_ends_the_group(modules):
    run = modules("many_run").run
    with pytest.raises(RuntimeError, match=r"^fails.py: process 1 ended with 1. ZeroDivis"):
        run(2, "fails.py", seconds=SECONDS)
    with pytest.raises(RuntimeError, match=r"^waits.py: process 1 still ran"):
        run(2, "waits.py", seconds=1)
    with pytest.raises(ValueError, match="processes=3"):
        run(3, "waits.py")
    assert run(1, "says.py", "alone", seconds=SECONDS) == (["alone"], [0])


def test_four_processes_place_other_data_and_find_one_wrong_pixel(modules):
    said, _ = modules("many_run").run(4, "places.py", seconds=SECONDS)
    assert [text.splitlines()[-1] for text in said] == ["holds"] * 4
