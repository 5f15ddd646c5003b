"""Colab's list, and how a lesson is run and judged: on tiny notebooks, with this Python.

`tox run -e colab` makes the environment of colab.txt and runs the lessons themselves.
"""

import json
import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import filelock
import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from tools import colab, execute, lessons

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


def failure(heading, number=1, reason="ValueError: no"):
    return colab.Failure(number, heading, reason)


def result(*failures, ran=("a", "b"), ended=""):
    return colab.Result(list(failures), list(ran), edited=0, skipped=0, ended=ended, seconds=1)


def stream(text, name="stdout"):
    return new_output("stream", name=name, text=text)


def stored(source, *outputs):
    cell = new_code_cell(source, outputs=list(outputs))
    cell.metadata["stamp"] = lessons.stamp(cell)
    return cell


# The list that Colab publishes ---------------------------------------------------------------


def test_versions_are_read_from_pins_and_from_the_addresses_of_wheels():
    assert colab.versions(FREEZE) == {
        "jax": "0.9.1",
        "numpy": "2.1.3",
        "torch": "2.11.0",
        "torchaudio": "2.11.0",
        "tensorflow-datasets": "4.9.10",
    }


def test_old_and_missing_packages_are_named():
    bounds = colab.bounds((lessons.ROOT / "requirements.txt").read_text())
    names = {requirement.name for requirement in bounds}
    assert {"jax", "torch", "grain", "datasets", "tensorflow-cpu"} <= names
    assert not names & {"nbval", "ruff", "tensorflow"}
    outside, missing = colab.compare(bounds, colab.versions(FREEZE))
    [lowest] = [requirement.specifier for requirement in bounds if requirement.name == "jax"]
    assert outside == [f"jax 0.9.1 is not {lowest}"]
    assert {"grain", "datasets"} <= set(missing)
    assert not {"numpy", "torch", "tensorflow-datasets"} & set(missing)


def test_no_network_is_one_sentence(python, tmp_path):
    code = "import sys; sys.path.insert(0, sys.argv[1]); from tools import colab;"
    code += "colab.PUBLISHED = sys.argv[2]; sys.argv[1:] = ['--renew']; colab.main()"
    done = python("-c", code, lessons.ROOT, (tmp_path / "no such list").as_uri())
    assert done.returncode == 1
    assert done.stderr.startswith("colab: ") and done.stderr.count("\n") == 1


@pytest.fixture
def published(tmp_path, monkeypatch):
    """A repository that publishes FREEZE, with files given as `name=text`."""

    def publish(**files):
        folder = tmp_path / "backend-info"
        git = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org", "-C", str(folder)]
        subprocess.run(["git", "init", "--quiet", str(folder)], check=True)
        for name, text in files.items():
            (folder / f"{name.replace('_', '-')}.txt").write_text(text)
        subprocess.run([*git, "add", "."], check=True)
        commit = ["commit", "--quiet", "--message", "x", "--date", "2026-01-02T12:00:00Z"]
        subprocess.run(
            [*git, *commit],
            check=True,
            env=os.environ | {"GIT_COMMITTER_DATE": "2026-01-02T12:00Z"},
        )
        monkeypatch.setattr(colab, "PUBLISHED", str(folder))
        monkeypatch.setattr(colab, "PINS", tmp_path / "colab.txt")

    return publish


def test_renewing_writes_what_lessons_need_and_says_what_changed(published, monkeypatch, capsys):
    gpu = FREEZE + "cupy-cuda12x==14.0.1\n"
    published(**{"pip_freeze": FREEZE, "pip_freeze.gpu": gpu, "os_info": "Python 3.13.15\n"})
    # What uv adds without a pin is not in Colab.
    resolved = "jax==0.9.1\ntensorflow-datasets==4.9.10\nnew==1\n"
    monkeypatch.setattr(colab, "uv", lambda *_, stdin: resolved)
    colab.PINS.write_text("jax==0.7.2\nold==1\n")
    colab.renew()
    assert colab.versions(colab.PINS.read_text()) == {
        "jax": "0.9.1",
        "tensorflow-datasets": "4.9.10",
    }
    assert colab.header()["python"] == "3.13"
    assert colab.header()["date"] == "2026-01-02"
    assert colab.header()["gpu"] == "cupy-cuda12x==14.0.1"
    said = capsys.readouterr().out
    assert "jax: 0.7.2 -> 0.9.1\nold: 1 -> none\n" in said
    assert "outside of the bounds of requirements.txt: jax 0.9.1 is not" in said


def test_another_format_of_the_list_is_one_sentence(published):
    published(pip_freeze="<html>")
    with pytest.raises(lessons.Problem, match="names no versions: has its format changed"):
        colab.renew()
    assert not colab.PINS.exists()


def test_the_pins_are_whole():
    assert colab.header()["python"] == "3.13"
    pins = colab.versions(colab.PINS.read_text())
    assert {"jax", "torch", "tensorflow", "grain", "datasets", "ipykernel", "pip"} <= pins.keys()
    assert not [name for name in pins if colab.LEFT_OUT.match(name)]


