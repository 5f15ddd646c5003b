"""execute and new, on a copy of the repository."""

import functools
import time

import jupytext
import nbformat
import psutil
import pytest
from tiny_lesson import code, outputs, run_execute, write_tiny

from tools.check import check, fix
from tools.lesson import lessons
from tools.run import execute, kernels

pytestmark = pytest.mark.slow


def test_execute_stores_outputs_and_passes_them_to_nbval(workshop, python):
    write_tiny(code("print(6 * 7)"), code("print('GPU')", "requires-gpu"))
    done = run_execute(python, workshop, "tiny")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 of 2" in done.stdout and done.stderr == ""
    assert "1 passed, 1 skipped" in done.stdout
    assert outputs() == ["42\n", ""]
    assert list(check.check_lesson("tiny")) == []
    assert lessons.checked(lessons.read_notebook("tiny"))["cells"] == 1


@pytest.fixture
def execute_tiny(workshop, monkeypatch):
    """Execute the lesson as `execute` does, where JAX sees no GPU."""
    monkeypatch.setattr(kernels, "has_gpu", lambda: False)
    return functools.partial(execute.execute, "tiny", refresh=False)


def test_execute_keeps_what_did_not_change(execute_tiny):
    clock = code("import time\nprint(f'{time.perf_counter():.6f} s')")
    write_tiny(clock, code("print(6 * 7)"))
    execute_tiny()
    stored, (measured, _) = lessons.notebook_path("tiny").read_bytes(), outputs()
    execute_tiny()
    assert lessons.notebook_path("tiny").read_bytes() == stored, "churn"

    notebook = lessons.read_notebook("tiny")
    notebook.metadata["checked"] = {"digest": lessons.digest(notebook)}
    lessons.store(notebook, "tiny")
    execute_tiny()
    assert lessons.checked(lessons.read_notebook("tiny"))

    write_tiny(clock, code("print(6 * 8)"))
    execute_tiny()
    assert outputs() == [measured, "48\n"]
    assert set(lessons.read_notebook("tiny").metadata) == {"kernelspec"}

    execute_tiny(refresh=True)
    assert outputs()[0] != measured
    assert list(check.check_lesson("tiny")) == []


def test_execute_renews_a_picture_below_new_text_only(execute_tiny):
    def picture():
        (output,) = lessons.code_cells(lessons.read_notebook("tiny"))[1].outputs
        return output.data["image/png"]

    said = lessons.NOTEBOOKS / "said.txt"
    said.write_text("AMD")
    new = "base64.b64encode(str(time.time()).encode()).decode()"
    show = f"import base64, time\ndisplay({{'image/png': {new}}}, raw=True)"
    write_tiny(code("print(open('said.txt').read())"), code(show))
    execute_tiny()
    first = picture()
    execute_tiny()
    assert picture() == first, "churn"

    said.write_text("Intel")
    execute_tiny()
    assert outputs()[0] == "Intel\n" and picture() != first


def test_what_folds_a_cell_in_jupyterlab_and_colab_follows_from_its_tags(execute_tiny):
    show = "display({'image/png': 'AAAA', 'text/plain': 'x'}, raw=True)"
    words = ":mystnb: {image: {alt: a}, figure: {caption: b}}"  # of the picture
    title, of_solution = "# @title Proof: it holds", "# @title Show the solution"
    cells = [
        code(f"{title}\nprint(1)", "proof"),
        code(f"{title}\nassert 1", "proof"),
        code(f"{title}\n{show}", "proof").replace("\n\n", f"\n{words}\n\n", 1),
        code(f"{of_solution}\nprint(2)", "exercise"),
        code("print(3)"),
    ]
    text = {"cellView": "form", "jupyter": {"source_hidden": True, "outputs_hidden": True}}
    silent = {"cellView": "form", "jupyter": {"source_hidden": True}}
    for first, fold in ((cells[0], text), (code("print(1)"), {})):  # then its tag is gone
        write_tiny(first, *cells[1:])
        execute_tiny()
        found = lessons.code_cells(lessons.read_notebook("tiny"))
        folds = [{k: c.metadata[k] for k in lessons.FOLDING if k in c.metadata} for c in found]
        assert folds == [fold, silent, silent, text, {}]
        assert list(check.check_lesson("tiny")) == []
    assert jupytext.read(lessons.md_path("tiny")).cells[2].metadata == {"tags": ["proof"]}


