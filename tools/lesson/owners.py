"""Copied cells: which lesson owns a cell, and the source that its copies have."""

from nbformat import NotebookNode

from tools.lesson import lessons


def shared_cells() -> dict[str, tuple[str, str]]:
    """Of each shared cell its owner and its source, by its tag: the first lesson that has it."""
    found = {}
    for name in filter(lambda name: lessons.md_path(name).is_file(), lessons.in_order()):
        for cell in lessons.code_cells(lessons.parsed_md(name)):
            if tag := lessons.shared_tag(cell):
                found.setdefault(tag, (name, cell.source))
    return found


def owner(
    name: str, cell: NotebookNode, shared: dict[str, tuple[str, str]]
) -> tuple[str, str] | None:
    """Of a copied cell of the lesson NAME its owner, and the source that it has to have.

    None of any other cell, and of a copy that no cell of its owner resembles. A cell that is copied
    from a lesson is known by the names that it defines. `shared`: see shared_cells.
    """
    if tag := lessons.shared_tag(cell):
        return shared.get(tag)
    if not (tag := lessons.from_tag(cell)):
        return None
    page, names = tag.removeprefix(lessons.FROM), lessons.defined(cell)
    if page == name or not lessons.md_path(page).is_file():
        return None
    cells = lessons.code_cells(lessons.parsed_md(page))
    alike = max(cells, key=lambda c: len(names & lessons.defined(c)), default=None)
    return (page, alike.source) if alike and names & lessons.defined(alike) else None
