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
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator

from nbformat import NotebookNode

from offline.problem import Problem, told
from tools.check import fix
from tools.lesson import cuda_wheels, facts, glossary, lessons, owners

WIDEST_LINE = 80  # columns that fit beside both sidebars; ruff does not see what %%writefile writes
# Tags of the cells that may assert: no reader copies them into a program of their own.
MAY_ASSERT = {*lessons.TITLES, "trap", lessons.GPU_TAG, "hide-input", "nbval-ignore-output"}
METADATA = {"tags", "mystnb", "stamp"}  # of a code cell; what folds it follows from its tags
FIX = "`tox run -e check -- --fix` writes it"
# Colab and JupyterLab show MyST's own syntax raw, so lessons are CommonMark.
MYST_SYNTAX = re.compile(r"^(`{3,}|:{3,})\{|\{[a-z]+\}`", re.MULTILINE)
REPLACES = "replaces a file of that name"  # what %%writefile may not do without a word
MACHINE_PATH = re.compile(r"(?<![\w.])/(home|root|tmp|Users|usr|var|opt|mnt)/\w|\b[A-Z]:\\")
LONGEST_SENTENCE = 40  # words; the words of links are not counted
FILLER = re.compile(
    r"\b(simply|basically|obviously|of course|easily|please|leverage|utilize)\b", re.IGNORECASE
)
NOT_PROSE = re.compile(r"^(`{3,}).*?^\1`*$|^[|#][^\n]*$|<[^>]+>", re.MULTILINE | re.DOTALL)


FENCE = re.compile(r"^(`{3,}).*?^\1`*$", re.MULTILINE | re.DOTALL)
EXCERPT = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def check_lesson(name: str, shared: dict[str, tuple[str, str]] | None = None) -> Iterator[str]:
    """Yield one sentence for each fault of a lesson. `shared`: owners.shared_cells(), if known."""
    md, notebook = lessons.md_path(name), lessons.notebook_path(name)
    run = f"run `tox run -e execute -- {name}`"
    carry_it = f"run `tox run -e check -- --fix` if you edited prose only, else `{run[5:]}"
    if not md.is_file():
        yield f"notebooks/{name}.ipynb has no md/{name}.md: restore it, or delete the notebook."
        return
    source = lessons.read_md(name)
    yield from check_source(name, source, shared)
    yield from check_stated(name)
    if not notebook.is_file():
        yield f"md/{name}.md has no notebook: {run}."
        return
    stored = lessons.read_notebook(name)
    if [*map(lessons.twin_part, source.cells)] != [*map(lessons.twin_part, stored.cells)]:
        yield f"md/{name}.md and notebooks/{name}.ipynb differ: {carry_it}."
    for number, cell in enumerate(lessons.code_cells(stored)):
        place = f"notebooks/{name}.ipynb::Cell {number}"
        yield from (f"{place}: {fault}: {run}." for fault in check_outputs(cell, number + 1))
    if set(stored.metadata) - {"checked"} != {"kernelspec"}:
        yield f"notebooks/{name}.ipynb holds metadata of the machine that ran it: {run}."


def check_source(
    name: str, notebook: NotebookNode, shared: dict[str, tuple[str, str]] | None = None
) -> Iterator[str]:
    if shared is None:
        shared = owners.shared_cells()
    headings = "\n".join(c.source for c in notebook.cells if c.cell_type == "markdown")
    if len(re.findall(r"^# ", FENCE.sub("", headings), re.MULTILINE)) != 1:
        yield f"md/{name}.md needs exactly one title (`# …`)."
    if found := MYST_SYNTAX.search(headings):
        yield f"md/{name}.md uses MyST syntax ({found[0]}), which Colab shows raw: use CommonMark."
    yield from (f"md/{name}.md {fault}." for fault in check_prose(headings))
    for first_line in excerpts_of_no_cell(headings, lessons.code_cells(notebook)):
        yield f"md/{name}.md explains code that none of its cells has: {first_line}"
    if found := glossary.unexplained(headings):
        yield (
            f"md/{name}.md does not explain {', '.join(found)}: write the words out before the "
            "first, or give pages/glossary.md an entry, to which the site links."
        )
    if not facts.INSTALL.search(headings):
        yield f"md/{name}.md says no ``**Install.** `pip install jax` ``: {FIX} when it is there."
    writes = any(c.source.startswith("%%writefile") for c in lessons.code_cells(notebook))
    if writes and REPLACES not in " ".join(headings.split()):
        yield f"md/{name}.md does not say that `%%writefile` {REPLACES}: say it above the first."
    for number, cell in enumerate(lessons.code_cells(notebook)):
        place = f"md/{name}.md, code cell {number}"
        yield from (
            f"{place} {fault}." for fault in check_cell(cell, owners.owner(name, cell, shared))
        )
        if facts.holds_results(cell) and cell.source != facts.results_of(cell):
            yield f"{place} is not what benchmarks/results hold: {FIX}."
    for number, name_used in names_of_proofs(lessons.code_cells(notebook)):
        yield (
            f"md/{name}.md, code cell {number} needs the name {name_used}, which a proof defines: "
            "whoever copies the cell lacks it."
        )


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
        if facts.is_visible(cell):
            for name in sorted(lessons.names_used(table) - binds):
                if from_proof.get(name):
                    yield number, name
        from_proof |= dict.fromkeys(binds, lessons.folded(cell))


