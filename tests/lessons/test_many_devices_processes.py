"""Every global batch is that of one process, or there is an error before the first step.

On 1 to 6 processes, on meshes whose model axis lies within and across processes, on sizes of a
batch that do and do not divide, for three loaders of the collection. The processes are started by
the lesson's own `run`, and use the lesson's module; on many more layouts, devices are pretended.
"""

import subprocess
import sys
import time

import feed_many_devices as lesson
import numpy as np
import psutil
import pytest
from processes import running

from tools.lesson import modules

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="ends processes by Linux's prctl"),
]

SECONDS = 400  # other tests run beside these


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The lesson's script for all, and the programs of the tests."""
    folder = tmp_path_factory.mktemp("many")
    modules.write_files("many_devices", folder)
    for program in (EVERYTHING, IN_DEPTH):
        (folder / program.split('"""')[1].split()[0]).write_text(program)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        yield folder


# Real processes -----------------------------------------------------------------------------

EVERYTHING = '''"""everything.py each process compares its devices with the batch of one process."""

import os, sys, itertools
import jax, numpy as np
from jax.experimental.multihost_utils import process_allgather
from feed_graphs_and_ragged import Batches  # of start_here; but this module imports little
from feed_many_devices import check_rows, global_batch, part_of
if sys.argv[1] == "three":
    from feed_grain_in_depth import array_batches
    from feed_pytorch_dataloader_in_depth import batches_of

sys.excepthook = lambda *error: (sys.__excepthook__(*error), os._exit(1))
sys.stdout = os.fdopen(os.dup(1), "w", 1)
os.dup2(2, 1)  # where Gloo writes
jax.distributed.initialize()
count, own = jax.device_count(), jax.process_count()
random = np.random.default_rng(0)
images, labels = random.integers(0, 256, (397, 3, 5), np.uint8), np.arange(397, dtype=np.int32)
arrays = {"image": images, "label": (labels,)}
examples = [{"image": images[n], "label": (labels[n],)} for n in range(397)]

def streams(rows, process, processes):
    """The batches of steps 2 and 3 by each loader."""
    part = rows // processes
    batches = Batches(arrays, part, 7, process, processes)
    yield [batches[2], batches[3]]
    if rows != 60 or sys.argv[1] != "three":
        return
    yield [*itertools.islice(batches_of(examples, part, 7, 2, process, processes), 2)]
    yield [*itertools.islice(array_batches(arrays, part, 7, 2, process, processes), 2)]

def loss(weights, batch):
    x = batch["image"].reshape(len(batch["image"]), -1) / 255
    return ((x @ weights - batch["label"][0][:, None] / 397) ** 2).mean()

@jax.jit
def step(weights, batch):
    return weights - 0.1 * jax.grad(loss)(weights, batch)

devices, seen = np.array(sorted(jax.devices(), key=lambda d: (d.process_index, d.id))), []
assert [d.id for d in devices] == [d.id for d in jax.devices()]
grids = {"data": devices[:, None], "inside": devices.reshape(own, 2), "all": devices[None]}
if own % 2 == 0:
    grids["across"] = devices.reshape(-1, 4)
if count % 3 == 0:
    grids["thirds"] = devices.reshape(-1, 3)
grids["turns"] = devices.reshape(own, 2).T.reshape(-1, 1)
for (name, grid), rows in itertools.product(grids.items(), (60, 128, 35)):
    mesh = jax.sharding.Mesh(grid, ("data", "model"))
    by_row = jax.NamedSharding(mesh, jax.P("data"))
    orderly = name not in ("thirds", "turns") or own == 1 or len(grid) == 1
    try:
        process, processes = part_of(by_row, rows)
    except ValueError as error:
        assert "equal parts" in str(error) and "\\n" not in str(error), error
        assert not orderly or rows % len(grid), (name, rows, error)
        try:  # an error of the loader or of global_batch, before the first step
            global_batch(Batches(arrays, max(rows // own, 1), 7)[2], rows, by_row)
        except ValueError:
            seen.append((name, rows, "refused"))
            continue
        raise AssertionError((name, rows))
    assert rows % len(grid) == 0, (name, rows)
    pairs = zip(streams(rows, process, processes), streams(rows, 0, 1))
    for loader, (mine, whole) in enumerate(pairs):
        check_rows(mine[0], by_row)
        for part, right in zip(mine, whole):
            batch = global_batch(part, rows, by_row)
            for array, wanted in zip(jax.tree.leaves(batch), jax.tree.leaves(right), strict=True):
                assert array.shape == wanted.shape and array.dtype == wanted.dtype
                for shard in array.addressable_shards:
                    assert np.array_equal(shard.data, wanted[shard.index]), (name, rows, loader)
            if loader == 0 and rows == 60:
                cut = jax.NamedSharding(mesh, jax.P(None, "model"))
                weights = np.zeros((15, mesh.shape["model"]), np.float32)
                trained = jax.block_until_ready(step(jax.device_put(weights, cut), batch))
                alone = np.asarray(step(weights, right))
                assert np.abs(alone).max() > 1e-3
                for shard in trained.addressable_shards:
                    assert np.abs(shard.data - alone[shard.index]).max() < 1e-5
    seen.append((name, rows, processes))
    short = jax.tree.map(lambda a: a[1:], mine[0])
    wide = {"user": np.arange(rows // processes) + 2**40}
    due = "are due"
    for wrong, says in ((short, due), ({"image": 3}, due), (wide, "['user'] has numbers")):
        try:
            global_batch(wrong, rows, by_row)
        except ValueError as error:
            assert says in str(error)
        else:
            raise AssertionError(f"what {says} went through")
by_row = jax.NamedSharding(jax.sharding.Mesh(devices, ("data",)), jax.P("data"))
if own > 1:  # one process has a wrong row; and all have the same
    mine = np.arange(6) + 6 * jax.process_index()
    together = jax.NamedSharding(jax.sharding.Mesh(devices[None], ("data", "model")), jax.P("data"))
    other = np.arange(6) + (jax.process_index() == own - 1)
    for rows, sharding in ((mine * 0, by_row), (other, together)):
        try:
            check_rows([rows], sharding)
        except ValueError as error:
            assert "equal rows" in str(error)
        else:
            raise AssertionError("wrong rows went through")
    check_rows([mine], by_row)
    check_rows([np.arange(6, dtype=jax.numpy.bfloat16)], together)
print(*seen, sep="\\n")
'''


