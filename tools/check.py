"""Check the lessons without running them: in seconds, with no kernel.

    tox run -e check [-- --fix]

`--fix` copies the shared cells from their owner into the other lessons, formats
the code cells of md/, writes how long a lesson takes to read, which follows from its length, and
writes what the benchmark measured into the lesson that chooses.
"""

import argparse
import ast
import itertools
import os
import re
import subprocess
import symtable
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import nbformat
from nbformat import NotebookNode

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tools import lessons, measured

LONGEST_CELL = 30  # lines
LONGEST_MODULE = 40  # lines of a cell that writes a file: it cannot be divided
WIDEST_LINE = 80  # columns that fit beside both sidebars; ruff does not see what %%writefile writes
PLACEHOLDER = "YOUR_ACCOUNT"  # an underscore: nobody can have that name on GitHub
# What a lesson may have at most.
LIMITS = {
    "visible code cells in its main path": 16,
    "code cells": 40,
    "lines of code": 700,
    "words of prose": 2400,
}
# Tags of the cells that may assert: no reader copies them into a program of their own.
MAY_ASSERT = {*lessons.TITLES, "trap", lessons.GPU_TAG, "hide-input", "nbval-ignore-output"}
METADATA = {"tags", "mystnb", "stamp"}  # of a code cell; what folds it follows from its tags
FIX = "`tox run -e check -- --fix` writes it"
STATED_MINUTES = re.compile(r"(\*\*How long\.\*\* )(\d+)( minutes to read)")
WORDS_A_MINUTE, LINES_A_MINUTE = 200, 30
# Colab and JupyterLab show MyST's own syntax raw, so lessons are CommonMark.
MYST_SYNTAX = re.compile(r"^(`{3,}|:{3,})\{|\{[a-z]+\}`", re.MULTILINE)
REPLACES = "replaces a file of that name"  # what %%writefile may not do without a word
MACHINE_PATH = re.compile(r"(?<![\w.])/(home|root|tmp|Users|usr|var|opt|mnt)/\w|\b[A-Z]:\\")
LONGEST_SENTENCE = 40  # words; the words of links are not counted
FILLER = re.compile(
    r"\b(simply|basically|obviously|of course|easily|please|leverage|utilize)\b", re.IGNORECASE
)
# nbval leaves both out of its comparison.
UNCOMPARED_CALL = re.compile(r"\b(clear_output|update_display)\(|\b(display_id)\s*=(?!=)")
NOT_WORDS = re.compile(
    r"^(`{3,}).*?^\1`*$|^\|[^\n]*$|<details>.*?</details>|<[^>]+>|\]\([^)]*\)",
    re.MULTILINE | re.DOTALL,
)
NOT_PROSE = re.compile(r"^(`{3,}).*?^\1`*$|^[|#][^\n]*$|<[^>]+>", re.MULTILINE | re.DOTALL)
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
    if not md.is_file():
        yield f"notebooks/{name}.ipynb has no md/{name}.md: restore it, or delete the notebook."
        return
    source = lessons.read_md(name)
    yield from check_source(name, source)
    yield from check_minutes(name)
    if not notebook.is_file():
        yield f"md/{name}.md has no notebook: {run}."
        return
    stored = lessons.read_notebook(name)
    if [*map(twin_part, source.cells)] != [*map(twin_part, stored.cells)]:
        yield f"md/{name}.md and notebooks/{name}.ipynb differ: {run}."
    for number, cell in enumerate(lessons.code_cells(stored)):
        place = f"notebooks/{name}.ipynb::Cell {number}"
        yield from (f"{place}: {fault}: {run}." for fault in check_outputs(cell, number + 1))
    if set(stored.metadata) != {"kernelspec"}:
        yield f"notebooks/{name}.ipynb holds metadata of the machine that ran it: {run}."


def twin_part(cell: NotebookNode) -> tuple:
    """What a cell's two twins have in common."""
    return cell.cell_type, cell.source, cell.metadata.get("tags"), cell.metadata.get("mystnb")


def check_source(name: str, notebook: NotebookNode) -> Iterator[str]:
    owner = shared_cells()
    if "formats" in notebook.metadata.get("jupytext", {}):
        yield f"md/{name}.md sets `formats`, which belong in jupytext.toml: delete that line."
    headings = "\n".join(c.source for c in notebook.cells if c.cell_type == "markdown")
    if len(re.findall(r"^# ", headings, re.MULTILINE)) != 1:
        yield f"md/{name}.md needs exactly one title (`# …`)."
    if found := MYST_SYNTAX.search(headings):
        yield f"md/{name}.md uses MyST syntax ({found[0]}), which Colab shows raw: use CommonMark."
    yield from (f"md/{name}.md {fault}." for fault in check_prose(headings))
    if not STATED_MINUTES.search(headings):
        yield f"md/{name}.md says no `**How long.** 20 minutes to read` below its title."
    writes = any(c.source.startswith("%%writefile") for c in lessons.code_cells(notebook))
    if writes and REPLACES not in " ".join(headings.split()):
        yield f"md/{name}.md does not say that `%%writefile` {REPLACES}: say it above the first."
    yield from (f"md/{name}.md {fault}." for fault in check_contract(notebook))
    for number, cell in enumerate(lessons.code_cells(notebook)):
        place = f"md/{name}.md, code cell {number}"
        yield from (f"{place} {fault}." for fault in check_cell(cell, owner))
        if holds_results(cell) and cell.source != measured.source():
            yield f"{place} is not what benchmarks/results hold: {FIX}."
    for number, name_used in names_of_proofs(lessons.code_cells(notebook)):
        yield (
            f"md/{name}.md, code cell {number} needs the name {name_used}, which a proof defines: "
            "whoever copies the cell lacks it."
        )


