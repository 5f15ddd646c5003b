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

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from tools import colab, lessons

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


def stored(source, *texts, name="stdout"):
    """A cell that was executed and printed the texts."""
    outputs = [new_output("stream", name=name, text=text) for text in texts]
    cell = new_code_cell(source, outputs=outputs)
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


@pytest.fixture
def publish(tmp_path, monkeypatch):
    """Make a repository that publishes the files, which come as `name=text`."""

    def made(**files):
        folder = tmp_path / "backend-info"
        git = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org", "-C", folder]
        subprocess.run(["git", "init", "--quiet", folder], check=True)
        for name, text in files.items():
            (folder / f"{name.replace('_', '-')}.txt").write_text(text)
        subprocess.run([*git, "add", "."], check=True)
        date = os.environ | {"GIT_COMMITTER_DATE": "2026-01-02T12:00Z"}
        subprocess.run([*git, "commit", "--quiet", "--message", "x"], check=True, env=date)
        monkeypatch.setattr(colab, "PUBLISHED", str(folder))
        monkeypatch.setattr(colab, "PINS", tmp_path / "colab.txt")

    return made


def test_renewing_writes_what_lessons_need_of_what_is_published(publish, monkeypatch):
    publish(pip_freeze=FREEZE, os_info="Python 3.13.15\n")
    # What uv adds without a pin is not in Colab.
    resolves = "print('jax==0.9.1\\nnew==1\\ntensorflow-datasets==4.9.10')"
    monkeypatch.setattr(colab, "UV", (sys.executable, "-c", resolves))
    colab.renew()
    assert colab.versions(colab.PINS.read_text()) == {
        "jax": "0.9.1",
        "tensorflow-datasets": "4.9.10",
    }
    assert (colab.header()["python"], colab.header()["date"]) == ("3.13", "2026-01-02")


def test_another_format_of_the_list_is_one_sentence(publish):
    publish(pip_freeze="<html>")
    with pytest.raises(lessons.Problem, match="names no versions: has its format changed"):
        colab.renew()
    assert not colab.PINS.exists()


def test_no_network_is_one_sentence(python, tmp_path):
    code = "import sys; sys.path.insert(0, sys.argv[1]); from tools import colab;"
    code += "colab.PUBLISHED = sys.argv[2]; sys.argv[1:] = ['--renew']; colab.main()"
    done = python("-c", code, lessons.ROOT, (tmp_path / "no such list").as_uri())
    assert done.returncode == 1
    assert done.stderr.startswith("colab: `git clone") and done.stderr.count("\n") == 1


def test_the_pins_are_whole():
    assert colab.header()["python"] == "3.13"
    pins = colab.versions(colab.PINS.read_text())
    assert {"jax", "torch", "tensorflow", "grain", "datasets", "ipykernel", "pip"} <= pins.keys()
    assert not [name for name in pins if colab.LEFT_OUT.match(name)]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (None, "colab.txt does not begin as .* --renew"),
        ("jax==0.7.2\n", "colab.txt does not begin as .* --renew"),
        (
            colab.HEADER.format(python="3.9", date="x", commit="x"),
            r"Colab runs Python 3\.9, and this is 3\.\d+: start tox with that one",
        ),
    ],
)
def test_pins_of_which_no_environment_can_be_made(tmp_path, monkeypatch, text, sentence):
    monkeypatch.setattr(colab, "PINS", tmp_path / "colab.txt")
    monkeypatch.setattr(colab, "UV", ("no-such-program",))
    if text:
        colab.PINS.write_text(text)
    with pytest.raises(lessons.Problem, match=sentence):
        colab.environment()


# The comparison ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("here", "there", "reason"),
    [
        (["3 images\n"], ["3 images\n"], ""),
        (["it took 3.1 s\n"], ["it took 12 ms\n"], ""),  # masked
        (["a\n3 images\n"], ["a\n4 images\n"], "stored “4 images”, here “3 images”"),
        (["a\n", "b\n"], ["a\n"], "stored “nothing”, here “b”"),
        ([], ["a\n"], "stored “a”, here “nothing”"),
        (["a\n"], ["a"], "stored “nothing”, here “”"),
    ],
)
def test_outputs_are_compared_after_the_masks(here, there, reason):
    assert colab.difference(stored("x", *here), stored("x", *there)) == reason


def test_another_stream_or_kind_of_output_differs():
    old = stored("x", "a\n")
    assert colab.difference(stored("x", "a\n", name="stderr"), old)
    shows = stored("x")
    shows.outputs = [new_output("display_data", {"text/plain": "a\n"})]
    assert colab.difference(shows, old)


