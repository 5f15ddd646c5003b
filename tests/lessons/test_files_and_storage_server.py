"""What a reader copies from the lesson on files and object storage works on other data."""

import signal
import socket
import subprocess
import sys
import time

import pytest

from tools.lesson import modules

pytestmark = pytest.mark.slow


def test_the_server_listens_here_alone_and_ends_when_the_notebook_is_killed(tmp_path):
    modules.write_files("files_and_storage_in_depth", tmp_path)
    killed = """
import os, psutil, signal, subprocess, sys
command = [sys.executable, "storage_server.py"]
options = {"stdin": -1, "stdout": -1, "stderr": -3, "start_new_session": True}
server = subprocess.Popen(command, **options)
port = server.stdout.readline().decode().strip()
print(port, *(c.laddr.ip for c in psutil.Process(server.pid).net_connections("inet")), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    command = [sys.executable, "-c", killed]
    done = subprocess.run(
        command, cwd=tmp_path, check=False, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    port, *addresses = done.stdout.split()
    assert addresses == ["127.0.0.1"]
    start = time.monotonic()
    with pytest.raises(ConnectionRefusedError):
        while time.monotonic() - start < 20:
            socket.create_connection(("127.0.0.1", int(port))).close()
            time.sleep(0.1)
