"""What the site says of the lessons follows from the notebooks, which say with what they passed."""

import json
import re
import types

import nbformat
import pytest
from sphinx.errors import ConfigError

from offline.problem import Problem
from tools.lesson import lessons
from tools.run import record
from tools.site import records, search, site_pages

pytestmark = pytest.mark.slow

code, text = nbformat.v4.new_code_cell, nbformat.v4.new_markdown_cell


def printed(words: str) -> list:
    return [nbformat.v4.new_output("stream", text=words)]


KERNEL = {"name": "python3", "display_name": "Python 3"}


@pytest.fixture
def tiny(workshop):
    """A notebook of three cells, one of them for a GPU, in a copy of the repository."""
    cells = [
        text("# Try it\n\nWords."),
        code("print(1)", execution_count=1, outputs=printed("1\n")),
        code("import grain", execution_count=2),
        code("print(3)", metadata={"tags": ["requires-gpu"]}),
    ]
    path = lessons.notebook_path("tiny")
    metadata = {"kernelspec": KERNEL}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=metadata), path)
    return path


def test_a_run_is_recorded_when_every_cell_ran_and_passed(tiny, repository, python):
    def run(*arguments):
        """Run nbval with --record; give back what the tiny notebook holds then."""
        nbval = ("-m", "pytest", "--nbval", "--record", "-q", tiny)
        done = python(*nbval, *arguments, cwd=repository, env={"JAX_PLATFORMS": "cpu"})
        return done, lessons.read_notebook("tiny")

    before = lessons.read_notebook("tiny")
    done, after = run("-k", "Cell 0 or Cell 1")
    assert "recorded in notebooks/: no lesson" in done.stdout
    assert after == before, "a part of a lesson was recorded"

    done, after = run("-n2", "--dist=loadfile")
    assert done.returncode == 0 and "recorded in notebooks/: tiny" in done.stdout, done.stdout
    recorded = lessons.checked(after)
    assert (recorded["cells"], recorded["skipped"], recorded["device"]) == (2, 1, "cpu")
    assert recorded["jax"] and recorded["grain"] and "torch" not in recorded
    assert after.cells == before.cells

    tiny.write_text(tiny.read_text().replace("1\\n", "7\\n"))
    done, after = run()
    assert done.returncode == 1 and after.metadata.checked == recorded
    assert lessons.checked(after) == {}, "what changed since claims to be checked"


@pytest.mark.usefixtures("tiny")
def test_a_run_on_a_gpu_stays_until_the_page_is_another():
    def run(device, digest, **outcomes):
        """Record a run of the tiny notebook. Returns what it holds then."""
        said = [outcome for outcome, count in outcomes.items() for _ in range(count)]
        properties = [("digest", digest)]
        reports = [types.SimpleNamespace(outcome=o, user_properties=properties) for o in said]
        record.record("tiny", dict(enumerate(reports)), device)
        return lessons.read_notebook("tiny").metadata.get("checked")

    digest = lessons.digest(lessons.read_notebook("tiny"))
    assert run("NVIDIA H200", "of a page that was edited meanwhile", passed=3) is None
    assert run("NVIDIA H200", digest, passed=2) is None, "a cell is missing"
    on_gpu = run("NVIDIA H200", digest, passed=3)
    assert (on_gpu["cells"], on_gpu["device"]) == (3, "NVIDIA H200")
    assert run("cpu", digest, passed=2, skipped=1) == on_gpu

    notebook = lessons.read_notebook("tiny")
    notebook.cells[1].source = "print(1.0)"
    nbformat.write(notebook, lessons.notebook_path("tiny"))
    assert run("cpu", lessons.digest(notebook), passed=2, skipped=1)["device"] == "cpu"


@pytest.fixture
def recorded(repository):
    """Write into each of these lessons that it passed, in place of what they say."""

    def write(*names, **others):
        said = {"date": "2026-11-22", "cells": 5, "skipped": 1, "device": "cpu"}
        said |= {"python": "3.13.0", "jax": "0.12.0"}
        for name in lessons.names():
            notebook = lessons.read_notebook(name)
            notebook.metadata.pop("checked", None)
            if name in names:
                digest = lessons.digest(notebook)
                notebook.metadata["checked"] = said | {"digest": digest} | others
            nbformat.write(notebook, lessons.notebook_path(name))

    return write


