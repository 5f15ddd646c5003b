"""The checking itself: what nbval compares, and that a changed fact cannot pass."""

import re
from copy import deepcopy

import nbformat
import psutil
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from tools.lesson import lessons
from tools.run import nbval_cells

pytestmark = pytest.mark.slow


def collected(session, name):
    """The code cells of a lesson as items of a run, with no kernel started."""
    file = nbval_cells.Notebook.from_parent(session, path=lessons.notebook_path(name))
    file.setup_sanitize_files()
    return list(file.collect())


def measured(text: str) -> set[int]:
    """The positions in the text that a mask covers."""
    return {
        position
        for pattern, _ in lessons.masks()
        for match in re.finditer(pattern, text)
        for position in range(*match.span())
    }


def corruptions(outputs):
    """Yield copies of the outputs, in each of which one word of one stored fact is another."""
    for index, output in enumerate(outputs):
        holder, key = (
            (output, "text") if output.output_type == "stream" else (output.data, "text/plain")
        )
        text = holder[key]
        masked = measured(text)
        for word in re.finditer(r"\w+", text):
            if masked.isdisjoint(range(*word.span())):
                bad = deepcopy(outputs)
                holder = bad[index] if key == "text" else bad[index].data
                changed = "X" if word[0][-1] != "X" else "Y"
                holder[key] = text[: word.end() - 1] + changed + text[word.end() :]
                yield word[0], bad


@pytest.mark.parametrize("name", lessons.names())
def test_every_corrupted_fact_fails_the_comparison(request, name):
    facts = 0
    for item in collected(request.session, name):
        stored = item.cell.outputs
        assert item.options["check"] or "nbval-ignore-output" in lessons.tags(item.cell)
        assert item.compare_outputs(deepcopy(stored), deepcopy(stored))
        for word, corrupted in corruptions(stored):
            facts += 1
            assert not item.compare_outputs(corrupted, deepcopy(stored)), f"{item.name}: {word}"
        if stored:
            assert not item.compare_outputs([], deepcopy(stored)), f"{item.name}: nothing printed"
    assert facts > 20


def write(repository, cells, name="tiny"):
    """A notebook made of code cells. It is not in notebooks/, so it needs no data."""
    notebook = new_notebook(
        cells=cells, metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    )
    path = repository / f"{name}.ipynb"
    nbformat.write(notebook, path)
    return path


@pytest.fixture
def strict_run(repository, python):
    """Run `pytest --nbval` on a notebook made of code cells; the environment is `execute`'s."""

    def run(*cells, options=(), env=None):
        path = write(repository, cells)
        command = ["-m", "pytest", "--nbval", "-p", "no:cacheprovider", *options, path]
        return python(*command, cwd=repository, env=env)

    return run


def ran(source, text=None, **metadata):
    """A code cell that was run and printed the text."""
    outputs = [new_output("stream", name="stdout", text=text)] if text else []
    return new_code_cell(source, execution_count=1, outputs=outputs, metadata=metadata)


CLEAR = "from IPython.display import clear_output\n"


@pytest.mark.parametrize(
    ("source", "stored", "reason"),
    [
        ("print(6 * 7)", "42\n", None),
        ("print(6 * 7)", "43\n", "Cell outputs differ"),
        ("print('took 3.1 s')", "took 12.7 s\n", None),  # a measurement is masked, its unit is not
        ("print('took 3.1 s')", "took 3.1 m\n", "Cell outputs differ"),
        ("assert 6 * 7 == 43, 'n' + 'o'", None, "AssertionError: no"),
        ("# NBVAL_SKIP\nprint(6 * 7)", "43\n", "Cell outputs differ"),
        ("# NBVAL_IGNORE_OUTPUT\nprint(6 * 7)", "43\n", "Cell outputs differ"),
        ("# NBVAL_RAISES_EXCEPTION\n1 / 0", None, "ZeroDivisionError"),
        (f"{CLEAR}print(1)\nclear_output()\nprint(2)", "2\n", None),
        (f"{CLEAR}print(1)\nclear_output()\nprint(2)", "1\n", "Cell outputs differ"),
        ("import warnings; warnings.warn('be ' + 'careful')", None, "UserWarning: be careful"),
    ],
)
def test_what_is_true_passes_and_what_is_not_fails(strict_run, source, stored, reason):
    done = strict_run(ran(source, stored), options=["--color=no"])
    assert done.returncode == (1 if reason else 0)
    assert reason is None or reason in re.sub(r"\x1b\[[0-9;]*m", "", done.stdout)


