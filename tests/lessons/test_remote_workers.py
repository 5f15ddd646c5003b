"""What a reader copies from the lesson on remote workers works elsewhere; its manifest is valid."""

import re
import subprocess
import sys
import time

import kubernetes_validate
import yaml
from copied_cells import write_modules
from processes import running

from tools import lessons

NAME = "remote_workers"


def test_the_manifest_is_valid_and_runs_what_the_page_ran():
    """Each document holds to the schema of its kind, and the commands are those of the module."""
    [manifest] = re.findall(r"^```yaml\n(.*?)^```", lessons.md_path(NAME).read_text(), re.M | re.S)
    documents = [*yaml.safe_load_all(manifest)]
    for document in documents:
        kubernetes_validate.validate(document, "1.34", strict=True)
    kinds = [(document["kind"], document["metadata"]["name"]) for document in documents]
    sets = [d for d in documents if d["kind"] == "StatefulSet"]
    containers = [d["spec"]["template"]["spec"]["containers"][0] for d in sets]
    dispatcher, worker = (container["command"] for container in containers)
    assert dispatcher == ["python", "remote_service.py", "dispatcher", "5050", "/journal"]
    assert worker[:3] == ["python", "remote_service.py", "worker"]
    assert worker[3:] == ["5051", "dispatcher:5050", "$(POD).workers:5051"]
    for document in sets:  # the names in these addresses are those of headless Services
        assert ("Service", document["spec"]["serviceName"]) in kinds
    services = [d["spec"] for d in documents if d["kind"] == "Service"]
    assert [s["clusterIP"] for s in services] == ["None", "None"]
    assert [s["ports"][0]["port"] for s in services] == [5050, 5051]


def test_no_server_outlives_the_notebook(tmp_path):
    """A program that starts servers as the lesson does, and is killed."""
    cells = [cell.source for cell in lessons.code_cells(lessons.read_md(NAME))]
    write_modules(NAME, tmp_path)
    [starts] = [c for c in cells if "def start(" in c]
    [ports] = [c for c in cells if "def free_ports(" in c]
    ends = "ready(*dispatchers)\nprint(*[program.pid for program in dispatchers + workers])\n"
    ends += "sys.stdout.flush()\nos.kill(os.getpid(), 9)\n"
    imports = "import os, socket, subprocess, sys, tempfile, threading\n"
    script = "\n".join([imports, starts, ports, ends])
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == -9, done.stderr
    servers, start = [*map(int, done.stdout.split())], time.monotonic()
    assert len(servers) == 3
    while running(servers):
        assert time.monotonic() - start < 60
        time.sleep(0.1)
