"""What `check --fix` mends and carries, on a copy of the repository."""

import re

import pytest
from tiny_lesson import (
    BELOW_A_PROOF,
    HEADER,
    SPOILED,
    code,
    edit_md,
    edit_notebook,
    first,
    write_tiny,
)

from tools.check import check, fix
from tools.lesson import lessons, owners

pytestmark = pytest.mark.slow


def test_fix_writes_what_follows_from_something_else(repository, python):
    source = f"md/{SPOILED}.md"
    for file, said, wrong in (
        (source, "** 20 minutes to read", "** 7 minutes to read"),
        (source, "`pip install grain ", "`pip install "),
        ("README.md", "| 5 min to read, 1", "| 7 min to read, 9"),
    ):
        text = (repository / file).read_text()
        assert said in text
        (repository / file).write_text(text.replace(said, wrong))
    assert len([*check.check_lesson(SPOILED)]) == 3  # and md/ and the notebook differ
    assert [*check.check_lists(lessons.names())] == [
        "README.md has not the table of lessons.toml: `tox run -e check -- --fix` writes it "
        "between its two marks."
    ]
    before = lessons.notebook_path(SPOILED).read_bytes()
    done = python("-m", "tools.check.check", "--fix", cwd=repository)
    assert done.returncode == 0, done.stderr
    assert (
        "README.md: mended" in done.stdout and lessons.notebook_path(SPOILED).read_bytes() == before
    )


def test_fix_carries_prose_into_the_notebook_and_no_code(repository, python):
    edit_notebook(SPOILED, lambda nb: nb.metadata.update(checked={"digest": lessons.digest(nb)}))
    before = lessons.read_notebook(SPOILED)
    edit_md(SPOILED, BELOW_A_PROOF, f"A new sentence.\n\n{BELOW_A_PROOF}")
    edit_md(SPOILED, "[tuned-pipeline]", "[tuned-pipeline, hide-input]")
    edit_md("pytorch_dataloader", "## Resume", code("1") + "\n## Resume")
    code_edited = lessons.notebook_path("pytorch_dataloader").read_bytes()
    done = python("-m", "tools.check.check", "--fix", cwd=repository)
    assert done.stdout == f"notebooks/{SPOILED}.ipynb: has the prose of md/\n"
    assert "execute -- pytorch_dataloader" in done.stderr
    assert lessons.notebook_path("pytorch_dataloader").read_bytes() == code_edited
    after = lessons.read_notebook(SPOILED)
    assert [*check.check_lesson(SPOILED)] == []
    assert sum("A new sentence." in cell.source for cell in after.cells) == 1
    tuned, *others = lessons.code_cells(after, "tuned-pipeline")
    assert lessons.tags(tuned) == ["tuned-pipeline", "hide-input"]
    assert all("hide-input" not in lessons.tags(cell) for cell in others)
    assert after.metadata == before.metadata and lessons.checked(after)  # what passed has passed
    assert [cell.id for cell in lessons.code_cells(after)] == [
        cell.id for cell in lessons.code_cells(before)
    ]


def test_fix_carries_nothing_below_an_output_that_is_not_its_own(repository):
    edit_md(SPOILED, BELOW_A_PROOF, f"A new sentence.\n\n{BELOW_A_PROOF}")
    edit_notebook(SPOILED, lambda nb: first(nb).metadata.update(stamp="another"))
    assert not fix.carry(SPOILED)


def test_check_finds_a_shared_cell_that_drifted_and_fix_mends_it(repository, python):
    owner, source = owners.shared_cells()["shared-mlp"]
    assert owner == "start_here_in_depth"
    [cell] = lessons.code_cells(lessons.read_md("grain"), "short-answer")
    short = cell.source
    drifted = code(source.replace("relu", "tanh"), "shared-mlp")
    write_tiny(drifted, code(short.replace("seed", "seeds"), "from-grain"))
    found = [fault for fault in check.check_lesson("tiny") if "of its owner: " in fault]
    assert [
        re.search(r"the (\S+) of its owner: edit it in md/(\w+).md", f).groups() for f in found
    ] == [
        ("shared-mlp", "start_here_in_depth"),
        ("from-grain", "grain"),
    ]
    done = python("-m", "tools.check.check", "--fix", cwd=repository)
    assert "md/tiny.md: mended" in done.stdout
    assert not any("owner" in fault for fault in check.check_lesson("tiny"))
    assert [cell.source for cell in lessons.code_cells(lessons.read_md("tiny"))] == [source, short]
    before = lessons.md_path("tiny").read_text()
    python("-m", "tools.check.check", "--fix", cwd=repository)
    assert lessons.md_path("tiny").read_text() == before


def test_fix_formats_code_and_leaves_magics_prose_and_what_is_no_python(repository):
    file = "%%writefile tiny_module.py\n"
    rest = [code("%pip install -q  numpy"), code("# A comment"), "\nx = { 'a':1 }\n"]
    write_tiny(code("x = { 'a':1 }"), code(file + "x = { 'a':1 }"), *rest)
    assert fix.fix("tiny")
    done = [code('x = {"a": 1}'), code(file + 'x = {"a": 1}'), *rest]
    assert lessons.md_path("tiny").read_text() == HEADER + "".join(done)
    assert not fix.fix("tiny")
    write_tiny(code("x = { 'a':1 }"), code("x = {"))  # no Python: ruff says so
    assert not fix.fix("tiny")


def test_fix_leaves_the_lessons_as_they_are(repository):
    for name in lessons.names():
        assert not fix.fix(name)
