"""What the site says beside the lessons: taken from the notebooks.

A Sphinx extension. It replaces marks such as `<!-- checked -->` on the
pages, says below the box of each lesson when it was checked, and folds imports, proofs
and solutions to their titles.
"""

import ast
import html
import itertools
import re
from pathlib import Path

import nbformat
from docutils import nodes
from mdit_py_plugins.anchors.index import slugify as slug  # as GitHub and MyST do it
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell as markdown_cell
from sphinx.application import Sphinx
from sphinx.errors import ConfigError

from tools.lesson import copies, cuda_wheels, facts, glossary, lessons, modules
from tools.site import as_text, front_page, navigation, records, search

HEADING = re.compile(r"^(#+) (.+)$", re.MULTILINE)
INDEXED = re.compile(r'(<span class="target" id="index-\d+">)</span>([^<]+)')
DESCRIPTION = re.compile(r'(<meta (?:property="og:|name=")description" content=")[^"]*')
LONGEST_DESCRIPTION = 200  # characters
STRAIGHT = str.maketrans("\u2018\u2019\u201c\u201d", "''\"\"")
HOLDS = "\N{CHECK MARK} Holds:"
GENERATED = ["index", "pages/checked", "pages/glossary", "pages/install", "pages/troubleshooting"]
# The theme folds a depth below its lesson with an arrow that has no words for a screen reader.
DEPTH_FOLD = '<summary><span class="toctree-toggle"'
NAMED_FOLD = '<summary aria-label="In depth"><span class="toctree-toggle"'
OPTIONS = "_static/documentation_options.js"


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", write)
    app.connect("env-get-outdated", outdated)
    app.connect("html-page-context", mend)
    app.connect("build-finished", finish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def outdated(app: Sphinx, env, added: set, changed: set, removed: set) -> list[str]:
    """The pages to read again although their own files did not change."""
    return [page for page in env.found_docs if page in GENERATED or page.startswith("notebooks/")]


def write(app: Sphinx, page: str, source: list[str]) -> None:
    """Put what is generated into the source of a page, before Sphinx parses it."""
    if page.startswith("notebooks/"):
        name = page.removeprefix("notebooks/")
        notebook = nbformat.reads(source[0], as_version=4)
        notebook.metadata.pop("checked", None)  # Sphinx would take it for fields of the page
        for change in (
            add_line,
            fold_cells,
            fold_together,
            link_to_others,
            add_copies,
            add_depth,
        ):
            change(notebook, name)
        glossary.link(notebook)
        add_ways_out(notebook, name, app.config.html_theme_options["repository_url"])
        source[0] = nbformat.writes(notebook)
    elif page == "index":
        results = front_page.newest()
        for mark, text in {
            "claim": front_page.claim(results),
            "picture": front_page.picture(results),
            "code": first_program(),
            "runs": records.in_one_line(),
            "sections": "\n".join(navigation.questions()),
            "lessons": navigation.tables(
                {name: facts.minutes(lessons.read_notebook(name)) for name in lessons.listed()}
            ),
            "navigation": navigation.trees(),
            "colab": records.in_colab(),
        }.items():
            source[0] = source[0].replace(f"<!-- {mark} -->", text)
        source[0] = navigation.with_places(source[0])
    elif page == "pages/checked":
        source[0] = source[0].replace("<!-- checked -->", "\n\n".join(records.checked()))
        source[0] = source[0].replace("<!-- colab -->", records.colab("../notebooks"))
    elif page == "pages/glossary":
        source[0] = source[0].replace("<!-- letters -->", glossary.letters())
    elif page == "pages/install":
        source[0] = source[0].replace("<!-- cuda -->", cuda_wheels.table())


def mend(app: Sphinx, page: str, template: str, context: dict, doctree) -> None:
    """Drop myst-nb's generic aria-label, so that a screen reader says the words of a fold.

    Describe the page in whole sentences, where the extension breaks off. Put an indexed message
    inside its mark, which the search shows as what it found.
    """
    if doctree:
        said = html.escape(description(doctree))
        context["metatags"] = DESCRIPTION.sub(lambda tag: tag[1] + said, context["metatags"])
    if body := context.get("body"):
        body = body.replace('<summary aria-label="Toggle hidden content">', "<summary>")
        context["body"] = INDEXED.sub(message, body)


def description(doctree: nodes.document) -> str:
    """The first sentences of a page, whole, as far as a search engine shows them."""
    first = next(p for p in doctree.findall(nodes.paragraph) if not p["classes"])
    sentences = re.split(r"(?<=[.?]) ", " ".join(first.astext().split()))
    lengths = itertools.accumulate(len(sentence) + 1 for sentence in sentences)
    fit = sum(length <= LONGEST_DESCRIPTION for length in lengths)
    return " ".join(sentences[: max(fit, 1)])


def message(found: re.Match) -> str:
    """What a program prints, in the type of code: with the straight quotes that it has."""
    words = found[2].translate(STRAIGHT)
    return (
        f'{found[1]}<code class="docutils literal"><span class="pre">{words}</span></code></span>'
    )


def finish(app: Sphinx, exception: Exception | None) -> None:
    """Write the texts for programs and the modules, and let no script hold up a page."""
    if app.builder.format != "html" or exception:
        return
    as_text.write(Path(app.outdir), app.config.html_baseurl)
    modules.write(Path(app.outdir) / "notebooks")
    search.mend(Path(app.outdir))
    options = (Path(app.outdir) / OPTIONS).read_text()
    for page in Path(app.outdir).rglob("*.html"):
        text = page.read_text().replace(DEPTH_FOLD, NAMED_FOLD)
        if app.tags.has("published"):
            refuse_placeholder(text, page.name)
        page.write_text(paint_first(text, options))


def refuse_placeholder(text: str, page: str) -> None:
    """Raises ConfigError, which ends the build, where a link of the page would lead nowhere."""
    if f"{facts.PLACEHOLDER}/" in text:
        raise ConfigError(
            f"{page} has the placeholder {facts.PLACEHOLDER} in an address: write the owner in its "
            "place, as CONTRIBUTING.md says."
        )


def paint_first(text: str, options: str) -> str:
    """The text of a page that no script holds up, and that has its colours without one.

    The theme's colours are of "light" or "dark", which its script sets; without one it is "auto".
    Scripts run in their order when the page is there. `options`, which the small ones inside the
    page use, stands in it. The script of half a megabyte that draws icons is left out: the icons
    are letters of a font as well.
    """
    text = text.replace(' data-theme="auto"', ' data-theme="light"', 1)
    text = re.sub(r'\s*<script [^>]*src="[^"]*/fontawesome\.js[^"]*"></script>', "", text)
    own = re.compile(rf'<script src="[^"]*{re.escape(OPTIONS)}[^"]*"></script>')
    text = own.sub(lambda _: f"<script>{options}</script>", text)
    return text.replace("<script src=", "<script defer src=")


def add_line(notebook: NotebookNode, name: str) -> None:
    """Say below the box what the lesson needs."""
    first = notebook.cells[0]
    *_, box = re.finditer(r"(?:^>.*\n)+", f"{first.source}\n", re.MULTILINE)
    before, after = first.source[: box.end()].rstrip("\n"), first.source[box.end() :].lstrip("\n")
    first.source = f"{before}\n\n{records.checked_line(name)}\n\n{after}"


def add_ways_out(notebook: NotebookNode, name: str, repository: str) -> None:
    """Below the title: where a reader takes the lesson, by one click."""
    ways = {
        "Open in Colab": facts.in_colab(repository, name),
        "Download": f"../_sources/notebooks/{name}.ipynb",
        "As Markdown": f"{name}.md",  # site.js makes it a button that copies
    }
    links = [f'<a href="{address}">{way}</a>' for way, address in ways.items()]
    if modules.has_code(name):  # a browser would show it in place of storing it
        file = f"{modules.module_name(name)}.py"
        links.insert(2, f'<a href="{file}" download>Python file</a>')
    first = notebook.cells[0]
    line = f'\\1\n\n<p class="ways-out">{" · ".join(links)}</p>\n'
    first.source = re.sub(r"^(# .+)$", line, first.source, count=1, flags=re.MULTILINE)


def fold_cells(notebook: NotebookNode, name: str) -> None:
    """Fold imports, proofs and solutions to their titles."""
    record = lessons.checked(lessons.read_notebook(name))
    for cell in lessons.code_cells(notebook):
        if lessons.folded(cell):
            title, cell.source = lessons.title(cell)
            opened = title.replace("Show", "Hide", 1)
            if "proof" in lessons.tags(cell):
                said = verdict(cell, record)
                title = opened = title.replace("Proof:", said, 1)
                cell.metadata.tags += ["holds"] if said == HOLDS else []  # a class, for the colour
            cell.metadata.tags.append("hide-cell")
            label(cell, title, opened)
        elif title := title_of_setup(cell):
            cell.metadata.tags.append("hide-cell")
            label(cell, title, title)
        elif title := title_of_folded_code(cell):
            label(cell, f"Show {title}", f"Hide {title}")


def fold_together(notebook: NotebookNode, name: str) -> None:
    """Make one fold of cells that are folded one below the other, such as imports and a model."""
    cells = []
    for folded, of_kind in itertools.groupby(notebook.cells, is_needed):
        group = [*of_kind]
        if folded and len(group) > 1:
            titles = [cell.metadata.mystnb["code_prompt_show"] for cell in group]
            first, *others = [title.removeprefix("Show ") for title in titles]
            start = first if first != titles[0] else f"{first[0].lower()}{first[1:]}"
            title = html.escape(", ".join([f"Show {start}", *others]))
            for cell in group:
                cell.metadata.tags = [t for t in cell.metadata.tags if not t.startswith("hide-")]
            summary = f'<details class="needed"><summary>{title}</summary>'
            group = [markdown_cell(summary), *group, markdown_cell("</details>")]
        cells += group
    notebook.cells = cells


def is_needed(cell: NotebookNode) -> bool:
    """Whether the cell is folded code that shows nothing, which the cells below need."""
    if cell.cell_type != "code" or cell.outputs or {"proof", "exercise"} & {*lessons.tags(cell)}:
        return False
    return "code_prompt_show" in cell.metadata.get("mystnb", {})


def link_to_others(notebook: NotebookNode, name: str) -> None:
    """Link below a heading to the same section of other loaders."""

    def with_line_below(heading: re.Match) -> str:
        line_below = navigation.others(name, slug(heading[2]))
        return f"{heading[0]}\n\n{line_below}" if line_below else heading[0]

    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = HEADING.sub(with_line_below, cell.source)


def add_copies(notebook: NotebookNode, name: str) -> None:
    """Add below code to copy, unless it is folded, the same with all that it needs, folded."""
    blocks, cells = copies.blocks(notebook), lessons.code_cells(notebook)
    for number, block in blocks.items():
        if "hide-input" in lessons.tags(cells[number]):
            continue
        place = next(i for i, cell in enumerate(notebook.cells) if cell is cells[number])
        notebook.cells.insert(place + 1, markdown_cell(folded_block(block)))


def add_depth(notebook: NotebookNode, name: str) -> None:
    """Put the depth of the lesson, if it has one, below it in the sidebar."""
    if tree := navigation.tree_of(name):
        notebook.cells.append(markdown_cell(tree))


def label(cell: NotebookNode, title: str, opened: str) -> None:
    """`opened`: the words of the fold while it is open."""
    options = cell.metadata.setdefault("mystnb", {})
    options.update(code_prompt_show=title, code_prompt_hide=opened)


def title_of_folded_code(cell: NotebookNode) -> str:
    """What a folded cell defines for other cells, or what it makes, or nothing."""
    tags = {*lessons.tags(cell)}
    if "hide-input" not in tags:
        return ""
    body, defines = lessons.python(cell.source).body, ast.FunctionDef | ast.ClassDef
    names = ", ".join(node.name for node in body if isinstance(node, defines))
    if names and (tags & {"setup", "copy"} or lessons.shared_tag(cell)):
        return names
    if any("image/png" in output.get("data", {}) for output in cell.outputs):
        return "the code of the drawing"
    if "trap" in tags:
        return "the code of the trap"
    return "the code of this output" if cell.outputs else names


def title_of_setup(cell: NotebookNode) -> str:
    """What a setup cell of imports, or of the loaders' dataset, is folded to, or nothing.

    Readers look for the answer, which stands below. What the cell prints is in the fold too.
    """
    if "setup" not in lessons.tags(cell) or "hide-input" in lessons.tags(cell):
        return ""
    body = lessons.python(cell.source).body
    kinds = {type(node) for node in body}
    if cell.source.startswith("%%") or not body:
        return ""
    if isinstance(body[0], ast.Import | ast.ImportFrom):
        if kinds & {ast.FunctionDef, ast.ClassDef}:
            return ""
        return "Imports and data" if ast.Assign in kinds else "Imports"
    makes = {n.id for n in ast.walk(ast.Module(body, [])) if isinstance(n, ast.Name)}
    return "The dataset" if "train_images" in makes else ""


def verdict(cell: NotebookNode, record: dict) -> str:
    """What stands before the title of a proof, in words: whether it holds."""
    if lessons.GPU_TAG in lessons.tags(cell):
        return HOLDS if record and record["device"] != "cpu" else "Not run on a GPU yet:"
    return HOLDS if record else "Not checked yet since its last change:"


def first_program() -> str:
    """A program of a lesson, whole, and where it comes from."""
    lesson = f"notebooks/{front_page.COMPARED}.ipynb"
    return (
        f"{front_page.SHOWN} feeds JAX. The model and the loop are below it:\n\n"
        f"```python\n{front_page.code()}\n```\n\n"
        f"[](<{lesson}>) has the same for TensorFlow Datasets, Grain, Hugging Face and NumPy."
    )


def folded_block(block: str) -> str:
    return (
        '<details class="with-imports"><summary>Copy it with its imports</summary>\n\n'
        f"```python\n{block}\n```\n\n</details>"
    )
