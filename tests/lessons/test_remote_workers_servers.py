"""What a reader copies from the lesson on remote workers works elsewhere; its manifest is valid."""

import os
import re
import subprocess
import sys
import tempfile
import time

import kubernetes_validate
import pytest
import yaml
from processes import running

from tools.lesson import lessons, modules

pytestmark = pytest.mark.slow

DEPTH = "remote_workers_in_depth"


def test_the_manifest_is_valid_and_runs_what_the_page_ran():
    """Each document holds to the schema of its kind, and the commands are those of the module."""
    [manifest] = re.findall(r"^```yaml\n(.*?)^```", lessons.md_path(DEPTH).read_text(), re.M | re.S)
    documents = [*yaml.safe_load_all(manifest)]
    for document in documents:
        kubernetes_validate.validate(document, "1.34", strict=True)
    kinds = [(document["kind"], document["metadata"]["name"]) for document in documents]
    sets = [d for d in documents if d["kind"] == "StatefulSet"]
    containers = [d["spec"]["template"]["spec"]["containers"][0] for d in sets]
    dispatcher, worker = (container["command"] for container in containers)
    assert dispatcher == ["python", "tf_service.py", "dispatcher", "5050", "/journal"]
    assert worker[:3] == ["python", "tf_service.py", "worker"]
    assert worker[3:] == ["5051", "dispatcher:5050", "$(POD).workers:5051"]
    for document in sets:  # the names in these addresses are those of headless Services
        assert ("Service", document["spec"]["serviceName"]) in kinds
    for container, port in zip(containers, (5050, 5051), strict=True):
        assert container["readinessProbe"] == {"tcpSocket": {"port": port}}
        assert "memory" in container["resources"]["limits"]
    services = [d["spec"] for d in documents if d["kind"] == "Service"]
    assert [s["clusterIP"] for s in services] == ["None", "None"]
    assert [s["ports"][0]["port"] for s in services] == [5050, 5051]


def run(script: str, folder) -> subprocess.CompletedProcess:
    """Run the script in this folder, with a folder for Ray and the settings of the page."""
    file = folder / "script.py"
    file.write_text(script)
    command = [sys.executable, str(file)]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("RAY_")}
    # The name of a socket in it is short, or Linux refuses it.
    with tempfile.TemporaryDirectory(dir="/tmp", ignore_cleanup_errors=True) as scratch:
        environment |= {"RAY_TMPDIR": scratch, "RAY_USAGE_STATS_ENABLED": "0"}
        environment |= {"RAY_worker_register_timeout_seconds": "300"}  # a busy machine
        return subprocess.run(
            command,
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=580,
            check=False,
        )


def end(pids: list[int]) -> None:
    start = time.monotonic()
    while left := running(pids):
        assert time.monotonic() - start < 300, left  # Ray's agents look about once a minute
        time.sleep(0.1)


SERVERS = """
import os, socket, subprocess, sys


def serve(*arguments):
    command = [sys.executable, "tf_service.py", *map(str, arguments)]
    environment = os.environ | {"ENDS_WITH": str(os.getpid())}
    server = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    assert server.stdout.readline() == "ready\\n"
    return server


sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
port, *ports = [one.getsockname()[1] for one in sockets]
for one in sockets:
    one.close()
os.mkdir("journal")
servers = [serve("dispatcher", port, "journal")]
servers += [serve("worker", own, f"localhost:{port}", f"localhost:{own}") for own in ports]
print(*[server.pid for server in servers], flush=True)
os.kill(os.getpid(), 9)
"""


def test_no_server_outlives_the_program_that_started_it(tmp_path):
    """The page's program, told to end with another, which is killed."""
    modules.write_files(DEPTH, tmp_path)
    done = run(SERVERS, tmp_path)
    assert done.returncode == -9, done.stderr
    servers = [*map(int, done.stdout.split())]
    assert len(servers) == 3
    end(servers)


RAY = """
import os

import ray
from feed_remote_workers import batches


def start_ray():
    quiet = {"log_to_driver": False, "logging_level": "critical", "include_dashboard": False}
    for tries_left in (4, 3, 2, 1, 0):  # a busy machine starts Ray's processes late
        try:
            return ray.init("local", num_cpus=2, object_store_memory=10**8, **quiet)
        except Exception:
            ray.shutdown()
            if not tries_left:
                raise


start_ray()
"""
KILLED = """
import psutil
print(next(batches(lambda step: step, start=5)))
print(*[p.pid for p in psutil.Process().children(recursive=True)], flush=True)
os.kill(os.getpid(), 9)
"""


def test_no_worker_of_ray_outlives_a_program_that_is_killed(tmp_path):
    done = run(RAY + KILLED, tmp_path)
    assert done.returncode == -9, done.stderr
    first, pids = done.stdout.splitlines()
    assert first == "5"
    assert len(pids.split()) > 2
    end([*map(int, pids.split())])


LIVES = """
import signal, threading, time
import numpy as np, psutil

marks = os.environ["RAY_TMPDIR"]
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it


def once(step, what):
    file = os.path.join(marks, f"{what} {step}")
    return not os.path.exists(file) and not open(file, "w").close()


def make(step):
    if step % 10 == 7 and once(step, "killed"):
        os.kill(os.getpid(), signal.SIGKILL)
    return {"x": np.random.default_rng(step).random(20_000)}


def fails(step):
    return 1 // (step - 3)


def right(batch, step):
    return np.array_equal(batch["x"], np.random.default_rng(step).random(20_000))


one, two = batches(make, 5), batches(make, 40)
pairs = [(next(one), next(two)) for _ in range(15)]
print("pairs", all(right(a, 5 + n) and right(b, 40 + n) for n, (a, b) in enumerate(pairs)))

stream = batches(fails)
for again in range(2):
    try:
        for batch in stream:
            pass
    except ZeroDivisionError as error:
        print("error", stream.step, *error.__notes__)

gate = os.path.join(marks, "gate")


def waits(step):
    while not os.path.exists(gate):
        time.sleep(0.05)
    return step


stream = batches(waits, timeout=2)
try:
    next(stream)
except TimeoutError:
    print("TimeoutError")
stream.timeout = 600
threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    next(stream)
except KeyboardInterrupt:
    print("Ctrl-C")
open(gate, "w").close()
print("goes on", next(stream), next(stream), stream.step)
pids = [p.pid for p in psutil.Process().children(recursive=True)]
ray.shutdown()
print(*pids, flush=True)
try:
    batches(make)
except ValueError as error:
    print(error)
"""
AGAIN = """
start_ray()
print("again", next(batches(make, 9))["x"].shape)
ray.shutdown()
"""


@pytest.fixture(scope="module")
def lived(tmp_path_factory):
    """A program that goes through all of it, and starts Ray a second time."""
    return run(RAY + LIVES + AGAIN, tmp_path_factory.mktemp("lived"))


def test_a_worker_is_killed_beside_another_stream_and_nothing_is_lost(lived):
    assert "pairs True" in lived.stdout, lived.stderr


def test_an_exception_names_its_batch_and_ctrl_c_is_no_end(lived):
    assert "error 3 This was batch 3.\n" * 2 in lived.stdout, lived.stderr
    assert "TimeoutError\nCtrl-C\ngoes on 0 1 2\n" in lived.stdout, lived.stderr


def test_after_the_shutdown_nothing_runs_and_a_second_run_starts(lived):
    assert lived.returncode == 0, lived.stderr
    *_, pids, refused, again = lived.stdout.splitlines()
    end([*map(int, pids.split())])
    assert refused == "Ray is not connected: call ray.init first"
    assert again == "again (20000,)"
