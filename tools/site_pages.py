"""What the site says beside the lessons: taken from the notebooks, and from records of test runs.

A Sphinx extension. It replaces `<!-- checked -->`, `<!-- colab -->` and `<!-- traps -->` on the
pages, puts under the title of each lesson where and when it was checked, and folds proofs and
solutions to their titles.
"""

import json
import re
from collections.abc import Iterator

import nbformat
from nbformat import NotebookNode
from sphinx.application import Sphinx

from tools import lessons

HEADING = re.compile(r"^(#+) (.+)$", re.MULTILINE)
HOLDS = "\N{CHECK MARK} Holds:"
GENERATED = ["index", "pages/checked", "pages/troubleshooting"]
COLAB = lessons.COLAB_RECORD  # tools/colab.py writes it


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", write)
    app.connect("env-get-outdated", outdated)
    app.connect("html-page-context", name_folds)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def outdated(app: Sphinx, env, added: set, changed: set, removed: set) -> list[str]:
    """The pages to read again although their own files did not change."""
    return [page for page in env.found_docs if page in GENERATED or page.startswith("notebooks/")]


def write(app: Sphinx, page: str, source: list[str]) -> None:
    """Put what is generated into the source of a page, before Sphinx parses it."""
    if page.startswith("notebooks/"):
        name = page.removeprefix("notebooks/")
        source[0] = with_folds(with_line(source[0], name), name)
    elif page == "index":
        source[0] = source[0].replace("<!-- colab -->", colab("notebooks"))
    elif page == "pages/checked":
        source[0] = source[0].replace("<!-- checked -->", "\n\n".join(checked()))
        source[0] = source[0].replace("<!-- colab -->", colab("../notebooks"))
    elif page == "pages/troubleshooting":
        source[0] = source[0].replace("<!-- traps -->", "\n\n".join(traps()))


def name_folds(app: Sphinx, page: str, template: str, context: dict, doctree) -> None:
    """Let a screen reader say the words of a fold. myst-nb covers them with a label for all."""
    if body := context.get("body"):
        context["body"] = body.replace('<summary aria-label="Toggle hidden content">', "<summary>")


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


def with_folds(text: str, name: str) -> str:
    """The text of a notebook in which proofs and solutions are folded to their titles."""
    notebook = nbformat.reads(text, as_version=4)
    holds = where_it_holds(name)
    for cell in filter(lessons.folded, lessons.code_cells(notebook)):
        title, cell.source = lessons.title(cell)
        opened = title.replace("Show", "Hide", 1)
        if "proof" in lessons.tags(cell):
            said = verdict(cell, holds)
            title = opened = title.replace("Proof:", said, 1)
            cell.metadata.tags += ["holds"] if said == HOLDS else []  # a class, for the colour
        options = cell.metadata.setdefault("mystnb", {})
        options.update(code_prompt_show=title, code_prompt_hide=opened)
        cell.metadata.tags.append("hide-cell")
    return nbformat.writes(notebook)


def where_it_holds(name: str) -> set[str]:
    """The kinds of device on which the lesson, as it is stored, passed in a recorded run."""
    digest = lessons.digest(lessons.read_notebook(name))
    passed = [machine for machine, _, run in runs() if run.get(name, {}).get("digest") == digest]
    return {"cpu" if "no GPU" in machine else "gpu" for machine in passed}


def verdict(cell: NotebookNode, holds: set[str]) -> str:
    """What stands before the title of a proof, in words: whether it holds."""
    if lessons.GPU_TAG in lessons.tags(cell):
        return HOLDS if "gpu" in holds else "Not run on a GPU yet:"
    return HOLDS if holds else "Changed since its last recorded run:"


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


def colab(notebooks: str) -> str:
    """Which lessons hold with the versions that Colab has. `notebooks`: the way to their pages."""
    record = json.loads(COLAB.read_text())
    whole, parts, not_run = [], [], []
    for name in lessons.in_order():
        figures = record["lessons"].get(name, {})
        link = f"[]({notebooks}/{name}.ipynb)"
        if figures.get("digest") != lessons.digest(lessons.read_notebook(name)):
            not_run.append(link)
        elif differ := len(figures["differ"]):
            parts.append(f"{differ} of {differ + figures['passed']} cells of {link}")
        else:
            whole.append(link)
    versions = record["versions"]
    said = (
        f"With the versions that Colab published on {record['published']} "
        f"(Python {versions['python']}, JAX {versions['jax']}), without a GPU, "
        f"{len(whole)} of {len(lessons.in_order())} lessons hold whole."
    )
    if parts:
        said += f" What differs: {'; '.join(parts)}."
    if not_run:
        said += f" Not run with them since the last change: {', '.join(not_run)}."
    return said


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
