"""What a reader copies from the lesson on files and object storage works on other data."""

import signal
import socket
import subprocess
import sys
import time

import psutil
import pytest
from copied_cells import write_modules


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
