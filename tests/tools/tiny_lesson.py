"""A lesson of a few lines, and edits of a copy of the repository."""

import nbformat

from tools.lesson import lessons

SPOILED = "tensorflow_datasets_in_depth"
BELOW_A_PROOF = "## Read by index, without TensorFlow"  # one that defines `records`
HEADER = """---
kernelspec:
  display_name: Python 3
  language: python
  name: python3
---

# Try a tiny lesson

> **Install.** `pip install jax`
> **How long.** 5 minutes to read.
"""


def code(source, tags=""):
    options = f":tags: [{tags}]\n\n" if tags else ""
    return f"\n```{{code-cell}} ipython3\n{options}{source}\n```\n"


def write_tiny(*cells):
    lessons.md_path("tiny").write_text(HEADER + "".join(cells))


def run_execute(python, repository, *arguments):
    return python(
        "-m", "tools.run.execute", *arguments, cwd=repository, env={"JAX_PLATFORMS": "cpu"}
    )


def outputs(name="tiny"):
    cells = lessons.code_cells(lessons.read_notebook(name))
    return ["".join(output.get("text", "?") for output in cell.outputs) for cell in cells]


def edit_md(name, old, text):
    path = lessons.md_path(name)
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, text, 1))


def edit_notebook(name, change):
    notebook = lessons.read_notebook(name)
    change(notebook)
    nbformat.write(notebook, lessons.notebook_path(name))


def first(notebook):
    return lessons.code_cells(notebook)[0]