@pytest.mark.parametrize("text", ["", "jax==0.7.2\n"])
def test_pins_without_their_comment_are_one_sentence(tmp_path, monkeypatch, text):
    monkeypatch.setattr(colab, "PINS", tmp_path / "colab.txt")
    if text:
        colab.PINS.write_text(text)
    with pytest.raises(lessons.Problem, match=r"colab.txt .* --renew"):
        colab.header()


# The comparison ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("here", "there", "reason"),
    [
        ("3 images\n", "3 images\n", ""),
        ("it took 3.1 s\n", "it took 12 ms\n", ""),  # masked
        ("a\n3 images\n", "a\n4 images\n", "stored “4 images”, here “3 images”"),
        ("a\nb\n", "a\n", "stored “nothing”, here “b”"),
        ("", "a\n", "stored “a”, here “nothing”"),
    ],
)
def test_outputs_are_compared_after_the_masks(here, there, reason):
    outputs = [stream(here)] if here else []
    assert colab.difference(stored("x", *outputs), stored("x", stream(there))) == reason


def test_another_stream_and_an_error_differ():
    old = stored("x", stream("a\n"))
    assert colab.difference(stored("x", stream("a\n", "stderr")), old)
    error = new_output("error", ename="KeyError", evalue="\x1b[31m'x'\x1b[0m\nlong", traceback=[])
    assert colab.difference(stored("x", stream("a\n"), error), old) == "KeyError: 'x'"


def test_a_cell_that_was_edited_since_has_only_to_run():
    edited = new_code_cell("x")
    assert colab.difference(stored("x", stream("a\n")), edited) == ""
    error = new_output("error", ename="KeyError", evalue="'x'", traceback=[])
    assert colab.difference(stored("x", error), edited) == "KeyError: 'x'"


def test_of_a_cell_only_what_pip_prints_is_left_out():
    note = f"{colab.BEGIN}\nNote: restart\n{colab.END} 0\n"
    old = stored("x", stream("jax is here\n"))
    assert colab.difference(stored("x", stream(f"{note}{note}jax is here\n")), old) == ""
    assert colab.difference(stored("x", stream(f"{note}jax is gone\n")), old)
    assert colab.difference(stored("x", stream(f"more\n{note}jax is here\n")), old)
    assert colab.difference(stored("x", stream(note)), stored("x")) == ""
    failed = f"{colab.BEGIN}\nCollecting y\nERROR: no y\n{colab.END} 1\n"
    reason = "its %pip line failed: ERROR: no y"
    assert colab.difference(stored("x", stream(f"{failed}jax is here\n")), old) == reason


# What is known -------------------------------------------------------------------------------


def test_a_run_is_green_with_exactly_the_known_failures():
    assert colab.judge("grain", result(), {}) == []
    assert colab.judge("grain", result(failure("a")), {"a": "too old"}) == []


def test_an_unknown_failure_says_what_to_edit():
    [sentence] = colab.judge("grain", result(failure("a"), failure("b", 2)), {"a": "too old"})
    assert sentence.startswith("grain, cell 2 `b`: ValueError: no.") and "KNOWN" in sentence


def test_a_known_failure_that_vanished_says_what_to_edit():
    [sentence] = colab.judge("grain", result(), {"a": "too old"})
    assert "`a` passes now" in sentence and "KNOWN" in sentence
    [sentence] = colab.judge("grain", result(), {"c": "too old"})
    assert "no cell `c`" in sentence


def test_what_stands_below_the_end_of_a_lesson_is_not_judged():
    ended = result(failure("a", reason="killed the kernel"), ran=["a"], ended="killed the kernel")
    [sentence] = colab.judge("grain", ended, {"b": "too old"})
    assert "cell 1 `a`: killed the kernel." in sentence


def test_each_known_failure_names_one_cell():
    for name, known in colab.KNOWN.items():
        headings = [colab.heading(cell) for cell in lessons.code_cells(lessons.read_md(name))]
        assert [line for line in known if headings.count(line) != 1] == [], name


# A run ---------------------------------------------------------------------------------------


@pytest.fixture
def run(tmp_path):
    """Run the sources in this Python, with the stub of Colab's package."""

    def start(*sources):
        (tmp_path / "content").mkdir()
        colab.write_stub(tmp_path / "stub")
        notebook = new_notebook(cells=[stored(source) for source in sources])
        python = Path(sys.executable)
        done = colab.run(notebook, python, tmp_path / "content", tmp_path / "stub")
        return done, [failure.reason for failure in done.failures]

    return start


