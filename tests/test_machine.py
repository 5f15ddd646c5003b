"""The files of a machine: runs that store at once lose nothing, and a failure spoils nothing."""

import json
import multiprocessing
import os
import time
from pathlib import Path

import pytest

from tools import files, lessons, machine


def store_in_turn(file: Path, who: str, start) -> None:
    """In a process of its own: store ten names, so slowly that another has time to store too."""
    start.wait()
    for number in range(10):

        def change(content, name=f"{who} {number}"):
            time.sleep(0.02)
            return content | {name: True}

        machine.update(file, change)


def test_two_processes_that_store_at_once_lose_nothing(tmp_path):
    context, file = multiprocessing.get_context("spawn"), tmp_path / "results/cpu.json"
    start = context.Barrier(2)
    processes = [
        context.Process(target=store_in_turn, args=(file, who, start)) for who in ("one", "two")
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
        process.kill()
    assert [process.exitcode for process in processes] == [0, 0]
    assert machine.read(file).keys() == {f"{who} {n}" for who in ("one", "two") for n in range(10)}


def test_an_update_gets_what_is_stored_and_returns_what_it_stored(tmp_path):
    file = tmp_path / "cpu.json"
    assert machine.update(file, lambda content: content | {"a": 1}) == {"a": 1}
    assert machine.update(file, lambda content: content | {"b": 2}) == {"a": 1, "b": 2}
    assert json.loads(file.read_text()) == {"a": 1, "b": 2}


def test_a_failure_leaves_the_file_as_it_was(tmp_path):
    file = tmp_path / "cpu.json"
    file.write_text("whole")
    with pytest.raises(KeyboardInterrupt), files.replacing(file) as scratch:
        scratch.write_text("half")
        raise KeyboardInterrupt
    assert [path.name for path in tmp_path.iterdir()] == ["cpu.json"]
    assert file.read_text() == "whole"


def test_a_file_is_on_the_disk_before_it_takes_the_place(tmp_path, monkeypatch):
    file, done = tmp_path / "cpu.json", []
    monkeypatch.setattr(os, "fsync", lambda fd: done.append(os.readlink(f"/proc/self/fd/{fd}")))
    with files.replacing(file) as scratch:
        scratch.write_text("new")
    assert done == [str(scratch), str(tmp_path)]  # its bytes, then its name
    assert file.read_text() == "new"


def test_damaged_results_are_named(tmp_path):
    path = tmp_path / "cpu.json"
    assert machine.read(path) == {}
    path.write_text("{")
    with pytest.raises(lessons.Problem, match=r"cpu\.json is not JSON: restore it"):
        machine.read(path)


def test_full_disk_is_named(python, mounted, tmp_path):
    full = mounted("-t tmpfs -o size=64k tmpfs", tmp_path)
    code = "import pathlib, sys; from tools import machine;"
    code += "machine.update(pathlib.Path(sys.argv[1], 'cpu.json'), lambda _: {'x': 'y' * 10**6})"
    done = python("-c", code, tmp_path, prefix=full, cwd=lessons.ROOT)
    assert "cpu.json cannot be written: No space left on device." in done.stderr
