"""A page links the glossary's words where it first says them, and explains its abbreviations."""

import nbformat
import pytest

from tools.lesson import glossary, lessons

WORDS = """# Glossary

<!-- letters -->

```{glossary}
batch
  Examples.

fork, spawn
  Ways to start.

row group
  Rows.

step
  One update.

XLA
  A compiler.
```
"""


@pytest.fixture(autouse=True)
def words(monkeypatch, tmp_path):
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "glossary.md").write_text(WORDS)
    monkeypatch.setattr(lessons, "ROOT", tmp_path)


@pytest.mark.parametrize(
    ("text", "linked"),
    [
        ("A batch, and a batch.", "A {term}`batch <batch>`, and a batch."),
        ("Batches come.", "{term}`Batches <batch>` come."),
        ("Two row groups.", "Two {term}`row groups <row group>`."),
        ("It can spawn, or fork.", "It can {term}`spawn <fork, spawn>`, or fork."),
        ("One step.", "One step."),  # which has several senses
        ("debatched, batch-wise, rebatch", "debatched, batch-wise, rebatch"),
        ("`batch` and ``a batch``", "`batch` and ``a batch``"),
        ("[a batch](there.md) and ![batch](a.png)", "[a batch](there.md) and ![batch](a.png)"),
        ("# A batch\n> a batch\n| batch |\n{.batch}", "# A batch\n> a batch\n| batch |\n{.batch}"),
        ("```text\na batch\n```\n", "```text\na batch\n```\n"),
        ('<a href="batch">a batch</a> batch', '<a href="batch">a batch</a> {term}`batch <batch>`'),
        ("**batch**", "**{term}`batch <batch>`**"),
    ],
)
def test_a_word_is_linked_once_and_in_running_text_only(text, linked):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(text)])
    glossary.link(notebook)
    assert notebook.cells[0].source == linked


def test_a_page_links_a_word_in_one_of_its_cells_and_no_code():
    cells = [nbformat.v4.new_code_cell("batch"), *map(nbformat.v4.new_markdown_cell, ["batch"] * 2)]
    notebook = nbformat.v4.new_notebook(cells=cells)
    glossary.link(notebook)
    assert [c.source for c in notebook.cells] == ["batch", "{term}`batch <batch>`", "batch"]


def test_the_letters_lead_to_the_first_word_of_each():
    assert glossary.letters() == (
        "{term}`B <batch>` · {term}`F <fork, spawn>` · {term}`R <row group>` · {term}`S <step>` · "
        "{term}`X <XLA>`"
    )


@pytest.mark.parametrize(
    ("text", "missed"),
    [
        ("The GIL, again the GIL.", ["GIL"]),
        ("NUMAs on a GPU in XLA.", ["NUMA"]),
        ("The global lock (GIL), and the GIL.", []),
        ("SWMR (one writer) is SWMR.", []),
        ("`GIL` and [the GIL](a.md)\n# GIL\n", []),
    ],
)
def test_an_abbreviation_is_explained(text, missed):
    assert glossary.unexplained(text) == missed
