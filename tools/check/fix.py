"""What `tox run -e check -- --fix` mends, and writes into md/, notebooks/ and README.md."""

import re
import subprocess
import sys
from collections.abc import Callable, Iterator

import nbformat
from nbformat import NotebookNode

from tools.lesson import facts, lessons, owners

README_TABLE = re.compile(r"(<!-- lessons -->\n).*?(<!-- /lessons -->)", re.DOTALL)
TAGS_OF_BLOCK = re.compile(r"^:?tags: \[(.*)\]$", re.MULTILINE)
# ruff leaves a cell alone that is written into a file, unless its first line is taken away.
MAGIC = re.compile(r"(%%writefile \S+\.py\n)?(.*)", re.DOTALL)


def fix_all(names: list[str]) -> Iterator[str]:
    """Mend what can be derived. Yield a sentence for each file that changed."""
    for name in names:
        if lessons.md_path(name).is_file() and fix(name):
            yield f"md/{name}.md: mended"
    readme = lessons.ROOT / "README.md"
    before = readme.read_text()
    after = README_TABLE.sub(lambda found: found[1] + facts.readme_table() + found[2], before)
    if after != before:
        readme.write_text(after)
        yield "README.md: mended"
    yield from (f"notebooks/{name}.ipynb: has the prose of md/" for name in names if carry(name))


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


def with_copied_cells(name: str, md: str) -> str:
    """The text of the lesson NAME in which each copied cell has the source of its owner."""
    shared = owners.shared_cells()  # now: an owner may have been mended a moment ago
    return with_cells(md, lambda cell: (owners.owner(name, cell, shared) or (name, ""))[1])


def with_results(md: str) -> str:
    """The text of a lesson whose cell of results holds what was measured last."""
    return with_cells(md, lambda cell: facts.results_of(cell) if facts.holds_results(cell) else "")


def with_stated(name: str, md: str) -> str:
    for pattern, right in facts.stated(name, md):
        md = pattern.sub(rf"\g<1>{right}\g<3>", md)
    return md


def with_cells(md: str, source_of: Callable[[NotebookNode], str]) -> str:
    """The text of a lesson in which a cell has the source that the function gives, if any."""

    def replace(block: re.Match) -> str:
        tags = re.findall(r"[\w-]+", " ".join(TAGS_OF_BLOCK.findall(block["options"])))
        cell = nbformat.v4.new_code_cell(block["source"].rstrip("\n"), metadata={"tags": tags})
        source = source_of(cell)
        return with_source(block, source + "\n") if source else block[0]

    return lessons.CODE_BLOCK.sub(replace, md)


def formatted(md: str) -> str:
    """The text of a lesson with its code cells as `ruff format` has them in notebooks/."""
    parts = [MAGIC.match(block["source"]).groups("") for block in lessons.CODE_BLOCK.finditer(md)]
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
    return lessons.CODE_BLOCK.sub(lambda block: with_source(block, next(after)), md)


def with_source(block: re.Match, source: str) -> str:
    return block[0].removesuffix(block["source"] + "```") + source + "```"


def carry(name: str) -> bool:
    """Write prose, tags and captions of md/ into the notebook, where no code cell was edited.

    Returns whether the notebook changed.
    """
    if not (lessons.md_path(name).is_file() and lessons.notebook_path(name).is_file()):
        return False
    stored, notebook = lessons.read_notebook(name), lessons.with_outputs(name)
    held = [(cell.source, cell.metadata.get("stamp")) for cell in lessons.code_cells(stored)]
    carried = [(cell.source, cell.metadata.get("stamp")) for cell in lessons.code_cells(notebook)]
    is_equal = [*map(lessons.twin_part, notebook.cells)] == [*map(lessons.twin_part, stored.cells)]
    if held != carried or is_equal:
        return False
    lessons.store(notebook, name)
    return True
