"""How the streams of the lesson on workers end: nothing is left behind, and nothing is lost."""

import contextlib
import io
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import feed_workers_beside_jax as lesson
import psutil
import pytest
from PIL import Image
from processes import running

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="pidfd and /dev/shm are Linux's"),
]

PATIENCE_S = 120  # for what takes seconds on a quiet machine

PROGRAM = '''
"""Streams that end in one way: python program.py END"""

import contextlib
import faulthandler
import itertools
import os
import signal
import sys
import time

faulthandler.dump_traceback_later(300, exit=True)  # what hangs says where


class Numbers:
    """batches[step]: which step it is, and which process made it."""

    def __getitem__(self, step):
        return {"step": step, "pid": os.getpid()}


def steps_of(stream, count):
    return [batch["step"] for batch in itertools.islice(stream, count)]


def survives(process_batches):
    with contextlib.closing(process_batches(Numbers(), 2)) as stream:  # Ctrl-C between batches
        got = steps_of(stream, 3)
        try:
            os.killpg(0, signal.SIGINT)
            time.sleep(60)
        except KeyboardInterrupt:
            got += steps_of(stream, 20)
    assert got == [*range(23)], got
    got, stream = [], process_batches(Numbers(), 2)  # a worker is killed
    with contextlib.suppress(RuntimeError):
        for batch in stream:
            got.append(batch["step"])
            if len(got) == 7:
                os.kill(batch["pid"], signal.SIGKILL)
    assert stream.gi_frame is None and 7 <= len(got) < 30, got
    with contextlib.closing(process_batches(Numbers(), 2, start=len(got))) as stream:
        other = process_batches(Numbers(), 1, start=900)  # two at once, and a second run
        for step, batch in enumerate(itertools.islice(stream, 30 - len(got))):
            assert next(other)["step"] == 900 + step
            got.append(batch["step"])
        other.close()
    assert got == [*range(30)], got


def main(end):
    from multiprocessing import active_children, resource_tracker
    from feed_workers_beside_jax import process_batches

    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
    register = resource_tracker.register

    def registered(name, kind):
        print("file", name, flush=True)
        register(name, kind)

    resource_tracker.register = registered
    if end == "survives":
        survives(process_batches)
        assert not active_children()
        print("survived", flush=True)
        return
    stream = process_batches(Numbers(), 2)
    got = steps_of(stream, 10)
    assert got == [*range(10)], got
    print("runs", *(process.pid for process in active_children()), flush=True)
    if end == "exception":
        raise LookupError("of the loop")
    time.sleep(600)


if __name__ == "__main__":
    main(sys.argv[1])
'''


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("streams")
    (folder / "program.py").write_text(PROGRAM)
    (folder / "started.py").write_text(STARTED)
    return folder


def of_group(group: int) -> list[int]:
    """The processes of the program, and what it started, that run."""
    found = []
    for process in running(psutil.pids()):
        with contextlib.suppress(ProcessLookupError):
            if os.getpgid(process.pid) == group:
                found.append(process.pid)
    return found


def until(condition) -> bool:
    end = time.monotonic() + PATIENCE_S
    while not (met := condition()) and time.monotonic() < end:
        time.sleep(0.2)
    return bool(met)


def lines_until(program, word: str) -> list[str]:
    lines = []
    for line in program.stdout:
        lines.append(line.rstrip())
        if line.startswith(word):
            break
    return lines


@pytest.mark.parametrize("end", ["survives", "exception", "SIGINT", "SIGTERM", "SIGKILL"])
def test_nothing_is_left_and_nothing_is_lost(folder, end):
    environment = os.environ | {"JAX_PLATFORMS": "cpu"}
    how = {"cwd": folder, "env": environment, "text": True, "start_new_session": True}
    command = [sys.executable, "program.py", end]
    told = folder / "errors.txt"  # a pipe might be full
    with (
        told.open("w") as file,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=file, **how) as program,
    ):
        try:
            lines = lines_until(program, "survived" if end == "survives" else "runs")
            if end == "SIGINT":
                os.killpg(program.pid, signal.SIGINT)  # as a terminal does
            elif end.startswith("SIG"):
                program.send_signal(signal.Signals[end])
            assert until(lambda: not of_group(program.pid)), f"{of_group(program.pid)} live on"
            errors = told.read_text()
        finally:
            for pid in of_group(program.pid):
                os.kill(pid, signal.SIGKILL)
    codes = {"survives": 0, "exception": 1, "SIGINT": -2, "SIGTERM": -15, "SIGKILL": -9}
    assert program.returncode == codes[end], errors
    said = {"exception": "LookupError: of the loop", "SIGINT": "KeyboardInterrupt"}
    assert said.get(end, "") in errors, errors
    if end == "survives":
        assert "Traceback" not in errors, errors
    else:
        assert len(lines[-1].split()) == 3, "two workers ran"
    names = [line.split()[1] for line in lines if line.startswith("file")]
    assert names, "no semaphore was seen"
    files = [Path("/dev/shm", f"sem.{name.strip('/')}") for name in names]
    assert until(lambda: not any(file.exists() for file in files)), files


