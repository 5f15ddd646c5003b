"""check, execute and new, on a copy of the repository."""

import functools
import re
import time

import jupytext
import nbformat
import psutil
import pytest

from tools.check import check
from tools.lesson import lessons
from tools.run import execute

HEADER = """---
kernelspec:
  display_name: Python 3
  language: python
  name: python3
---

# Try a tiny lesson

> **Install.** `pip install jax`
> **How long.** 5 minutes to read.
"""


def code(source, tags=""):
    options = f":tags: [{tags}]\n\n" if tags else ""
    return f"\n```{{code-cell}} ipython3\n{options}{source}\n```\n"


def write_tiny(*cells):
    lessons.md_path("tiny").write_text(HEADER + "".join(cells))


def run_execute(python, repository, *arguments):
    return python(
        "-m", "tools.run.execute", *arguments, cwd=repository, env={"JAX_PLATFORMS": "cpu"}
    )


def outputs(name="tiny"):
    cells = lessons.code_cells(lessons.read_notebook(name))
    return ["".join(output.get("text", "?") for output in cell.outputs) for cell in cells]


# check ---------------------------------------------------------------------------------------


def edit_md(name, old, text):
    path = lessons.md_path(name)
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, text, 1))


def edit_notebook(name, change):
    notebook = lessons.read_notebook(name)
    change(notebook)
    nbformat.write(notebook, lessons.notebook_path(name))


def first(notebook):
    return lessons.code_cells(notebook)[0]


def proof(notebook):
    return lessons.code_cells(notebook, "proof")[0]


def picture(notebook):
    return next(c for c in lessons.code_cells(notebook) if c.metadata.get("mystnb"))


SPOILED = "tensorflow_datasets_in_depth"
BELOW_A_PROOF = "## Read by index, without TensorFlow"  # one that defines `records`
ADDED = {  # to the lesson, and what check says then
    "It simply works.": "“simply”, which says nothing",
    "A " + "very " * 40 + "long one.": "a sentence of 43 words (“A very very very very very …”)",
    "It takes 3 minutes to read.": "says “3”, and it is “20”",  # with these words it is
    "# Another title": "exactly one title",
    ":::{note}\nx\n:::": "uses MyST syntax",
    code("%%writefile a.py\n# " + 79 * "x"): "a line of 81 columns: 80 at most",
    code("1", "setpu"): "unknown tag setpu",
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
    assert check.words(notebook) == 2001
    assert check.minutes(notebook) == 15  # 2,001 words / 200 + 150 lines / 30


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
    before = lessons.read_notebook(SPOILED)
    edit_md(SPOILED, BELOW_A_PROOF, f"A new sentence.\n\n{BELOW_A_PROOF}")
    edit_md(SPOILED, "[tuned-pipeline]", "[tuned-pipeline, hide-input]")
    edit_md("pytorch_dataloader", "## Stop it", code("1") + "\n## Stop it")
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
    assert not check.carry(SPOILED)


def test_check_reads_the_pages_beside_the_lessons_too(repository):
    assert list(check.check_pages()) == []
    (repository / "pages/glossary.md").write_text("# Words\n\n| easily | in a table |\n\nEasily.\n")
    assert list(check.check_pages()) == [
        "pages/glossary.md says “Easily”, which says nothing: leave it out."
    ]


def test_check_finds_a_shared_cell_that_drifted_and_fix_mends_it(repository, python):
    owner, source = check.shared_cells()["shared-mlp"]
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
    assert check.fix("tiny")
    done = [code('x = {"a": 1}'), code(file + 'x = {"a": 1}'), *rest]
    assert lessons.md_path("tiny").read_text() == HEADER + "".join(done)
    assert not check.fix("tiny")
    write_tiny(code("x = { 'a':1 }"), code("x = {"))  # no Python: ruff says so
    assert not check.fix("tiny")


def test_fix_leaves_the_lessons_as_they_are(repository):
    for name in lessons.names():
        assert not check.fix(name)


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


# execute -------------------------------------------------------------------------------------


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
    monkeypatch.setattr(lessons, "has_gpu", lambda: False)
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


def test_a_new_lesson_and_its_depth_run_as_they_stand(workshop, python):
    assert python("-m", "tools.check.new", "my_loader", cwd=workshop).returncode == 0
    pages = "my_loader", "my_loader_in_depth"
    assert not any(map(check.fix, pages)), "a template is not formatted"
    done = run_execute(python, workshop, *pages)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [fault for page in pages for fault in check.check_lesson(page)] == []
    measure = (
        "from benchmarks import lesson; made = lesson.Lesson('my_loader'); "
        "made.check(); print(made.epoch() > 0, made.resident_epoch() > 0)"
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
