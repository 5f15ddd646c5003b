"""Stored benchmark results, and statistics on them.

A file may be partial: a loader that was not measured there is missing, and so is a figure that it
does not have. So all that is computed here is empty where a figure is missing, and what shows it
leaves a gap. Needs no package that a lesson needs.
"""

from pathlib import Path
from statistics import median
from typing import NamedTuple

from tools.lesson import lessons, machine

FOLDER = lessons.ROOT / "benchmarks" / "results"


class Part(NamedTuple):
    """Of a lesson one thing, timed beside its reference. All that names it stands here."""

    lesson: str
    kind: str  # the class in benchmarks/parts.py that measures it
    unit: str
    keys: tuple[str, ...]  # of it, and of the reference, in the results
    beside: str  # the reference, in words
    mark: float  # the least share of it
    heading: str  # in the report


PARTS = {
    "tokens": Part(
        lesson="language_model_data",
        kind="Tokens",
        unit="tokens",
        keys=("tokens_s", "copy_tokens_s"),
        beside="a copy of as many",
        mark=0.8,
        heading="windows of text, and their share of a copy of as many tokens",
    ),
    "storage": Part(
        lesson="files_and_storage",
        kind="Storage",
        unit="rows",
        keys=("rows_s", "at_once_rows_s", "one_rows_s"),
        beside="the same without waiting",
        mark=0.9,
        heading="rows where each answer waits 20 ms, and their share of the rows without waiting",
    ),
    "blocks": Part(
        lesson="arrays_on_disk",
        kind="Blocks",
        unit="windows",
        keys=("windows_s", "read_windows_s"),
        beside="the reads alone",
        mark=0.8,
        heading="windows of 2 GB of Zarr, in blocks of eight chunks, and their share of bare reads",
    ),
    "graphs": Part(
        lesson="graphs_and_ragged",
        kind="Graphs",
        unit="graphs",
        keys=("graphs_s", "joined_graphs_s"),
        beside="a loop that joins",
        mark=0.8,
        heading="batches of graphs, and their share of a loop that joins them",
    ),
    "frames": Part(
        lesson="video_and_episodes",
        kind="Frames",
        unit="windows",
        keys=("windows_s", "decoded_windows_s"),
        beside="a bare decoder",
        mark=0.8,
        heading="windows of a video, and their share of a bare decoder in as many threads",
    ),
}


def stored(folder: Path = FOLDER) -> list[dict]:
    """The results of each machine; those of a GPU come first. Raises Problem for a damaged file."""
    found = [machine.read(file) for file in sorted(folder.glob("*.json"))]
    return sorted(found, key=lambda results: results["device"] == "cpu")


def bench_entries(key: str) -> dict[str, object]:
    """For each lesson of which lessons.toml says it under `bench`, what it says."""
    benches = {name: entry.get("bench", {}) for name, entry in lessons.listed().items()}
    return {name: of[key] for name, of in benches.items() if key in of}


def titled(part: dict[str, dict], key: str) -> dict[str, dict]:
    """The figures of each lesson that has some, by the name that lessons.toml gives it."""
    return {title: part[name] for name, title in bench_entries(key).items() if name in part}


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