def test_a_lesson_finds_itself_in_colab_and_goes_on_after_a_failing_cell(run):
    done, reasons = run(
        "import sys, os\nassert 'google.colab' in sys.modules\nfrom google.colab import output",
        "if 'google.colab' in sys.modules:\n    %pip no-such-command",
        "1 / 0",
        "assert os.listdir() == []",
        "print('more')",
    )
    assert [failure.number for failure in done.failures] == [2, 3, 5]
    assert reasons[0].startswith("its %pip line failed: ")
    assert reasons[1:] == ["ZeroDivisionError: division by zero", "stored “nothing”, here “more”"]
    assert (len(done.ran), done.ended) == (5, "")


def test_a_cell_that_kills_the_kernel_ends_the_lesson(run):
    done, reasons = run("x = 1", "import os; os._exit(3)", "x")
    assert (reasons, len(done.ran), done.ended) == (["killed the kernel"], 2, "killed the kernel")


def test_a_cell_that_is_too_slow_ends_the_lesson(run, monkeypatch):
    monkeypatch.setattr(execute, "CELL_TIMEOUT", 2)
    done, reasons = run("import time; time.sleep(60)", "x")
    assert (reasons, len(done.ran)) == (["did not end within 2 s"], 1)


@pytest.fixture
def tiny(repository, tmp_path, monkeypatch):
    """The lesson `tiny` in a copy of the repository, and an environment to copy."""
    source = "---\nkernelspec:\n  name: python3\n  display_name: Python 3\n---\n\n"
    cells = ["open('data/MNIST/new', 'w').close()", "import os\nprint('one')", "1 / 0"]
    source += "".join(f"```{{code-cell}} ipython3\n{cell}\n```\n\n" for cell in cells)
    lessons.md_path("tiny").write_text(source)
    notebook = lessons.read_md("tiny")
    for cell in lessons.code_cells(notebook):
        cell.metadata["stamp"] = lessons.stamp(cell)
    lessons.code_cells(notebook)[1].outputs = [stream("one\n")]
    nbformat.write(notebook, lessons.notebook_path("tiny"))
    (lessons.NOTEBOOKS / "data/MNIST").mkdir(parents=True)
    base = tmp_path / "base"
    venv.create(base, symlinks=True)
    packages = next(base.glob("lib/python*/site-packages"))
    (packages / "tests.pth").write_text(sysconfig.get_path("purelib"))
    monkeypatch.setattr(colab, "WORK", tmp_path / "work")
    monkeypatch.setattr(colab, "RECORD", repository / "checked/colab/tests.json")
    monkeypatch.setattr(colab, "environment", lambda: base)
    monkeypatch.setattr(lessons, "lay_out_data", lambda: None)
    return repository


def test_a_lesson_runs_in_a_folder_of_its_own_and_is_recorded_when_green(tiny, monkeypatch, capsys):
    monkeypatch.setattr(colab, "KNOWN", {"tiny": {"1 / 0": "nobody can"}})
    assert colab.check_all(["tiny"], record=True) == []
    assert "tiny: 1 of 3 cells differ" in capsys.readouterr().out
    assert not (tiny / "notebooks/data/MNIST/new").exists()
    assert [file.name for file in colab.WORK.glob("[!.]*")] == ["tiny.ipynb"]
    record = json.loads(colab.RECORD.read_text())
    figures = record["lessons"]["tiny"]
    assert (figures["passed"], list(figures["differ"])) == (2, ["1 / 0"])
    assert figures["digest"] == lessons.digest(lessons.read_notebook("tiny"))
    assert record["versions"]["jax"] == colab.versions(colab.PINS.read_text())["jax"]


def test_a_lesson_that_is_red_is_not_recorded(tiny):
    [sentence] = colab.check_all(["tiny"], record=True)
    assert sentence.startswith("tiny, cell 3 `1 / 0`: ZeroDivisionError")
    assert json.loads(colab.RECORD.read_text())["lessons"] == {}


def test_a_lesson_that_was_edited_since_is_not_recorded(tiny, monkeypatch, capsys):
    monkeypatch.setattr(colab, "KNOWN", {"tiny": {"1 / 0": "nobody can"}})
    source = lessons.md_path("tiny").read_text()
    lessons.md_path("tiny").write_text(source.replace("'one'", "'two'"))
    assert colab.check_all(["tiny"], record=True) == []
    assert json.loads(colab.RECORD.read_text())["lessons"] == {}
    assert "1 only ran: they were edited" in capsys.readouterr().out


def test_a_second_run_at_the_same_time_is_one_sentence(tiny):
    colab.WORK.mkdir()
    running = pytest.raises(lessons.Problem, match="another run works in _build/colab")
    with filelock.FileLock(colab.WORK / ".lock"), running:
        colab.check_all(["tiny"], record=False)


def test_an_unknown_lesson_is_one_sentence():
    with pytest.raises(lessons.Problem, match="no_such is no lesson: the lessons are choose"):
        colab.check_all(["no_such"], record=False)


def test_records_of_machines_are_elsewhere():
    assert colab.RECORD.parent.parent == lessons.ROOT / "checked"  # the site reads checked/*.json
