"""What the site says of the lessons follows from the notebooks and from recorded runs."""

import json
import re

import nbformat
import pytest

from tools import lessons, record, site_pages

code, text = nbformat.v4.new_code_cell, nbformat.v4.new_markdown_cell


def printed(words: str) -> list:
    return [nbformat.v4.new_output("stream", text=words)]


@pytest.fixture
def tiny(workshop):
    """A notebook of three cells, one of them for a GPU, in a copy of the repository."""
    cells = [
        text("# Try it\n\nWords."),
        code("print(1)", execution_count=1, outputs=printed("1\n")),
        code("print(2)", execution_count=2, outputs=printed("2\n")),
        code("print(3)", metadata={"tags": ["requires-gpu"]}),
    ]
    path = lessons.notebook_path("tiny")
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    return path


@pytest.fixture
def run_and_record(repository, tiny, python):
    """Run nbval with --record in the copy; give back what is recorded of the tiny notebook."""

    def run(*arguments):
        done = python(
            *("-m", "pytest", "--nbval", "--record", "-q", tiny, *arguments),
            cwd=repository,
            env={"JAX_PLATFORMS": "cpu"},
        )
        files = list((repository / "checked").glob("*.json"))
        found = [json.loads(file.read_text()) for file in files]
        return done, [run.get("tiny") for record in found for run in record["runs"].values()]

    return run


def test_a_run_is_recorded_when_every_cell_ran_and_passed(run_and_record, tiny, repository):
    before = {file: file.read_text() for file in (repository / "checked").glob("*.json")}
    for file in before:
        file.unlink()
    done, found = run_and_record("-k", "Cell 0 or Cell 1")
    assert found == [], "a part of a lesson was recorded"
    assert "recorded in checked/: no lesson" in done.stdout

    done, [recorded] = run_and_record()
    assert done.returncode == 0, done.stdout
    assert (recorded["passed"], recorded["skipped"]) == (2, 1)
    assert recorded["seconds"] > 0 and {"python", "jax", "torch"} <= set(recorded["versions"])
    assert recorded["digest"] == lessons.digest(lessons.read_notebook("tiny"))

    tiny.write_text(tiny.read_text().replace("1\\n", "7\\n"))
    done, [still] = run_and_record()
    assert done.returncode == 1 and still == recorded


def test_a_lesson_that_changed_since_says_so(monkeypatch):
    digest = lessons.digest(lessons.read_notebook("grain"))
    figures = {"passed": 5, "skipped": 1, "seconds": 61.2, "date": "2026-11-22"}
    figures |= {"versions": {"jax": "0.10.2"}}
    run = {"grain": figures | {"digest": digest}}
    found = [("A machine, no GPU", "Python 3.11", run)]
    monkeypatch.setattr(site_pages, "runs", lambda: found)
    said = "on 2026-11-22: 5 cells hold with Python 3.11 and JAX 0.10.2 on A machine, no GPU; "
    assert f"**Checked** {said}1 wait for a GPU." in site_pages.line("grain")
    tables = "\n".join(site_pages.checked())
    assert "notebooks/grain.ipynb) | 5, 1 skipped, 61 s, <time>2026-11-22</time> |" in tables
    assert tables.count("not yet |") == len(lessons.names()) - 1
    assert "No run on a GPU is recorded yet" in tables

    run["grain"]["digest"] = "of another notebook"
    assert "on 2026-11-22, before its last change: 5 cells" in site_pages.line("grain")
    text = "\n".join(site_pages.checked())
    assert "of 1 lessons passed with Python 3.11, the last of them on <time>2026-11-22" in text
    assert "| lesson |" not in text, "no lesson ran there in its present form"
    run["pytorch_dataloader"] = figures | {
        "digest": lessons.digest(lessons.read_notebook("pytorch_dataloader"))
    }
    assert "2026-11-22</time>, changed since |" in "\n".join(site_pages.checked())
    del run["pytorch_dataloader"]

    older = {"grain": figures | {"digest": digest, "date": "2026-11-01"}}
    found.append(("A GPU", "Python 3.11", older))  # what holds for the page comes first
    assert "on 2026-11-01: 5 cells hold with Python 3.11 and JAX 0.10.2 on A GPU" in (
        site_pages.line("grain")
    )
    found.append(("Another, no GPU", "Python 3.13", run | {"grain": older["grain"]}))
    assert "Python 3.13" in site_pages.line("grain"), "of the same day the newest Python counts"
    assert "No run on a GPU" not in "\n".join(site_pages.checked())
    assert "Not checked yet" in site_pages.line("many_devices")


