"""The cells of a page, for tests that still run their text."""

from pathlib import Path

from tools.lesson import lessons


def source_with(text: str, name: str) -> str:
    """The source of the one code cell of the page NAME that has this text.

    Of a cell that writes a module, it is the module's.
    """
    cells = lessons.code_cells(lessons.read_md(name))
    [source] = [cell.source for cell in cells if text in cell.source]
    return source.partition("\n")[2] if source.startswith("%%writefile") else source


def checker():
    """The function of the lesson on silent bugs that says what a loader does wrong."""
    names = {}
    for text in ("def wrong_with", "def rows(batch)"):
        exec(source_with(text, "silent_data_bugs"), names)
    return names["wrong_with"]


def write_modules(name: str, folder: Path) -> None:
    """Write the modules of a lesson, as its cells with %%writefile do."""
    for cell in lessons.code_cells(lessons.read_md(name)):
        first, _, source = cell.source.partition("\n")
        if first.startswith("%%writefile "):
            (folder / first.split()[1]).write_text(source)
