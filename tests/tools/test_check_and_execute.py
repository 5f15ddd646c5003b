"""check, execute and new, on a copy of the repository."""

import functools
import random
import re
import time

import jupytext
import nbformat
import psutil
import pytest

from tools import check, execute, lessons

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
    return python("tools/execute.py", *arguments, cwd=repository, env={"JAX_PLATFORMS": "cpu"})


def outputs(name="tiny"):
    cells = lessons.code_cells(lessons.read_notebook(name))
    return ["".join(output.get("text", "?") for output in cell.outputs) for cell in cells]


# check ---------------------------------------------------------------------------------------


def test_the_lessons_are_in_step(repository):
    assert [fault for name in lessons.names() for fault in check.check_lesson(name)] == []
    assert list(check.check_lists(lessons.names())) == []


def edit_md(old, text):
    def edit(name):
        path = lessons.md_path(name)
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, text, 1))

    return edit


def edit_notebook(change):
    def edit(name):
        notebook = lessons.read_notebook(name)
        change(notebook)
        nbformat.write(notebook, lessons.notebook_path(name))

    return edit


def first(notebook):
    return lessons.code_cells(notebook)[0]


def proof(notebook):
    return next(c for c in lessons.code_cells(notebook) if "proof" in lessons.tags(c))


def picture(notebook):
    return next(c for c in lessons.code_cells(notebook) if c.metadata.get("mystnb"))