def test_a_lesson_says_with_what_it_passed_unless_it_changed_since(recorded):
    recorded("grain")
    assert records.checked_line("grain").startswith(
        "{.checked}\n**Checked:** 5 cells gave the same output on 2026-11-22 with Python 3.13 and "
        "JAX 0.12.0 on a CPU. Cells that wait for a GPU: 1. [What is checked]"
    )
    assert "**Not checked yet** since its last change." in records.checked_line("many_devices")
    table, on_gpu = records.checked()
    row = "grain.ipynb) | 5, 1 skipped | <time>2026-11-22</time> | 3.13.0 | 0.12.0 | a CPU |"
    assert row in table and "No run on a GPU is recorded yet" in on_gpu
    assert table.count("| not yet since its last change |") == len(lessons.names()) - 1

    recorded("grain", digest="of another notebook")
    assert "**Not checked yet** since its last change." in records.checked_line("grain")

    recorded("grain", device="NVIDIA H200", cells=6, skipped=0)
    assert "6 cells gave" in records.checked_line("grain")
    assert "JAX 0.12.0 on NVIDIA H200. [What" in records.checked_line("grain")
    [table] = records.checked()
    assert "| 6 | <time>2026-11-22</time> | 3.13.0 | 0.12.0 | NVIDIA H200 |" in table


def test_the_front_page_says_how_much_passed_and_on_what(recorded):
    every = lessons.names()
    recorded(*every)
    said = "In their present form all pages passed, with Python 3.13, on CPUs only so far, never on"
    assert said in records.in_one_line()
    recorded(*every[1:], device="An H200", python="3.11.9")
    said = f"In their present form {len(every) - 1} of the {len(every)} pages passed, with Python"
    assert f"{said} 3.11, on An H200 and on CPUs." in records.in_one_line()


def test_the_site_says_what_holds_in_colab(monkeypatch, tmp_path):
    run = {
        name: {"passed": 30, "differ": {}, "digest": lessons.digest(lessons.read_notebook(name))}
        for name in lessons.in_order()
    }
    versions = {"python": "3.13", "jax": "0.7.2"}
    record = {"published": "2026-08-19", "versions": versions, "lessons": run}
    monkeypatch.setattr(records, "COLAB", tmp_path / "colab.json")

    def said():
        records.COLAB.write_text(json.dumps(record))
        return records.colab("notebooks")

    count = len(run)
    assert said() and records.in_colab().startswith("All lessons ran with")
    assert said().endswith(f"without a GPU, {count} of {count} lessons hold whole.")
    assert "published on 2026-08-19 (Python 3.13, JAX 0.7.2)" in said()
    run["grain"]["differ"] = {"import grain": "ValueError"}
    del run["many_devices"]
    run["dlpack_zero_copy"]["digest"] = "of another notebook"
    assert said() and records.in_colab().startswith(f"{count - 2} of {count} lessons ran with")
    assert said().endswith(
        f"{count - 3} of {count - 2} lessons hold whole. "
        "What differs: 1 of 31 cells of [](notebooks/grain.ipynb). "
        "Not run there in their present form: [](notebooks/many_devices.ipynb), "
        "[](notebooks/dlpack_zero_copy.ipynb)."
    )


@pytest.mark.parametrize("name", lessons.names())
def test_the_line_stands_below_the_box(name):
    shown, line = lessons.read_notebook(name), records.checked_line(name)
    site_pages.add_line(shown, name)
    before, _ = shown.cells[0].source.split(f"\n\n{line}\n\n")
    box = before.split("\n\n")[-1]
    assert "> **Install.**" in box and "> **Hardware.**" in box


@pytest.fixture
def shown(tiny):
    """Store the cells as the tiny lesson, if any, and give them as the site folds them."""

    def show(*cells):
        if cells:
            nbformat.write(nbformat.v4.new_notebook(cells=[*cells]), tiny)
        notebook = lessons.read_notebook("tiny")
        site_pages.fold_cells(notebook, "tiny")
        return notebook.cells

    return show


