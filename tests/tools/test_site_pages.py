"""What the site says of the lessons follows from the notebooks and from recorded runs."""

import json
import re

import nbformat
import pytest
from sphinx.errors import ConfigError

from tools.lesson import lessons
from tools.run import record
from tools.site import search, site_pages

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


def test_a_run_is_recorded_when_every_cell_ran_and_passed(tiny, repository, python):
    def run(*arguments):
        """Run nbval with --record; give back what is recorded of the tiny notebook."""
        nbval = ("-m", "pytest", "--nbval", "--record", "-q", tiny)
        done = python(*nbval, *arguments, cwd=repository, env={"JAX_PLATFORMS": "cpu"})
        found = [json.loads(file.read_text()) for file in checked.glob("*.json")]
        return done, [run.get("tiny") for record in found for run in record["runs"].values()]

    checked = repository / "checked"
    for file in checked.glob("*.json"):
        file.unlink()
    done, found = run("-k", "Cell 0 or Cell 1")
    assert found == [], "a part of a lesson was recorded"
    assert "recorded in checked/: no lesson" in done.stdout

    done, [recorded] = run()
    assert done.returncode == 0, done.stdout
    assert (recorded["passed"], recorded["skipped"]) == (2, 1)
    assert recorded["seconds"] > 0 and {"python", "jax", "torch"} <= set(recorded["versions"])
    assert recorded["digest"] == lessons.digest(lessons.read_notebook("tiny"))

    tiny.write_text(tiny.read_text().replace("1\\n", "7\\n"))
    done, [still] = run()
    assert done.returncode == 1 and still == recorded


@pytest.fixture
def recorded(monkeypatch):
    """Let the site find these runs, each a machine, a Python and what it says of the lessons."""
    return lambda *found: monkeypatch.setattr(site_pages, "runs", lambda: found)


def figures(name: str, **others) -> dict[str, dict]:
    """What a run has recorded of a lesson as it is, or with other figures."""
    said = {"passed": 5, "skipped": 1, "seconds": 61.2, "date": "2026-11-22"}
    digest = lessons.digest(lessons.read_notebook(name))
    return {name: said | {"versions": {"jax": "0.10.2"}, "digest": digest} | others}


def test_a_lesson_says_where_it_passed_and_whether_it_changed_since(recorded):
    machine, gpu = ("A machine, no GPU", "Python 3.11"), ("A GPU", "Python 3.11")
    recorded((*machine, figures("grain")))
    said = "on 2026-11-22: 5 cells hold with Python 3.11 and JAX 0.10.2 on A machine, no GPU; "
    assert f"**Checked** {said}1 wait for a GPU." in site_pages.line("grain")
    assert "Not checked yet" in site_pages.line("many_devices")
    tables = "\n".join(site_pages.checked())
    assert "notebooks/grain.ipynb) | 5, 1 skipped, 61 s, <time>2026-11-22</time> |" in tables
    assert tables.count("not yet |") == len(lessons.names()) - 1
    assert "No run on a GPU is recorded yet" in tables

    changed = figures("grain", digest="of another notebook")
    recorded((*machine, changed))
    assert "on 2026-11-22, before its last change: 5 cells" in site_pages.line("grain")
    assert "2026-11-22</time>, changed since |" in "\n".join(site_pages.checked())

    older = figures("grain", date="2026-11-01")  # what holds for the page comes first
    recorded((*machine, changed), (*gpu, older))
    said = "on 2026-11-01: 5 cells hold with Python 3.11 and JAX 0.10.2 on A GPU"
    assert said in site_pages.line("grain")
    assert "No run on a GPU" not in "\n".join(site_pages.checked())
    recorded((*machine, changed), (*gpu, older), ("Another, no GPU", "Python 3.13", older))
    assert "Python 3.13" in site_pages.line("grain"), "of the same day the newest Python counts"
    recorded(*((machine[0], f"Python 3.{minor}", older) for minor in (11, 13)))
    page = "\n".join(site_pages.checked())
    assert (
        page.count("## A machine, no GPU") == 1 and "| lesson | Python 3.11 | Python 3.13 |" in page
    )
    assert "Python 3.13: 5 cells in 1 minutes, with jax 0.10.2." in page