FULL = [pytest.param(n, "three", marks=pytest.mark.weekly) for n in (1, 4, 5, 6)]


SOME = [(1, "one"), (2, "three"), (3, "three"), (4, "one"), (5, "one"), (6, "one")]


@pytest.mark.parametrize(("processes", "loaders"), [*SOME, *FULL])
def test_each_global_batch_is_that_of_one_process_or_refused(folder, processes, loaders):
    """Of one loader, or of all three, which give equal parts: see the test below."""
    said = lesson.run(processes, "everything.py", loaders, devices=2, seconds=SECONDS)
    assert {*said} == {said[0]}  # all of them took and refused the same
    seen = said[0].splitlines()
    assert (f"('data', 60, {processes})" in seen) == (60 % (2 * processes) == 0)
    assert "('all', 35, 1)" in seen
    assert ("('data', 128, 'refused')" in seen) == (128 % (2 * processes) != 0)
    if processes % 2 == 0:
        assert f"('across', 60, {processes // 2})" in seen
    if processes > 1:
        assert "('turns', 60, 'refused')" in seen


IN_DEPTH = '''"""in_depth_runs.py what the depth hands out, on four processes of two devices."""

import os, sys
import jax, numpy as np
from feed_many_devices_in_depth import (
    by_callback, by_loaders, check_copies, evened, lengths_of_all
)

sys.excepthook = lambda *error: (sys.__excepthook__(*error), os._exit(1))
sys.stdout = os.fdopen(os.dup(1), "w", 1)
os.dup2(2, 1)  # where Gloo writes
jax.distributed.initialize()
source = np.random.default_rng(0).integers(0, 60_000, (397, 6, 4, 3)).astype(np.uint16)
rows = np.random.default_rng(1).permutation(len(source))[:48]
process = jax.process_index()

def refuses(said, call):
    try:
        call()
    except ValueError as error:
        assert said in str(error) and "\\n" not in str(error), error
    else:
        raise AssertionError(said)

def holds(array):
    whole = source[rows]
    assert array.shape == whole.shape and array.dtype == whole.dtype
    for shard in array.addressable_shards:
        assert np.array_equal(shard.data, whole[shard.index])
    check_copies({"image": array})

devices = np.array(jax.devices())
square = devices.reshape(4, 2)
for grid in (devices[:, None], square, square.T, devices.reshape(2, 4)):
    mesh = jax.sharding.Mesh(grid, ("data", "model"))
    sharding = jax.NamedSharding(mesh, jax.P("data"))
    holds(by_callback(source, rows, sharding))
    for loaders in (1, 2, 3, 4):
        holds(by_loaders(source, rows, sharding, loaders))
    for loaders in (0, 5):
        refuses(f"loaders={loaders}", lambda: by_loaders(source, rows, sharding, loaders))
refuses("count=44", lambda: by_loaders(source, rows[:44], sharding, 1))
mesh = jax.sharding.Mesh(devices.reshape(4, 2).T, ("data", "model"))
holds(by_callback(source, rows, jax.NamedSharding(mesh, jax.P("data", None, "model"))))

# One wrong pixel on one process is found by all.
sharding = jax.NamedSharding(mesh, jax.P("data"))
wrong = source.copy()
wrong[rows[1], 2, 3, 0] += process == 3
tree = {"label": by_callback(source, rows, sharding), "image": by_callback(wrong, rows, sharding)}
refuses("['image'] differ", lambda: check_copies(tree))

lengths = lengths_of_all(5 + process)
assert lengths == [5, 6, 7, 8]
like = {"x": np.zeros((3, 2), np.uint8), "y": [np.arange(3)]}
batches = [like | {"x": np.full((3, 2), n, np.uint8)} for n in range(lengths[process])]
steps = list(evened(iter(batches), max(lengths), 4, like=batches[0]))
assert len(steps) == 8 and sum(weights.sum() for _, weights in steps) == 3 * lengths[process]
assert all(batch["x"].shape == (4, 2) and len(batch["y"][0]) == 4 for batch, _ in steps)
refuses("more than", lambda: list(evened(batches, 4, 3, batches[0])))
refuses("do not fit into rows=2", lambda: list(evened(batches, 9, 2, batches[0])))
print("holds")
'''


