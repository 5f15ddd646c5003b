"""tools/gpu.py as far as it goes without a GPU: parts, failures, the archive."""

import json
import zipfile

import nbformat
import pytest

from tools import execute, gpu, lessons

LESSON = """---
kernelspec:
  display_name: Python 3
  name: python3
---

# Tiny

```{code-cell} ipython3
print(6 * 7)
```

```{code-cell} ipython3
:tags: [requires-gpu]

print('on a GPU')
```
"""


def write(name: str, stored: str) -> None:
    """A lesson that prints 42 anywhere and one word more on a GPU, with what a CPU stored of it."""
    lessons.md_path(name).write_text(LESSON)
    notebook = execute.read(name)
    cell = lessons.code_cells(notebook)[0]
    cell.outputs = [nbformat.v4.new_output("stream", text=stored)]
    cell.execution_count, cell.metadata["stamp"] = 1, lessons.stamp(cell)
    execute.store(notebook, name)


def texts(name: str) -> list[str]:
    cells = lessons.code_cells(lessons.read_notebook(name))
    return ["".join(output.text for output in cell.outputs) for cell in cells]


def test_a_lesson_that_passes_gets_its_gpu_outputs_and_another_is_reported(workshop, monkeypatch):
    monkeypatch.setattr(lessons, "has_gpu", lambda: True)  # the cell asks for none
    write("tiny_false", "43\n")
    write("tiny_true", "42\n")
    before = lessons.notebook_path("tiny_false").read_bytes()
    archive = workshop / "found.zip"
    failures = gpu.run(["tiny_false", "tiny_true"], bench=False, archive=archive)

    assert failures == ["tiny_false does not pass here, and nothing of it was stored."]
    assert lessons.notebook_path("tiny_false").read_bytes() == before
    assert texts("tiny_true") == ["42\n", "on a GPU\n"]
    with zipfile.ZipFile(archive) as packed:
        for name in ("tiny_false", "tiny_true"):
            path = lessons.notebook_path(name)
            assert packed.read(f"notebooks/{name}.ipynb") == path.read_bytes()
        assert "Cell outputs differ" in packed.read(gpu.REPORT).decode()
        assert failures[0] in packed.read(gpu.REPORT).decode()
        assert any(name.startswith("benchmarks/results/") for name in packed.namelist())
        records = [name for name in packed.namelist() if name.startswith("checked/")]
        runs = [run for name in records for run in json.loads(packed.read(name))["runs"].values()]
    digests = [run["tiny_true"]["digest"] for run in runs if "tiny_true" in run]
    assert digests == [lessons.digest(lessons.read_notebook("tiny_true"))]
    assert not any("tiny_false" in run for run in runs)


@pytest.mark.parametrize("bench", [True, False])
def test_only_loaders_that_are_named_are_timed(workshop, monkeypatch, bench):
    commands = []
    monkeypatch.setattr(gpu, "renew", lambda name, report: None)
    monkeypatch.setattr(gpu, "tee", lambda command, report: commands.append(command[1:]) or 0)
    archive = workshop / "found.zip"
    assert gpu.run(["feed_the_device", "grain"], bench=bench, archive=archive) == []
    assert commands == [["benchmarks/bench.py", "grain"]] * bench


@pytest.mark.parametrize(
    ("arguments", "status", "sentence"),
    [
        ([], 1, "gpu: JAX sees no GPU here: install requirements-gpu.txt"),
        (["no_such"], 2, "unknown lesson no_such: choose from pytorch_dataloader, "),
    ],
)
def test_it_ends_early_in_one_sentence(python, arguments, status, sentence):
    done = python(lessons.ROOT / "tools/gpu.py", *arguments, env={"JAX_PLATFORMS": "cpu"})
    assert done.returncode == status
    assert sentence in done.stderr and "Traceback" not in done.stderr
