"""What the lesson on memory hands out: `memory`, and `fit_in_shm`."""

import mmap
import os
import re
import shutil
import subprocess
import sys
import types
from pathlib import Path
from unittest import mock

import jax
import numpy as np
import pytest
import torch
from copied_cells import source_with

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

LESSON, DEPTH = "memory_that_grows", "memory_that_grows_in_depth"


@pytest.fixture(scope="module")
def numbers() -> types.ModuleType:
    module = types.ModuleType("numbers_of_memory")
    exec(source_with("def memory(", LESSON), vars(module))
    exec(source_with("def container(", LESSON), vars(module))
    return module


@pytest.fixture(scope="module")
def fit_in_shm():
    names = {"jax": jax, "mmap": mmap, "shutil": shutil, "torch": torch}
    exec(source_with("def fit_in_shm(", DEPTH), names)
    return names["fit_in_shm"]


HOLD = (
    "import sys; kept = bytes(range(200)) * 500_000; print('holds', flush=True); sys.stdin.read()"
)
NESTED = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {HOLD!r}])"


@pytest.mark.parametrize("program", [HOLD, NESTED], ids=["child", "its child"])
def test_children_and_theirs_are_counted(numbers, program):
    before = numbers.memory()["own"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", program], **pipes) as child:
        child.stdout.readline()
        assert numbers.memory()["own"] - before > 90
        assert numbers.memory(child.pid)["own"] > 90
        child.stdin.close()
    assert numbers.memory()["own"] - before < 50


def test_bytes_are_counted_as_they_are(numbers):
    before = numbers.memory()
    kept = np.ones(200_000_000, np.uint8)
    assert numbers.memory()["own"] - before["own"] == pytest.approx(kept.nbytes / 1e6, abs=4)
    with mmap.mmap(-1, 50_000_000) as shared:  # of no file, and not in /dev/shm
        shared.write(bytes(len(shared)))
        assert numbers.memory()["shared"] - before["shared"] == pytest.approx(50, abs=1)


def forbidden(name: str):
    def read_text(path, read_text=Path.read_text, **options):
        if str(path) == name:
            raise PermissionError(13, "Permission denied", name)
        return read_text(path, **options)

    return mock.patch.object(Path, "read_text", read_text)


def test_other_users(numbers):
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as child:
        with forbidden(f"/proc/{child.pid}/smaps_rollup"), pytest.raises(PermissionError):
            numbers.memory()
        child.stdin.close()


def test_a_machine_without_dev_shm(numbers):
    with mock.patch.object(Path, "exists", lambda path: False):
        assert numbers.memory()["/dev/shm"] == 0


def test_a_process_that_has_ended_is_refused(numbers):
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as zombie:
        zombie.stdin.close()
        os.waitid(os.P_PID, zombie.pid, os.WEXITED | os.WNOWAIT)  # nobody has asked for its code
        with pytest.raises(ValueError, match="it has ended"):
            numbers.memory(zombie.pid)
        assert numbers.memory()["own"] > 0
    with pytest.raises(numbers.psutil.NoSuchProcess, match=str(zombie.pid)):
        numbers.memory(zombie.pid)


def test_an_old_kernel_is_refused(numbers):
    def without(path, read=Path.read_text, **options):
        return re.sub(r"Pss_.*\n", "", read(path, **options))

    old = mock.patch.object(Path, "read_text", without)
    with old, pytest.raises(ValueError, match=r"Linux is before 5\.3"):
        numbers.memory()


V1, V2 = ("limit_in_bytes", "oom_control"), ("max", "events")
NO_LIMIT = {V1: 2**63 - 4096, V2: "max"}


@pytest.mark.parametrize("version", [V1, V2], ids=["version 1", "version 2"])
@pytest.mark.parametrize("kinds", ["memory", "cpuset,memory"])
@pytest.mark.parametrize(
    "own, groups, expected",
    [
        ("/", {"": (5_000_000, 2)}, (5, 2)),  # a container sees its own group as the root
        ("/pod/c", {"": (None, 0), "pod": (4_000_000, 3), "pod/c": (9_000_000, 1)}, (4, 3)),
        ("/docker/abc", {"": (7_000_000, 1)}, (7, 1)),  # the path is the host's
        ("/a", {"": (None, 0), "a": (None, 0)}, (64, 0)),
        ("/a", {}, (64, 0)),
    ],
    ids=["container", "pod", "the host's path", "no limit", "no files"],
)
def test_limits_and_kills_of_groups(numbers, tmp_path, version, kinds, own, groups, expected):
    """The least limit counts, and the most kills, of all groups around the program."""
    root = tmp_path / "sys" / ("memory" if version == V1 else "")
    for path, (limit, kills) in groups.items():
        (root / path).mkdir(parents=True, exist_ok=True)
        text = NO_LIMIT[version] if limit is None else limit
        (root / path / f"memory.{version[0]}").write_text(f"{text}\n")
        (root / path / f"memory.{version[1]}").write_text(f"oom 9\noom_kill {kills}\n")
    lines = f"4:{kinds}:{own}\n0::/\n" if version == V1 else f"2:cpu:/x\n0::{own}\n"
    (tmp_path / "cgroup").write_text(lines)
    places = {"/proc/self/cgroup": tmp_path / "cgroup", "/sys/fs/cgroup": tmp_path / "sys"}

    def path_of(first, *parts):
        return Path(places.get(first, first), *parts)

    total = mock.Mock(total=64_000_000)
    with (
        mock.patch.object(numbers, "Path", path_of),
        mock.patch.object(numbers.psutil, "virtual_memory", lambda: total),
    ):
        assert numbers.container() == expected


def test_batches_fit_exactly_or_are_refused(fit_in_shm):
    page = mmap.PAGESIZE
    image = torch.zeros((10, page), dtype=torch.uint8)
    batch = {"image": image, "again": image[:5], "label": torch.zeros(3), "name": ["a"], "n": 3}
    needed = 6 * (10 + 1) * page  # whole pages, and the storage of two views once
    for free, fits in ((needed, True), (needed - 1, False)):
        usage = mock.Mock(free=free)
        with mock.patch.object(shutil, "disk_usage", return_value=usage):
            if fits:
                assert fit_in_shm(batch, workers=2, prefetch_factor=None) == needed
                assert fit_in_shm(batch, workers=2, prefetch_factor=2) == needed
            else:
                with pytest.raises(ValueError, match=r"6 batches need .* MB of /dev/shm"):
                    fit_in_shm(batch, workers=2, prefetch_factor=2)
    assert fit_in_shm(batch, workers=0) == 0
    for workers, factor in ((-1, 2), (1, -1), (1, 0)):
        with pytest.raises(ValueError, match=f"workers={workers}, prefetch_factor={factor}"):
            fit_in_shm(batch, workers, factor)
    sparse = torch.eye(3).to_sparse()
    for wrong in (np.zeros(3), sparse, types.SimpleNamespace(image=image)):
        with pytest.raises(ValueError, match=f"not {type(wrong).__name__}"):
            fit_in_shm({"image": wrong, "label": image}, workers=2)


def test_what_is_watched_is_all_there_or_stops(numbers):
    readings = iter([(100, 50), (150, 50), (100, 101)])
    names = {"memory": lambda: dict(zip(("own", "/dev/shm"), next(readings), strict=True))}
    exec(source_with("def watched(", DEPTH), names)
    seen = []
    with pytest.raises(MemoryError, match="before batch 20 201 MB are held, of 200 MB allowed"):
        seen.extend(names["watched"](iter(range(40)), limit=200, every=10))
    assert [*names["watched"]([], limit=1)] == []