def test_the_site_says_what_holds_in_colab(monkeypatch, tmp_path):
    run = {}
    for name in lessons.in_order():
        run |= figures(name, passed=30, differ={})
    versions = {"python": "3.13", "jax": "0.7.2"}
    record = {"published": "2026-08-19", "versions": versions, "lessons": run}
    monkeypatch.setattr(site_pages, "COLAB", tmp_path / "cpu.json")

    def said():
        site_pages.COLAB.write_text(json.dumps(record))
        return site_pages.colab("notebooks")

    count = len(run)
    assert said() and site_pages.in_colab().startswith("All lessons ran with")
    assert said().endswith(f"without a GPU, {count} of {count} lessons hold whole.")
    assert "published on 2026-08-19 (Python 3.13, JAX 0.7.2)" in said()
    run["grain"]["differ"] = {"import grain": "ValueError"}
    del run["many_devices"]
    run["dlpack_zero_copy"]["digest"] = "of another notebook"
    assert said() and site_pages.in_colab().startswith(f"{count - 2} of {count} lessons ran with")
    assert said().endswith(
        f"{count - 3} of {count - 2} lessons hold whole. "
        "What differs: 1 of 31 cells of [](notebooks/grain.ipynb). "
        "Not run there in their present form: [](notebooks/many_devices.ipynb), "
        "[](notebooks/dlpack_zero_copy.ipynb)."
    )


@pytest.mark.parametrize("name", lessons.names())
def test_the_line_stands_below_the_box(name):
    shown, line = lessons.read_notebook(name), site_pages.line(name)
    site_pages.add_line(shown, name)
    before, _ = shown.cells[0].source.split(f"\n\n{line}\n\n")
    box = before.split("\n\n")[-1]
    assert "> **Install.**" in box and "> **Hardware.**" in box


@pytest.fixture
def shown(tiny):
    """Store the cells as the tiny lesson, and give them as the site folds them."""

    def show(*cells):
        nbformat.write(nbformat.v4.new_notebook(cells=[*cells]), tiny)
        notebook = lessons.read_notebook("tiny")
        site_pages.fold_cells(notebook, "tiny")
        return notebook.cells

    return show


def tagged(source: str, *tags: str, outputs=()):
    return code(source, metadata={"tags": [*tags]}, outputs=[*outputs])


def prompts(cells):
    return [cell.metadata.get("mystnb", {}).get("code_prompt_show") for cell in cells]


@pytest.mark.parametrize(
    ("machine", "digest", "said"),
    [
        ("A machine, no GPU", None, ["✓ Holds: it is 1", "Not run on a GPU yet: it is fast"]),
        ("NVIDIA H200", None, ["✓ Holds: it is 1", "✓ Holds: it is fast"]),
        ("A machine, no GPU", "of another", ["Changed since its last recorded run: it is 1"]),
        (None, None, ["Changed since its last recorded run: it is 1"]),
    ],
)
def test_a_proof_is_folded_to_its_title_and_says_whether_it_holds(
    shown, recorded, machine, digest, said
):
    cells = (
        tagged("# @title Proof: it is 1\nassert 1", "proof"),
        tagged("# @title Proof: it is fast", "proof", "requires-gpu"),
        tagged("# @title Show the solution\nprint(2)", "exercise"),
        tagged("print(3)"),
    )
    recorded()
    shown(*cells)  # stores the notebook that the record is of
    if machine:
        run = figures("tiny", **({"digest": digest} if digest else {}))
        recorded((machine, "Python 3.13", run))
    proof, for_gpu, solution, plain = shown(*cells)
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


def test_a_search_that_sphinx_has_changed_is_not_mended_in_silence():
    script = "".join(search.SEARCH)
    assert search.find_places(script) == "".join(search.SEARCH.values())
    for changed in ("", script * 2):
        with pytest.raises(lessons.Problem, match="search has changed"):
            search.find_places(changed)


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
