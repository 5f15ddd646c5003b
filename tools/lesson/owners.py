"""Copied cells: which lesson owns a cell, and the source that its copies have."""

from collections.abc import Callable

from nbformat import NotebookNode

from tools.lesson import lessons


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
