"""What the benchmark says of its results: tables, missed marks, and whether the machine was quiet.

The tables hold what the lesson that chooses draws: of each figure the median, the lowest and the
highest. What was not measured is a gap. Nothing here measures.
"""

from collections.abc import Iterator
from statistics import median

import tabulate

from tools.lesson import benchmark_results, result_cells

# At least this share of the reference, as medians of the ratios of each repetition. That of a
# loader from memory is in lessons.toml, that of a part in results.PARTS.
FILES_MARK, JUDGED_WORKERS = 0.85, "2"  # of the same decoder in as many processes
EPOCH_MARK = 1.05  # at most this multiple of resident data; judged on a GPU only
BUSY = 0.2  # cores: more work of others than this, and the machine is not quiet
VARIES = 1.5  # largest by smallest repetition of a reference: the same
# By the parts of result_cells.summary.
HEADINGS = {
    "memory": "tuned_batches, and its share of the fastest form of a NumPy gather in the same run",
    "photographs": "file_batches by workers, and its share of the same decoder without a loader",
    "larger": "from disk, shuffled: rows of 16 kB, and the share of a gather of a mapped file",
    **{key: part.heading for key, part in benchmark_results.PARTS.items()},
    "start": "what the library adds to JAX, and the time to the first batch",
}


def as_text(results: dict) -> str:
    """The tables, then a sentence for each missed mark and each disturbance."""
    shown = result_cells.summary(results)
    parts = [benchmark_results.label(results)]
    parts += table("the loops of the page that compares the loaders", loops(results))
    for part, heading in HEADINGS.items():
        one = part in benchmark_results.PARTS and shown[part]
        parts += table(heading, {"": shown[part]} if one else shown[part])
    epochs = {
        title: {
            "s": benchmark_results.span(of["epoch_s"]),
            "of it": benchmark_results.span(multiples(of)),
        }
        for title, of in loaders(results).items()
        if "epoch_s" in of
    }
    parts += table("a training epoch with tuned_batches, and its multiple of resident data", epochs)
    return "\n\n".join([*parts, *missed(results), *disturbed(results)])


def table(heading: str, rows: dict[str, dict]) -> list[str]:
    """The heading, and a row for each name; nothing where there is none."""
    drawn = [{"": name} | dict(cells(figures)) for name, figures in rows.items()]
    options = {"headers": "keys", "stralign": "right", "disable_numparse": True}
    return [heading, tabulate.tabulate(drawn, **options)] if rows else []


def cells(figures: dict, above: str = "") -> Iterator[tuple[str, str]]:
    """The titles and texts of a row: figures, and those that lie in other figures."""
    for title, value in figures.items():
        if isinstance(value, dict):
            yield from cells(value, f"{above}{title}: ")
        else:
            yield above + title, cell(value)


def cell(value) -> str:
    """Of three numbers the median, and how far they go; nothing where nothing was measured."""
    if isinstance(value, list | tuple):
        parts = [*map(cell, value)]
        numbers = len(parts) == 3 and not isinstance(value[0], str)
        return "{1} ({0} to {2})".format(*parts) if numbers else ", ".join(parts)
    if isinstance(value, float):
        return f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else value or ""


def loops(results: dict) -> dict[str, dict]:
    """Images per second of each loader, alone and with training."""
    of = results.get("loops", {"alone_s": {}})
    return {
        name: {
            title: result_cells.speeds([of["images"] / seconds for seconds in of[key][name]])
            for title, key in (("images/s", "alone_s"), ("with training", "trained_s"))
            if name in of[key]
        }
        for name in of["alone_s"]
    }


def loaders(results: dict) -> dict[str, dict]:
    return benchmark_results.titled(results.get("lessons", {}), "loader")


def multiples(figures: dict) -> list[float]:
    return benchmark_results.ratios(figures, "epoch_s", "resident_epoch_s")


def missed(results: dict) -> list[str]:
    """A sentence for each mark that is missed. What was not measured misses none."""
    shown, marks, judged = (
        result_cells.summary(results),
        benchmark_results.bench_entries("tuned_mark"),
        [],
    )
    same = f"the same decoder in {JUDGED_WORKERS} processes"
    for name, title in benchmark_results.bench_entries("loader").items():
        photographs = shown["photographs"].get(title, {}).get(JUDGED_WORKERS)
        judged.append((title, shown["memory"].get(title), marks.get(name, 0), "the NumPy gather"))
        judged.append((title, photographs, FILES_MARK, same))
    judged += [
        (p.lesson, shown[key], p.mark, p.beside) for key, p in benchmark_results.PARTS.items()
    ]
    said = [
        f"{what} misses its mark: {of['share'][1]:.2f} of {reference}, not {mark}."
        for what, of, mark, reference in judged
        if of and of["share"][1] < mark
    ]
    for title, figures in loaders(results).items():
        times = multiples(figures)
        if results["device"] != "cpu" and times and median(times) > EPOCH_MARK:
            said.append(
                f"{title} misses its mark: an epoch takes {median(times):.2f} times that of "
                f"resident data, not {EPOCH_MARK}."
            )
    return said


def disturbed(results: dict) -> list[str]:
    """A sentence for each lesson that was measured while other work ran."""
    said = []
    for name, figures in results.get("lessons", {}).items():
        busy, limit = max(figures.get("busy_cores", [0])), figures.get("numpy_images_s", [1])
        if busy > BUSY:
            said.append(f"{name}: the machine was not quiet, others kept {busy:.1f} cores busy.")
        if max(limit) > VARIES * min(limit):
            said.append(
                f"{name}: the machine was not quiet, the reference itself varied from "
                f"{min(limit):,.0f} to {max(limit):,.0f} images/s."
            )
    return said
