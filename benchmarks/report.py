"""What the benchmark says of its results: tables, missed marks, and whether the machine was quiet.

The results are those of benchmarks/results/<machine>.json; what one of them lacks is a gap in its
table. Nothing here measures.
"""

from collections.abc import Callable
from statistics import median

import tabulate

from tools import results as stored
from tools.results import ratios, span

# At least this share of the reference, as medians of the ratios of each repetition. That of a
# loader from memory is in tools/results.py.
FILES_MARK, JUDGED_WORKERS = 0.85, "2"  # of the same decoder in as many processes
WINDOWS_MARK = 0.8  # of a copy of as many tokens
HIDDEN_MARK = 0.9  # of the speed of the same store without waiting
EPOCH_MARK = 1.05  # at most this multiple of resident data; judged on a GPU only
BUSY = 0.2  # cores: more work of others than this, and the machine is not quiet
VARIES = 1.5  # largest by smallest repetition of a reference: the same


def spread(figures: dict, of: str, to: str) -> str:
    """The median of the ratios, and how far they go."""
    shares = span(ratios(figures, of, to))
    return "{1:.2f} ({0:.2f} to {2:.2f})".format(*shares) if shares else ""


def middle(values: list[float] | float | None, form: str = ",.0f", unit: float = 1) -> str:
    """The median, or the number, in a unit; nothing where nothing was measured."""
    if not values:
        return ""
    return f"{median(values if isinstance(values, list) else [values]) / unit:{form}}"


def table(heading: str, measured: dict[str, dict], columns: Callable[[dict], dict]) -> list[str]:
    """The heading, and a row of `columns(figures)` for each name; nothing where there is none."""
    rows = [{"": name} | columns(figures) for name, figures in measured.items()]
    titles = dict.fromkeys(title for row in rows for title in row)
    whole = [{title: row.get(title, "") for title in titles} for row in rows]
    drawn = tabulate.tabulate(whole, headers="keys", disable_numparse=True, stralign="right")
    return [heading, drawn] if rows else []


def text(results: dict) -> str:
    """The tables, then a sentence for each missed mark and each disturbance."""
    parts = [
        stored.label(results),
        *of_loaders(results.get("lessons", {})),
        *table(
            "from disk, shuffled: rows of 16 kB, and the share of NumPy's gather of a mapped file",
            results.get("larger", {}),
            lambda of: {
                "rows/s": middle(of.get("rows_s")),
                "of the mapped file": spread(of, "rows_s", "mapped_rows_s"),
            },
        ),
    ]
    for key, line in {"tokens": windows_line, "storage": hidden_line}.items():
        if figures := results.get(key):
            parts.append(line(figures))
    return "\n\n".join([*parts, *missed(results), *disturbed(results)])


