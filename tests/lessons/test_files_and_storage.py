"""What a reader copies from the lesson on files and object storage works on other data."""

import signal
import socket
import subprocess
import sys
import time

import files_and_storage_checks
import psutil
import pytest
from copied_cells import assert_refused, checks_of, write_modules

# The check, what a cell says, what is put in its place, what the check says then.
BROKEN = [
    (
        "check_rows",
        "column[whole:].copy()",
        "column[max(whole - 1, 0) :].copy()",
        "twice|not share",
    ),
    ("check_rows", "chosen[max(begin - low, 0) :]", "chosen", "do not share"),
    ("check_rows", "range(process * share, (process + 1) * share)", "range(share)", "not share"),
    ("check_order", "seed, epoch, 1, lane, group)", "seed, 0, 1, lane, group)", "rows of a group"),
    ("check_order", "seed, epoch, 1, lane, group)", "seed, epoch, 0)", "shuffled alike"),
    ("check_order", "SeedSequence(seed, spawn_key=key)", "SeedSequence((seed, *key))", "seed 2"),
    ("check_shards", 'about[b"dtype"].decode()', "np.uint8", "is not what was written|raises"),
    ("check_kinds", 'elif kind in "SU":', "elif False:", "text: .* came back"),
    (
        "check_large_footer",
        "return footer_of(store, file, fetch, needed)",
        "pass",
        "check_large_footer",
    ),
    ("check_empty_groups", "filter(len, map(as_table, groups))", "map(as_table, groups)", "groups"),
    ("check_writers", ', mode="create"', "", "a second writer: overwrites"),
    ("check_own_files", "if flat.null_count:", "if column.null_count:", "in a list: goes through"),
    ("check_own_files", "schema.equals(first, True)", "True", "goes through"),
    (
        "check_requests",
        "min(starts), max(ends)",
        'min(starts), file["size"]',
        "more than the group",
    ),
    ("check_requests", "if etag else {}", "if False else {}", "goes through"),
    ("check_version", 'f["e_tag"], n]', 'f["size"], n]', "written anew changes nothing"),
    ("check_copies", 'or file.stat().st_size != found["size"]', "", "differs"),
    ("check_copies", "if not file.exists() or", "if True or", "copied again"),
    ("check_killed_copy", "partial.unlink(missing_ok=True)", "pass", "its part stays"),
    (
        "check_killed_copy",
        ".{file.name}.{uuid.uuid4().hex}",
        ".{os.getpid()}-{file.name}",
        "its rest|check_killed_copy raises",
    ),
    ("check_without_etag", ' if found["e_tag"] else None', "", "check_without_etag raises"),
    (
        "check_object_gone",
        "with ThreadPoolExecutor(at_once) as threads:",
        "with explained(prefix), ThreadPoolExecutor(at_once) as threads:",
        "its name is not said",
    ),
    ("check_forms", '{number:06}{suffix}"', '{Path(name).stem}{suffix}"', "the tar holds"),
    ("check_inputs", "if seed is None or min(seed, start) < 0:", "if False:", "goes through"),
    ("check_inputs", " or np.ma.isMaskedArray(array)", "", "a masked array: goes through"),
]


@pytest.mark.parametrize("check", checks_of(files_and_storage_checks))
def test_copied_cells_carry_over(lesson, check):
    lesson.call("attempt", check)


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_copy_is_refused(lesson, broken):
    assert_refused(lesson, *broken)


# The server ----------------------------------------------------------------------------------


@pytest.fixture
def modules(tmp_path):
    """The folder with the modules that the lesson writes."""
    write_modules("files_and_storage", tmp_path)
    return tmp_path


@pytest.fixture
def server(modules):
    """The process of the modules, started as the lesson starts it."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    command = [sys.executable, "storage_server.py"]
    with subprocess.Popen(command, cwd=modules, **pipes) as process:
        yield process
        process.kill()


def test_the_server_ends_when_its_pipe_closes(server):
    port = int(server.stdout.readline())
    listening = {c.laddr for c in psutil.Process(server.pid).net_connections("inet")}
    assert listening == {("127.0.0.1", port)}
    server.stdin.close()
    server.wait(20)


def test_the_server_ends_when_the_notebook_is_killed(modules):
    killed = """
import os, signal, subprocess, sys
command = [sys.executable, "storage_server.py"]
options = {"stdin": -1, "stdout": -1, "stderr": -3, "start_new_session": True}
server = subprocess.Popen(command, **options)
print(server.stdout.readline().decode(), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    command = [sys.executable, "-c", killed]
    done = subprocess.run(
        command, cwd=modules, check=False, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    start = time.monotonic()
    with pytest.raises(ConnectionRefusedError):
        while time.monotonic() - start < 20:
            socket.create_connection(("127.0.0.1", int(done.stdout))).close()
            time.sleep(0.1)
