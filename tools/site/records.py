"""What the site says of runs: when, with what and where each page passed."""

import json
from collections.abc import Iterator

from tools.lesson import lessons

COLAB = lessons.COLAB_RECORD  # tools/run/colab.py writes it


def checked_line(name: str) -> str:
    """When and with what the lesson passed as it stands."""
    record = lessons.checked(lessons.read_notebook(name))
    said = "**Not checked yet** since its last change."
    if record:
        said = (
            f"**Checked:** {record['cells']} cells gave the same output on {record['date']} with "
            f"Python {minor(record['python'])} and JAX {record['jax']} on {device(record)}."
        )
        if record["skipped"]:
            said += f" Cells that wait for a GPU: {record['skipped']}."
    return f"{{.checked}}\n{said} [What is checked](../pages/checked.md).{claims(name)}"


def minor(python: str) -> str:
    """3.13 of 3.13.0."""
    return python.rpartition(".")[0]


def device(record: dict) -> str:
    return "a CPU" if record["device"] == "cpu" else record["device"]


def claims(name: str) -> str:
    """How many proofs the depth of a lesson holds, with a link to it, or nothing."""
    if not (depth := lessons.depth_of(name)):
        return ""
    count = len(lessons.code_cells(lessons.read_notebook(depth), "proof"))
    return f" [{count} claims, proven in depth]({depth}.ipynb)."


def by_page() -> dict[str, dict]:
    """When and with what each page passed as it stands: {} where it did not."""
    return {name: lessons.checked(lessons.read_notebook(name)) for name in lessons.in_order()}


def checked() -> Iterator[str]:
    """The table of the page, and what no run has shown yet."""
    rows = ["| lesson | cells | on | Python | JAX | device |", f"|{' --- |' * 6}"]
    found = by_page()
    for name, record in found.items():
        said = ["not yet since its last change", *[""] * 4]
        if record:
            skipped = f", {record['skipped']} skipped" if record["skipped"] else ""
            day = f"<time>{record['date']}</time>"  # not broken at its hyphens
            said = [f"{record['cells']}{skipped}", day, record["python"], record["jax"]]
            said.append(device(record))
        rows.append(f"| [](../notebooks/{name}.ipynb) | {' | '.join(said)} |")
    yield "\n".join(rows)
    if not gpus(found):
        yield (
            "No run on a GPU is recorded yet. Cells that need one are skipped and have no output; "
            "everything else on the pages holds without one."
        )


def gpus(found: dict[str, dict]) -> list[str]:
    """The devices beside CPUs on which pages passed."""
    devices = {record["device"] for record in found.values() if record}
    return sorted(devices - {"cpu"})


def in_one_line() -> str:
    """What is checked how, on which hardware, and what not yet."""
    found = by_page()
    passed = [record for record in found.values() if record]
    pythons = sorted({minor(record["python"]) for record in passed})
    where = "on CPUs only so far, never on a GPU"
    if named := gpus(found):
        where = f"on {', '.join(named)} and on CPUs"
    count = "all" if len(passed) == len(found) else f"{len(passed)} of the {len(found)}"
    return (
        "Every lesson is run from its first cell to its last, and every printed output is "
        "[compared with the page](pages/checked.md): facts to the letter, measurements and "
        f"versions masked, pictures by the data that they show. In their present form {count} "
        f"pages passed, with Python {' and '.join(pythons)}, {where}."
    )


def in_colab() -> str:
    """Whether the lessons run with the versions that Colab has, in a sentence."""
    record, found = colab_record()
    count = sum(figures is not None for figures in found.values())
    how_many = "All" if count == len(found) else f"{count} of {len(found)}"
    return (
        f"{how_many} lessons ran with the versions that Colab published on {record['published']}; "
        "[What is checked](pages/checked.md) names what differs there."
    )


def colab(notebooks: str) -> str:
    """Which lessons hold with the versions that Colab has. `notebooks`: the way to their pages."""
    record, found = colab_record()
    whole, parts, not_run = [], [], []
    for name, figures in found.items():
        link = f"[]({notebooks}/{name}.ipynb)"
        if figures is None:
            not_run.append(link)
        elif differ := len(figures["differ"]):
            parts.append(f"{differ} of {differ + figures['passed']} cells of {link}")
        else:
            whole.append(link)
    versions = record["versions"]
    said = (
        f"With the versions that Colab published on {record['published']} "
        f"(Python {versions['python']}, JAX {versions['jax']}), without a GPU, "
        f"{len(whole)} of {len(whole) + len(parts)} lessons hold whole."
    )
    if parts:
        said += f" What differs: {'; '.join(parts)}."
    if not_run:
        said += f" Not run there in their present form: {', '.join(not_run)}."
    return said


def colab_record() -> tuple[dict, dict[str, dict | None]]:
    """The record, and what it says of each lesson: None where it is not of the present form."""
    record, found = json.loads(COLAB.read_text()), {}
    for name in lessons.in_order():
        figures = record["lessons"].get(name, {})
        present = figures.get("digest") == lessons.digest(lessons.read_notebook(name))
        found[name] = figures if present else None
    return record, found