def test_four_processes_place_other_data_and_find_one_wrong_pixel(folder):
    assert lesson.run(4, "in_depth_runs.py", devices=2, seconds=SECONDS) == ["holds\n"] * 4


def test_the_script_refuses_to_go_on_with_other_rows_and_bad_data(folder):
    data = folder / "data"
    data.mkdir()
    random = np.random.default_rng(0)
    labels = random.integers(0, 5, 200).astype(np.int32)
    np.save(data / "images.npy", random.integers(0, 17, (200, 4, 6)).astype(np.float32))
    np.save(data / "labels.npy", labels)
    job = "many_train.py", "data", "saved"
    [first, _] = lesson.run(2, *job, 50, 40, 1, seconds=SECONDS)
    assert first == "2 started, 2 parts of 20 rows, from step 0\n"
    other = "ValueError: .*saved is of other data, or of another rows="
    with pytest.raises(RuntimeError, match=other + "20"):
        lesson.run(1, *job, 100, 20, 1, seconds=SECONDS)
    with pytest.raises(RuntimeError, match="saved is at step 50 already, steps=20"):
        lesson.run(1, *job, 20, 40, 1, seconds=SECONDS)
    with pytest.raises(RuntimeError, match=r"ValueError: images.*rows=201: no batch"):
        lesson.run(1, *job, 100, 201, 1, seconds=SECONDS)
    images = np.load(data / "images.npy")
    np.save(data / "images.npy", images[::-1])
    with pytest.raises(RuntimeError, match=other + "40"):
        lesson.run(1, *job, 100, 40, 1, seconds=SECONDS)
    for bad in (labels - 1, labels[:, None], labels / 2):
        np.save(data / "labels.npy", bad)
        with pytest.raises(RuntimeError, match="labels that are no 0, 1, 2"):
            lesson.run(1, *job, 100, 40, 1, seconds=SECONDS)


def test_the_script_trains_on_many_classes_and_black_images(folder):
    data = folder / "classes"
    data.mkdir()
    images = np.zeros((1_200, 2, 2), np.uint8)
    images[1_000:] = 200
    np.save(data / "images.npy", images)
    np.save(data / "labels.npy", (np.arange(1_200) % 256).astype(np.uint8))
    lesson.run(1, "many_train.py", "classes", "classes_saved", 5, 40, 1, seconds=SECONDS)
    weights = np.load(folder / "classes_saved" / "weights.npy")
    assert weights.shape == (4, 256)
    assert np.isfinite(weights).all()


# What `run` does ----------------------------------------------------------------------------


def test_the_first_failure_ends_all_and_is_told(folder):
    (folder / "fails.py").write_text(
        "import os, time\nif os.environ['SLURM_PROCID'] == '1':\n    1 / 0\ntime.sleep(600)\n"
    )
    begun = time.monotonic()
    with pytest.raises(RuntimeError, match=r"ZeroDivisionError.* \(process 1 of 3\)") as error:
        lesson.run(3, "fails.py", seconds=SECONDS)
    assert "Traceback" in error.value.__notes__[0]
    assert time.monotonic() - begun < SECONDS / 2
    assert not children()


def test_what_hangs_ends_and_what_is_long_does_not_block(folder):
    (folder / "waits.py").write_text("import time\ntime.sleep(600)\n")
    (folder / "says.py").write_text("import sys\nprint('x\\n' * 100_000, *sys.argv[1:])\n")
    with pytest.raises(subprocess.TimeoutExpired):
        lesson.run(2, "waits.py", seconds=1)
    assert not children()
    said = lesson.run(2, "says.py", 1, "two", seconds=SECONDS)
    assert {text[-8:] for text in said} == {"x\n 1 two\n"[-8:]}


def children() -> list[psutil.Process]:
    mine = psutil.Process().children(recursive=True)
    return [process for process in running(p.pid for p in mine) if "waits.py" in process.cmdline()]


def test_no_process_outlives_a_program_that_is_killed(folder):
    """As a notebook whose kernel is killed: the two processes end, although they would wait."""
    (folder / "waits.py").write_text("import time\ntime.sleep(600)\n")
    program = "from feed_many_devices import run\n\nrun(2, 'waits.py')\n"
    with subprocess.Popen([sys.executable, "-c", program]) as killed:
        for _ in range(1_000):
            found = psutil.Process(killed.pid).children()
            if len(found) == 2:
                break
            time.sleep(0.05)
        pids = [process.pid for process in found]
        assert len(running(pids)) == 2
        time.sleep(1)  # setpriv has become Python
        killed.kill()
    for _ in range(600):
        if not running(pids):
            break
        time.sleep(0.1)
    assert not running(pids)
