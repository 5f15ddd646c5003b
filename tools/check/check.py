"""Check the lessons without running them: in seconds, with no kernel.

    tox run -e check [-- --fix]

`--fix` copies cells from the lesson that owns them, formats the code cells of md/, and writes what
follows from something else: the minutes to read a lesson, the line that installs what it needs, the
README's table, and what the benchmark measured. Then it carries an edit of prose from md/ into the
notebook, where no code was edited.
"""

import argparse
import ast
import functools
import itertools
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator

import nbformat
from nbformat import NotebookNode

from offline.problem import told
from tools.lesson import cuda_wheels, glossary, install, lessons, result_cells

WIDEST_LINE = 80  # columns that fit beside both sidebars; ruff does not see what %%writefile writes
PLACEHOLDER = "YOUR_ACCOUNT"  # an underscore: nobody can have that name on GitHub
# Tags of the cells that may assert: no reader copies them into a program of their own.
MAY_ASSERT = {*lessons.TITLES, "trap", lessons.GPU_TAG, "hide-input", "nbval-ignore-output"}
METADATA = {"tags", "mystnb", "stamp"}  # of a code cell; what folds it follows from its tags
FIX = "`tox run -e check -- --fix` writes it"
STATED_MINUTES = re.compile(r"()(\b\d+)( min(?:utes?)? to read)")
INSTALL = re.compile(r"(\*\*Install\.\*\* `)(pip install [^`]*)(`)")
README_TABLE = re.compile(r"(<!-- lessons -->\n).*?(<!-- /lessons -->)", re.DOTALL)
WORDS_A_MINUTE, LINES_A_MINUTE = 200, 30
# Colab and JupyterLab show MyST's own syntax raw, so lessons are CommonMark.
MYST_SYNTAX = re.compile(r"^(`{3,}|:{3,})\{|\{[a-z]+\}`", re.MULTILINE)
REPLACES = "replaces a file of that name"  # what %%writefile may not do without a word
MACHINE_PATH = re.compile(r"(?<![\w.])/(home|root|tmp|Users|usr|var|opt|mnt)/\w|\b[A-Z]:\\")
LONGEST_SENTENCE = 40  # words; the words of links are not counted
FILLER = re.compile(
    r"\b(simply|basically|obviously|of course|easily|please|leverage|utilize)\b", re.IGNORECASE
)
NOT_WORDS = re.compile(
    r"^(`{3,}).*?^\1`*$|^\|[^\n]*$|<details>.*?</details>|<[^>]+>|\]\([^)]*\)",
    re.MULTILINE | re.DOTALL,
)
NOT_PROSE = re.compile(r"^(`{3,}).*?^\1`*$|^[|#][^\n]*$|<[^>]+>", re.MULTILINE | re.DOTALL)
TAGS_OF_BLOCK = re.compile(r"^:?tags: \[(.*)\]$", re.MULTILINE)
# ruff leaves a cell alone that is written into a file, unless its first line is taken away.
MAGIC = re.compile(r"(%%writefile \S+\.py\n)?(.*)", re.DOTALL)
CODE_BLOCK = re.compile(
    r"^```\{code-cell\} ipython3\n"
    r"(?P<options>---\n.*?^---\n|(?::[^\n]*\n)+\n?|)"
    r"(?P<source>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


def check_lesson(name: str) -> Iterator[str]:
    """Yield one sentence for each fault of the lesson."""
    md, notebook = lessons.md_path(name), lessons.notebook_path(name)
    run = f"run `tox run -e execute -- {name}`"
    carry_it = f"run `tox run -e check -- --fix` if you edited prose only, else `{run[5:]}"
    if not md.is_file():
        yield f"notebooks/{name}.ipynb has no md/{name}.md: restore it, or delete the notebook."
        return
    source = lessons.read_md(name)
    yield from check_source(name, source)
    yield from check_stated(name)
    if not notebook.is_file():
        yield f"md/{name}.md has no notebook: {run}."
        return
    stored = lessons.read_notebook(name)
    if [*map(twin_part, source.cells)] != [*map(twin_part, stored.cells)]:
        yield f"md/{name}.md and notebooks/{name}.ipynb differ: {carry_it}."
    for number, cell in enumerate(lessons.code_cells(stored)):
        place = f"notebooks/{name}.ipynb::Cell {number}"
        yield from (f"{place}: {fault}: {run}." for fault in check_outputs(cell, number + 1))
    if set(stored.metadata) - {"checked"} != {"kernelspec"}:
        yield f"notebooks/{name}.ipynb holds metadata of the machine that ran it: {run}."


def twin_part(cell: NotebookNode) -> tuple:
    """What a cell's two twins have in common."""
    return cell.cell_type, cell.source, cell.metadata.get("tags"), cell.metadata.get("mystnb")


def check_source(name: str, notebook: NotebookNode) -> Iterator[str]:
    owned = owned_cells(name)
    headings = "\n".join(c.source for c in notebook.cells if c.cell_type == "markdown")
    if len(re.findall(r"^# ", headings, re.MULTILINE)) != 1:
        yield f"md/{name}.md needs exactly one title (`# …`)."
    if found := MYST_SYNTAX.search(headings):
        yield f"md/{name}.md uses MyST syntax ({found[0]}), which Colab shows raw: use CommonMark."
    yield from (f"md/{name}.md {fault}." for fault in check_prose(headings))
    if found := glossary.unexplained(headings):
        yield (
            f"md/{name}.md does not explain {', '.join(found)}: write the words out before the "
            "first, or give pages/glossary.md an entry, to which the site links."
        )
    if not INSTALL.search(headings):
        yield f"md/{name}.md says no ``**Install.** `pip install jax` ``: {FIX} when it is there."
    writes = any(c.source.startswith("%%writefile") for c in lessons.code_cells(notebook))
    if writes and REPLACES not in " ".join(headings.split()):
        yield f"md/{name}.md does not say that `%%writefile` {REPLACES}: say it above the first."
    for number, cell in enumerate(lessons.code_cells(notebook)):
        place = f"md/{name}.md, code cell {number}"
        yield from (f"{place} {fault}." for fault in check_cell(cell, owned))
        if holds_results(cell) and cell.source != results_of(cell):
            yield f"{place} is not what benchmarks/results hold: {FIX}."
    for number, name_used in names_of_proofs(lessons.code_cells(notebook)):
        yield (
            f"md/{name}.md, code cell {number} needs the name {name_used}, which a proof defines: "
            "whoever copies the cell lacks it."
        )


def is_visible(cell: NotebookNode) -> bool:
    """Whether the reader sees the cell's code: no fold, no drawing, no module written to a file."""
    hidden = {"hide-input", "remove-cell"} & set(lessons.tags(cell))
    return not (lessons.folded(cell) or hidden or cell.source.startswith("%%writefile"))


def holds_results(cell: NotebookNode) -> bool:
    return lessons.RESULTS_TAG in lessons.tags(cell)


def results_of(cell: NotebookNode) -> str:
    """What has to stand in the cell that holds results: in the lesson the medians only."""
    return result_cells.source(brief=cell.source.startswith("MEDIANS"))


def words(notebook: NotebookNode) -> int:
    """The words of its prose, without code, tables, addresses and folded solutions."""
    texts = (cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    prose = NOT_WORDS.sub(" ", "\n\n".join(texts))
    return sum(any(c.isalnum() for c in word) for word in prose.split())


def minutes(notebook: NotebookNode) -> int:
    """How long it takes to read, to the nearest five minutes.

    Words count, and the visible lines of code that somebody wrote; what was measured does not.
    """
    visible = itertools.filterfalse(holds_results, filter(is_visible, lessons.code_cells(notebook)))
    lines = sum(bool(line.strip()) for cell in visible for line in cell.source.splitlines())
    return max(5, 5 * round((words(notebook) / WORDS_A_MINUTE + lines / LINES_A_MINUTE) / 5))


def asserts(cell: NotebookNode) -> bool:
    """Whether a cell that a reader copies asserts."""
    if MAY_ASSERT & set(lessons.tags(cell)):
        return False
    return any(isinstance(node, ast.Assert) for node in ast.walk(lessons.python(cell.source)))


def names_of_proofs(cells: list[NotebookNode]) -> Iterator[tuple[int, str]]:
    """Yield each name that a visible cell takes from a proof, with the number of the cell."""
    from_proof = {}
    for number, cell in enumerate(cells):
        if cell.source.startswith("%%writefile"):
            continue
        table = lessons.table_of(cell.source)
        binds = lessons.defined(cell)
        if is_visible(cell):
            for name in sorted(lessons.names_used(table) - binds):
                if from_proof.get(name):
                    yield number, name
        from_proof |= dict.fromkeys(binds, lessons.folded(cell))


def check_prose(markdown: str) -> Iterator[str]:
    """Yield what a reader would stumble over."""
    prose = NOT_PROSE.sub("\n\n", markdown)
    if found := FILLER.search(prose):
        yield f"says “{found[0]}”, which says nothing: leave it out"
    without_links = re.sub(r"\[[^\]]*\]\([^)]*\)", "", prose)
    for paragraph in re.split(r"\n\s*\n|^(?:[-*]|\d+\.) ", without_links, flags=re.MULTILINE):
        for sentence in re.split(r"(?<=[.!?:;])\s", paragraph):
            words = sentence.split()
            if len(words) > LONGEST_SENTENCE:
                start = " ".join(words[:6])
                yield f"has a sentence of {len(words)} words (“{start} …”): make two of it"


def shared_cells() -> dict[str, tuple[str, str]]:
    """Of each shared cell its owner and its source, by its tag: the first lesson that has it."""
    found = {}
    for name in filter(lambda name: lessons.md_path(name).is_file(), lessons.in_order()):
        for tag, source in shared_in(lessons.md_path(name).read_text()):
            found.setdefault(tag, (name, source))
    return found


def shared_in(md: str) -> list[tuple[str, str]]:
    """The tags and the sources of the shared cells in the text of a lesson."""
    cells = lessons.code_cells(lessons.parsed(md))
    return [(tag, cell.source) for cell in cells if (tag := lessons.shared_tag(cell))]


def owned_cells(name: str) -> Callable[[NotebookNode], tuple[str, str] | None]:
    """What tells of a copied cell of the lesson NAME its owner and the source that it has to have.

    The function gives None of any other cell, and of a copy that no cell of its owner resembles.
    A cell that is copied from a lesson is known by the names that it defines.
    """
    shared = shared_cells()

    def owned(cell: NotebookNode) -> tuple[str, str] | None:
        if tag := lessons.shared_tag(cell):
            return shared.get(tag)
        if not (tag := lessons.from_tag(cell)):
            return None
        owner, names = tag.removeprefix(lessons.FROM), lessons.defined(cell)
        if owner == name or not lessons.md_path(owner).is_file():
            return None
        cells = lessons.code_cells(lessons.read_md(owner))
        alike = max(cells, key=lambda c: len(names & lessons.defined(c)), default=None)
        return (owner, alike.source) if alike and names & lessons.defined(alike) else None

    return owned


def check_cell(
    cell: NotebookNode, owned: Callable[[NotebookNode], tuple[str, str] | None]
) -> Iterator[str]:
    """Yield the faults of a code cell. `owned`: see owned_cells."""
    if asserts(cell):
        yield "asserts, and readers copy it: move it to a proof below"
    for line in cell.source.splitlines():
        if len(line) > WIDEST_LINE:
            yield f"has a line of {len(line)} columns: {WIDEST_LINE} at most: {line.strip()}"
    yield from check_tags(cell, owned(cell))
    if "nbval-ignore-output" in lessons.tags(cell) and not (
        "assert" in cell.source and "# Output ignored:" in cell.source
    ):
        yield "ignores its output: say why in a comment `# Output ignored: …` and assert what holds"


def check_tags(cell: NotebookNode, owner: tuple[str, str] | None) -> Iterator[str]:
    """Yield the faults of a cell's tags. `owner`: of a copy, the lesson it is of and its source."""
    for tag in lessons.tags(cell):
        if tag.startswith((lessons.SHARED, lessons.FROM)):
            if not owner:
                yield f"has the tag {tag}, and no lesson has the cell that it would be a copy of"
            elif owner[1] != cell.source:
                yield (
                    f"differs from the {tag} of its owner: edit it in md/{owner[0]}.md, "
                    "then run `tox run -e check -- --fix`"
                )
        elif tag not in lessons.TAGS:
            yield f"has the unknown tag {tag}: CONTRIBUTING.md lists the tags"
        elif not cell.source.startswith(lessons.TITLES.get(tag, "")):
            yield f"has the tag {tag}: its first line begins with `{lessons.TITLES[tag].strip()}`"
    if cell.source.startswith("# @title") and not lessons.folded(cell):
        yield "has a title (`# @title`), but no tag that folds it: proof or exercise"


def check_outputs(cell: NotebookNode, number: int) -> Iterator[str]:
    """Yield what is wrong with a stored code cell. `number` counts the code cells from 1."""
    if cell.execution_count is None and lessons.GPU_TAG in lessons.tags(cell):
        if cell.outputs or "stamp" in cell.metadata:
            yield "a cell that was not run has an output"
        return
    if cell.execution_count != number:
        yield f"its execution count is {cell.execution_count}, not {number}"
    if cell.metadata.get("stamp") != lessons.stamp(cell):
        yield "it was edited after its output was stored"
    if {k: v for k, v in cell.metadata.items() if k not in METADATA} != lessons.folding(cell):
        yield "its metadata do not follow from its tags"
    for output in cell.outputs:
        if output.output_type == "error":
            yield f"it stores an error ({output.ename})"
        if output.get("name") == "stderr":
            yield "it stores text on stderr"
        if found := next(filter(None, map(MACHINE_PATH.search, lessons.texts(output))), None):
            yield f"its output names a path of one machine ({found[0]}…)"
        if lessons.UNCOMPARED & output.get("data", {}).keys():
            options = cell.metadata.get("mystnb", {})
            if not options.get("image", {}).get("alt"):
                yield "its picture has no alt text (mystnb: image: alt)"
            if not options.get("figure", {}).get("caption"):
                yield "its picture has no caption (mystnb: figure: caption)"


def check_pages() -> Iterator[str]:
    """The prose beside the lessons."""
    for file in (*lessons.ROOT.glob("*.md"), *(lessons.ROOT / "pages").glob("*.md")):
        name = file.relative_to(lessons.ROOT)
        yield from (f"{name} {fault}." for fault in check_prose(file.read_text()))


def check_lists(names: list[str]) -> Iterator[str]:
    """lessons.toml has every lesson, and none that is not there; the README has its table."""
    for name in sorted({*names} - {*lessons.in_order()}):
        of_none = "its lesson has none" if name.endswith(lessons.DEPTH) else "it is not listed"
        yield f"lessons.toml does not know md/{name}.md, for {of_none}: add an entry."
    for name in sorted({*lessons.listed()} - {*names}):
        yield f"lessons.toml lists {name}, and there is no md/{name}.md: delete the entry."
    if readme_table() not in (lessons.ROOT / "README.md").read_text():
        yield f"README.md has not the table of lessons.toml: {FIX} between its two marks."


def readme_table() -> str:
    """The lessons as a table of Markdown: what each answers, how long it takes, where it runs."""
    address = re.search(r'^REPOSITORY = "(.*)"$', (lessons.ROOT / "conf.py").read_text(), re.M)[1]
    badge = "![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)"
    rows = ["| lesson | question that it answers | time | hardware | open |", "| --- " * 5 + "|"]
    for name, entry in lessons.listed().items():
        if not lessons.md_path(name).is_file():
            continue
        time = f"{minutes(lessons.read_md(name))} min to read, {entry['run']} min to run"
        link = f"[{lessons.title_of(name)}](notebooks/{name}.ipynb)"
        if depth := lessons.depth_of(name):
            link += f", [in depth](notebooks/{depth}.ipynb)"
        rows.append(
            f"| {link} | {entry['question']} | {time} | {entry['hardware']} "
            f"| [{badge}]({in_colab(address, name)}) |"
        )
    return "\n".join(rows) + "\n"


def in_colab(repository: str, name: str) -> str:
    """The address under which Colab opens the notebook of this repository on GitHub."""
    colab = repository.replace("https://github.com", "https://colab.research.google.com/github")
    return f"{colab}/blob/main/notebooks/{name}.ipynb"


def check_stated(name: str) -> Iterator[str]:
    """Yield what the lesson says of itself, if something else follows from it."""
    md = lessons.md_path(name).read_text()
    for pattern, right in stated(name, md):
        for _, said, _ in pattern.findall(md):
            if said != right:
                yield f"md/{name}.md says “{said}”, and it is “{right}”: {FIX}."


def stated(name: str, md: str) -> Iterator[tuple[re.Pattern, str]]:
    """How a lesson says how long it takes and what to install, and what is right."""
    yield STATED_MINUTES, str(minutes(lessons.parsed(md)))
    if INSTALL.search(md):
        yield INSTALL, install.line(name)


def with_stated(name: str, md: str) -> str:
    for pattern, right in stated(name, md):
        md = pattern.sub(rf"\g<1>{right}\g<3>", md)
    return md


def carry(name: str) -> bool:
    """Write prose, tags and captions of md/ into the notebook, where no code cell was edited.

    Returns whether the notebook changed.
    """
    if not (lessons.md_path(name).is_file() and lessons.notebook_path(name).is_file()):
        return False
    stored, notebook = lessons.read_notebook(name), lessons.with_outputs(name)
    held, carried = (
        [(cell.source, cell.metadata.get("stamp")) for cell in lessons.code_cells(twin)]
        for twin in (stored, notebook)
    )
    if held != carried or [*map(twin_part, notebook.cells)] == [*map(twin_part, stored.cells)]:
        return False
    lessons.store(notebook, name)
    return True


def fix(name: str) -> bool:
    """Copy cells from their owners, format code, and write what follows from something else.

    Returns whether md/NAME.md changed.
    """
    path = lessons.md_path(name)
    before = path.read_text()
    after = with_stated(name, formatted(with_results(with_copied_cells(name, before))))
    if after != before:
        path.write_text(after)
    return after != before


def formatted(md: str) -> str:
    """The text of a lesson with its code cells as `ruff format` has them in notebooks/."""
    parts = [MAGIC.match(block["source"]).groups("") for block in CODE_BLOCK.finditer(md)]
    cells = [nbformat.v4.new_code_cell(source) for _, source in parts]
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "format", "--stdin-filename", "notebooks/lesson.ipynb", "-"],
        input=nbformat.writes(nbformat.v4.new_notebook(cells=cells)),
        cwd=lessons.ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:  # a cell is no Python: `ruff format --check` says which
        return md
    sources = [cell.source.rstrip("\n") for cell in nbformat.reads(done.stdout, as_version=4).cells]
    after = (f"{magic}{source}\n" for (magic, _), source in zip(parts, sources, strict=True))
    return CODE_BLOCK.sub(lambda block: with_source(block, next(after)), md)


def with_source(block: re.Match, source: str) -> str:
    return block[0].removesuffix(block["source"] + "```") + source + "```"


def check_address() -> Iterator[str]:
    """On GitHub, badges with the placeholder for an owner would lead nowhere."""
    if "GITHUB_REPOSITORY" in os.environ and PLACEHOLDER in (lessons.ROOT / "conf.py").read_text():
        yield (
            f"conf.py has the placeholder {PLACEHOLDER} in the repository's address: "
            f"write the owner into each file that `git grep -l {PLACEHOLDER}/` lists."
        )


def with_copied_cells(name: str, md: str) -> str:
    """The text of the lesson NAME in which each copied cell has the source of its owner."""
    owned = owned_cells(name)
    return with_cells(md, lambda cell: (owned(cell) or (name, ""))[1])


def with_results(md: str) -> str:
    """The text of a lesson whose cell of results holds what was measured last."""
    return with_cells(md, lambda cell: results_of(cell) if holds_results(cell) else "")


def with_cells(md: str, source_of: Callable[[NotebookNode], str]) -> str:
    """The text of a lesson in which a cell has the source that the function gives, if any."""

    def replace(block: re.Match) -> str:
        tags = re.findall(r"[\w-]+", " ".join(TAGS_OF_BLOCK.findall(block["options"])))
        cell = nbformat.v4.new_code_cell(block["source"].rstrip("\n"), metadata={"tags": tags})
        source = source_of(cell)
        return with_source(block, source + "\n") if source else block[0]

    return CODE_BLOCK.sub(replace, md)


def fix_all(names: list[str]) -> Iterator[str]:
    """Mend what can be derived. Yield a sentence for each file that changed."""
    for name in names:
        if lessons.md_path(name).is_file() and fix(name):
            yield f"md/{name}.md: mended"
    readme = lessons.ROOT / "README.md"
    before = readme.read_text()
    after = README_TABLE.sub(lambda found: found[1] + readme_table() + found[2], before)
    if after != before:
        readme.write_text(after)
        yield "README.md: mended"
    yield from (f"notebooks/{name}.ipynb: has the prose of md/" for name in names if carry(name))


def faults_of(look: Callable[[], Iterable[str]]) -> list[str]:
    """What `look` finds; what keeps it from looking is a fault as well, and hides no other."""
    try:
        return [*look()]
    except lessons.Problem as problem:
        return [str(problem)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fix", action="store_true", help="write what follows from something else")
    arguments = parser.parse_args()
    names = lessons.names()
    with told("check"):
        for said in fix_all(names) if arguments.fix else ():
            print(said)
    looks = [functools.partial(check_lesson, name) for name in names]
    looks += [check_pages, functools.partial(check_lists, names), check_address, cuda_wheels.faults]
    faults = [*itertools.chain.from_iterable(map(faults_of, looks))]
    for fault in faults:
        print(fault, file=sys.stderr)
    if faults:
        sys.exit(f"check: {len(faults)} to put right.")
    print(f"check: {len(names)} lessons are in step, and nothing is stale.")


if __name__ == "__main__":
    main()
