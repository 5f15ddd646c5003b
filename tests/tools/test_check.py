"""check, on a copy of the repository."""

import nbformat
import pytest
from tiny_lesson import BELOW_A_PROOF, SPOILED, code, edit_md, edit_notebook, first

from tools.check import check
from tools.lesson import facts, lessons

pytestmark = pytest.mark.slow


def proof(notebook):
    return lessons.code_cells(notebook, "proof")[0]


def picture(notebook):
    return next(c for c in lessons.code_cells(notebook) if c.metadata.get("mystnb"))


ADDED = {  # to the lesson, and what check says then
    "It simply works.": "“simply”, which says nothing",
    "A " + "very " * 40 + "long one.": "a sentence of 43 words (“A very very very very very …”)",
    "It takes 3 minutes to read.": "says “3”, and it is “20”",  # with these words it is
    "# Another title": "exactly one title",
    "```python\nno_such_code()\n```": "explains code that none of its cells has: no_such_code()",
    ":::{note}\nx\n:::": "uses MyST syntax",
    code("%%writefile a.py\n# " + 79 * "x"): "a line of 81 columns: 80 at most",
    code("1", "setpu"): "unknown tag setpu: choose setup, short-answer",
    code("1", "from-grain"): "no lesson has the cell that it would be a copy of",
    code("1", "nbval-ignore-output"): "say why in a comment",
    code("assert 1"): "asserts, and readers copy it: move it to a proof below",
    code("%%writefile a.py\nassert 1"): "asserts, and readers copy it",
    code("# Digits", "proof"): "the tag proof: its first line begins with `# @title Proof:`",
    code("1", "exercise"): "the tag exercise: its first line begins with `# @title Show the sol",
    code("# @title Proof: 1"): "has a title (`# @title`), but no tag that folds it",
    code("def f():\n    return records"): "needs the name records, which a proof defines",
}
EDITED = [  # what the lesson says, what it says instead, and what check says then
    ("import hashlib", "import hashlib as h", "differ: run"),
    ("[tuned-pipeline]", "[first-pipeline]", "differ: run"),
    ("replaces a file of that name", "writes it", "does not say that `%%writefile` replaces"),
    ("** 20 minutes", "** 35 minutes", "says “35”, and it is “20”"),
    ("**Install.**", "**Needs.**", "says no ``**Install.** `pip"),
    ("install grain importlib", "install importlib", "and it is “pip install grain importlib"),
]
STORED = [  # what happens to the notebook, and what check says then
    (lambda nb: first(nb).update(source="1 + 2"), "::Cell 0: it was edited after its output"),
    (lambda nb: first(nb).update(execution_count=7), "execution count is 7, not 1"),
    (lambda nb: first(nb).outputs[0].update(name="stderr"), "stores text on stderr"),
    (lambda nb: first(nb).outputs[0].update(text="in /home/me/x"), "a path of one machine"),
    (lambda nb: picture(nb).metadata.mystnb.pop("image"), "no alt text"),
    (lambda nb: picture(nb).metadata.mystnb.pop("figure"), "no caption"),
    (lambda nb: nb.metadata.update(language_info={}), "metadata of the machine"),
    (lambda nb: proof(nb).metadata.pop("jupyter"), "metadata do not follow from its tags"),
    (lambda nb: first(nb).metadata.update(collapsed=True), "metadata do not follow from its tags"),
]


def assert_found(message):
    faults = [*check.check_lesson(SPOILED)]
    assert any(message in fault for fault in faults), faults


@pytest.mark.parametrize(("added", "message"), ADDED.items())
def test_check_finds_what_was_added(repository, added, message):
    edit_md(SPOILED, BELOW_A_PROOF, f"{added}\n\n{BELOW_A_PROOF}")
    assert_found(message)


@pytest.mark.parametrize(("old", "new", "message"), EDITED)
def test_check_finds_what_was_edited(repository, old, new, message):
    edit_md(SPOILED, old, new)
    assert_found(message)


