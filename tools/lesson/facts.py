"""What a page states of itself: its minutes, its install line, its row in the README."""

import itertools
import re
from collections.abc import Iterator

from nbformat import NotebookNode

from tools.lesson import install, lessons, result_cells

PLACEHOLDER = "YOUR_ACCOUNT"  # an underscore: nobody can have that name on GitHub
STATED_MINUTES = re.compile(r"()(\b\d+)( min(?:utes?)? to read)")
INSTALL = re.compile(r"(\*\*Install\.\*\* `)(pip install [^`]*)(`)")
WORDS_A_MINUTE, LINES_A_MINUTE = 200, 30
NOT_WORDS = re.compile(
    r"^(`{3,}).*?^\1`*$|^\|[^\n]*$|<details>.*?</details>|<[^>]+>|\]\([^)]*\)",
    re.MULTILINE | re.DOTALL,
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


def count_words(notebook: NotebookNode) -> int:
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
    return max(5, 5 * round((count_words(notebook) / WORDS_A_MINUTE + lines / LINES_A_MINUTE) / 5))


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


def stated(name: str, md: str) -> Iterator[tuple[re.Pattern, str]]:
    """The pattern of each stated fact, and its computed value."""
    yield STATED_MINUTES, str(minutes(lessons.parsed(md)))
    if INSTALL.search(md):
        yield INSTALL, install.command(name)
