"""The benchmark's results, in the form in which they travel inside the lesson that chooses.

A notebook is opened alone, without benchmarks/results beside it. So `check --fix` writes what is
drawn there into its one cell with the tag `results`, and `check` says when that cell is stale.
"""

import json
import re
from collections import Counter
from pathlib import Path
from statistics import median

from tools import lessons, machine
from tools.problem import Problem

RESULTS = lessons.ROOT / "benchmarks" / "results"
OTHERS = RESULTS.with_name("results-others")  # of loaders without a lesson, on the same machines
LOADERS = {
    "pytorch_dataloader": "PyTorch DataLoader",
    "grain": "Grain",
    "huggingface_datasets": "Hugging Face",
    "tensorflow_datasets": "TensorFlow Datasets",
}
FROM_DISK = {
    "pytorch_dataloader": "PyTorch, mapped array",
    "grain": "Grain, ArrayRecord",
    "huggingface_datasets": "Hugging Face, Parquet stream",
    "tensorflow_datasets": "TensorFlow Datasets, TFRecord",
    "files_and_storage": "obstore, Parquet row groups",
}
BATCH, EXAMPLES = 128, 60_000
IMAGES = EXAMPLES // BATCH * BATCH  # of an epoch: what the step trains on in `resident_epoch_s`
EXAMPLE_BYTES = 28 * 28 + 4
WIDTH = 78  # columns


def source(folder: Path = RESULTS, others: Path = OTHERS) -> str:
    """The source of the cell. Raises Problem where no machine's results are whole."""
    found = [machine.read(file) for file in sorted(folder.glob("*.json"))]
    whole = [results for results in found if is_whole(results)]
    more = {
        name_of(results): {of["title"]: other(of) for of in results["loaders"].values()}
        for results in map(machine.read, sorted(others.glob("*.json")))
    }
    if not whole:
        raise Problem(
            "No file in benchmarks/results holds every lesson: run `tox run -e bench` with no name."
        )
    whole.sort(key=lambda results: results["device"] == "cpu")  # a GPU comes first
    all_of_it = {
        name_of(results): summary(results) | {"others": more.get(name_of(results), {})}
        for results in whole
    }
    text = "\n".join(wrapped(all_of_it))
    return f'MEASURED = json.loads(r"""\n{text}\n""")'


def name_of(results: dict) -> str:
    return f"{results['processor']}, {results['cores']} cores, JAX on {results['device']}"


def is_whole(results: dict) -> bool:
    return (
        results.get("lessons", {}).keys() == LOADERS.keys()
        and results.get("larger", {}).keys() == FROM_DISK.keys()
        and all(results.get(key) for key in ("tokens", "storage"))
    )


def summary(results: dict) -> dict:
    """What the lesson draws: of each figure the lowest, the median and the highest."""
    measured = {title: results["lessons"][name] for name, title in LOADERS.items()}
    every = measured.values()
    versions = {}
    for figures in (*every, *results["larger"].values(), results["tokens"], results["storage"]):
        versions |= figures["versions"]
    references = [speed for figures in every for speed in figures["numpy_images_s"]]
    forms = Counter(figures["numpy_form"] for figures in every)
    steps = [IMAGES / s for figures in every for s in figures["resident_epoch_s"]]
    return {
        "date": max(figures["date"] for figures in every),
        "python": versions.pop("python"),
        "versions": versions,
        "step": speeds(steps),
        "memory": {title: memory(figures) for title, figures in measured.items()}
        | {"NumPy": {"images/s": speeds(references), "form": forms.most_common(1)[0][0]}},
        "sizes": {
            f"batch {shape}": {
                title: shares(figures["shapes"][shape], "images_s", "take_images_s")
                for title, figures in measured.items()
            }
            for shape in next(iter(every))["shapes"]
        },
        "photographs": {
            title: {workers: photographs(found) for workers, found in figures["photos"].items()}
            for title, figures in measured.items()
        },
        "larger": {
            title: {
                "rows/s": speeds(results["larger"][name]["rows_s"]),
                "share": shares(results["larger"][name], "rows_s", "mapped_rows_s"),
            }
            for name, title in FROM_DISK.items()
        },
        "tokens": {
            "tokens/s": speeds(results["tokens"]["tokens_s"]),
            "share": shares(results["tokens"], "tokens_s", "copy_tokens_s"),
        },
        "storage": {
            "rows/s": speeds(results["storage"]["rows_s"]),
            "share": shares(results["storage"], "rows_s", "at_once_rows_s"),
            "one": speeds(results["storage"]["one_rows_s"]),
        },
        "start": {title: start(figures) for title, figures in measured.items()},
        "growth": {title: growth(figures["growth"]) for title, figures in measured.items()},
    }