def test_a_gpu_cell_keeps_its_output_until_it_is_edited(execute_tiny):
    write_tiny(code("print(1)"), code("print('GPU')", "requires-gpu"))
    execute_tiny()
    notebook = lessons.read_notebook("tiny")
    cell = lessons.code_cells(notebook)[1]
    cell.outputs = [nbformat.v4.new_output("stream", name="stdout", text="GPU\n")]
    cell.execution_count, cell.metadata["stamp"] = 2, lessons.stamp(cell)
    nbformat.write(notebook, lessons.notebook_path("tiny"))

    execute_tiny()
    assert outputs() == ["1\n", "GPU\n"]
    write_tiny(code("print(1)"), code("print('a GPU')", "requires-gpu"))
    execute_tiny()
    assert outputs() == ["1\n", ""]
    assert list(check.check_lesson("tiny")) == []


def test_a_cell_that_fails_stores_nothing(workshop, execute_tiny, python):
    write_tiny(code("print(1)"))
    execute_tiny()
    stored = lessons.notebook_path("tiny").read_bytes()
    write_tiny(code("print(2)"), code("assert False, 'no'"))
    done = run_execute(python, workshop, "tiny")
    assert done.returncode == 1
    assert "tiny, cell 1: AssertionError: no. Nothing was stored.\n" in done.stderr
    assert "execute.py" not in done.stderr, "a traceback of ours"
    assert lessons.notebook_path("tiny").read_bytes() == stored


@pytest.mark.parametrize("source", ["os.getcwd()", "platform.node()"])
def test_an_output_that_names_this_machine_is_not_stored(workshop, python, source):
    write_tiny(code(f"import os, platform\n\nprint({source})"))
    done = run_execute(python, workshop, "tiny")
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert "tiny, cell 0: its output names " in done.stderr
    assert not lessons.notebook_path("tiny").exists()


def test_an_interrupted_execute_stores_nothing_and_leaves_no_kernel(workshop, in_terminal):
    write_tiny(code("print(1)"), code("import time; time.sleep(600)"))
    process = in_terminal("-m", "tools.run.execute", "tiny", cwd=workshop)
    process.wait_until_it_says("1 of 2")
    time.sleep(1)
    kernels = process.descendants()
    assert kernels
    _, said = process.press_ctrl_c()
    assert said == "execute: interrupted; the stored notebooks are as they were.\n"
    assert process.returncode == 1
    assert not psutil.wait_procs(kernels, timeout=10)[1]
    assert not list(lessons.NOTEBOOKS.glob("*tiny*"))


# new -----------------------------------------------------------------------------------------


ENTRY = """
[[lesson]]
name = "my_loader"
group = "Loaders"
have = "my data"
question = "How?"
hardware = "any"
run = 1
"""


def test_a_new_lesson_and_its_depth_run_as_they_stand(workshop, python):
    assert python("-m", "tools.check.new", "my_loader", cwd=workshop).returncode == 0
    pages = "my_loader", "my_loader_in_depth"
    assert not any(map(fix.fix, pages)), "a template is not formatted"
    done = run_execute(python, workshop, *pages)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [fault for page in pages for fault in check.check_lesson(page)] == []
    with (workshop / "lessons.toml").open("a") as listed:
        listed.write(ENTRY)
    measure = (
        "from tools.lesson import modules; modules.write(); from benchmarks import in_process; "
        "made = in_process.Lesson('my_loader'); made.check(); "
        "print(made.epoch() > 0, made.resident_epoch() > 0)"
    )
    done = python("-c", measure, cwd=workshop)
    assert done.stdout.endswith("True True\n"), done.stderr


@pytest.mark.parametrize(
    ("name", "reason"),
    {"My Lesson": "cannot name a lesson", "pytorch_dataloader": "exists already"}.items(),
)
def test_a_name_that_a_new_lesson_cannot_have(repository, python, name, reason):
    done = python("-m", "tools.check.new", name, cwd=repository)
    assert done.returncode == 1 and reason in done.stderr
    assert done.stderr.count("\n") == 1
