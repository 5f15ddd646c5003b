"""Benchmark results as they are embedded in the lesson that chooses.

A notebook is opened alone, without benchmarks/results beside it. So `check --fix` writes what is
drawn there into its one cell with the tag `results`, and `check` says when that cell is stale.
"""

import functools
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import median

from tools.lesson import benchmark_results

WIDTH = 78  # columns


def source(folder: Path = benchmark_results.FOLDER, brief: bool = False) -> str:
    """The source of the cell: of each machine that has measured something of every part.

    `brief`: the medians that the lesson draws, in place of all that its depth draws.
    """
    found = {
        benchmark_results.label(results): summary(results)
        for results in benchmark_results.stored(folder)
    }
    shown = {name: figures for name, figures in found.items() if all(figures.values())}
    if brief:
        shown = {name: medians(figures) for name, figures in shown.items()}
    text = "\n".join(wrapped(shown))
    return f'{"MEDIANS" if brief else "MEASURED"} = json.loads(r"""\n{text}\n""")'


def medians(of_machine: dict) -> dict:
    """The medians of images per second, and of each library the megabytes on the disk."""
    photographs = of_machine["photographs"]
    workers = max({int(n) for found in photographs.values() for n in found})
    return {
        "date": of_machine["date"],
        "step": of_machine["loops"]["step"][1],
        "loops": {name: speed[1] for name, speed in of_machine["loops"]["loops"].items()},
        "reads": of_machine["loops"]["reads"],
        "workers": workers,
        "photographs": {
            loader: found[f"{workers}"]["images/s"][1]
            for loader, found in photographs.items()
            if f"{workers}" in found
        },
        "disk MB": {loader: found["disk MB"] for loader, found in of_machine["start"].items()},
    }


def summary(results: dict) -> dict:
    """What the lesson draws: of each figure the lowest, the median and the highest.

    A part is without the loaders that lack one of its figures, and empty where all do.
    """
    loaders = benchmark_results.titled(results.get("lessons", {}), "loader")
    streams = benchmark_results.titled(results.get("larger", {}), "from_disk")
    of_parts = {key: results.get(key, {}) for key in benchmark_results.PARTS}
    every, versions = loaders.values(), {}
    for figures in (*every, *streams.values(), *of_parts.values()):
        versions |= figures.get("versions", {})
    drawn = each(memory, loaders)
    return {
        "date": max((figures["date"] for figures in every), default=""),
        "python": versions.pop("python", ""),
        "versions": versions,
        "memory": drawn and drawn | {"NumPy": gather(loaders[title] for title in drawn)},
        "loops": part(loops, results.get("loops", {})),
        "photographs": each(photographs, loaders),
        "larger": each(lambda of: with_share(of, "rows/s", "rows_s", "mapped_rows_s"), streams),
        **{
            key: part(functools.partial(alone, what), of_parts[key])
            for key, what in benchmark_results.PARTS.items()
        },
        "start": each(start, loaders),
    }


def part(draw: Callable[[dict], dict], figures: dict) -> dict:
    """What is drawn of the figures; nothing where one of them is missing."""
    try:
        return draw(figures)
    except KeyError:
        return {}


def each(draw: Callable[[dict], dict], measured: dict[str, dict]) -> dict[str, dict]:
    """The same of each loader; without those of which it is nothing."""
    found = {title: part(draw, figures) for title, figures in measured.items()}
    return {title: drawn for title, drawn in found.items() if drawn}


def gather(measured: Iterable[dict]) -> dict:
    """The reference of all: the speeds of the loaders' gathers, and the form that most took."""
    every = [*measured]
    forms = Counter(figures.get("numpy_form", "") for figures in every)
    every_speed = [speed for figures in every for speed in figures["numpy_images_s"]]
    return {"images/s": speeds(every_speed), "form": forms.most_common(1)[0][0]}


def with_share(figures: dict, unit: str, of: str, to: str) -> dict:
    """Speeds in a unit, and the share of the reference's."""
    return {unit: speeds(figures[of]), "share": shares(figures, of, to)}


def alone(what: benchmark_results.Part, figures: dict) -> dict:
    """Of a part the speed and the share, and the speeds under its other keys."""
    of, to, *others = what.keys
    found = with_share(figures, f"{what.unit}/s", of, to)
    return found | {key.partition("_")[0]: speeds(figures[key]) for key in others}


def memory(figures: dict) -> dict:
    return with_share(figures, "images/s", "tuned_images_s", "numpy_images_s") | {
        "first": speeds(figures.get("first_images_s", [])),
    }


def loops(figures: dict) -> dict:
    """Images per second of each loader's own loop and of the step alone; what each loop reads."""

    def speed(seconds: list[float]) -> list[int]:
        return speeds([figures["images"] / s for s in seconds])

    alone = {loader: speed(seconds) for loader, seconds in figures["alone_s"].items()}
    reads = {loader: figures["reads"][loader] for loader in alone}
    return {"step": speed(figures["step_s"]), "loops": alone, "reads": reads}


def photographs(figures: dict) -> dict:
    return {
        workers: with_share(of, "images/s", "images_s", "limit_images_s")
        | {
            "cores": round(median(of["cores"]), 1),
            "one for all": speeds(of["decoder_images_s"]),
        }
        for workers, of in figures["photos"].items()
    }


def start(figures: dict) -> dict:
    return {
        "disk MB": round(figures["installation_bytes"] / 1e6),
        "import s": round(median(figures["import_s"]), 1),
        "import MB": round(median(figures["import_bytes"]) / 1e6),
        "first batch ms": round(median(figures["first_batch_s"]) * 1e3),
        "lines": [figures["tuned_lines"], figures["files_lines"]],
    }


def speeds(values: list[float]) -> list[int] | None:
    """The lowest, the median and the highest, to three digits; None where nothing was measured."""
    return (
        [int(float(f"{value:.3g}")) for value in benchmark_results.span(values)] if values else None
    )


def shares(figures: dict, of: str, to: str) -> list[float]:
    """The same of the ratios. Raises KeyError where one was not measured."""
    if not (ratios := benchmark_results.ratios(figures, of, to)):
        raise KeyError(of, to)
    return [round(value, 3) for value in benchmark_results.span(ratios)]


def wrapped(value: dict) -> list[str]:
    """JSON in lines of at most WIDTH columns, broken behind commas that are in no string."""
    lines = [""]
    for part in re.findall(r'(?:"(?:\\.|[^"\\])*"|[^",])+,?', json.dumps(value)):
        if lines[-1] and len(lines[-1]) + len(part) > WIDTH:
            lines.append("")
        lines[-1] += part if lines[-1] else part.lstrip()
    return [line.rstrip() for line in lines]