def test_the_pythons_of_a_machine_stand_side_by_side(monkeypatch):
    digest = lessons.digest(lessons.read_notebook("grain"))
    figures = {"passed": 5, "skipped": 0, "seconds": 60, "date": "2026-11-22", "digest": digest}
    run = {"grain": figures | {"versions": {"jax": "0.10.2"}}}
    found = [("A machine, no GPU", f"Python 3.{minor}", run) for minor in (11, 13)]
    monkeypatch.setattr(site_pages, "runs", lambda: found)
    page = "\n".join(site_pages.checked())
    assert page.count("## A machine, no GPU") == 1
    assert "| lesson | Python 3.11 | Python 3.13 |" in page
    assert "Python 3.13: 5 cells in 1 minutes, with jax 0.10.2." in page


def test_the_front_page_says_what_holds_in_colab(monkeypatch, tmp_path):
    def figures(name, differ):
        digest = lessons.digest(lessons.read_notebook(name))
        return {"passed": 30, "differ": differ, "digest": digest}

    run = {name: figures(name, {}) for name in lessons.in_order()}
    record = {
        "published": "2026-08-19",
        "versions": {"python": "3.13", "jax": "0.7.2"},
        "lessons": run,
    }
    monkeypatch.setattr(site_pages, "COLAB", tmp_path / "cpu.json")

    def said():
        site_pages.COLAB.write_text(json.dumps(record))
        return site_pages.colab("notebooks")

    count = len(run)
    assert said().endswith(f"without a GPU, {count} of {count} lessons hold whole.")
    assert "published on 2026-08-19 (Python 3.13, JAX 0.7.2)" in said()
    run["grain"] = figures("grain", {"import grain": "ValueError"})
    del run["many_devices"]
    run["dlpack_zero_copy"]["digest"] = "of another notebook"
    assert said().endswith(
        f"{count - 3} of {count - 2} lessons hold whole. "
        "What differs: 1 of 31 cells of [](notebooks/grain.ipynb). "
        "Not run there in their present form: [](notebooks/many_devices.ipynb), "
        "[](notebooks/dlpack_zero_copy.ipynb)."
    )


@pytest.mark.parametrize("name", lessons.names())
def test_the_line_stands_below_the_box_and_all_else_stays_as_it_is(name):
    stored = json.loads(lessons.notebook_path(name).read_text())
    shown = json.loads(site_pages.with_line(json.dumps(stored), name))
    first, line = shown["cells"][0]["source"], site_pages.line(name)
    before, after = first.split(f"\n\n{line}\n\n")
    box = before.split("\n\n")[-1]
    assert box.startswith("> **What you will learn.**") and "> **Hardware.**" in box
    assert f"{before}\n\n{after}".strip() == "".join(stored["cells"][0]["source"]).strip()
    assert shown["cells"][1:] == stored["cells"][1:]


@pytest.fixture
def folded(tiny, monkeypatch):
    """The tiny lesson with a proof, a proof for a GPU and a solution, as the site folds them."""
    cells = [
        code("# @title Proof: it is 1\nassert 1", metadata={"tags": ["proof"]}),
        code("# @title Proof: it is fast", metadata={"tags": ["proof", "requires-gpu"]}),
        code("# @title Show the solution\nprint(2)", metadata={"tags": ["exercise"]}),
        code("print(3)"),
    ]
    tiny.write_text(nbformat.writes(nbformat.v4.new_notebook(cells=cells)))

    def fold(*recorded):
        monkeypatch.setattr(site_pages, "runs", lambda: recorded)
        shown = nbformat.reads(site_pages.with_folds(tiny.read_text(), "tiny"), as_version=4)
        return shown.cells

    return fold


def run_of_tiny(machine, digest=None):
    digest = digest or lessons.digest(lessons.read_notebook("tiny"))
    return machine, "Python 3.13", {"tiny": {"digest": digest}}


def prompts(cells):
    return [cell.metadata.get("mystnb", {}).get("code_prompt_show") for cell in cells]