# Workers of other kinds, when their program is killed: the table of the depth --------------------

STARTED = '''
"""Start a worker of each kind, with start_worker or without, print their ids, and wait."""

import faulthandler
import multiprocessing
import sys
import time
from concurrent.futures import ProcessPoolExecutor

from feed_workers_beside_jax import start_worker


def started(way, first):
    if "DataLoader" in way:
        import numpy as np
        import torch

        rows = np.ones((9, 100_000))  # more than a pipe holds
        how = {"multiprocessing_context": way.split()[1], "num_workers": 1}
        how["collate_fn"] = np.asarray if "arrays" in way else torch.asarray
        how |= {"batch_size": None, "worker_init_fn": first}
        return iter(torch.utils.data.DataLoader(rows, **how))
    if "Grain" in way:
        import absl.flags
        import grain

        absl.flags.FLAGS.mark_as_parsed()
        chain = grain.MapDataset.range(9_999).to_iter_dataset()
        results = iter(chain.mp_prefetch(grain.MultiprocessingOptions(1), first))
    else:
        pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), first)
        results = (pool.submit(abs, number).result() for number in range(9))
    next(results)
    return results


if __name__ == "__main__":
    faulthandler.dump_traceback_later(300, exit=True)  # what hangs says where
    first, *ways = sys.argv[1:]
    kept, known = [], set()
    for way in ways:
        kept.append(started(way, start_worker if first == "start_worker" else None))
        next(kept[-1])
        [worker] = {process.pid for process in multiprocessing.active_children()} - known
        known.add(worker)
        print(worker, flush=True)
    time.sleep(600)
'''
WAYS = ["DataLoader spawn", "DataLoader spawn arrays", "DataLoader forkserver", "pool", "Grain"]


def ended(folder: Path, first: str) -> set[str]:
    """The ways of which no worker runs any more when the program was killed."""
    how = {"stdout": subprocess.PIPE, "text": True, "cwd": folder, "start_new_session": True}
    with subprocess.Popen([sys.executable, "started.py", first, *WAYS], **how) as program:
        workers = {way: int(program.stdout.readline()) for way in WAYS}
        program.kill()
    try:
        waited = WAYS if first == "start_worker" else WAYS[:1]
        until(lambda: not running(workers[way] for way in waited))
        time.sleep(0 if first == "start_worker" else 7)  # PyTorch's own watch looks each 5 s
        return {way for way in WAYS if not running([workers[way]])}
    finally:
        for process in running([*workers.values(), *of_group(program.pid)]):
            process.kill()


NOTHING = pytest.param("nothing", WAYS[:1], marks=pytest.mark.weekly)


@pytest.mark.parametrize("first, expected", [("start_worker", WAYS), NOTHING])
def test_workers_end_with_a_killed_program(folder, first, expected):
    assert ended(folder, first) == {*expected}


# Threads share no file ---------------------------------------------------------------------------


def photograph() -> bytes:
    file = io.BytesIO()
    Image.effect_noise((200, 150), 64).convert("RGB").save(file, "JPEG")
    return file.getvalue()


def test_threads_decode_as_one_does():
    jpeg = photograph()
    alone = lesson.decoded(jpeg, None)["image"]

    def same(_) -> bool:
        return (lesson.decoded(jpeg, None)["image"] == alone).all()

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # the threads take turns all the time
    try:
        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(same, range(256)))
    finally:
        sys.setswitchinterval(interval)


class InTurns(io.BytesIO):
    """A file of which two threads read at once, each time: one gets what the other would need."""

    def __init__(self, content: bytes):
        super().__init__(content)
        self.both = threading.Barrier(2, timeout=PATIENCE_S)

    def read(self, *size):
        self.both.wait()
        found = super().read(*size)
        self.both.wait()
        return found


def test_threads_that_share_a_file_share_its_position():
    """What the page says of an open file, and why `decoded` takes the bytes of one."""
    shared = InTurns(photograph())

    def decoded(_):
        try:
            with Image.open(shared) as image:
                return image.tobytes()
        except (OSError, threading.BrokenBarrierError):
            return None
        finally:
            shared.both.abort()

    with ThreadPoolExecutor(2) as pool:
        assert None in [*pool.map(decoded, range(2))]
