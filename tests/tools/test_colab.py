"""Colab's list, and how a lesson is run and judged: on tiny notebooks, with this Python.

`tox run -e colab` makes the environment of colab.txt and runs the lessons themselves.
"""

import json
import os
import subprocess
import sys
import sysconfig
import venv

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from offline.problem import Problem
from tools.lesson import lessons
from tools.run import colab, kernels

pytestmark = pytest.mark.slow

FREEZE = """\
# generated
jax==0.9.1
numpy==2.1.3
torch @ https://example.org/whl/cpu/torch-2.11.0%2Bcpu-cp313-cp313-manylinux_2_28_x86_64.whl
torchaudio==2.11.0+cu128
google-colab @ file:///dist/google_colab-1.0.0.tar.gz
kernel_gateway @ git+https://example.org/kernel_gateway@b134e9945df25c2dcb98ade9129399be10788671
tensorflow-datasets==4.9.10
"""


# The list that Colab publishes ---------------------------------------------------------------


def test_versions_are_read_from_pins_and_from_the_addresses_of_wheels():
    assert colab.versions(FREEZE) == {
        "jax": "0.9.1",
        "numpy": "2.1.3",
        "torch": "2.11.0",
        "torchaudio": "2.11.0",
        "tensorflow-datasets": "4.9.10",
    }


def test_renewing_writes_what_lessons_need_of_what_is_published(tmp_path, monkeypatch):
    folder = tmp_path / "backend-info"
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org", "-C", folder]
    subprocess.run(["git", "init", "--quiet", folder], check=True)
    (folder / "pip-freeze.txt").write_text(FREEZE)
    (folder / "os-info.txt").write_text("Python 3.13.15\n")
    subprocess.run([*git, "add", "."], check=True)
    date = os.environ | {"GIT_COMMITTER_DATE": "2026-01-02T12:00Z"}
    subprocess.run([*git, "commit", "--quiet", "--message", "x"], check=True, env=date)
    monkeypatch.setattr(colab, "PUBLISHED", str(folder))
    monkeypatch.setattr(colab, "PINS", tmp_path / "colab.txt")
    # What uv adds without a pin is not in Colab.
    resolves = "print('jax==0.9.1\\nnew==1\\ntensorflow-datasets==4.9.10')"
    monkeypatch.setattr(colab, "UV", (sys.executable, "-c", resolves))
    colab.renew()
    assert colab.versions(colab.PINS.read_text()) == {
        "jax": "0.9.1",
        "tensorflow-datasets": "4.9.10",
    }
    assert (colab.header()["python"], colab.header()["date"]) == ("3.13", "2026-01-02")


def test_the_pins_are_whole():
    assert colab.header()["python"] == "3.13"
    pins = colab.versions(colab.PINS.read_text())
    assert {"jax", "torch", "tensorflow", "grain", "datasets", "ipykernel", "pip"} <= pins.keys()
    assert not [name for name in pins if colab.LEFT_OUT.match(name)]


def test_another_python_than_that_of_colab_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(colab, "PINS", tmp_path / "colab.txt")
    monkeypatch.setattr(colab, "UV", ("no-such-program",))
    colab.PINS.write_text(colab.HEADER.format(python="3.9", date="x", commit="x"))
    said = r"Colab runs Python 3\.9, and this is 3\.\d+: start tox with that one"
    with pytest.raises(Problem, match=said):
        colab.environment()


def test_each_known_failure_names_one_cell(monkeypatch):
    for name in {name for of_lessons in colab.KNOWN.values() for name in of_lessons}:
        assert colab.known(name)
    monkeypatch.setattr(colab, "KNOWN", {"nobody can": {"grain": ["import jax", "of no cell"]}})
    with pytest.raises(Problem, match=r"“import jax”, which \d+ cells have: give it words"):
        colab.known("grain")


# A run ---------------------------------------------------------------------------------------

GOOD = {
    "open('data/MNIST/new', 'w').close()": "",
    "import os, sys\nassert 'google.colab' in sys.modules and os.listdir() == ['data']": "",
    "if 'google.colab' in sys.modules:\n    %pip --version\nprint('took 1 s')": "took 2 s\n",
}


@pytest.fixture
def run(repository, tmp_path, monkeypatch, capsys):
    """Run the lesson `tiny` of these cells and what is stored of them, in an environment like this.

    Returns pytest's exit status, its words, and what is recorded.
    """
    base = tmp_path / "base"
    venv.create(base, symlinks=True)
    packages = next(base.glob("lib/python*/site-packages"))
    (packages / "tests.pth").write_text(sysconfig.get_path("purelib"))
    monkeypatch.setattr(colab, "WORK", tmp_path / "work")
    monkeypatch.setattr(colab, "RECORD", repository / "tests.json")
    monkeypatch.setattr(colab, "environment", lambda: base)
    monkeypatch.setattr(kernels, "lay_out_data", lambda: None)
    (lessons.NOTEBOOKS / "data/MNIST").mkdir(parents=True)

    def tiny(stored, known=None):
        notebook = new_notebook()
        for source, text in stored.items():
            outputs = [new_output("stream", text=text)] if text else []
            notebook.cells.append(new_code_cell(source, outputs=outputs, execution_count=1))
        nbformat.write(notebook, lessons.notebook_path("tiny"))
        lessons.md_path("tiny").write_text("")
        by_reason = {why: {"tiny": [words]} for words, why in (known or {}).items()}
        monkeypatch.setattr(colab, "KNOWN", by_reason)
        status = colab.check(["tiny"], recording=True)
        return status, capsys.readouterr().out, json.loads(colab.RECORD.read_text())

    return tiny


def test_a_lesson_runs_alone_and_is_recorded_with_what_is_known_to_differ(run):
    status, said, record = run({**GOOD, "1 / 0": ""}, known={"1 / 0": "nobody can"})
    assert status == 0 and "3 passed, 1 xfailed" in said and "nobody can" in said
    assert not (lessons.NOTEBOOKS / "data/MNIST/new").exists()
    assert [file.name for file in colab.WORK.glob("[!.]*")] == ["tiny.ipynb"]
    assert record["versions"]["jax"] == colab.versions(colab.PINS.read_text())["jax"]
    figures = record["lessons"]["tiny"]
    assert (figures["passed"], figures["differ"]) == (3, {"1 / 0": "nobody can"})
    assert figures["digest"] == lessons.digest(lessons.read_notebook("tiny"))


@pytest.mark.parametrize(
    ("cells", "known", "counts", "reason"),
    [
        ({"1 / 0": "", "print(2)": "2\n"}, {}, "1 failed, 1 passed", "ZeroDivisionError"),
        ({"print(1)": "2\n"}, {}, "1 failed", "Cell outputs differ"),
        ({"%pip no-such-command": ""}, {}, "1 failed", "%pip failed: ERROR: unknown command"),
        ({"x = 1": ""}, {"x = 1": "nobody can"}, "1 failed", "[XPASS(strict)] nobody can"),
        (
            {"import os; os._exit(3)": "", "1": ""},
            {"import os; os._exit(3)": "dies"},
            "1 skipped, 1 xfailed",
            "cell 0: the kernel died (exit code 3)",
        ),
    ],
)
def test_what_is_not_as_known_is_not_recorded(run, cells, known, counts, reason):
    status, said, record = run(cells, known)
    assert counts in said and reason in said and (status == 1 or "skipped" in counts)
    assert record["lessons"] == {}