def of_loaders(measured: dict[str, dict]) -> list[str]:
    """The tables of the loader lessons, each below its heading."""
    marks = stored.named("tuned_mark")
    with_photos = {
        f"{name}, {workers}": of
        for name, figures in measured.items()
        for workers, of in figures.get("photos", {}).items()
    }
    return [
        *table(
            "tuned_batches, and its share of the reference: the fastest form in which NumPy "
            "gathered such batches in the same run",
            {name: of | {"mark": marks.get(name, "")} for name, of in measured.items()},
            lambda of: {
                "images/s": middle(of.get("tuned_images_s")),
                "of the reference": spread(of, "tuned_images_s", "numpy_images_s"),
                "mark": of["mark"],
                "reference": of.get("numpy_form", ""),
                "its images/s": middle(of.get("numpy_images_s")),
                "short answer, images/s": middle(of.get("short_images_s")),
                "first_batches, images/s": middle(of.get("first_images_s")),
            },
        ),
        *table(
            "a training epoch with tuned_batches, and its multiple of resident data",
            measured,
            lambda of: {
                "s": middle(of.get("epoch_s"), ".2f"),
                "of the limit": spread(of, "epoch_s", "resident_epoch_s"),
            },
        ),
        *table(
            "file_batches with so many workers, and its share of the same decoder in as many "
            f"processes at once (mark with {JUDGED_WORKERS}: {FILES_MARK}); beside it the decoder "
            "of one lesson, one for all, in as many processes",
            with_photos,
            lambda of: {
                "images/s": middle(of["images_s"]),
                "of the limit": spread(of, "images_s", "limit_images_s"),
                "busy cores": middle(of.get("cores"), ".1f"),
                "limit's cores": middle(of.get("limit_cores"), ".1f"),
                "one for all, images/s": middle(of.get("decoder_images_s")),
                "of it": spread(of, "images_s", "decoder_images_s"),
                "CPU ms an image": middle(ratios(of, "cores", "images_s"), ".2f", 1e-3),
                "limit's": middle(ratios(of, "limit_cores", "limit_images_s"), ".2f", 1e-3),
            },
        ),
        *table(
            "start: what the library adds to JAX, on the disk and when imported; seconds of the "
            "setup cells, then to the first batch of tuned_batches",
            measured,
            lambda of: {
                "MB on disk": middle(of.get("installation_bytes"), unit=1e6),
                "import, s": middle(of.get("import_s"), ".1f"),
                "import, MB": middle(of.get("import_bytes"), unit=1e6),
                "set up, s": middle(of.get("set_up_s"), ".1f"),
                "first batch, s": middle(of.get("first_batch_s"), ".3f"),
            },
        ),
        *table(
            "growth: time for an image as a multiple of that of 60,000 (and the gather's), and the "
            "memory that comes to it, without the examples",
            {name: stored.growth(of["growth"]) for name, of in measured.items() if "growth" in of},
            lambda of: {
                f"{copies} x 60,000": "{time:.2f} (gather {gather:.2f}), ".format(**grown)
                + f"{grown['bytes'] / 1e6:,.0f} MB"
                for copies, grown in of.items()
            },
        ),
        *table(
            "other sizes of batch and image: the share of NumPy's take",
            {name: of["shapes"] for name, of in measured.items() if "shapes" in of},
            lambda of: {s: spread(of[s], "images_s", "take_images_s") for s in of},
        ),
    ]


def missed(results: dict) -> list[str]:
    """A sentence for each mark that is missed. What was not measured misses none."""
    said, marks = [], stored.named("tuned_mark")
    same = f"the same decoder in {JUDGED_WORKERS} processes"
    for name, figures in results.get("lessons", {}).items():
        photos = figures.get("photos", {}).get(JUDGED_WORKERS, {})
        tuned = ratios(figures, "tuned_images_s", "numpy_images_s")
        decoded = ratios(photos, "images_s", "limit_images_s")
        multiples = ratios(figures, "epoch_s", "resident_epoch_s")
        for shares, mark, reference in (
            (tuned, marks.get(name, 0), "the NumPy gather"),
            (decoded, FILES_MARK, same),
        ):
            if shares and (share := median(shares)) < mark:
                said.append(f"{name} misses its mark: {share:.2f} of {reference}, not {mark}.")
        if results["device"] != "cpu" and multiples and median(multiples) > EPOCH_MARK:
            said.append(
                f"{name} misses its mark: an epoch takes {median(multiples):.2f} times that of "
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


def windows_line(of: dict) -> str:
    """What was measured of the lesson on text, and whether it reaches its mark."""
    said = f"language_model_data: {middle(of['tokens_s'])} tokens/s in windows"
    return judged(said, of, "tokens_s", "copy_tokens_s", "a copy of as many", WINDOWS_MARK)


def hidden_line(of: dict) -> str:
    """What was measured of the lesson on storage, and whether it reaches its mark."""
    said = (
        f"files_and_storage: {middle(of['rows_s'])} rows/s where each answer waits 20 ms "
        f"({middle(of['one_rows_s'])} with one request after the other)"
    )
    return judged(said, of, "rows_s", "at_once_rows_s", "the same without waiting", HIDDEN_MARK)


def judged(said: str, figures: dict, of: str, to: str, reference: str, mark: float) -> str:
    said += f", {spread(figures, of, to)} of {reference} (mark {mark})"
    missed = median(ratios(figures, of, to)) < mark
    return said + (": it misses its mark." if missed else ".")