FAULTS = {
    "no notebook": (lambda name: lessons.notebook_path(name).unlink(), "has no notebook"),
    "no md": (lambda name: lessons.md_path(name).unlink(), "has no md/"),
    "md edited": (edit_md("import hashlib", "import hashlib as h"), "differ: run"),
    "tag edited": (edit_md("[tuned-pipeline]", "[first-pipeline]"), "differ: run"),
    "notebook edited": (
        edit_notebook(lambda nb: first(nb).update(source="1 + 2")),
        "::Cell 0: it was edited after its output was stored",
    ),
    "stripped": (
        edit_notebook(lambda nb: first(nb).update(execution_count=None)),
        "execution count is None",
    ),
    "out of order": (
        edit_notebook(lambda nb: first(nb).update(execution_count=7)),
        "execution count is 7, not 1",
    ),
    "stderr": (
        edit_notebook(lambda nb: first(nb).outputs[0].update(name="stderr")),
        "stores text on stderr",
    ),
    "path": (
        edit_notebook(lambda nb: first(nb).outputs[0].update(text="in /home/me/x")),
        "names a path of one machine",
    ),
    "no alt": (
        edit_notebook(lambda nb: picture(nb).metadata.mystnb.pop("image")),
        "no alt text",
    ),
    "no caption": (
        edit_notebook(lambda nb: picture(nb).metadata.mystnb.pop("figure")),
        "no caption",
    ),
    "language_info": (
        edit_notebook(lambda nb: nb.metadata.update(language_info={"version": "3.11"})),
        "metadata of the machine",
    ),
    "unknown tag": (edit_md("[setup]", "[setpu]"), "unknown tag setpu"),
    "unknown shared tag": (edit_md("[tuned-pipeline]", "[shared-x]"), "differ: run"),
    "replaces without a word": (
        edit_md("replaces a file of that name", "writes a file"),
        "does not say that `%%writefile` replaces",
    ),
    "wide module": (
        edit_md("import hashlib", "%%writefile a_module.py\n" + "# " + 79 * "x"),
        "a line of 81 columns: 80 at most",
    ),
    "myst": (edit_md("## The short answer", ":::{note}\nx\n:::"), "uses MyST syntax"),
    "two titles": (edit_md("## The short answer", "# The answer"), "exactly one title"),
    "formats": (
        edit_md("kernelspec:", "jupytext:\n  formats: md:myst\nkernelspec:"),
        "sets `formats`",
    ),
    "output ignored": (
        edit_md("[tuned-pipeline]", "[tuned-pipeline, nbval-ignore-output]"),
        "say why in a comment",
    ),
    "filler": (edit_md("## The short answer", "It simply works."), "“simply”, which says nothing"),
    "long sentence": (
        edit_md("## The short answer", "A " + "very " * 40 + "long one."),
        "a sentence of 43 words (“A very very very very very …”)",
    ),
    "wrong minutes": (edit_md("** 20 minutes", "** 35 minutes"), "says “35”, and it is “20”"),
    "minutes elsewhere": (
        edit_md("## The short answer", "It takes 3 minutes to read."),
        "says “3”, and it is “20”",
    ),
    "no line to install": (edit_md("**Install.**", "**Needs.**"), "says no ``**Install.** `pip"),
    "another line to install": (
        edit_md("pip install jax matplotlib", "pip install jax"),
        "and it is “pip install jax matplotlib scikit-learn torchdata torchvision”",
    ),
    "a comment that nbval obeys": (
        edit_md("import hashlib", "# NBVAL_SKIP\nimport hashlib"),
        "has the comment `# NBVAL_SKIP`, which nbval would obey: use a tag",
    ),
    "a copy of no cell": (
        edit_md("## Make it fast", code("unheard_of = 1", "from-grain") + "\n## Make it fast"),
        "has the tag from-grain, and no lesson has the cell that it would be a copy of",
    ),
    "an assert in a cell to copy": (
        edit_md("## Make it fast", code("assert 1") + "\n## Make it fast"),
        "asserts, and readers copy it: move it to a proof below",
    ),
    "an assert in a module": (
        edit_md("## Make it fast", code("%%writefile a.py\nassert 1") + "\n## Make it fast"),
        "asserts, and readers copy it",
    ),
    "proof without a title": (
        edit_md("# @title Proof: digits", "# Digits"),
        "has the tag proof: its first line begins with `# @title Proof:`",
    ),
    "title without a fold": (
        edit_md("[tuned-pipeline]\n", "[tuned-pipeline]\n\n# @title Proof: none"),
        "has a title (`# @title`), but no tag that folds it",
    ),
    "solution without a title": (
        edit_md("[tuned-pipeline]", "[exercise]"),
        "has the tag exercise: its first line begins with `# @title Show the solution`",
    ),
    "unfolded": (
        edit_notebook(lambda nb: proof(nb).metadata.pop("jupyter")),
        "its metadata do not follow from its tags",
    ),
    "folded by hand": (
        edit_notebook(lambda nb: first(nb).metadata.update(collapsed=True)),
        "its metadata do not follow from its tags",
    ),
    "name of a proof": (
        edit_md("## Make it fast", code("print(records)") + "\n## Make it fast"),
        "needs the name records, which a proof defines",
    ),
    "name of a proof in a function": (
        edit_md("## Make it fast", code("def f():\n    return records") + "\n## Make it fast"),
        "needs the name records, which a proof defines",
    ),
    "output cleared": (
        edit_md("## Make it fast", code("clear_output()") + "\n## Make it fast"),
        "says clear_output, whose output nbval does not compare",
    ),
    "display updated later": (
        edit_md("## Make it fast", code("update_display(1)") + "\n## Make it fast"),
        "says update_display, whose output nbval does not compare",
    ),
    "display updated": (
        edit_md("## Make it fast", code("display(1, display_id=True)") + "\n## Make it fast"),
        "says display_id, whose output nbval does not compare",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_check_finds(repository, fault):
    spoil, message = FAULTS[fault]
    spoil("pytorch_dataloader")
    faults = list(check.check_lesson("pytorch_dataloader"))
    assert any(message in fault for fault in faults), faults


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
    for file, said, wrong in (
        ("md/grain.md", "** 25 minutes to read", "** 7 minutes to read"),
        ("md/grain.md", "`pip install grain jax", "`pip install jax"),
        ("README.md", "| 25 min to read, 2", "| 7 min to read, 9"),
    ):
        text = (repository / file).read_text()
        assert said in text
        (repository / file).write_text(text.replace(said, wrong))
    assert len([*check.check_lesson("grain")]) == 3  # and md/ and the notebook differ
    assert [*check.check_lists(lessons.names())] == [
        "README.md has not the table of lessons.toml: `tox run -e check -- --fix` writes it."
    ]
    before = lessons.notebook_path("grain").read_bytes()
    done = python("tools/check.py", "--fix", cwd=repository)
    assert done.returncode == 0, done.stderr
    assert (
        "README.md: mended" in done.stdout and lessons.notebook_path("grain").read_bytes() == before
    )


def test_fix_carries_prose_into_the_notebook_and_no_code(repository, python):
    before = lessons.read_notebook("grain")
    edit_md("## The short answer", "A new sentence.\n\n## The short answer")("grain")
    edit_md("[tuned-pipeline]", "[tuned-pipeline, hide-input]")("grain")
    edit_md("## Make it fast", code("1") + "\n## Make it fast")("pytorch_dataloader")
    code_edited = lessons.notebook_path("pytorch_dataloader").read_bytes()
    done = python("tools/check.py", "--fix", cwd=repository)
    assert done.stdout == "notebooks/grain.ipynb: has the prose of md/\n"
    assert "execute -- pytorch_dataloader" in done.stderr
    assert lessons.notebook_path("pytorch_dataloader").read_bytes() == code_edited
    after = lessons.read_notebook("grain")
    assert [*check.check_lesson("grain")] == []
    assert sum("A new sentence." in cell.source for cell in after.cells) == 1
    tuned, *others = [c for c in lessons.code_cells(after) if "tuned-pipeline" in lessons.tags(c)]
    assert lessons.tags(tuned) == ["tuned-pipeline", "hide-input"]
    assert all("hide-input" not in lessons.tags(cell) for cell in others)
    assert lessons.digest(after) == lessons.digest(before)  # what passed has passed
    assert [cell.id for cell in lessons.code_cells(after)] == [
        cell.id for cell in lessons.code_cells(before)
    ]


def test_fix_carries_nothing_below_an_output_that_is_not_its_own(repository):
    edit_md("## The short answer", "A new sentence.\n\n## The short answer")("grain")
    edit_notebook(lambda nb: first(nb).metadata.update(stamp="another"))("grain")
    assert not check.carry("grain")


def test_check_reads_the_pages_beside_the_lessons_too(repository):
    assert list(check.check_pages()) == []
    (repository / "pages/glossary.md").write_text("# Words\n\n| easily | in a table |\n\nEasily.\n")
    assert list(check.check_pages()) == [
        "pages/glossary.md says “Easily”, which says nothing: leave it out."
    ]


def test_check_finds_a_shared_cell_that_drifted_and_fix_mends_it(repository, python):
    owner, source = check.shared_cells()["shared-mlp"]
    assert owner == "pytorch_dataloader"
    cells = lessons.code_cells(lessons.read_md("grain"))
    [short] = [cell.source for cell in cells if "short-answer" in lessons.tags(cell)]
    drifted = code(source.replace("relu", "tanh"), "shared-mlp")
    write_tiny(drifted, code(short.replace("seed", "seeds"), "from-grain"))
    found = [fault for fault in check.check_lesson("tiny") if "of its owner: " in fault]
    assert [
        re.search(r"the (\S+) of its owner: edit it in md/(\w+).md", f).groups() for f in found
    ] == [
        ("shared-mlp", "pytorch_dataloader"),
        ("from-grain", "grain"),
    ]
    done = python("tools/check.py", "--fix", cwd=repository)
    assert "md/tiny.md: mended" in done.stdout
    assert not any("owner" in fault for fault in check.check_lesson("tiny"))
    assert [cell.source for cell in lessons.code_cells(lessons.read_md("tiny"))] == [source, short]
    before = lessons.md_path("tiny").read_text()
    python("tools/check.py", "--fix", cwd=repository)
    assert lessons.md_path("tiny").read_text() == before


def test_fix_formats_code_and_leaves_magics_and_prose(repository):
    file = "%%writefile tiny_module.py\n"
    rest = [code("%pip install -q  numpy"), code("# A comment"), "\nx = { 'a':1 }\n"]
    write_tiny(code("x = { 'a':1 }"), code(file + "x = { 'a':1 }"), *rest)
    assert check.fix("tiny")
    done = [code('x = {"a": 1}'), code(file + 'x = {"a": 1}'), *rest]
    assert lessons.md_path("tiny").read_text() == HEADER + "".join(done)
    assert not check.fix("tiny")


def test_fix_leaves_a_lesson_alone_that_is_no_python(repository):
    write_tiny(code("x = { 'a':1 }"), code("x = {"))
    assert not check.fix("tiny")


def test_fix_leaves_the_lessons_as_they_are(repository):
    for name in lessons.names():
        assert not check.fix(name)


def test_check_finds_a_lesson_that_no_list_knows(repository):
    assert [*check.check_lists([*lessons.names(), "tiny"])] == [
        "lessons.toml does not know md/tiny.md, for it is not listed: add an entry."
    ]
    without = [name for name in lessons.names() if name != "grain"]
    assert [*check.check_lists(without)] == [
        "lessons.toml lists grain, and there is no md/grain.md: delete the entry."
    ]
    assert [*check.check_lists([*lessons.names(), "tiny_in_depth"])] == [
        "lessons.toml does not know md/tiny_in_depth.md, for its lesson has none: add an entry."
    ]


def test_check_says_what_to_do_and_fails(repository, python):
    lessons.notebook_path("pytorch_dataloader").write_text("not json")
    edit_md("## The short answer", "## The answer")("grain")
    done = python("tools/check.py", cwd=repository)
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

    write_tiny(clock, code("print(6 * 8)"))
    execute_tiny()
    assert outputs() == [measured, "48\n"]

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


TITLE = "# @title Proof: it holds"


def test_execute_folds_a_proof_for_jupyterlab_and_colab(execute_tiny):
    def metadata():
        notebook = lessons.read_notebook("tiny")
        return [{**c.metadata, "stamp": ""} for c in lessons.code_cells(notebook)]

    show = "display({'image/png': 'AAAA', 'text/plain': 'x'}, raw=True)"
    picture = (
        f":tags: [proof]\n:mystnb: {{image: {{alt: a}}, figure: {{caption: b}}}}\n\n{TITLE}\n{show}"
    )
    cells = [
        code(f"{TITLE}\nprint(1)", "proof"),
        code(f"{TITLE}\nassert 1", "proof"),
        f"\n```{{code-cell}} ipython3\n{picture}\n```\n",
        code("# @title Show the solution\nprint(2)", "exercise"),
        code("print(3)"),
    ]
    write_tiny(*cells)
    execute_tiny()
    text = {"cellView": "form", "jupyter": {"source_hidden": True, "outputs_hidden": True}}
    silent = {"cellView": "form", "jupyter": {"source_hidden": True}}
    folds = [{k: m[k] for k in lessons.FOLDING if k in m} for m in metadata()]
    assert folds == [text, silent, silent, text, {}]
    assert list(check.check_lesson("tiny")) == []

    stored = lessons.notebook_path("tiny").read_bytes()
    execute_tiny()
    assert lessons.notebook_path("tiny").read_bytes() == stored, "lost in the merge"
    assert jupytext.read(lessons.md_path("tiny")).cells[1].metadata == {"tags": ["proof"]}

    write_tiny(code("print(1)"), *cells[1:])  # the tag is gone
    execute_tiny()
    assert not any(key in metadata()[0] for key in lessons.FOLDING)
    assert list(check.check_lesson("tiny")) == []


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
    process = in_terminal("tools/execute.py", "tiny", cwd=workshop)
    process.wait_until_it_says("1 of 2")
    time.sleep(1)
    kernels = process.descendants()
    assert kernels
    _, said = process.press_ctrl_c()
    assert said == "execute: interrupted; the stored notebooks are as they were.\n"
    assert process.returncode == 1
    assert not psutil.wait_procs(kernels, timeout=10)[1]
    assert not list(lessons.NOTEBOOKS.glob("*tiny*"))


@pytest.mark.parametrize("after", ["tiny", "stored after"])
def test_execute_interrupted_at_any_moment_leaves_a_whole_notebook_or_none(
    workshop, in_terminal, after
):
    write_tiny(code("print(1)"))
    process = in_terminal("tools/execute.py", "tiny", cwd=workshop)
    process.wait_until_it_says(after)
    time.sleep(random.uniform(0, 4))
    started = process.descendants()
    process.press_ctrl_c()
    assert not psutil.wait_procs(started, timeout=10)[1]
    found = [path.name for path in lessons.NOTEBOOKS.glob("*tiny*")]
    assert found in ([], ["tiny.ipynb"])
    assert not found or list(check.check_lesson("tiny")) == []


def test_execute_in_a_read_only_clone(workshop, python, mounted):
    write_tiny(code("print(1)"))
    prefix = mounted('--bind -o ro "$0"', workshop, first='cd "$0"')
    done = python("tools/execute.py", "tiny", prefix=prefix, cwd=workshop)
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert done.stderr.startswith(f"execute: {lessons.NOTEBOOKS} cannot be written to")


def test_execute_on_a_disk_that_is_nearly_full(workshop, data, python, mounted):
    write_tiny(code("print(1)"), "\nIt takes more than a page of the disk.\n" * 200)
    prefix = mounted("-t tmpfs -o size=4k tmpfs", lessons.NOTEBOOKS, f'ln -s "{data}" "$0/data"')
    done = python("tools/execute.py", "tiny", prefix=prefix, cwd=workshop)
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert "No space left on device: put that right and run it again" in done.stderr


def test_execute_of_an_unknown_lesson(workshop, python):
    done = run_execute(python, workshop, "no_such")
    assert done.returncode == 1
    known = ", ".join(lessons.names())
    assert f"md/no_such.md does not exist: the lessons are {known}." in done.stderr


def test_two_executes_of_one_lesson(workshop):
    with (
        execute.filelock.FileLock(execute.lock_path("tiny")),
        pytest.raises(lessons.Problem, match="is being executed by another run"),
    ):
        execute.execute("tiny", refresh=False)


# new -----------------------------------------------------------------------------------------


def test_a_new_lesson_runs_as_it_stands(workshop, python):
    assert python("tools/new.py", "my_loader", cwd=workshop).returncode == 0
    assert not check.fix("my_loader"), "the template is not formatted"
    done = run_execute(python, workshop, "my_loader")
    assert done.returncode == 0, done.stdout + done.stderr
    assert list(check.check_lesson("my_loader")) == []
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
    done = python("tools/new.py", name, cwd=repository)
    assert done.returncode == 1 and reason in done.stderr
    assert done.stderr.count("\n") == 1
