"""The files of a machine: runs that store at once lose nothing, and a failure spoils nothing."""

import platform
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from offline.problem import Problem
from tools.lesson import files, machine

pytestmark = pytest.mark.slow


def test_two_that_store_at_once_lose_nothing(tmp_path):
    file = tmp_path / "results/cpu.json"

    def store(who: str) -> None:
        """Ten names, so slowly that the other has time to store too."""
        for number in range(10):
            name = {f"{who} {number}": True}
            machine.update(file, lambda content, name=name: time.sleep(0.02) or content | name)

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(store, ("one", "two")))
    assert machine.read(file).keys() == {f"{who} {n}" for who in ("one", "two") for n in range(10)}


def test_a_failure_leaves_the_file_as_it_was(tmp_path):
    file = tmp_path / "cpu.json"
    file.write_text("whole")
    with pytest.raises(KeyboardInterrupt), files.replacing(file) as scratch:
        scratch.write_text("half")
        raise KeyboardInterrupt
    assert [path.name for path in tmp_path.iterdir()] == ["cpu.json"]
    assert file.read_text() == "whole"


def test_two_macs_with_as_many_cores_have_a_file_each(tmp_path, monkeypatch):
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    monkeypatch.setattr(platform, "processor", lambda: "arm")
    monkeypatch.setattr(machine.psutil, "cpu_count", lambda: 10)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    sysctl = tmp_path / "sysctl"
    sysctl.touch(0o755)
    found = set()
    for name in ("Apple M1 Pro", "Apple M4"):
        sysctl.write_text(f'#!/bin/sh\n[ "$*" = "-n machdep.cpu.brand_string" ] && echo "{name}"\n')
        found.add(machine.path(Path(), "cpu").name)
    assert found == {"apple-m1-pro-10-cores.json", "apple-m4-10-cores.json"}
    sysctl.write_text("#!/bin/sh\nexit 1\n")
    assert machine.processor() == "arm"


def test_damaged_results_are_named(tmp_path):
    path = tmp_path / "cpu.json"
    assert machine.read(path) == {}
    path.write_text("{")
    with pytest.raises(Problem, match=r"cpu\.json is not JSON: restore it"):
        machine.read(path)


def test_a_file_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "results").touch()  # a file, where the folder should be
    with pytest.raises(Problem, match=r"cpu\.json cannot be written: File exists\.$"):
        machine.update(tmp_path / "results" / "cpu.json", dict)