def memory(figures: dict) -> dict:
    return {
        "images/s": speeds(figures["tuned_images_s"]),
        "share": shares(figures, "tuned_images_s", "numpy_images_s"),
        "short": speeds(figures["short_images_s"]) if "short_images_s" in figures else None,
        "first": speeds(figures["first_images_s"]),
    }


def photographs(figures: dict) -> dict:
    return {
        "images/s": speeds(figures["images_s"]),
        "share": shares(figures, "images_s", "limit_images_s"),
        "cores": round(median(figures["cores"]), 1),
        "one for all": speeds(figures["decoder_images_s"]),
    }


def start(figures: dict) -> dict:
    return {
        "disk MB": round(figures["installation_bytes"] / 1e6),
        "import s": round(median(figures["import_s"]), 1),
        "import MB": round(median(figures["import_bytes"]) / 1e6),
        "first batch ms": round(median(figures["first_batch_s"]) * 1e3),
        "lines": [figures["tuned_lines"], figures["files_lines"]],
    }


def other(figures: dict) -> dict:
    """What is shown of a loader without a lesson; what was not timed is not there."""
    found = {
        "date": figures["date"],
        "version": figures["version"],
        "disk MB": round(figures["installation_bytes"] / 1e6),
        "import s": round(median(cost["import_s"] for cost in figures["import"]), 1),
        "breaks": sorted(
            {
                promise
                for verdicts in figures["verdicts"].values()
                for promise, refusal in verdicts.items()
                if refusal
            }
        ),
    }
    if "tuned_images_s" in figures:
        found["memory"] = shares(figures, "tuned_images_s", "numpy_images_s")
    if "photos" in figures:
        found["photographs"] = {
            workers: shares(of, "images_s", "decoder_images_s")
            for workers, of in figures["photos"].items()
        }
    if "stored" in figures:
        found["storage"] = {wait: speeds(rates) for wait, rates in figures["stored"].items()}
    return found


def growth(grown: dict[str, dict]) -> dict:
    """Time for an image as a multiple of that of the first, and the memory that comes to it.

    Beside the time that of NumPy's gather; without the examples themselves.
    """
    (few, first), *more = grown.items()
    found = {}
    for copies, figures in more:
        times = {
            name: round(median(first[kind]) / median(figures[kind]), 2)
            for name, kind in (("time", "images_s"), ("gather", "gather_images_s"))
        }
        examples = (int(copies) - int(few)) * EXAMPLES * EXAMPLE_BYTES
        held = figures["bytes"] - first["bytes"] - examples
        found[copies] = times | {"MB": max(0, round(held / 1e6))}
    return found


def speeds(values: list[float]) -> list[int]:
    """The lowest, the median and the highest, to three digits."""
    return [int(float(f"{value:.3g}")) for value in (min(values), median(values), max(values))]


def shares(figures: dict, of: str, to: str) -> list[float]:
    """The same of the ratios: what was measured side by side is compared."""
    values = [a / b for a, b in zip(figures[of], figures[to], strict=True)]
    return [round(value, 3) for value in (min(values), median(values), max(values))]


def wrapped(value: dict) -> list[str]:
    """JSON in lines of at most WIDTH columns, broken behind commas that are in no string."""
    lines = [""]
    for part in re.findall(r'(?:"(?:\\.|[^"\\])*"|[^",])+,?', json.dumps(value)):
        if lines[-1] and len(lines[-1]) + len(part) > WIDTH:
            lines.append("")
        lines[-1] += part if lines[-1] else part.lstrip()
    return [line.rstrip() for line in lines]
