"""What the tools and conftest.py know about a lesson: its files, tags and stamps."""

import ast
import copy
import functools
import hashlib
import json
import re
import symtable
import tomllib
from pathlib import Path

import jupytext
import nbformat
from jupytext.combine import combine_inputs_with_outputs
from nbformat import NotebookNode

from offline.problem import Problem
from tools.lesson import files

ROOT = Path(__file__).resolve().parents[2]
MD = ROOT / "md"
NOTEBOOKS = ROOT / "notebooks"
SANITIZER = ROOT / "nbval_sanitize.cfg"
COLAB_RECORD = ROOT / "colab.json"  # what passed with the versions of colab.txt
GPU_TAG = "requires-gpu"
RESULTS_TAG = "results"  # of the cell that tools/lesson/result_cells.py writes
TAGS = {  # what each marks; SHARED and FROM are below
    "setup": "imports, settings and data that the pipelines need; the benchmark runs these first",
    "short-answer": "the first code of a page: what the library's own maintainers would write",
    "first-pipeline": "defines `first_batches`, which people write first: may be slow or wrong",
    "tuned-pipeline": "defines `tuned_batches`, an endless stream",
    "files-pipeline": "defines `file_batches`, the same from a folder of photographs",
    "copy": "any other cell that a reader copies and that pipelines or tests need",
    "resident-epoch": "defines `resident_epoch`, the limit of an epoch; in one lesson only",
    "trained": "the first cell whose output shows a trained model",
    "gained-by-a-step": "in place of it, in a lesson on one step before the training",
    RESULTS_TAG: "what the benchmark measured: `check -- --fix` writes it",
    "proof": "asserts what stands above; folded to the title in its first line",
    "trap": "an executed trap: the message caught and printed, the fix beside it",
    "exercise": "the solution of an exercise; folded like a proof",
    GPU_TAG: "tested on a GPU only; elsewhere it is skipped and keeps its stored output",
    "hide-input": "the code of a drawing, folded on the site",
    "remove-cell": "left out of the site",
    "nbval-ignore-output": "not compared; needs `# Output ignored: …`, the reason, and an assert",
}
SHARED = "shared-"  # of a cell that several lessons have: the first in the order of reading owns it
FROM = "from-"  # of a cell in a depth that stands in the lesson named behind it
DEPTH = "_in_depth"  # how the name of a lesson's second notebook ends, the one to look things up in

FOLDING = ("cellView", "jupyter")  # the metadata that fold a cell in Colab and in JupyterLab
# How the first line of a folded cell begins. Colab shows the line as the title of a form, and the
# site as the words that one click opens.
TITLES = {"proof": "# @title Proof: ", "exercise": "# @title Show the solution"}