def tagged(source: str, *tags: str, outputs=()):
    return code(source, metadata={"tags": [*tags]}, outputs=[*outputs])


def prompts(cells):
    return [cell.metadata.get("mystnb", {}).get("code_prompt_show") for cell in cells]


NOT_YET = "Not checked yet since its last change: it is 1"


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ({"device": "cpu"}, ["✓ Holds: it is 1", "Not run on a GPU yet: it is fast"]),
        ({"device": "NVIDIA H200"}, ["✓ Holds: it is 1", "✓ Holds: it is fast"]),
        ({"device": "NVIDIA H200", "digest": "of another"}, [NOT_YET]),
        (None, [NOT_YET, "Not run on a GPU yet: it is fast"]),
    ],
)
def test_a_proof_is_folded_to_its_title_and_says_whether_it_holds(shown, recorded, record, said):
    cells = (
        tagged("# @title Proof: it is 1\nassert 1", "proof"),
        tagged("# @title Proof: it is fast", "proof", "requires-gpu"),
        tagged("# @title Show the solution\nprint(2)", "exercise"),
        tagged("print(3)"),
    )
    shown(*cells)  # stores the notebook that the record is of
    if record:
        recorded("tiny", **record)
    proof, for_gpu, solution, plain = shown()
    assert prompts([proof, for_gpu])[: len(said)] == said
    assert ("holds" in proof.metadata.tags) == said[0].startswith("✓")
    assert proof.source == "assert 1" and "hide-cell" in proof.metadata.tags
    assert prompts([solution, plain]) == ["Show the solution", None]
    assert solution.metadata.mystnb["code_prompt_hide"] == "Hide the solution"
    assert solution.source == "print(2)"


def test_no_placeholder_is_published():
    site_pages.refuse_placeholder("https://github.com/somebody/feed-jax YOUR_ACCOUNT", "a.html")
    with pytest.raises(ConfigError, match=r"a\.html has the placeholder YOUR_ACCOUNT"):
        site_pages.refuse_placeholder("https://github.com/YOUR_ACCOUNT/feed-jax", "a.html")


def test_cells_that_are_folded_one_below_the_other_are_one_fold(shown):
    imports = tagged("import jax\n\nx = jax.ones(1)", "setup")
    model = tagged("def model():\n    pass", "hide-input", "copy")
    says = tagged("def f():\n    pass\n\n\nprint(1)", "hide-input", outputs=printed("1"))
    proof = tagged("# @title Proof: it is 1\nassert 1", "proof")
    notebook = nbformat.v4.new_notebook(
        cells=shown(imports, model, tagged("model()"), model, says, proof, proof)
    )
    site_pages.fold_together(notebook, "tiny")
    first, one, two, last, called, alone, *others = notebook.cells
    assert first.source == (
        '<details class="needed"><summary>Show imports and data, model</summary>'
    )
    assert last.source == "</details>" and called.source == "model()"
    assert [cell.metadata.tags for cell in (one, two)] == [["setup"], ["copy"]]
    assert "hide-input" in alone.metadata.tags and len(others) == 3  # each is a fold of its own


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
def test_imports_and_the_dataset_are_folded_with_what_they_print(shown, source, title):
    cells = shown(tagged(source, "setup", outputs=printed("1")))
    assert prompts(cells) == [title]
    assert cells[0].metadata.tags == ["setup", *["hide-cell"] * bool(title)]
    assert cells[0].source == source


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
def test_a_folded_cell_is_called_by_what_it_defines_or_makes(shown, source, tags, outputs, title):
    cells = shown(tagged(source, *tags, "hide-input", outputs=outputs))
    assert prompts(cells) == [title]
    assert cells[0].metadata.tags == [*tags, "hide-input"]


ARTICLE = """<article class="bd-article">
<section id="top"><h1>Feed JAX<a class="headerlink">#</a></h1><p>Zero copies.</p>
<section id="resume"><h2>Resume</h2><p>Save the <code>it</code>erator.</p>
<pre>checkpoint = save(step)</pre></section>
<table><tr><td><span id="index-0">os.fork() is bad</span></td><td>spawn it</td></tr></table>
<dl><dt id="term-shard">shard</dt><dd>A part of a file.</dd></dl>
</section></article>"""


