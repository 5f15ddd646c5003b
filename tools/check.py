"""Check the lessons without running them: in seconds, with no kernel.

    tox run -e check [-- --fix]

`--fix` copies the shared cells from their owner, md/pytorch_dataloader.md, into the others, and
formats the code cells of md/.
"""

import argparse
import itertools
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbformat import NotebookNode

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tools import lessons

LONGEST_CELL = 30  # lines
LONGEST_MAIN_PATH = 25  # code cells before "## Going further"
# Colab and JupyterLab show MyST's own syntax raw, so lessons are CommonMark.
MYST_SYNTAX = re.compile(r"^(`{3,}|:{3,})\{|\{[a-z]+\}`", re.MULTILINE)
MACHINE_PATH = re.compile(r"(?<![\w.])/(home|root|tmp|Users|usr|var|opt|mnt)/\w|\b[A-Z]:\\")
LONGEST_SENTENCE = 40  # words; the words of links are not counted
FILLER = re.compile(
    r"\b(simply|basically|obviously|of course|easily|please|leverage|utilize)\b", re.IGNORECASE
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
    main_path = itertools.takewhile(lambda c: "## Going further" not in c.source, notebook.cells)
    cells = sum(cell.cell_type == "code" for cell in main_path)
    if cells > LONGEST_MAIN_PATH:
        yield f"md/{name}.md has {cells} code cells in its main path: {LONGEST_MAIN_PATH} at most."
    for number, cell in enumerate(lessons.code_cells(notebook)):
        place = f"md/{name}.md, code cell {number}"
        yield from (f"{place} {fault}." for fault in check_cell(cell, owner))


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
    """The source of each shared cell, by its tag, as the owner has it."""
    cells = lessons.code_cells(lessons.read_md(lessons.SHARED_OWNER))
    return {tag: cell.source for cell in cells if (tag := lessons.shared_tag(cell))}


def check_cell(cell: NotebookNode, owner: dict[str, str]) -> Iterator[str]:
    lines = len(cell.source.splitlines())
    if lines > LONGEST_CELL:
        yield f"has {lines} lines: {LONGEST_CELL} at most"
    for tag in lessons.tags(cell):
        if tag.startswith(lessons.SHARED):
            if tag not in owner:
                yield f"has the tag {tag}, which md/{lessons.SHARED_OWNER}.md does not define"
            elif owner[tag] != cell.source:
                yield (
                    f"differs from its owner's {tag}: edit md/{lessons.SHARED_OWNER}.md, "
                    "then run `tox run -e check -- --fix`"
                )
        elif tag not in lessons.TAGS:
            yield f"has the unknown tag {tag}: CONTRIBUTING.md lists the tags"
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
    for output in cell.outputs:
        if output.output_type == "error":
            yield f"it stores an error ({output.ename})"
        if output.get("name") == "stderr":
            yield "it stores text on stderr"
        data = output.get("data", {})
        texts = [output.get("text", ""), *(t for k, t in data.items() if k.startswith("text/"))]
        if found := next(filter(None, map(MACHINE_PATH.search, texts)), None):
            yield f"its output names a path of one machine ({found[0]}…)"
        if lessons.UNCOMPARED & data.keys():
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


def fix(name: str) -> bool:
    """Copy the shared cells into md/NAME.md and format its code. Returns whether it changed."""
    path = lessons.md_path(name)
    before = path.read_text()
    after = formatted(with_shared_cells(before))
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


def with_shared_cells(md: str) -> str:
    """The text of a lesson in which each shared cell has its owner's source."""
    owner = shared_cells()

    def replace(block: re.Match) -> str:
        found = re.search(rf"\b{lessons.SHARED}[\w-]+", block["options"])
        if found and found[0] in owner:
            return with_source(block, owner[found[0]] + "\n")
        return block[0]

    return CODE_BLOCK.sub(replace, md)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fix", action="store_true", help="copy shared cells; format code")
    arguments = parser.parse_args()
    names = lessons.names()
    try:
        for name in names if arguments.fix else []:
            if lessons.md_path(name).is_file() and fix(name):
                print(f"md/{name}.md: mended; now `tox run -e execute -- {name}`")
        faults = [fault for name in names for fault in check_lesson(name)]
        faults += [*check_pages(), *check_lists(names)]
    except lessons.Problem as problem:
        faults = [str(problem)]
    for fault in faults:
        print(fault, file=sys.stderr)
    if faults:
        sys.exit(f"check: {len(faults)} to put right.")
    print(f"check: {len(names)} lessons are in step, and nothing is stale.")


if __name__ == "__main__":
    main()
