"""What a run of `pytest --nbval` needs: data laid out, offline kernels, GPU-only cells skipped.

With `--record` it writes into each notebook that passed when that was, and the site says so.

tools/run/nbval_cells.py runs the cells as `execute` does, and survives a kernel that dies.
"""

from importlib import metadata
from pathlib import Path

import pytest
from nbval.plugin import IPyNbCell

from offline.problem import Problem
from tools.lesson import lessons
from tools.run import kernels, nbval_cells, progress, record

ROOT = Path(__file__).resolve().parent


def pytest_addoption(parser):
    parser.addoption(
        "--record",
        action="store_true",
        help="write into each notebook that passed when, and with which versions: the site says so",
    )
    parser.addoption(
        "--require-gpu",
        action="store_true",
        help="fail where JAX sees no GPU, in place of skipping the cells that need one",
    )


def pytest_configure(config):
    try:
        # A plugin of JAX for a GPU may end the process: ask before a test imports JAX here.
        if config.option.nbval or metadata.entry_points(group="jax_plugins"):
            kernels.has_gpu()
        if config.option.require_gpu and not kernels.has_gpu():
            raise pytest.UsageError(
                "--require-gpu: JAX sees no GPU here. Install requirements-gpu.txt, and look "
                "whether `nvidia-smi` sees one."
            )
    except Problem as problem:
        raise pytest.UsageError(str(problem)) from problem
    if config.option.record:
        config.pluginmanager.register(record.Record(), "record")
    config.pluginmanager.register(nbval_cells)
    if not hasattr(config, "workerinput") and not config.option.collectonly:
        config.pluginmanager.register(progress.Progress(config), "progress")
    if config.option.nbval_lax:
        raise pytest.UsageError("these notebooks are compared strictly: use --nbval alone.")
    if config.option.nbval_sanitize_with is None:
        config.option.nbval_sanitize_with = str(ROOT / "nbval_sanitize.cfg")
    if not config.option.nbval_kernel_name:
        config.option.nbval_current_env = True  # this Python, whatever "python3" is elsewhere


@pytest.hookimpl(tryfirst=True)  # before pytest deselects by marks
def pytest_collection_modifyitems(items, config):
    named = {Path(argument.partition("::")[0]).resolve() for argument in config.args}
    for item in items:
        # A depth is run by its name, and with `tox run -e full`.
        if item.path.stem.endswith(lessons.DEPTH) and item.path not in named:
            item.add_marker(pytest.mark.slow)
    on_gpu_only = [
        item
        for item in items
        if isinstance(item, IPyNbCell) and lessons.GPU_TAG in lessons.tags(item.cell)
    ]
    if on_gpu_only and not kernels.has_gpu():
        for item in on_gpu_only:
            item.add_marker(pytest.mark.skip(reason="runs on a GPU only, and JAX sees none"))


def pytest_collection_finish(session):
    if not hasattr(session.config, "workerinput"):  # workers of pytest-xdist cannot stop the run
        prepare([item.nodeid for item in session.items], session.config)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node, ids):
    if node.gateway.id == "gw0":
        prepare(ids, node.config)


def prepare(node_ids, config):
    """Ask for what the chosen lessons need, and lay their data out, before the first cell runs."""
    if shown := config.pluginmanager.getplugin("progress"):
        shown.expect(node_ids)
    files = {lessons.ROOT / node_id.partition("::Cell ")[0] for node_id in node_ids}
    chosen = sorted(file.stem for file in files if file.parent == lessons.NOTEBOOKS)
    if not chosen or config.option.collectonly:
        return
    capture = config.pluginmanager.getplugin("capturemanager")
    try:
        for name in chosen:
            kernels.ask_for_packages(name)
        with capture.global_and_fixture_disabled():
            kernels.lay_out_data()
    except Problem as problem:
        pytest.exit(str(problem), returncode=pytest.ExitCode.USAGE_ERROR)


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder `notebooks/data` with MNIST laid out for every library, and the texts."""
    try:
        kernels.lay_out_data()
    except Problem as problem:
        pytest.fail(str(problem), pytrace=False)
    return lessons.NOTEBOOKS / "data"