def test_a_proof_is_folded_to_its_title_and_says_that_it_holds(folded):
    proof, for_gpu, solution, shown = folded(run_of_tiny("A machine, no GPU"))
    assert prompts([proof, for_gpu, solution, shown]) == [
        "✓ Holds: it is 1",
        "Not run on a GPU yet: it is fast",
        "Show the solution",
        None,
    ]
    assert proof.source == "assert 1" and solution.source == "print(2)"
    assert proof.metadata.tags == ["proof", "holds", "hide-cell"]
    assert for_gpu.metadata.tags == ["proof", "requires-gpu", "hide-cell"]
    assert solution.metadata.mystnb.code_prompt_hide == "Hide the solution"
    assert "tags" not in shown.metadata and shown.source == "print(3)"


def test_a_proof_for_a_gpu_holds_where_a_gpu_has_run_it(folded):
    cells = folded(run_of_tiny("NVIDIA H200"))
    assert prompts(cells)[:2] == ["✓ Holds: it is 1", "✓ Holds: it is fast"]


@pytest.mark.parametrize("digest", [None, "of another notebook"])
def test_a_proof_has_no_mark_where_no_record_is_of_this_notebook(folded, digest):
    records = [run_of_tiny("A machine, no GPU", digest)] if digest else []
    proof, *_ = folded(*records)
    assert prompts([proof]) == ["Changed since its last recorded run: it is 1"]
    assert "holds" not in proof.metadata.tags


@pytest.mark.parametrize(
    ("source", "title"),
    [
        ("import jax\n\nprint(jax.__version__)", "Imports"),
        ("import sys\n\nif sys:\n    %pip install -q grain\nimport grain", "Imports"),
        ("from torchvision.datasets import MNIST\n\nx = MNIST('data')", "Imports and data"),
        ("def f():\n    return 1\n\n\ntrain_images, train_labels = f(), f()", "The dataset"),
        ("import jax\n\n\ndef f():\n    pass", None),
        ("x = 1\nimport jax", None),
        ("%%writefile a.py\nimport jax", None),
    ],
)
def test_imports_and_the_dataset_are_folded_with_what_they_print(tiny, source, title):
    cell = code(source, metadata={"tags": ["setup"]}, outputs=printed("1"))
    tiny.write_text(nbformat.writes(nbformat.v4.new_notebook(cells=[cell])))
    shown = nbformat.reads(site_pages.with_folds(tiny.read_text(), "tiny"), as_version=4)
    assert prompts(shown.cells) == [title]
    assert shown.cells[0].metadata.tags == ["setup", *["hide-cell"] * bool(title)]
    assert shown.cells[0].source == source


F_AND_G = "A = 1\n\n\ndef f():\n    pass\n\n\nclass G:\n    pass"
DRAWN = [nbformat.v4.new_output("display_data", data={"image/png": "AA=="})]


@pytest.mark.parametrize(
    ("source", "tags", "outputs", "title"),
    [
        (F_AND_G, ["copy"], [], "Show f, G"),
        (F_AND_G, ["setup"], DRAWN, "Show f, G"),
        (F_AND_G, [], [], "Show f, G"),
        (F_AND_G, [], DRAWN, "Show the code of the drawing"),
        (F_AND_G, [], printed("1"), "Show the code of this output"),
        (F_AND_G, ["trap"], printed("1"), "Show the code of the trap"),
        ("@jit\ndef f():\n    pass", ["shared-f"], [], "Show f"),
        ("x = 1", ["setup"], [], None),
    ],
)
def test_a_folded_cell_is_called_by_what_it_defines_or_makes(tiny, source, tags, outputs, title):
    cell = code(source, metadata={"tags": [*tags, "hide-input"]}, outputs=outputs)
    tiny.write_text(nbformat.writes(nbformat.v4.new_notebook(cells=[cell])))
    shown = nbformat.reads(site_pages.with_folds(tiny.read_text(), "tiny"), as_version=4)
    assert prompts(shown.cells) == [title]
    assert shown.cells[0].metadata.tags == [*tags, "hide-input"]


def test_a_search_that_sphinx_has_changed_is_not_mended_in_silence():
    script = "".join(site_pages.SEARCH)
    assert site_pages.find_places(script) == "".join(site_pages.SEARCH.values())
    for changed in ("", script * 2):
        with pytest.raises(lessons.Problem, match="search has changed"):
            site_pages.find_places(changed)


