"""A page's code as a module: feed_NAME.py has what readers copy from md/NAME.md, and all it needs.

    python -m tools.lesson.modules [FOLDER]

The pages stay the one source. Tests and the benchmark import these modules, and the site offers
them to readers. A comment above each part says where it stands in md/.
"""

import argparse
import hashlib
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import filelock
from nbformat import NotebookNode

from offline.problem import Problem, told
from tools.lesson import copies, files, install, lessons

FOLDER = lessons.ROOT / "_build" / "lessons"
PREFIX = "feed_"  # a module `grain` would stand before the library
# Tags of the cells whose definitions a module has, and of those that draw what was timed.
KEPT = copies.COPIED | {"first-pipeline", "resident-epoch"}
DRAWN = {"shared-speed"}
WIDTH = 80  # as in md/


def module_name(page: str) -> str:
    return PREFIX + page


def pages() -> list[str]:
    """The pages of which readers copy code, in the order of reading."""
    return [*filter(has_code, lessons.in_order())]


def has_code(page: str) -> bool:
    """Whether readers copy code of the page."""
    return any(map(is_kept, cells_of(page)))


def cells_of(page: str) -> list[NotebookNode]:
    return lessons.code_cells(lessons.parsed_md(page)) if lessons.md_path(page).is_file() else []


def is_kept(cell: NotebookNode) -> bool:
    """Whether the module has all that this cell defines; of others it has what these need."""
    tags = set(lessons.tags(cell))
    return bool(tags & KEPT or lessons.shared_tag(cell)) and not tags & (copies.PASSED_OVER | DRAWN)


def source(page: str) -> str:
    """The module of a page. Raises Problem where two of its cells define a name differently."""
    cells = cells_of(page)
    written = {copies.module_of(cell) for cell in cells if copies.writes(cell)}
    statements = [
        statement
        for number, cell in enumerate(cells)
        for statement in copies.statements_of(number, cell, written=True)
        if not (statement.imports and copies.imported_from(statement.imports) in written)
    ]
    kept = {number for number, cell in enumerate(cells) if is_kept(cell)}
    needed = copies.closure(kept, statements)
    refuse_two_of_a_name(page, needed)
    once = [*without_repeats(needed)]
    return formatted(heading(page) + "\n\n" + copies.program(once, origins(page)) + "\n")


def without_repeats(statements: list[copies.Statement]) -> Iterator[copies.Statement]:
    """A page may define the same for a notebook and in a file for its workers: once is enough."""
    defined = set()
    for statement in statements:
        if not (statement.is_definition and statement.code in defined):
            yield statement
            defined.add(statement.code)


def refuse_two_of_a_name(page: str, statements: list[copies.Statement]) -> None:
    bound = {}
    for statement in statements:
        if not statement.is_definition:
            continue
        for name in statement.binds:
            if bound.setdefault(name, statement.code) != statement.code:
                raise Problem(
                    f"md/{page}.md defines {name} twice, differently, in code that readers copy."
                )


def heading(page: str) -> str:
    """The docstring of a module: what it is, what it needs, where it comes from."""
    title = f"{lessons.title_of(page)}: the code of the page, as one module."
    install_line = " \\\n        ".join(textwrap.wrap(install.command(page), WIDTH - 8))
    came_from = f"From md/{page}.md of Feed JAX, {origin(page)}. Licence: Apache-2.0."
    return f'r"""{title}\n\n    {install_line}\n\n{came_from}\n"""'


def origin(page: str) -> str:
    """The release that the page belongs to, and the day of its last change, as far as git knows."""
    releases = re.findall(r"^## (\S+)", (lessons.ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    asked = ["git", "log", "-1", "--format=%cs", "--", str(lessons.md_path(page))]
    done = subprocess.run(asked, cwd=lessons.ROOT, capture_output=True, text=True, check=False)
    return ", ".join(filter(None, [releases[0].lower(), done.stdout.strip()]))


def origins(page: str) -> dict[int, str]:
    """Of each code cell, by its number, the comment that says where it stands."""
    md = lessons.md_path(page).read_text()
    found = {}
    for number, block in enumerate(lessons.CODE_BLOCK.finditer(md)):
        above = md[: block.start("source")]
        section = re.findall(r"^#+ (.+)$", above, re.MULTILINE)[-1]
        line = above.count("\n") + 1
        found[number] = f"# md/{page}.md, line {line}\n# {section}"
    return found


def formatted(code: str) -> str:
    """The code with sorted imports, as `ruff` has it. Raises Problem where it is no Python."""
    ruff = [sys.executable, "-m", "ruff"]
    name = ["--stdin-filename", str(FOLDER / "module.py"), "-"]
    for command in (["check", "--quiet", "--select=I", "--fix"], ["format", "--quiet"]):
        done = subprocess.run(
            [*ruff, *command, f"--line-length={WIDTH}", *name],
            input=code,
            cwd=lessons.ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise Problem(f"a module is no Python: {done.stderr.strip()}")
        code = done.stdout
    return code


def write(folder: Path = FOLDER) -> None:
    """Write the modules of all pages, and take away those of pages that are gone."""
    folder.mkdir(parents=True, exist_ok=True)
    made = {f"{module_name(page)}.py": source(page) for page in pages()}
    for name, text in made.items():
        file = folder / name
        if not file.is_file() or file.read_text() != text:
            with files.replacing(file) as scratch:
                scratch.write_text(text)
    for file in folder.glob("*.py"):
        if file.name not in made:
            file.unlink()


def renew(folder: Path = FOLDER) -> None:
    """Write the modules where they are not of the pages and tools as they stand.

    Several processes may call it at once: one writes, and the others wait.
    """
    folder.mkdir(parents=True, exist_ok=True)
    sources = [*lessons.MD.glob("*.md"), *Path(__file__).parent.glob("*.py")]
    digest = hashlib.sha256()
    for file in sorted(sources):
        digest.update(file.read_bytes())
    stamp = folder / ".made-from"
    with filelock.FileLock(folder / ".lock"):
        if not stamp.is_file() or stamp.read_text() != digest.hexdigest():
            write(folder)
            stamp.write_text(digest.hexdigest())


def write_files(page: str, folder: Path) -> None:
    """Write the files that the cells of a page write: programs, and what workers import."""
    for cell in filter(copies.writes, cells_of(page)):
        magic, _, text = cell.source.partition("\n")
        (folder / magic.split()[1]).write_text(text + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=FOLDER, metavar="FOLDER")
    with told("modules"):
        write(parser.parse_args().folder)


if __name__ == "__main__":
    main()
