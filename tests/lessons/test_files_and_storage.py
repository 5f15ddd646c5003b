"""What a reader copies from the lesson on files and object storage works on other data.

Each broken copy, which differs in one place, is refused: so every check is seen to bite.
"""

import signal
import socket
import subprocess
import sys
import time

import psutil
import pytest
from carry_over.broken import assert_refused
from carry_over.storage import Storage

from benchmarks import bench
from tools import lessons

NAME = "files_and_storage"


@pytest.fixture(scope="module")
def lesson(lesson_environment):
    with bench.ready(bench.Process(NAME, kind=Storage)) as [lesson]:
        yield lesson


@pytest.mark.parametrize(
    "check",
    [
        "check_rows",
        "check_order",
        "check_shards",
        "check_own_files",
        "check_requests",
        "check_copies",
        "check_forms",
        "check_inputs",
    ],
)
def test_copied_cells_carry_over(lesson, check):
    lesson.call(check)


# The function, what it says, what is put in its place, the check, what the check says.
BROKEN = {
    "loses the end of a group": (
        "rows_of",
        "held = [column[whole:].copy() for column in held]",
        "held = [column[:0] for column in held]",
        "check_rows",
        "twice|raises|do not share|unequal",
    ),
    "repeats the rest of a group": (
        "rows_of",
        "column[whole:].copy()",
        "column[max(whole - 1, 0) :].copy()",
        "check_rows",
        "twice|do not share",
    ),
    "overlaps lanes": (
        "pieces_of",
        "lane * steps * rows, (lane + 1) * steps * rows",
        "lane * steps * rows, (lane + 2) * steps * rows",
        "check_rows",
        "twice|raises|do not share",
    ),
    "takes each group from its start": (
        "pieces_of",
        "chosen += low - offset",
        "chosen += 0",
        "check_rows",
        "twice|do not share",
    ),
    "starts a group anew at a resume": (
        "pieces_of",
        "chosen[max(begin - low, 0) :]",
        "chosen",
        "check_rows",
        "do not share",
    ),
    "starts each epoch in its middle": (
        "pieces_of",
        "        start = 0",
        "        pass",
        "check_rows",
        "twice|do not share|same order",
    ),
    "has one order for all epochs": (
        "pieces_of",
        "permutation(len(sizes), seed, epoch, 0)",
        "permutation(len(sizes), seed, start, 0)",
        "check_rows",
        "same order|do not share|twice",
    ),
    "ignores the seed": (
        "pieces_of",
        "SeedSequence(seed, spawn_key=key)",
        "SeedSequence(0, spawn_key=key)",
        "check_order",
        "another seed or epoch",
    ),
    "leaves the groups in their order": (
        "pieces_of",
        "order = permutation(len(sizes), seed, epoch, 0)",
        "order = np.arange(len(sizes))",
        "check_order",
        "groups: another seed or epoch has the same order",
    ),
    "leaves the rows of a group in their order": (
        "pieces_of",
        "chosen = permutation(high - low, seed, epoch, 1, lane, group)",
        "chosen = np.arange(high - low)",
        "check_order",
        "rows of a group: another seed or epoch",
    ),
    "shuffles a group alike in each epoch": (
        "pieces_of",
        "permutation(high - low, seed, epoch, 1, lane, group)",
        "permutation(high - low, seed, 0, 1, lane, group)",
        "check_order",
        "rows of a group: another seed or epoch",
    ),
    "shuffles groups and rows alike": (
        "pieces_of",
        "permutation(high - low, seed, epoch, 1, lane, group)",
        "permutation(high - low, seed, epoch, 0)",
        "check_order",
        "shuffled alike",
    ),
    "joins the seed and the epoch": (
        "pieces_of",
        "SeedSequence(seed, spawn_key=key)",
        "SeedSequence((seed, *key))",
        "check_order",
        "seed 2",
    ),
    "gives every process all lanes": (
        "batches",
        "range(process * share, (process + 1) * share)",
        "range(share)",
        "check_rows",
        "do not share",
    ),
    "deals lanes out to the processes in turn": (
        "batches",
        "range(process * share, (process + 1) * share)",
        "range(process, lanes, processes)",
        "check_rows",
        "do not share",
    ),
    "takes any seed": (
        "batches",
        "if seed is None or min(seed, start) < 0:",
        "if False:",
        "check_inputs",
        "goes through",
    ),
    "divides by no process": (
        "batches",
        "not 0 <= process < processes or lanes % processes",
        "lanes % processes or not 0 <= process < processes",
        "check_inputs",
        "raises ZeroDivisionError",
    ),
    "takes any batch size": (
        "batches",
        "lanes < 1 or batch_size % lanes",
        "False",
        "check_inputs",
        "goes through|raises",
    ),
    "takes groups that differ": (
        "write_shards",
        "if not all(table.schema.equals(schema, True) for table in tables):",
        "if False:",
        "check_inputs",
        "goes through|says more|raises",
    ),
    "takes any process": (
        "batches",
        'raise ValueError(f"{process=} of {processes=} cannot split {lanes=}.")',
        "process, processes = 0, 1",
        "check_inputs",
        "goes through",
    ),
    "forgets the shape": (
        "as_array",
        "shape += json.loads(",
        "shape += [-1] + json.loads(",
        "check_shards",
        "is not what was written|raises",
    ),
    "copies no strides": (
        "as_table",
        "np.ascontiguousarray(array)",
        "array.base if array.base is not None else array",
        "check_shards",
        "is not what was written|raises",
    ),
    "makes one dtype of all": (
        "as_array",
        'about[b"dtype"].decode()',
        "np.uint8",
        "check_shards",
        "is not what was written|raises",
    ),
    "loses a shard's last group": (
        "write_shards",
        "for table in tables:\n                out",
        "for table in tables[:-1] or tables:\n                out",
        "check_shards",
        "rows in groups|raises",
    ),
    "writes into a prefix in use": (
        "write_shards",
        "if any(obstore.list(store, prefix)):",
        "if False:",
        "check_inputs",
        "a prefix in use: raises AlreadyExistsError",
    ),
    "knows small footers only": (
        "footer_of",
        "return footer_of(store, file, fetch, needed)",
        "pass",
        "check_shards",
        "a large footer",
    ),
    "believes any file": (
        "footer_of",
        'bytes(data[-4:]) != b"PAR1" or needed > end',
        "False",
        "check_inputs",
        "raises|goes through|says more|not said",
    ),
    "reads whole objects": (
        "Parquet",
        "where = min(starts), max(ends)",
        'where = min(starts), file["size"]',
        "check_requests",
        "more than the group",
    ),
    "takes any version": (
        "fetch",
        "if etag else {}",
        "if False else {}",
        "check_requests",
        "goes through|no ValueError",
    ),
    "takes missing values": (
        "as_array",
        "if flat.null_count:",
        "if False:",
        "check_inputs",
        "goes through",
    ),
    "takes missing values in lists": (
        "as_array",
        "if flat.null_count:",
        "if column.null_count:",
        "check_own_files",
        "a null in a list: goes through",
    ),
    "leaves vectors as objects": (
        "as_array",
        "if 0 in shape:",
        "if len(shape) > 1:",
        "check_own_files",
        "vectors: came back",
    ),
    "takes files that differ": (
        "row_groups_in",
        "if not all(schema.equals(first, True) for schema in others):",
        "if False:",
        "check_own_files",
        "goes through",
    ),
    "compares what pandas notes": (
        "row_groups_in",
        "[schema.remove_metadata() for schema in schemas]",
        "schemas",
        "check_own_files",
        "other notes: raises",
    ),
    "writes pointers": (
        "as_table",
        'if kind not in "biufcmMSU" or np.ma.isMaskedArray(array):',
        "if False:",
        "check_inputs",
        "pointers: goes through|pointers: raises",
    ),
    "writes what a mask hides": (
        "as_table",
        " or np.ma.isMaskedArray(array)",
        "",
        "check_inputs",
        "a masked array: goes through",
    ),
    "ends text at a NUL": (
        "as_table",
        'elif kind in "SU":',
        "elif False:",
        "check_shards",
        "text: .* came back",
    ),
    "overwrites what another writes": (
        "write_shards",
        ', mode="create"',
        "",
        "check_shards",
        "a second writer: overwrites",
    ),
    "calls a changed object the same": (
        "Parquet",
        '[f["path"], f["e_tag"], n]',
        '[f["path"], f["size"], n]',
        "check_requests",
        "written anew changes nothing",
    ),
    "leaves the part of a failed copy": (
        "copied",
        "partial.unlink(missing_ok=True)",
        "pass",
        "check_copies",
        "its part stays",
    ),
    "asks for the ETag None": (
        "copied",
        ' if found["e_tag"] else None',
        "",
        "check_copies",
        "no ETag: raises",
    ),
    "writes rows without a value": (
        "as_table",
        "if columns[-1].null_count:",
        "if False:",
        "check_inputs",
        "a row without a value: goes through",
    ),
    "stops at a group without rows": (
        "write_shards",
        "filter(len, map(as_table, groups))",
        "map(as_table, groups)",
        "check_shards",
        "empty groups",
    ),
    "takes the prefix as it is": (
        "write_shards",
        'prefix = prefix.strip("/")',
        "pass",
        "check_shards",
        "empty groups: raises",
    ),
    "names tar's members as the files": (
        "write_tar",
        'f"{number:06}{suffix}"',
        'f"{Path(name).stem}{suffix}"',
        "check_forms",
        "the tar holds",
    ),
    "takes labels of Python only": (
        "write_tar",
        "int(label).to_bytes",
        "label.to_bytes",
        "check_forms",
        "raises AttributeError",
    ),
    "leaves a file that readers take for data": (
        "copied",
        'f".{file.name}.{uuid.uuid4().hex}"',
        'f".{os.getpid()}-{file.name}"',
        "check_copies",
        "a killed copy: its rest|a killed copy: raises",
    ),
    "copies the folders of a console": (
        "copied",
        '[file for file in found if file["size"]]',
        "found",
        "check_copies",
        "differs",
    ),
    "copies nothing without a word": (
        "copied",
        "if not full:",
        "if False:",
        "check_copies",
        "a wrong prefix: goes through",
    ),
    "blames the prefix for an object": (
        "copied",
        "with ThreadPoolExecutor(at_once) as threads:",
        "with explained(prefix), ThreadPoolExecutor(at_once) as threads:",
        "check_copies",
        "its name is not said",
    ),
    "believes half a copy": (
        "copied",
        'or file.stat().st_size != found["size"]',
        "",
        "check_copies",
        "differs",
    ),
    "copies anew": (
        "copied",
        "if not file.exists() or",
        "if True or",
        "check_copies",
        "copied again",
    ),
}


@pytest.mark.parametrize("case", BROKEN.values(), ids=BROKEN)
def test_a_broken_copy_is_refused(lesson, case):
    assert_refused(lesson, case)


# The server ----------------------------------------------------------------------------------


@pytest.fixture
def modules(tmp_path):
    """The folder with the modules that the lesson writes."""
    for cell in lessons.code_cells(lessons.read_md(NAME)):
        first, _, source = cell.source.partition("\n")
        if first.startswith("%%writefile "):
            (tmp_path / first.split()[1]).write_text(source)
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
    listening = {c.laddr.port for c in psutil.Process(server.pid).net_connections("inet")}
    addresses = {c.laddr.ip for c in psutil.Process(server.pid).net_connections("inet")}
    assert port in listening and addresses == {"127.0.0.1"}
    server.stdin.close()
    start = time.monotonic()
    server.wait(20)
    assert time.monotonic() - start < 20


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
