"""Each notebook, opened and run in a real JupyterLab server through its API.

Nothing else of the repository is in reach but the laid-out data and the results of the benchmark.

`tox run -e lab` runs this. `tox run -e test` does not: it would take as long again.
"""

import asyncio
import functools
import json
import re
import secrets
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
import websocket
from jupyter_server.gateway.gateway_client import GatewayClient
from jupyter_server.gateway.managers import ChannelQueue, GatewayKernelManager
from nbclient import NotebookClient

from tools import execute, lessons

TOKEN = secrets.token_hex()  # of this run only
AUTHORIZATION = {"Authorization": f"token {TOKEN}"}
START_S = 120
# What the server says of any notebook that others ran, of a client like ours, and of its own
# settings.
OF_ALL = (
    "is not trusted",
    "Saving untrusted notebook",
    "No session ID specified",
    "No channel specified",
    "websocket_ping_timeout",
)


class Server(SimpleNamespace):
    """A running JupyterLab. `url` ends with a slash; `log` is a file."""

    def ask(self, method: str, address: str, **content) -> dict | list:
        """The answer of the server's REST API. Raises urllib.error.HTTPError."""
        body = json.dumps(content).encode() if content else None
        headers = AUTHORIZATION | {"Content-Type": "application/json"}
        request = urllib.request.Request(self.url + address, body, headers, method=method)
        with urllib.request.urlopen(request) as response:
            return json.loads(response.read() or "{}")


