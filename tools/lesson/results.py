"""What the benchmark stored of each machine, and what such figures are worth.

A file may be partial: a loader that was not measured there is missing, and so is a figure that it
does not have. So all that is computed here is empty where a figure is missing, and what shows it
leaves a gap. Needs no package that a lesson needs.
"""

from pathlib import Path
from statistics import median
from typing import NamedTuple

from tools.lesson import lessons, machine

FOLDER = lessons.ROOT / "benchmarks" / "results"
WITHOUT_LESSON = lessons.ROOT / "benchmarks" / "without_lesson" / "results"
BATCH, EXAMPLES = 128, 60_000
IMAGES = EXAMPLES // BATCH * BATCH  # of an epoch: what the step trains on in `step_epoch_s`
EXAMPLE_BYTES = 28 * 28 + 4  # what the training set itself takes, as NumPy arrays


class Part(NamedTuple):
    """Of a lesson one thing, timed beside its reference."""

    lesson: str
    unit: str
    keys: tuple[str, ...]  # of it, and of the reference, in the results
    beside: str  # the reference, in words
    mark: float  # the least share of it


PARTS = {
    "tokens": Part(
        "language_model_data", "tokens", ("tokens_s", "copy_tokens_s"), "a copy of as many", 0.8
    ),
    "storage": Part(
        "files_and_storage",
        "rows",
        ("rows_s", "at_once_rows_s", "one_rows_s"),
        "the same without waiting",
        0.9,
    ),
    "blocks": Part(
        "arrays_on_disk", "windows", ("windows_s", "read_windows_s"), "the reads alone", 0.8
    ),
    "graphs": Part(
        "graphs_and_ragged", "graphs", ("graphs_s", "joined_graphs_s"), "a loop that joins", 0.8
    ),
    "frames": Part(
        "video_and_episodes", "windows", ("windows_s", "decoded_windows_s"), "a bare decoder", 0.8
    ),
}


def stored(folder: Path = FOLDER) -> list[dict]:
    """The results of each machine; those of a GPU come first. Raises Problem for a damaged file."""
    found = [machine.read(file) for file in sorted(folder.glob("*.json"))]
    return sorted(found, key=lambda results: results["device"] == "cpu")


def named(key: str) -> dict[str, object]:
    """For each lesson of which lessons.toml says it under `bench`, what it says."""
    benches = {name: entry.get("bench", {}) for name, entry in lessons.listed().items()}
    return {name: of[key] for name, of in benches.items() if key in of}


def titled(part: dict[str, dict], key: str) -> dict[str, dict]:
    """The figures of each lesson that has some, by the name that lessons.toml gives it."""
    return {title: part[name] for name, title in named(key).items() if name in part}


def label(results: dict) -> str:
    return f"{results['processor']}, {results['cores']} cores, JAX on {results['device']}"


def ratios(figures: dict, of: str, to: str) -> list[float]:
    """Repetition by repetition: what was measured side by side is compared. [] where one lacks."""
    if of not in figures or to not in figures:
        return []
    return [a / b for a, b in zip(figures[of], figures[to], strict=True)]


def span(values: list[float]) -> tuple[float, float, float] | None:
    """The lowest, the median and the highest."""
    return (min(values), median(values), max(values)) if values else None