@pytest.fixture
def places(tmp_path):
    (tmp_path / "page.html").write_text(ARTICLE)
    (tmp_path / "404.html").write_text("no page")
    [page] = search.pages_of(tmp_path)
    return search.places_of(tmp_path, page)


def test_the_search_finds_sections_rows_with_a_message_and_terms(places):
    found = {place["anchor"]: (place["heading"], place["text"], place["code"]) for place in places}
    assert found == {
        "top": ("Feed JAX", "Zero copies.", ""),
        "resume": ("Resume", "Save the iterator.", "checkpoint = save(step)"),
        "index-0": ("os.fork() is bad", "os.fork() is bad spawn it", ""),
        "term-shard": ("shard", "A part of a file.", ""),
    }


def test_words_are_found_by_their_stems_and_names_by_their_parts():
    assert search.words_of("The loaders were saving") == ["loader", "save"]
    assert search.words_of("os.fork()") == ["os.fork", "os", "fork"]


def a_place(heading="", text="", code="", page="notebooks/grain", **other):
    fields = {"heading": heading, "text": text, "code": code, "title": "", "called": ""}
    return {"page": page, "anchor": heading, "is_title": False} | fields | other


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ({"heading": "resume"}, {"text": "resume"}),
        ({"called": "resume"}, {"text": "resume"}),
        ({"text": "resume"}, {"code": "resume"}),
        ({"text": "resume"}, {"text": "resume " + "and read much else " * 20}),
        ({"text": "resume"}, {"text": "resume", "page": "notebooks/grain_in_depth"}),
        ({"text": "resume"}, {"text": "resume", "is_title": True}),
    ],
)
def test_the_search_prefers(better, worse):
    places = [a_place(**worse), a_place(**better), *[a_place(text="another word")] * 9]
    scores = search.index_of(places)["terms"]["resum"]
    assert scores[::2] == [0, 1]
    assert scores[3] > scores[1]


def test_a_rare_word_counts_more_than_a_common_one():
    places = [a_place(text="batch zarr"), *[a_place(text="batch")] * 9]
    terms = search.index_of(places)["terms"]
    assert terms["zarr"][1] > 3 * terms["batch"][1]


def test_a_section_that_search_toml_names_has_to_be_there(places):
    with pytest.raises(Problem, match="which is not there"):
        search.name_places(places)


TROUBLES = (lessons.ROOT / "pages" / "troubleshooting.md").read_text()
ROWS = re.findall(
    r"^\| (.+) \| (.+) \| \[.+\]\(\.\./notebooks/(\w+)\.ipynb#(.+)\) \|$", TROUBLES, re.MULTILINE
)


def test_the_table_of_troubles_leads_to_every_section_that_has_a_trap():
    listed = {(name, anchor) for *_, name, anchor in ROWS}
    for name in lessons.names():
        heading = None
        for cell in lessons.read_notebook(name).cells:
            if cell.cell_type == "markdown":
                *_, heading = [heading, *site_pages.HEADING.findall(cell.source)]
            elif "trap" in lessons.tags(cell):
                assert (name, site_pages.slug(heading[1])) in listed, "troubleshooting.md lacks it"


def test_a_message_in_the_table_of_troubles_stands_in_the_lesson():
    messages = [(see, name) for see, _, name, _ in ROWS if "{index}" in see]
    assert len(messages) > 20
    for see, name in messages:
        message = re.search(r"\{index\}`!(.+)`", see)[1].removeprefix("jax.")
        assert message in json.dumps(lessons.read_notebook(name)), message


def test_every_word_of_the_glossary_leads_to_where_it_is_shown():
    glossary = (lessons.ROOT / "pages" / "glossary.md").read_text()
    entries = re.findall(
        r"^(\S.*)\n((?:  .*\n)+)", glossary.split("```{glossary}")[1], re.MULTILINE
    )
    assert len(entries) > 40
    assert [word for word, text in entries if "](" not in text] == []
    words = [word.lower() for word, _ in entries]
    assert words == sorted(words)