def main_path(notebook: NotebookNode) -> NotebookNode:
    """The lesson up to "## Going further"."""
    cells = itertools.takewhile(lambda c: "## Going further" not in c.source, notebook.cells)
    return nbformat.v4.new_notebook(cells=[*cells])


def is_visible(cell: NotebookNode) -> bool:
    """Whether the reader sees the cell's code: no fold, no drawing, no module written to a file."""
    hidden = {"hide-input", "remove-cell"} & set(lessons.tags(cell))
    return not (lessons.folded(cell) or hidden or cell.source.startswith("%%writefile"))


def holds_results(cell: NotebookNode) -> bool:
    return lessons.RESULTS_TAG in lessons.tags(cell)


def code_lines(cells: Iterable[NotebookNode]) -> int:
    """The lines that somebody wrote: not what the benchmark measured."""
    written = itertools.filterfalse(holds_results, cells)
    return sum(bool(line.strip()) for cell in written for line in cell.source.splitlines())


def words(notebook: NotebookNode) -> int:
    """The words of its prose, without code, tables, addresses and folded solutions."""
    texts = (cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    prose = NOT_WORDS.sub(" ", "\n\n".join(texts))
    return sum(any(c.isalnum() for c in word) for word in prose.split())


def minutes(notebook: NotebookNode) -> int:
    """How long it takes to read: words and visible lines of code, to the nearest five minutes."""
    lines = code_lines(filter(is_visible, lessons.code_cells(notebook)))
    return max(5, 5 * round((words(notebook) / WORDS_A_MINUTE + lines / LINES_A_MINUTE) / 5))


def lengths(notebook: NotebookNode) -> dict[str, int]:
    """What LIMITS limits."""
    cells = lessons.code_cells(notebook)
    visible = sum(map(is_visible, lessons.code_cells(main_path(notebook))))
    return dict(zip(LIMITS, (visible, len(cells), code_lines(cells), words(notebook)), strict=True))


def check_contract(notebook: NotebookNode) -> Iterator[str]:
    """Yield what a lesson may not have."""
    for what, found in lengths(notebook).items():
        if found > LIMITS[what]:
            yield f"has {found:,} {what}: {LIMITS[what]:,} at most"
    for number, cell in enumerate(lessons.code_cells(notebook)):
        if asserts(cell):
            yield f"asserts in code cell {number}, which readers copy: move it to a proof below"


def asserts(cell: NotebookNode) -> bool:
    """Whether a cell that a reader copies asserts."""
    if MAY_ASSERT & set(lessons.tags(cell)):
        return False
    return any(isinstance(node, ast.Assert) for node in ast.walk(lessons.python(cell)))


def names_of_proofs(cells: list[NotebookNode]) -> Iterator[tuple[int, str]]:
    """Yield each name that a visible cell takes from a proof, with the number of the cell."""
    from_proof = {}
    for number, cell in enumerate(cells):
        if cell.source.startswith("%%writefile"):
            continue
        table = symtable.symtable(ast.unparse(lessons.python(cell)), "cell", "exec")
        binds = {
            symbol.get_name()
            for symbol in table.get_symbols()
            if symbol.is_assigned() or symbol.is_imported()
        }
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


def shared_cells() -> dict[str, str]:
    """The source of each shared cell, by its tag, as its owner has it."""
    owners = [name for name in lessons.SHARED_OWNERS if lessons.md_path(name).is_file()]
    cells = [c for name in reversed(owners) for c in lessons.code_cells(lessons.read_md(name))]
    return {tag: cell.source for cell in cells if (tag := lessons.shared_tag(cell))}


def check_cell(cell: NotebookNode, owner: dict[str, str]) -> Iterator[str]:
    lines = len(cell.source.splitlines())
    most = LONGEST_MODULE if cell.source.startswith("%%writefile") else LONGEST_CELL
    if lines > most and not holds_results(cell):
        yield f"has {lines} lines: {most} at most"
    for line in cell.source.splitlines():
        if len(line) > WIDEST_LINE:
            yield f"has a line of {len(line)} columns: {WIDEST_LINE} at most: {line.strip()}"
    for tag in lessons.tags(cell):
        if tag.startswith(lessons.SHARED):
            if tag not in owner:
                yield f"has the tag {tag}, which none of {', '.join(lessons.SHARED_OWNERS)} defines"
            elif owner[tag] != cell.source:
                yield (
                    f"differs from its owner's {tag}: edit it in the first lesson of "
                    f"{', '.join(lessons.SHARED_OWNERS)} that has it, then run "
                    "`tox run -e check -- --fix`"
                )
        elif tag not in lessons.TAGS:
            yield f"has the unknown tag {tag}: CONTRIBUTING.md lists the tags"
        elif not cell.source.startswith(lessons.TITLES.get(tag, "")):
            yield f"has the tag {tag}: its first line begins with `{lessons.TITLES[tag].strip()}`"
    if cell.source.startswith("# @title") and not lessons.folded(cell):
        yield "has a title (`# @title`), but no tag that folds it: proof or exercise"
    if found := UNCOMPARED_CALL.search(cell.source):
        yield f"says {found[1] or found[2]}, whose output nbval does not compare: print instead"
    if "nbval-ignore-output" in lessons.tags(cell) and not (
        "assert" in cell.source and "# Output ignored:" in cell.source
    ):
        yield "ignores its output: say why in a comment `# Output ignored: …` and assert what holds"


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
    """The README and the front page know every lesson, and no lesson that is not there."""
    readme = (lessons.ROOT / "README.md").read_text()
    for file, linked in {
        "README.md": set(re.findall(r"colab\.research\.google\.com/[^)]*/(\w+)\.ipynb", readme)),
        "index.md": set(lessons.in_order()),
    }.items():
        for name in sorted(set(names) - linked):
            yield f"{file} does not list the lesson {name}: add it."
        for name in sorted(linked - set(names)):
            yield f"{file} lists {name}, which is no lesson: delete it there."


def check_minutes(name: str) -> Iterator[str]:
    """Yield each place that does not state how long the lesson takes to read."""
    right = minutes(lessons.read_md(name))
    for file, pattern in stated_minutes(name).items():
        said = pattern.search((lessons.ROOT / file).read_text())
        if said and int(said[2]) != right:
            yield f"{file} gives {name} {said[2]} minutes to read, and it takes {right}: {FIX}."


def stated_minutes(name: str) -> dict[str, re.Pattern]:
    """For each file that states the minutes to read a lesson, where they stand: in group 2."""
    return {
        f"md/{name}.md": STATED_MINUTES,
        "README.md": re.compile(rf"(\(notebooks/{name}\.ipynb\) \|[^\n]*?\| )(\d+)( min to read)"),
        "index.md": re.compile(rf"(\(notebooks/{name}\.ipynb\) \| )(\d+)( \+ )"),
    }


def fix_minutes(name: str) -> None:
    """Write how long the lesson takes to read, wherever that is stated."""
    right = minutes(lessons.read_md(name))
    for file, pattern in stated_minutes(name).items():
        path = lessons.ROOT / file
        before = path.read_text()
        after = pattern.sub(rf"\g<1>{right}\g<3>", before, count=1)
        if after != before:
            path.write_text(after)


def fix(name: str) -> bool:
    """Copy shared cells, format code, state the minutes. Returns whether md/NAME.md changed."""
    path = lessons.md_path(name)
    before = path.read_text()
    after = formatted(with_results(with_shared_cells(before)))
    if after != before:
        path.write_text(after)
    fix_minutes(name)
    return path.read_text() != before


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


def with_shared_cells(md: str) -> str:
    """The text of a lesson in which each shared cell has its owner's source."""
    owner = shared_cells()

    def replace(block: re.Match) -> str:
        found = re.search(rf"\b{lessons.SHARED}[\w-]+", block["options"])
        if found and found[0] in owner:
            return with_source(block, owner[found[0]] + "\n")
        return block[0]

    return CODE_BLOCK.sub(replace, md)


def with_results(md: str) -> str:
    """The text of a lesson whose cell of results holds what was measured last."""

    def replace(block: re.Match) -> str:
        tag = rf"^:?tags: \[.*\b{lessons.RESULTS_TAG}\b"
        holds = re.search(tag, block["options"], re.MULTILINE)
        return with_source(block, measured.source() + "\n") if holds else block[0]

    return CODE_BLOCK.sub(replace, md)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--fix", action="store_true", help="copy shared cells, format code, state the minutes"
    )
    arguments = parser.parse_args()
    names = lessons.names()
    try:
        for name in names if arguments.fix else []:
            if lessons.md_path(name).is_file() and fix(name):
                print(f"md/{name}.md: mended; now `tox run -e execute -- {name}`")
        faults = [fault for name in names for fault in check_lesson(name)]
        faults += [*check_pages(), *check_lists(names), *check_address()]
    except lessons.Problem as problem:
        faults = [str(problem)]
    for fault in faults:
        print(fault, file=sys.stderr)
    if faults:
        sys.exit(f"check: {len(faults)} to put right.")
    print(f"check: {len(names)} lessons are in step, and nothing is stale.")


if __name__ == "__main__":
    main()