@pytest.mark.parametrize(
    ("differ", "same", "known", "sentences"),
    [
        ({}, ["a"], {}, []),
        ({"a": "no"}, [], {"a": "too old"}, []),
        ({}, [], {"a": "too old"}, []),  # the lesson ended above it
        ({"a": "no", "b": "no"}, [], {"a": "too old"}, ["grain, the cell `b`: no. Mend "]),
        ({}, ["a"], {"a": "too old"}, ["grain: the cell `a` passes now. Take it out of KNOWN"]),
    ],
)
def test_a_run_is_green_with_exactly_the_known_failures(differ, same, known, sentences):
    news = colab.judge("grain", colab.Result(differ, same), known)
    assert len(news) == len(sentences)
    for sentence, expected in zip(news, sentences, strict=True):
        assert sentence.startswith(expected) and "KNOWN in tools/colab.py" in sentence


def test_each_known_failure_names_one_cell():
    for name, known in colab.KNOWN.items():
        headings = [colab.heading(cell) for cell in lessons.code_cells(lessons.read_md(name))]
        assert [line for line in known if headings.count(line) != 1] == [], name


# A run ---------------------------------------------------------------------------------------


def run_cells(folder, *cells):
    """Run the cells in this Python, with the stub of Colab's package."""
    (folder / "content").mkdir()
    colab.write_stub(folder / "stub")
    notebook = new_notebook(cells=[*cells])
    python = Path(sys.executable)
    return colab.run_cells(notebook, python, folder / "content", folder / "stub")


def test_a_lesson_finds_itself_in_colab_and_goes_on_after_a_failing_cell(tmp_path):
    result = run_cells(
        tmp_path,
        stored("import sys, os\nassert 'google.colab' in sys.modules"),
        stored("if 'google.colab' in sys.modules:\n    %pip --version\nprint(1)", "1\n"),
        stored("%pip no-such-command"),
        stored("from google.colab import output; 1 / 0"),
        stored("assert os.listdir() == []"),
        stored("print('more')"),
        new_code_cell("print('edited since')"),
        new_code_cell("os._exit(3)"),
        stored("print('below')", "below\n"),
    )
    assert (len(result.same), result.edited) == (4, 2)
    assert [reason[:40] for reason in result.differ.values()] == [
        "RuntimeError: %pip failed: ERROR: unknown"[:40],
        "ZeroDivisionError: division by zero",
        "stored “nothing”, here “more”",
        "the kernel died (exit code 3)",
    ]


@pytest.fixture
def tiny(repository, tmp_path, monkeypatch):
    """The lesson `tiny` in a copy of the repository, and an environment to copy."""
    source = "---\nkernelspec:\n  name: python3\n  display_name: Python 3\n---\n\n"
    cells = ["open('data/MNIST/new', 'w').close()", "import os\nprint('one')", "1 / 0"]
    source += "".join(f"```{{code-cell}} ipython3\n{cell}\n```\n\n" for cell in cells)
    lessons.md_path("tiny").write_text(source)
    cells = [stored(cell, *["one\n"] * ("one" in cell)) for cell in cells]
    nbformat.write(new_notebook(cells=cells), lessons.notebook_path("tiny"))
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


@pytest.mark.parametrize("known", [True, False])
def test_a_lesson_runs_in_a_folder_of_its_own_and_is_recorded_when_green(tiny, monkeypatch, known):
    monkeypatch.setattr(colab, "KNOWN", {"tiny": {"1 / 0": "nobody can"}} if known else {})
    news = colab.check_all(["tiny"], record=True)
    assert not (tiny / "notebooks/data/MNIST/new").exists()
    assert [file.name for file in colab.WORK.iterdir()] == ["tiny.ipynb"]
    record = json.loads(colab.RECORD.read_text())
    assert record["versions"]["jax"] == colab.versions(colab.PINS.read_text())["jax"]
    if known:
        figures = record["lessons"]["tiny"]
        assert (news, figures["passed"], [*figures["differ"]]) == ([], 2, ["1 / 0"])
        assert figures["digest"] == lessons.digest(lessons.read_notebook("tiny"))
    else:
        assert news[0].startswith("tiny, the cell `1 / 0`: ZeroDivisionError")
        assert record["lessons"] == {}


def test_a_lesson_that_was_edited_since_is_not_recorded(tiny, monkeypatch, capsys):
    monkeypatch.setattr(colab, "KNOWN", {"tiny": {"1 / 0": "nobody can"}})
    source = lessons.md_path("tiny").read_text()
    lessons.md_path("tiny").write_text(source.replace("'one'", "'two'"))
    assert colab.check_all(["tiny"], record=True) == []
    assert json.loads(colab.RECORD.read_text())["lessons"] == {}
    assert "1 of them only ran, edited since" in capsys.readouterr().out


def test_an_unknown_lesson_is_one_sentence():
    with pytest.raises(lessons.Problem, match="no_such is no lesson: the lessons are choose"):
        colab.check_all(["no_such"], record=False)


def test_records_of_machines_are_elsewhere():
    assert colab.RECORD.parent.parent == lessons.ROOT / "checked"  # the site reads checked/*.json
