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

import feed_memory_that_grows as lesson
import feed_memory_that_grows_in_depth as depth
import numpy as np
import pytest
import torch

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

HOLD = (
    "import sys; kept = bytes(range(200)) * 500_000; print('holds', flush=True); sys.stdin.read()"
)
NESTED = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {HOLD!r}])"


@pytest.mark.parametrize("program", [HOLD, NESTED], ids=["child", "its child"])
def test_children_and_theirs_are_counted(program):
    before = lesson.memory()["own"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", program], **pipes) as child:
        child.stdout.readline()
        assert lesson.memory()["own"] - before > 90
        assert lesson.memory(child.pid)["own"] > 90
        child.stdin.close()
    assert lesson.memory()["own"] - before < 50


def test_bytes_are_counted_as_they_are():
    before = lesson.memory()
    kept = np.ones(200_000_000, np.uint8)
    assert lesson.memory()["own"] - before["own"] == pytest.approx(kept.nbytes / 1e6, abs=4)
    with mmap.mmap(-1, 50_000_000) as shared:  # of no file, and not in /dev/shm
        shared.write(bytes(len(shared)))
        assert lesson.memory()["shared"] - before["shared"] == pytest.approx(50, abs=1)


def forbidden(name: str):
    def read_text(path, read_text=Path.read_text, **options):
        if str(path) == name:
            raise PermissionError(13, "Permission denied", name)
        return read_text(path, **options)

    return mock.patch.object(Path, "read_text", read_text)


def test_other_users():
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as child:
        with forbidden(f"/proc/{child.pid}/smaps_rollup"), pytest.raises(PermissionError):
            lesson.memory()
        child.stdin.close()


def test_a_machine_without_dev_shm():
    with mock.patch.object(Path, "exists", lambda path: False):
        assert lesson.memory()["/dev/shm"] == 0


def test_a_process_that_has_ended_is_refused():
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as zombie:
        zombie.stdin.close()
        os.waitid(os.P_PID, zombie.pid, os.WEXITED | os.WNOWAIT)  # nobody has asked for its code
        with pytest.raises(ValueError, match="it has ended"):
            lesson.memory(zombie.pid)
        assert lesson.memory()["own"] > 0
    with pytest.raises(lesson.psutil.NoSuchProcess, match=str(zombie.pid)):
        lesson.memory(zombie.pid)


def test_an_old_kernel_is_refused():
    def without(path, read=Path.read_text, **options):
        return re.sub(r"Pss_.*\n", "", read(path, **options))

    old = mock.patch.object(Path, "read_text", without)
    with old, pytest.raises(ValueError, match=r"Linux is before 5\.3"):
        lesson.memory()


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
def test_limits_and_kills_of_groups(tmp_path, version, kinds, own, groups, expected):
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
        mock.patch.object(lesson, "Path", path_of),
        mock.patch.object(lesson.psutil, "virtual_memory", lambda: total),
    ):
        assert lesson.container() == expected


def test_batches_fit_exactly_or_are_refused():
    page = mmap.PAGESIZE
    image = torch.zeros((10, page), dtype=torch.uint8)
    batch = {"image": image, "again": image[:5], "label": torch.zeros(3), "name": ["a"], "n": 3}
    needed = 6 * (10 + 1) * page  # whole pages, and the storage of two views once
    for free, fits in ((needed, True), (needed - 1, False)):
        usage = mock.Mock(free=free)
        with mock.patch.object(shutil, "disk_usage", return_value=usage):
            if fits:
                assert depth.fit_in_shm(batch, workers=2, prefetch_factor=None) == needed
                assert depth.fit_in_shm(batch, workers=2, prefetch_factor=2) == needed
            else:
                with pytest.raises(ValueError, match=r"6 batches need .* MB of /dev/shm"):
                    depth.fit_in_shm(batch, workers=2, prefetch_factor=2)
    assert depth.fit_in_shm(batch, workers=0) == 0
    for workers, factor in ((-1, 2), (1, -1), (1, 0)):
        with pytest.raises(ValueError, match=f"workers={workers}, prefetch_factor={factor}"):
            depth.fit_in_shm(batch, workers, factor)
    sparse = torch.eye(3).to_sparse()
    for wrong in (np.zeros(3), sparse, types.SimpleNamespace(image=image)):
        with pytest.raises(ValueError, match=f"not {type(wrong).__name__}"):
            depth.fit_in_shm({"image": wrong, "label": image}, workers=2)


def test_what_is_watched_is_all_there_or_stops():
    readings = iter([(100, 50), (150, 50), (100, 101)])

    def memory():
        own, in_shm = next(readings)
        return {"own": own, "/dev/shm": in_shm}

    said = "before batch 20 201 MB are held, of 200 MB allowed"
    with mock.patch.object(depth, "memory", memory):
        with pytest.raises(MemoryError, match=said):
            for _ in depth.watched(iter(range(40)), limit=200, every=10):
                pass
        assert [*depth.watched([], limit=1)] == []