def test_no_script_holds_up_a_page_and_its_options_stand_in_it():
    page = (
        '<html data-theme="auto"><script defer src="_static/scripts/fontawesome.js?digest=1">'
        "</script>"
        '<script src="_static/documentation_options.js?v=1"></script><script src="a.js"></script>'
        "<script>A.b = 1;</script>"
    )
    assert site_pages.paint_first(page, r"const A = {c: '\\d'};") == (
        r"""<html data-theme="light"><script>const A = {c: '\\d'};</script>"""
        '<script defer src="a.js"></script><script>A.b = 1;</script>'
    )


def test_a_trap_is_told_with_its_heading_its_message_and_the_prose_around_it():
    trap = code("boom()", metadata={"tags": ["trap"]}, outputs=printed("TypeError: no\n"))
    notebook = nbformat.v4.new_notebook(
        cells=[
            text("# Title\n\nBefore.\n\n## Do not\n\nThe cause."),
            code("x = 1"),
            text("More of it."),
            trap,
            text("The fix.\n\n### Another matter\n\nNothing of it."),
            code("y = 1"),
        ]
    )
    told = list(site_pages.traps_of(notebook))
    assert told == [("Do not", "TypeError: no", "The cause.\n\nMore of it.\n\nThe fix.")]


def test_troubleshooting_tells_every_trap_of_the_lessons():
    page = "\n\n".join(site_pages.traps())
    for name in lessons.names():
        for cell in lessons.code_cells(lessons.read_notebook(name)):
            if "trap" in lessons.tags(cell):
                message = "".join(output.get("text", "") for output in cell.outputs).strip()
                assert message in page


@pytest.mark.parametrize(
    ("heading", "anchor"),
    [
        ("Hand over arrays, not tensors, to `jit`", "hand-over-arrays-not-tensors-to-jit"),
        ("Stage 2: a host's view", "stage-2-a-hosts-view"),
    ],
)
def test_an_anchor_is_that_of_github(heading, anchor):
    assert site_pages.slug(heading) == anchor


def test_committed_records_are_of_whole_lessons():
    files = list(record.CHECKED.glob("*.json"))
    assert files, "no run is recorded: `tox run -e test -- notebooks --record`"
    runs = [run for file in files for run in json.loads(file.read_text())["runs"].values()]
    assert any(set(run) == set(lessons.names()) for run in runs)
    for run in runs:
        assert set(run) <= set(lessons.names())
        assert all(figures["passed"] and figures["seconds"] for figures in run.values())


TROUBLES = (lessons.ROOT / "pages" / "troubleshooting.md").read_text()
ROWS = re.findall(
    r"^\| (.+) \| (.+) \| \[.+\]\(\.\./notebooks/(\w+)\.ipynb#(.+)\) \|$", TROUBLES, re.MULTILINE
)


def test_the_table_of_troubles_leads_to_every_section_that_has_a_trap():
    listed = {(name, anchor) for *_, name, anchor in ROWS}
    for name in lessons.names():
        for heading, *_ in site_pages.traps_of(lessons.read_notebook(name)):
            assert (name, site_pages.slug(heading)) in listed, "pages/troubleshooting.md lacks it"


def test_a_message_in_the_table_of_troubles_stands_in_the_lesson():
    messages = [(see, name) for see, _, name, _ in ROWS if "{index}" in see]
    assert len(messages) > 20
    for see, name in messages:
        message = re.search(r"\{index\}`!(.+)`", see)[1].removeprefix("jax.")
        assert message in json.dumps(lessons.read_notebook(name)), message


def test_a_section_with_two_traps_is_told_once():
    page = "\n\n".join(site_pages.traps())
    for part in page.split("\n\n## "):
        headings = re.findall(r"^### (.+)$", part, re.MULTILINE)
        assert len(headings) == len(set(headings))


def test_every_word_of_the_glossary_leads_to_where_it_is_shown():
    glossary = (lessons.ROOT / "pages" / "glossary.md").read_text()
    entries = re.findall(
        r"^(\S.*)\n((?:  .*\n)+)", glossary.split("```{glossary}")[1], re.MULTILINE
    )
    assert len(entries) > 40
    assert [word for word, text in entries if "](" not in text] == []
    words = [word.lower() for word, _ in entries]
    assert words == sorted(words)
    missing = {"pytree", "trace", "compile", "tfrecord", "element", "ragged", "stateless"}
    assert missing < set(words)
