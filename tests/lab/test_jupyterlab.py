"""Each notebook, opened, run and saved in a real JupyterLab, as a reader does it in a browser.

Nothing else of the repository is in reach but the laid-out data and the results of the benchmark.

`tox run -e lab` runs this. `tox run -e test` does not: it would take as long again.
"""

import json
import re
import secrets
import shutil
import subprocess
import sys
import time

import nbformat
import pytest

from tools.lesson import lessons
from tools.run import execute, kernels

TOKEN = secrets.token_hex()  # of this run only
START_S, RUN_S = 120, 1800
# What the server says of any notebook that others ran, and of its own settings.
OF_ALL = "is not trusted", "Saving untrusted notebook", "websocket_ping_timeout"
OPENED = "window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel?.status == 'idle'"
RUN_AND_SAVE = """async seconds => {
    const late = new Promise((_, fail) => setTimeout(fail, 1000 * seconds, "it runs too long"));
    await Promise.race([jupyterapp.commands.execute("notebook:run-all-cells"), late]);
    await jupyterapp.commands.execute("docmanager:save");
}"""


@pytest.fixture(scope="module")
def lab(data, tmp_path_factory):
    """A running JupyterLab: its folder, its address, and the file of its log."""
    folder, own = tmp_path_factory.mktemp("folder"), tmp_path_factory.mktemp("jupyter")
    (folder / "notebooks").mkdir()
    (folder / "notebooks/data").symlink_to(data)
    (folder / "benchmarks").symlink_to(lessons.ROOT / "benchmarks")  # a lesson draws its results
    for name in lessons.names():
        shutil.copy(lessons.notebook_path(name), folder / "notebooks")
    environment = kernels.kernel_environment() | {
        "JUPYTER_CONFIG_DIR": str(own / "config"),
        "JUPYTER_DATA_DIR": str(own / "data"),
        "JUPYTER_RUNTIME_DIR": str(own / "runtime"),
    }
    command = [sys.executable, "-m", "jupyter", "lab", "--no-browser", "--allow-root"]
    command += ["--ServerApp.port=0", f"--IdentityProvider.token={TOKEN}"]
    command += ["--Application.log_level=30", "--LabApp.expose_app_in_browser=True"]
    with (own / "log").open("w") as log:
        process = subprocess.Popen(command, cwd=folder, env=environment, stderr=log)
    try:
        file = own / f"runtime/jpserver-{process.pid}.json"
        end = time.monotonic() + START_S
        while not file.is_file() or not file.read_text():
            assert process.poll() is None, "JupyterLab ended when it should have started"
            assert time.monotonic() < end, f"JupyterLab did not start within {START_S} s"
            time.sleep(0.2)
        yield folder, json.loads(file.read_text())["url"], own / "log"
    finally:
        process.terminate()
        process.wait(timeout=60)


@pytest.fixture
def opened(lab, browser):
    """A function that opens a notebook. In the end no kernel and no warning may be left."""
    _, url, log = lab
    page = browser.new_page(viewport={"width": 1200, "height": 900})
    page.set_default_timeout(1000 * START_S)

    def open_it(name):
        page.goto(f"{url}lab/tree/notebooks/{name}.ipynb?token={TOKEN}&reset")
        page.wait_for_function(OPENED)
        return page

    yield open_it
    page.evaluate("jupyterapp.shell.currentWidget.sessionContext.shutdown()")
    assert page.request.get(f"{url}api/kernels?token={TOKEN}").json() == []
    page.close()
    found = re.findall(r"^\[[WEC] .*|^.*Warning.*", log.read_text(), re.MULTILINE)
    assert [line for line in found if not any(words in line for words in OF_ALL)] == []


def test_a_proof_is_folded_to_its_title(opened):
    """JupyterLab shows the first line of what is folded, and a click on it opens the cell."""
    name = "pytorch_dataloader"
    cells = lessons.code_cells(lessons.read_notebook(name))
    proof = next(cell for cell in cells if "proof" in lessons.tags(cell))
    page = opened(name)
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


@pytest.mark.parametrize("name", lessons.names())
def test_a_notebook_opens_runs_and_saves(opened, lab, name):
    opened(name).evaluate(RUN_AND_SAVE, RUN_S)
    saved = nbformat.read(lab[0] / f"notebooks/{name}.ipynb", as_version=4)
    nbformat.validate(saved)
    stored = lessons.read_notebook(name)
    for cell, old in zip(lessons.code_cells(saved), lessons.code_cells(stored), strict=True):
        assert cell.source == old.source and cell.execution_count
        if not execute.skipped(cell):
            assert [*map(lessons.masked, cell.outputs)] == [*map(lessons.masked, old.outputs)]