@pytest.mark.parametrize(("change", "message"), STORED)
def test_check_finds_what_is_wrong_with_what_is_stored(repository, change, message):
    edit_notebook(SPOILED, change)
    assert_found(message)


@pytest.mark.parametrize(("twin", "other"), [(lessons.MD, "md/"), (lessons.NOTEBOOKS, "notebook")])
def test_check_finds_that_a_twin_is_missing(repository, twin, other):
    [path] = (repository / twin.name).glob(f"{SPOILED}.*")
    path.unlink()
    assert_found(f"has no {other}")


@pytest.mark.usefixtures("repository")
def test_a_name_that_a_visible_cell_binds_again_is_its_own():
    cells = [
        nbformat.v4.new_code_cell("x = 1", metadata={"tags": ["proof"]}),
        nbformat.v4.new_code_cell("x = 2\nprint(x)"),
        nbformat.v4.new_code_cell("print(x)"),
        nbformat.v4.new_code_cell("print([x for x in range(3)], lambda x: x)"),
    ]
    assert list(check.names_of_proofs(cells)) == []
    assert list(check.names_of_proofs([cells[0], cells[2]])) == [(1, "x")]
    folded = nbformat.v4.new_code_cell("print(x)", metadata={"tags": ["exercise"]})
    assert list(check.names_of_proofs([cells[0], folded])) == []


@pytest.mark.parametrize("tag", ["proof", "exercise", "trap", "requires-gpu", "hide-input"])
def test_a_cell_that_nobody_copies_may_assert(tag):
    asserting = nbformat.v4.new_code_cell("assert 1", metadata={"tags": [tag]})
    assert not check.asserts(asserting)
    assert check.asserts(nbformat.v4.new_code_cell("assert 1", metadata={"tags": ["copy"]}))


def test_the_minutes_follow_from_words_and_visible_lines():
    prose = nbformat.v4.new_markdown_cell("# Title\n\n" + "A [word](of/no/address). " * 1000)
    lines = "x = 1\n\n" * 150
    cells = [
        prose,
        nbformat.v4.new_code_cell(lines),
        nbformat.v4.new_code_cell(lines, metadata={"tags": ["proof"]}),
    ]
    notebook = nbformat.v4.new_notebook(cells=cells)
    assert facts.count_words(notebook) == 2001
    assert facts.minutes(notebook) == 15  # 2,001 words / 200 + 150 lines / 30


def test_check_reads_the_pages_beside_the_lessons_too(repository):
    assert list(check.check_pages()) == []
    (repository / "pages/glossary.md").write_text("# Words\n\n| easily | in a table |\n\nEasily.\n")
    assert list(check.check_pages()) == [
        "pages/glossary.md says “Easily”, which says nothing: leave it out."
    ]


@pytest.mark.parametrize(
    ("names", "fault"),
    [
        ({"tiny"}, "lessons.toml does not know md/tiny.md, for it is not listed: add an entry."),
        ({"grain"}, "lessons.toml lists grain, and there is no md/grain.md: delete the entry."),
        ({"tiny_in_depth"}, "lessons.toml does not know md/tiny_in_depth.md, for its lesson has "),
    ],
)
def test_check_finds_a_lesson_that_no_list_knows(repository, names, fault):
    [found] = check.check_lists([*names.symmetric_difference(lessons.names())])
    assert found.startswith(fault)


def test_check_says_what_to_do_and_fails(repository, python):
    lessons.notebook_path("pytorch_dataloader").write_text("not json")
    edit_md("grain", "## The short answer", "## The answer")
    done = python("-m", "tools.check.check", cwd=repository)
    assert done.returncode == 1
    assert "is not a notebook: restore it with git" in done.stderr
    assert "md/grain.md and notebooks/grain.ipynb differ" in done.stderr  # no fault hides another
    assert "Traceback" not in done.stderr
