"""What a reader copies from the lesson on files and object storage works on other data.

Each broken copy, which differs in one place, is refused: so every check is seen to bite.
"""

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
        "check_shards",
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
        "np.arange(low, high) - offset",
        "np.arange(high - low)",
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
        "order = np.random.default_rng((seed, epoch))",
        "order = np.random.default_rng((seed, start))",
        "check_rows",
        "same order|do not share|twice",
    ),
    "gives every process all lanes": (
        "batches",
        "range(process, lanes, processes)",
        "range(lanes // processes)",
        "check_rows",
        "do not share",
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
        "or not 0 <= process < processes",
        "",
        "check_inputs",
        "goes through|raises",
    ),
    "forgets the shape": (
        "as_array",
        "len(column), *json.loads",
        "len(column), -1, *json.loads",
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
        "goes through",
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
        "as_array",
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
        "if column.null_count:",
        "if False:",
        "check_inputs",
        "goes through",
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
def server(tmp_path):
    """The process of the modules that the lesson writes, started as the lesson starts it."""
    for cell in lessons.code_cells(lessons.read_md(NAME)):
        first, _, source = cell.source.partition("\n")
        if first.startswith("%%writefile "):
            (tmp_path / first.split()[1]).write_text(source)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    command = [sys.executable, "storage_server.py"]
    with subprocess.Popen(command, cwd=tmp_path, **pipes) as process:
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