@pytest.fixture(scope="module")
def server(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("folder")
    own = tmp_path_factory.mktemp("jupyter")
    (folder / "notebooks").mkdir()
    (folder / "notebooks" / "data").symlink_to(data)
    (folder / "benchmarks").symlink_to(lessons.ROOT / "benchmarks")  # a lesson draws its results
    for name in lessons.names():
        path = lessons.notebook_path(name)
        (folder / path.relative_to(lessons.ROOT)).write_bytes(path.read_bytes())
    environment = lessons.kernel_environment() | {
        "JUPYTER_CONFIG_DIR": str(own / "config"),
        "JUPYTER_DATA_DIR": str(own / "data"),
        "JUPYTER_RUNTIME_DIR": str(own / "runtime"),
    }
    command = [sys.executable, "-m", "jupyter", "lab", "--no-browser", "--allow-root"]
    command += [
        "--ServerApp.port=0",
        f"--IdentityProvider.token={TOKEN}",
        "--Application.log_level=30",
    ]
    log = own / "log"
    with log.open("w") as stream:
        process = subprocess.Popen(command, cwd=folder, env=environment, stderr=stream)
    try:
        yield Server(url=address_of(process, own / "runtime"), log=log)
    finally:
        process.terminate()
        process.wait(timeout=60)


def address_of(process: subprocess.Popen, runtime: Path) -> str:
    """The URL of the server, once it answers."""
    file = runtime / f"jpserver-{process.pid}.json"
    end = time.monotonic() + START_S
    while time.monotonic() < end:
        assert process.poll() is None, "JupyterLab ended when it should have started"
        if file.is_file() and (text := file.read_text()):
            return json.loads(text)["url"]
        time.sleep(0.2)
    raise AssertionError(f"JupyterLab did not start within {START_S} s")


def warnings(server: Server) -> list[str]:
    """What the server has logged at the level of warnings or above, also through Python's own."""
    found = re.findall(r"^\[[WEC] .*|^.*Warning.*", server.log.read_text(), re.MULTILINE)
    return [line for line in found if not any(words in line for words in OF_ALL)]


def test_the_server_is_jupyterlab(server):
    assert "/lab" in urllib.request.urlopen(f"{server.url}?token={TOKEN}").url
    assert warnings(server) == []


def test_a_proof_is_folded_to_its_title(server, browser):
    """JupyterLab shows the first line of what is folded, and a click on it opens the cell."""
    name = "pytorch_dataloader"
    cells = lessons.code_cells(lessons.read_notebook(name))
    proof = next(cell for cell in cells if "proof" in lessons.tags(cell))
    page = browser.new_page(viewport={"width": 1200, "height": 900})
    page.goto(f"{server.url}lab/tree/notebooks/{name}.ipynb?token={TOKEN}&reset")
    fold = page.locator(".jp-InputPlaceholder", has_text=proof.source.partition("\n")[0])
    page.locator(".jp-Notebook").hover()
    for _ in range(100):  # cells are made when they come into sight
        if fold.count() and fold.is_visible():
            break
        page.mouse.wheel(0, 500)
        page.wait_for_timeout(100)
    code = page.locator(".jp-Cell", has=fold).locator(".jp-InputArea-editor")
    assert fold.is_visible() and not code.is_visible()
    fold.click()
    assert page.get_by_text(proof.source.splitlines()[-1]).first.is_visible()
    wait_for_connections(server, 1)  # whoever opens a notebook starts a kernel
    page.close()
    wait_for_connections(server, 0)
    [session] = server.ask("GET", "api/sessions")
    server.ask("DELETE", f"api/sessions/{session['id']}")
    assert server.ask("GET", "api/kernels") == []


def wait_for_connections(server: Server, count: int) -> None:
    """Until the only kernel is idle and has so many connections: to end it earlier is an error."""
    end = time.monotonic() + START_S
    while time.monotonic() < end:
        found = [(k["execution_state"], k["connections"]) for k in server.ask("GET", "api/kernels")]
        if found == [("idle", count)]:
            return
        time.sleep(0.2)
    raise AssertionError(f"the kernels are {found}, not one with {count} connections")


@pytest.mark.parametrize("name", lessons.names())
def test_a_notebook_opens_runs_and_saves(server, name, monkeypatch):
    file = f"notebooks/{name}.ipynb"
    opened = server.ask("GET", f"api/contents/{file}?type=notebook")
    assert "message" not in opened, "the server finds the notebook invalid"
    model = {"path": file, "name": file, "type": "notebook", "kernel": {"name": "python3"}}
    # The gateway's client sends its token with REST requests only.
    connect = functools.partial(websocket.create_connection, header=AUTHORIZATION)
    monkeypatch.setattr(websocket, "create_connection", connect)
    monkeypatch.setattr(ChannelQueue, "_async_get", get_without_spinning)
    session = server.ask("POST", "api/sessions", **model)

    stored = lessons.read_notebook(name)
    notebook = nbformat.from_dict(opened["content"])
    run(notebook, server, session["kernel"]["id"])
    assert server.ask("GET", "api/kernels") == [], "a kernel was left behind"
    for cell, old in zip(lessons.code_cells(notebook), lessons.code_cells(stored), strict=True):
        if not execute.skipped(cell):
            assert [*map(execute.masked, cell.outputs)] == [*map(execute.masked, old.outputs)]

    server.ask("PUT", f"api/contents/{file}", type="notebook", format="json", content=notebook)
    saved = server.ask("GET", f"api/contents/{file}?type=notebook")
    assert "message" not in saved
    assert nbformat.from_dict(saved["content"]).cells == notebook.cells
    assert warnings(server) == []


_async_get = ChannelQueue._async_get


async def get_without_spinning(queue: ChannelQueue, timeout: float | None = None):
    """As the gateway's client does it, but asleep while it waits: it keeps a whole core busy."""
    end = time.monotonic() + (float("inf") if timeout is None else timeout)
    while queue.empty() and not queue.response_router_finished and time.monotonic() < end:
        await asyncio.sleep(0.01)
    return await _async_get(queue, timeout=0)


def run(notebook, server: Server, kernel_id: str) -> None:
    """Run all cells in a kernel of the server, over its websocket."""
    GatewayClient.instance(url=server.url, auth_token=TOKEN)
    client = NotebookClient(
        notebook,
        timeout=execute.CELL_TIMEOUT,
        kernel_manager_class=GatewayKernelManager,
        record_timing=False,
        coalesce_streams=True,
        store_widget_state=False,
        skip_cells_with_tag="" if lessons.has_gpu() else lessons.GPU_TAG,
    )
    client.execute(kernel_id=kernel_id)