def test_a_gpu_cell_is_skipped_with_the_reason_where_there_is_no_gpu(strict_run):
    cells = [ran("print(1)", "1\n"), ran("print('GPU')", "on a GPU\n", tags=["requires-gpu"])]
    done = strict_run(*cells, env={"JAX_PLATFORMS": "cpu"})
    assert done.returncode == 0 and "1 passed, 1 skipped" in done.stdout
    assert "runs on a GPU only, and JAX sees none" in done.stdout


def test_lax_comparison_is_refused(strict_run):
    done = strict_run(ran("print(6 * 7)", "43\n"), options=["--nbval-lax"])
    assert done.returncode == 4 and "compared strictly" in done.stderr


@pytest.mark.parametrize("workers", [[], ["-n2", "--dist=loadfile"]])
def test_an_interrupted_run_leaves_no_kernel_and_changes_nothing(repository, in_terminal, workers):
    notebook = write(repository, [ran("print(1)", "1\n"), ran("import time; time.sleep(600)")])
    before = notebook.read_bytes()
    process = in_terminal("-m", "pytest", "--nbval", "-v", *workers, notebook, cwd=repository)
    process.wait_until_it_says("PASSED")
    kernels = process.descendants()
    assert kernels
    said, _ = process.press_ctrl_c()
    assert process.returncode == pytest.ExitCode.INTERRUPTED and "KeyboardInterrupt" in said
    assert not psutil.wait_procs(kernels, timeout=10)[1]
    assert notebook.read_bytes() == before


def test_a_notebook_has_the_data_and_no_file_of_another(workshop, python):
    cell = """from pathlib import Path
print(Path("data/MNIST/raw").is_dir(), Path("data/made").exists(), Path("made.py").exists())
Path("data/made").touch(), Path("made.py").touch();"""
    paths = "notebooks/one.ipynb", "notebooks/two.ipynb"
    for path in paths:
        write(workshop, [ran(cell, "True False False\n")], path.removesuffix(".ipynb"))
    before = sorted((workshop / "notebooks").rglob("*"))
    done = python("-m", "pytest", "-p", "no:cacheprovider", "--nbval", *paths, cwd=workshop)
    assert "2 passed" in done.stdout, done.stdout
    assert sorted((workshop / "notebooks").rglob("*")) == before


def test_a_package_that_is_not_installed_stops_the_run_with_one_sentence(workshop, python):
    path = workshop / "notebooks/grain.ipynb"
    path.write_text(path.read_text().replace("import grain", "import no_grain"))
    done = python("-m", "pytest", "--nbval", path, cwd=workshop)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "notebooks/grain.ipynb imports no_grain, not installed here: `python -m" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.usefixtures("workshop")
def test_without_a_home_the_libraries_import_in_silence(strict_run):
    libraries = "import jax, torch, torchvision, tensorflow_datasets, grain, datasets, matplotlib"
    done = strict_run(ran(libraries), env={"HOME": "/proc/no-home"})
    assert done.returncode == 0, done.stdout


# A kernel that dies, a cell that does not end: test_runner.py has every way ----------------------


@pytest.mark.parametrize("workers", [[], ["-n2", "--dist=loadfile"]])
def test_a_dead_kernel_ends_its_notebook_at_once_and_no_other(repository, python, workers):
    write(repository, [ran("x = 1"), ran("import os; os._exit(3)"), ran("2"), ran("3")], "dying")
    write(repository, [ran("print(1)", "1\n"), ran("print(2)", "2\n")], "sound")
    done = python("-m", "pytest", "--nbval", *workers, "dying.ipynb", "sound.ipynb", cwd=repository)
    assert "1 failed, 3 passed, 2 skipped" in done.stdout, done.stdout
    assert "dying.ipynb, cell 1: the kernel died (exit code 3)\n" in done.stdout
    skipped = r"^SKIPPED \[2\] .*: cell 1: the kernel died \(exit code 3\)$"
    assert re.search(skipped, done.stdout, re.MULTILINE)


def test_a_cell_that_runs_too_long_ends_its_notebook_with_one_sentence(strict_run):
    cells = ran("import time; time.sleep(600)"), ran("2")
    done = strict_run(*cells, options=["--nbval-cell-timeout=3"])
    assert "tiny.ipynb, cell 0: it did not end within 3 s\n" in done.stdout, done.stdout
    assert "1 failed, 1 skipped" in done.stdout and "KeyboardInterrupt" in done.stdout
