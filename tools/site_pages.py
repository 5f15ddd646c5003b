"""What the site says beside the lessons: taken from the notebooks, and from records of test runs.

A Sphinx extension. It replaces `<!-- checked -->` and `<!-- traps -->` in pages/, and puts under
the title of each lesson where and when it was checked.
"""

import json
import re
from collections.abc import Iterator

from nbformat import NotebookNode
from sphinx.application import Sphinx

from tools import lessons

HEADING = re.compile(r"^(#+) (.+)$", re.MULTILINE)
GENERATED = ["pages/checked", "pages/troubleshooting"]


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", write)
    app.connect("env-get-outdated", outdated)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def outdated(app: Sphinx, env, added: set, changed: set, removed: set) -> list[str]:
    """The pages to read again although their own files did not change."""
    return [page for page in env.found_docs if page in GENERATED or page.startswith("notebooks/")]


def write(app: Sphinx, page: str, source: list[str]) -> None:
    """Put what is generated into the source of a page, before Sphinx parses it."""
    if page.startswith("notebooks/"):
        source[0] = with_line(source[0], page.removeprefix("notebooks/"))
    elif page == "pages/checked":
        source[0] = source[0].replace("<!-- checked -->", "\n\n".join(checked()))
    elif page == "pages/troubleshooting":
        source[0] = source[0].replace("<!-- traps -->", "\n\n".join(traps()))


def runs() -> Iterator[tuple[str, str, dict]]:
    """For each recorded run: the machine, the Python that ran, and what it says of each lesson."""
    for file in sorted((lessons.ROOT / "checked").glob("*.json")):
        record = json.loads(file.read_text())
        machine = f"{record['processor']}, {record['cores']} cores"
        machine += ", no GPU" if record["device"] == "cpu" else f", {record['device']}"
        for python, run in record["runs"].items():
            yield machine, python, run


def with_line(text: str, name: str) -> str:
    """The text of a notebook, with a line under its title."""
    notebook = json.loads(text)
    first = notebook["cells"][0]
    title, _, rest = "".join(first["source"]).partition("\n")
    first["source"] = f"{title}\n\n{line(name)}\n{rest}"
    return json.dumps(notebook)


def line(name: str) -> str:
    said = {}
    digest = lessons.digest(lessons.read_notebook(name))

    def changed_since(recorded):
        return recorded[2].get(name, {}).get("digest") != digest

    for recorded in sorted(runs(), key=changed_since):
        machine, python, run = recorded
        if figures := run.get(name):
            changed = ", before its last change" if changed_since(recorded) else ""
            said.setdefault(machine, []).append(
                f"{figures['passed']} cells in {figures['seconds']:.0f} s "
                f"({python}, JAX {figures['versions']['jax']}, {figures['date']}{changed})"
            )
    passed = "; ".join(f"{machine}: {', '.join(found)}" for machine, found in said.items())
    link = "[What is checked](../pages/checked.md)"
    return f"{{.checked}}\n**Checked** on {passed or 'no machine yet'}. {link}"


def checked() -> Iterator[str]:
    """The lines of the page: a table for each machine and Python."""
    digests = {name: lessons.digest(lessons.read_notebook(name)) for name in lessons.in_order()}
    on_gpu = False
    for machine, python, run in runs():
        on_gpu |= "no GPU" not in machine
        rows = [
            "| lesson | cells that passed | for a GPU, skipped | seconds | date |",
            "| --- | ---: | ---: | ---: | --- |",
        ]
        for name, digest in digests.items():
            link = f"| [](../notebooks/{name}.ipynb)"
            if figures := run.get(name):
                changed = "" if figures["digest"] == digest else ", changed since"
                counts = f"{figures['passed']} | {figures['skipped']} | {figures['seconds']:.0f}"
                rows.append(f"{link} | {counts} | {figures['date']}{changed} |")
            else:
                rows.append(f"{link} | | | | not yet |")
        total = sum(figures["passed"] for figures in run.values())
        seconds = sum(figures["seconds"] for figures in run.values())
        versions = {tuple(figures["versions"].items()) for figures in run.values()}
        for found in sorted(versions):
            rows.append("")
            rows.append("Versions: " + ", ".join(f"{name} {version}" for name, version in found))
        yield f"## {machine}, {python}"
        yield f"{total} cells in {seconds / 60:.0f} minutes."
        yield "\n".join(rows) + "."
    if not on_gpu:
        yield "## On a GPU"
        yield (
            "No run on a GPU is recorded yet. Cells that need one have no output, and say so; "
            "everything else on the pages holds without one."
        )


def traps() -> Iterator[str]:
    """For each lesson its traps: what they print, the cause, and the way out."""
    seen = set()
    for name in lessons.in_order():
        notebook = lessons.read_notebook(name)
        yield f"## {HEADING.match(notebook.cells[0].source)[2]}"
        for heading, message, prose in traps_of(notebook):
            if (message, prose) in seen:  # a shared cell: told once
                continue
            seen.add((message, prose))
            yield f"### {heading}"
            if message:
                yield f"```text\n{message}\n```"
            here = re.sub(r"\]\(#", f"](../notebooks/{name}.ipynb#", prose)
            yield re.sub(r"\]\((\w+\.ipynb)", r"](../notebooks/\1", here)
            yield f"[In the lesson](../notebooks/{name}.ipynb#{slug(heading)})"


def traps_of(notebook: NotebookNode) -> Iterator[tuple[str, str, str]]:
    """The heading over each trap, what the trap prints, and the prose around it."""
    heading, prose, message = "", [], None
    for cell in [*notebook.cells, NotebookNode(cell_type="markdown", source="# End")]:
        if cell.cell_type == "markdown":
            before = HEADING.split(cell.source)[0].strip()
            if before:
                prose.append(before)
            *_, last = [None, *HEADING.finditer(cell.source)]
            if last:
                if message is not None:
                    yield heading, message, "\n\n".join(prose)
                heading, prose, message = last[2], [cell.source[last.end() :].strip()], None
        elif "trap" in lessons.tags(cell):
            if message is not None:
                yield heading, message, "\n\n".join(prose)
                prose = []
            message = "".join(output.get("text", "") for output in cell.outputs).strip()


def slug(heading: str) -> str:
    """The anchor that GitHub and MyST make of a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