# The pictures and views that nbval leaves out of its comparison.
UNCOMPARED = {"image/png", "image/jpeg", "application/vnd.jupyter.widget-view+json"}
# A code cell in the text of md/.
CODE_BLOCK = re.compile(
    r"^```\{code-cell\} ipython3\n"
    r"(?P<options>---\n.*?^---\n|(?::[^\n]*\n)+\n?|)"
    r"(?P<source>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


def md_path(name: str) -> Path:
    return MD / f"{name}.md"


def notebook_path(name: str) -> Path:
    return NOTEBOOKS / f"{name}.ipynb"


def names() -> list[str]:
    """Every lesson that has at least one of its two files."""
    files = [*MD.glob("*.md"), *NOTEBOOKS.glob("*.ipynb")]
    return sorted({file.stem for file in files})


def listed() -> dict[str, dict]:
    """What lessons.toml says of each lesson, in its order: that in which they are read."""
    return {entry["name"]: entry for entry in catalogue()["lesson"]}


def catalogue() -> dict:
    """All of lessons.toml. Raises Problem where it is no TOML, or a lesson lacks something."""
    try:
        content = tomllib.loads((ROOT / "lessons.toml").read_text())
    except tomllib.TOMLDecodeError as error:
        raise Problem(f"lessons.toml is not TOML: {error}.") from error
    for number, entry in enumerate(content["lesson"], start=1):
        for key in ("name", "group", "have", "question", "hardware", "run"):
            if key not in entry:
                who = entry.get("name", f"entry {number}")
                raise Problem(f"lessons.toml says no `{key}` of {who}: its top says what that is.")
    return content


def depth_of(name: str) -> str:
    """The name of the lesson's second notebook, to look things up in, or "" where it has none."""
    depth = name + DEPTH
    is_there = md_path(depth).is_file() or notebook_path(depth).is_file()
    return depth if is_there and not name.endswith(DEPTH) else ""


def in_order() -> list[str]:
    """The lessons in the order in which they are read, each with its depth behind it."""
    return [page for name in listed() for page in (name, depth_of(name)) if page]


def read_md(name: str) -> NotebookNode:
    """The lesson as it stands in md/. Raises Problem."""
    return copy.deepcopy(parsed_md(name))


def parsed_md(name: str) -> NotebookNode:
    """The same without a copy: not to be changed. Raises Problem."""
    path = md_path(name)
    if not path.is_file():
        known = ", ".join(names()) or "none yet"
        raise Problem(f"{path.relative_to(ROOT)} does not exist: the lessons are {known}.")
    try:
        return parsed(path.read_text())
    except Exception as error:  # of jupytext, of PyYAML, of markdown-it
        raise Problem(f"{path.relative_to(ROOT)} is not MyST Markdown: {error}") from error


@functools.lru_cache(maxsize=64)  # each lesson is held against all others
def parsed(md: str) -> NotebookNode:
    """The notebook of a text of md/: not to be changed."""
    return jupytext.reads(md, "md:myst")


def read_notebook(name: str) -> NotebookNode:
    path = notebook_path(name)
    try:
        return nbformat.read(path, as_version=4)
    except nbformat.reader.NotJSONError as error:
        raise Problem(
            f"{path.relative_to(ROOT)} is not a notebook: restore it with git, "
            f"or delete it and run `tox run -e execute -- {name}`."
        ) from error


def with_outputs(name: str) -> NotebookNode:
    """The lesson as it stands in md/, with the outputs and cell ids of the stored notebook.

    A cell that is new or edited has none: an output that it may have had is not its own.
    """
    notebook, stamps = read_md(name), {}
    if notebook_path(name).is_file():
        stored = read_notebook(name)
        notebook = combine_inputs_with_outputs(notebook, stored)
        stamps = {cell.id: cell.metadata.get("stamp") for cell in stored.cells}
    for cell in code_cells(notebook):
        if stamps.get(cell.id) == stamp(cell):
            cell.metadata["stamp"] = stamps[cell.id]
        else:
            cell.outputs, cell.execution_count = [], None
    return notebook


def store(notebook: NotebookNode, name: str) -> None:
    """Write the whole notebook or nothing, with the metadata that follow from its tags.

    It stays checked where only prose, a picture or a measurement changed since.
    """
    metadata = NotebookNode(kernelspec=notebook.metadata.kernelspec)
    if record := checked(notebook):
        metadata["checked"] = record
    notebook.metadata = metadata
    for cell in code_cells(notebook):
        for key in FOLDING:  # jupytext keeps what the cell had before
            cell.metadata.pop(key, None)
        cell.metadata.update(folding(cell))
    nbformat.validate(notebook)
    with files.replacing(notebook_path(name)) as scratch:
        nbformat.write(notebook, scratch)


def tags(cell: NotebookNode) -> list[str]:
    return cell.metadata.get("tags", [])


def shared_tag(cell: NotebookNode) -> str | None:
    return next((tag for tag in tags(cell) if tag.startswith(SHARED)), None)


def from_tag(cell: NotebookNode) -> str | None:
    return next((tag for tag in tags(cell) if tag.startswith(FROM)), None)


def folded(cell: NotebookNode) -> bool:
    return not TITLES.keys().isdisjoint(tags(cell))


def folding(cell: NotebookNode) -> dict:
    """The metadata that fold a cell in JupyterLab and in Colab: they follow from its tags.

    Text below a proof says what its title says, and is folded too. A picture stays.
    """
    if not folded(cell):
        return {}
    hidden = {"source_hidden": True}
    if cell.outputs and not any(
        UNCOMPARED & output.get("data", {}).keys() for output in cell.outputs
    ):
        hidden["outputs_hidden"] = True
    return {"cellView": "form", "jupyter": hidden}


def title(cell: NotebookNode) -> tuple[str, str]:
    """The title of a folded cell, and its source below."""
    first, _, rest = cell.source.partition("\n")
    return first.removeprefix("# @title "), rest


def code_cells(notebook: NotebookNode, *of: str) -> list[NotebookNode]:
    """The code cells, all of them or those that have one of these tags."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [cell for cell in cells if not of or set(of) & set(tags(cell))]


def python(source: str) -> ast.Module:
    """The syntax tree of a cell, without IPython's magics. Empty where the cell is no Python."""
    if source.startswith("%%writefile"):
        source = source.partition("\n")[2]
    try:
        return ast.parse(re.sub(r"^(\s*)[%!].*$", r"\1pass", source, flags=re.MULTILINE))
    except SyntaxError:
        return ast.Module([], [])


def defined(cell: NotebookNode) -> set[str]:
    """The names that a cell defines or imports at its top level."""
    symbols = table_of(cell.source).get_symbols()
    return {s.get_name() for s in symbols if s.is_assigned() or s.is_imported()}


@functools.cache  # a copied cell is looked for among all cells of its lesson
def table_of(source: str) -> symtable.SymbolTable:
    """The symbols of a cell's source."""
    return symtable.symtable(ast.unparse(python(source)), "cell", "exec")


def names_used(table: symtable.SymbolTable) -> set[str]:
    """The global names that code or a function in it reads."""
    top = table.get_type() == "module"
    found = {
        s.get_name() for s in table.get_symbols() if s.is_referenced() and (top or s.is_global())
    }
    return found.union(*map(names_used, table.get_children()))


def subject_pages(name: str) -> list[list[NotebookNode]]:
    """Code cells of a lesson and its depth, as stored, without copies.

    None of a notebook that is not executed yet; none of a depth alone, which its lesson has.
    """
    pages = [] if name.endswith(DEPTH) else [page for page in (name, depth_of(name)) if page]
    found = [read_notebook(page) for page in pages if notebook_path(page).is_file()]
    return [[cell for cell in code_cells(page) if not from_tag(cell)] for page in found]


def subject_cells(name: str, *of: str) -> list[NotebookNode]:
    """The same in one list, all of them or those that have one of these tags."""
    cells = [cell for page in subject_pages(name) for cell in page]
    return [cell for cell in cells if not of or set(of) & set(tags(cell))]


def twin_part(cell: NotebookNode) -> tuple:
    """What md and ipynb must share of a cell."""
    return cell.cell_type, cell.source, cell.metadata.get("tags"), cell.metadata.get("mystnb")


def texts(output: NotebookNode) -> list[str]:
    """All that a reader can read of an output: printed, plain or in HTML."""
    kinds = output.get("data", {}).items()
    return [output.get("text", ""), *(text for kind, text in kinds if kind.startswith("text/"))]


def title_of(name: str) -> str:
    """The title of a lesson, as md/ has it."""
    return re.search(r"^# (.+)$", md_path(name).read_text(), re.MULTILINE)[1]


def stamp(cell: NotebookNode) -> str:
    """What `execute` writes into a cell that it ran: a hash of the source that made the outputs."""
    return hashlib.sha256(cell.source.encode()).hexdigest()[:16]


def digest(notebook: NotebookNode) -> str:
    """A hash of all code, and of what nbval compares: what a run passed or failed.

    A picture that was drawn anew, or a measurement, is no other page.
    """
    cells = [[cell.source, [*map(masked, cell.outputs)]] for cell in code_cells(notebook)]
    return hashlib.sha256(json.dumps(cells).encode()).hexdigest()[:16]


def checked(notebook: NotebookNode) -> dict:
    """When and with what the notebook passed as it stands: tools/run/record.py wrote it. Or {}."""
    record = notebook.metadata.get("checked", {})
    return record if record.get("digest") == digest(notebook) else {}


def masked(output: NotebookNode) -> dict:
    """What nbval compares of an output, after the masks."""

    def mask(text):
        for pattern, replacement in masks():
            text = re.sub(pattern, replacement, text) if isinstance(text, str) else text
        return text

    data = output.get("data", {})
    return {
        "type": output.output_type,
        "name": output.get("name"),
        "text": mask(output.get("text")),
        "data": {kind: mask(text) for kind, text in data.items() if kind not in UNCOMPARED},
        "pictures": sorted(UNCOMPARED & data.keys()),
    }


@functools.cache
def masks() -> list[tuple[str, str]]:
    """The pairs of a pattern and its replacement in nbval_sanitize.cfg, as nbval reads them."""
    rules = SANITIZER.read_text()
    return re.findall(r"^regex: (.*)$\n^replace: (.*)$", rules, re.MULTILINE)
