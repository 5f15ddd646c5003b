"""The lessons for programs that read: llms.txt, and a Markdown file for each lesson.

The build of the site writes them beside the pages.
"""

import itertools
import re
from collections.abc import Iterator
from pathlib import Path

from nbformat import NotebookNode

from tools.lesson import lessons
from tools.site import navigation


def write(folder: Path, address: str) -> None:
    """Write llms.txt and the lessons. `address`: where the site will be."""
    (folder / "llms.txt").write_text(index(address))
    for name in lessons.in_order():
        (folder / "notebooks" / f"{name}.md").write_text(markdown(lessons.read_notebook(name)))


def index(address: str) -> str:
    """llms.txt: the title, a summary, and the lessons in their groups."""
    parts = [
        "# Feed JAX",
        "> How to feed JAX from each data loader: executable lessons, whose printed outputs are "
        "compared with a run. Each lesson is one Markdown file with code and outputs.",
    ]
    for title, entries in navigation.groups().items():
        pages = itertools.chain.from_iterable(
            ((e["name"], e["question"]), (lessons.depth_of(e["name"]), "the same, in depth"))
            for e in entries
        )
        lines = [
            f"- [{lessons.title_of(page)}]({address}notebooks/{page}.md): {answers}"
            for page, answers in pages
            if page
        ]
        parts += [f"## {title}", "\n".join(lines)]
    parts += [
        "## Look up",
        f"- [Install]({address}pages/install.html): which line to type, messages of a clash\n"
        f"- [Troubleshooting]({address}pages/troubleshooting.html): messages, causes and ways out\n"
        f"- [Glossary]({address}pages/glossary.html): the words, each with where it is shown\n"
        f"- [What is checked]({address}pages/checked.html): how, where and when the lessons ran",
    ]
    return "\n\n".join(parts) + "\n"


def markdown(notebook: NotebookNode) -> str:
    """A lesson as plain Markdown: prose, code, and what the code printed."""
    parts = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(re.sub(r"\]\((\w+)\.ipynb", r"](\1.md", cell.source))
        else:
            parts.append(fenced("python", cell.source))
            parts += outputs(cell)
    return "\n\n".join(parts) + "\n"


def outputs(cell: NotebookNode) -> Iterator[str]:
    options = cell.metadata.get("mystnb", {})
    for output in cell.outputs:
        data = output.get("data", {})
        if lessons.UNCOMPARED & data.keys():
            yield f"(Picture: {options['image']['alt']})"
        elif text := output.get("text", data.get("text/plain", "")).rstrip():
            yield fenced("text", text)


def fenced(language: str, text: str) -> str:
    return f"```{language}\n{text}\n```"