def excerpts_of_no_cell(markdown: str, cells: list[NotebookNode]) -> Iterator[str]:
    """The first line of each excerpt (```python) that is in no cell, whatever its indentation."""
    for excerpt in EXCERPT.findall(markdown):
        shifted = [textwrap.indent(excerpt, " " * 4 * level) for level in range(4)]
        if not any(text in f"{cell.source}\n" for text in shifted for cell in cells):
            yield excerpt.partition("\n")[0]


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


def check_cell(cell: NotebookNode, owner: tuple[str, str] | None) -> Iterator[str]:
    """Yield the faults of a code cell. `owner`: of a copy, the lesson it is of and its source."""
    if asserts(cell):
        yield "asserts, and readers copy it: move it to a proof below"
    for line in cell.source.splitlines():
        if len(line) > WIDEST_LINE:
            yield f"has a line of {len(line)} columns: {WIDEST_LINE} at most: {line.strip()}"
    yield from check_tags(cell, owner)
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
            known = ", ".join([*lessons.TAGS, f"{lessons.SHARED}NAME", f"{lessons.FROM}NAME"])
            yield f"has the unknown tag {tag}: choose {known}"
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
    if facts.readme_table() not in (lessons.ROOT / "README.md").read_text():
        yield f"README.md has not the table of lessons.toml: {FIX} between its two marks."


def check_stated(name: str) -> Iterator[str]:
    """Yield stated facts that differ from the computed ones."""
    md = lessons.md_path(name).read_text()
    for pattern, right in facts.stated(name, md):
        for _, said, _ in pattern.findall(md):
            if said != right:
                yield f"md/{name}.md says “{said}”, and it is “{right}”: {FIX}."


def check_address() -> Iterator[str]:
    """On GitHub, badges with the placeholder for an owner would lead nowhere."""
    if (
        "GITHUB_REPOSITORY" in os.environ
        and facts.PLACEHOLDER in (lessons.ROOT / "conf.py").read_text()
    ):
        yield (
            f"conf.py has the placeholder {facts.PLACEHOLDER} in the repository's address: "
            f"write the owner into each file that `git grep -l {facts.PLACEHOLDER}/` lists."
        )


def faults_of(look: Callable[[], Iterable[str]]) -> list[str]:
    """The faults that `look` finds. A Problem is one more, and hides no other."""
    try:
        return [*look()]
    except Problem as problem:
        return [str(problem)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fix", action="store_true", help="write what follows from something else")
    arguments = parser.parse_args()
    names = lessons.names()
    with told("check"):
        for said in fix.fix_all(names) if arguments.fix else ():
            print(said)
        shared = owners.shared_cells()
    looks = [functools.partial(check_lesson, name, shared) for name in names]
    looks += [check_pages, functools.partial(check_lists, names), check_address, cuda_wheels.faults]
    faults = [*itertools.chain.from_iterable(map(faults_of, looks))]
    for fault in faults:
        print(fault, file=sys.stderr)
    if faults:
        sys.exit(f"check: {len(faults)} to put right.")
    print(f"check: {len(names)} lessons are in step, and nothing is stale.")


if __name__ == "__main__":
    main()
