"""What the benchmark says of its results: tables, missed marks, and whether the machine was quiet.

The results are those of benchmarks/results/<machine>.json. Nothing here measures.
"""

from statistics import median

import tabulate

from benchmarks import lesson as in_process

# At least this share of the reference, as medians of the ratios of each repetition.
TUNED_MARKS = {  # of the fastest form of NumPy's gather
    "grain": 0.9,
    "huggingface_datasets": 0.9,
    "pytorch_dataloader": 0.85,
    "tensorflow_datasets": 0.55,
}
FILES_MARK, JUDGED_WORKERS = 0.85, "2"  # of the same decoder in as many processes
WINDOWS_MARK = 0.8  # of a copy of as many tokens
HIDDEN_MARK = 0.9  # of the speed of the same store without waiting
EPOCH_MARK = 1.05  # at most this multiple of resident data; judged on a GPU only
EXAMPLES_BYTES = 60_000 * (28 * 28 + 4)  # what the training set itself takes, as NumPy arrays
BUSY = 0.2  # cores: more work of others than this, and the machine is not quiet
VARIES = 1.5  # largest by smallest repetition of a reference: the same


def ratios(figures: dict, of: str, to: str) -> list[float]:
    """Repetition by repetition: what was measured side by side is compared."""
    return [a / b for a, b in zip(figures[of], figures[to], strict=True)]


def cpu_ms(figures: dict, cores: str, images_s: str) -> float:
    """Milliseconds of one core for an image."""
    return 1e3 * median(ratios(figures, cores, images_s))


def spread(values: list[float]) -> str:
    return f"{median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def text(results: dict) -> str:
    """The tables, then a sentence for each missed mark and each disturbance."""
    parts = [f"{results['processor']}, {results['cores']} cores, JAX on {results['device']}"]
    if results["lessons"]:
        parts += of_loaders(results["lessons"])
    if results["larger"]:
        parts += [
            "from disk, shuffled: rows of 16 kB, and the share of NumPy's gather of a mapped file",
            larger_table(results["larger"]),
        ]
    if results["exchange"]:
        parts += ["DLPack: microseconds of a hand-over", exchange_table(results["exchange"])]
    if results["scans"]:
        parts.append("short steps on a stream: the share of the time that a scan of several saves")
        parts.append(scans_table(results["scans"]))
    if results["tokens"]:
        parts.append(windows_line(results["tokens"]))
    if results["storage"]:
        parts.append(hidden_line(results["storage"]))
    return "\n\n".join([*parts, *missed(results), *disturbed(results)])


def of_loaders(measured: dict) -> list[str]:
    """The tables of the loader lessons, each below its heading."""
    return [
        "tuned_batches, and its share of the reference: the fastest form in which NumPy gathered "
        "such batches in the same run",
        tuned_table(measured),
        "a training epoch with tuned_batches, and its multiple of resident data",
        epoch_table(measured),
        "file_batches, and its share of the same decoder in as many processes at once; beside it "
        f"the decoder of {in_process.DECODER}, one for all, in as many processes",
        photos_table(measured),
        "start: what the library adds to JAX, on the disk and when imported; seconds of the setup "
        "cells, then to the first batch of tuned_batches",
        start_table(measured),
        "growth: time for an image as a multiple of that of 60,000 (and the gather's), "
        "memory beside the examples",
        growth_table(measured),
        "other sizes of batch and image: the share of NumPy's take",
        shapes_table(measured),
    ]


def table(rows: list[dict]) -> str:
    return tabulate.tabulate(rows, headers="keys", disable_numparse=True, stralign="right")


def tuned_table(measured: dict) -> str:
    return table(
        [
            {
                "": name,
                "images/s": f"{median(figures['tuned_images_s']):,.0f}",
                "of the reference": spread(ratios(figures, "tuned_images_s", "numpy_images_s")),
                "mark": TUNED_MARKS.get(name, ""),
                "reference": figures["numpy_form"],
                "its images/s": f"{median(figures['numpy_images_s']):,.0f}",
                "short answer, images/s": speed(figures["short_images_s"]),
                "first_batches, images/s": speed(figures["first_images_s"]),
            }
            for name, figures in measured.items()
        ]
    )


def speed(per_second: list[float]) -> str:
    return f"{median(per_second):,.0f}"


def epoch_table(measured: dict) -> str:
    return table(
        [
            {
                "": name,
                "s": f"{median(figures['epoch_s']):.2f}",
                "of the limit": spread(ratios(figures, "epoch_s", "resident_epoch_s")),
                "MB to the device": f"{figures['bytes_an_epoch'] / 1e6:.1f}",
                "programs": figures["programs"],
            }
            for name, figures in measured.items()
        ]
    )


def photos_table(measured: dict) -> str:
    return table(
        [
            {
                "": name,
                "workers": workers,
                "images/s": f"{median(photos['images_s']):,.0f}",
                "of the limit": spread(ratios(photos, "images_s", "limit_images_s")),
                "mark": FILES_MARK if workers == JUDGED_WORKERS else "",
                "busy cores": f"{median(photos['cores']):.1f}",
                "limit's cores": f"{median(photos['limit_cores']):.1f}",
                "one for all, images/s": speed(photos["decoder_images_s"]),
                "of it": spread(ratios(photos, "images_s", "decoder_images_s")),
                "CPU ms an image": f"{cpu_ms(photos, 'cores', 'images_s'):.2f}",
                "limit's": f"{cpu_ms(photos, 'limit_cores', 'limit_images_s'):.2f}",
            }
            for name, figures in measured.items()
            for workers, photos in figures["photos"].items()
        ]
    )


def start_table(measured: dict) -> str:
    return table(
        [
            {
                "": name,
                "MB on disk": f"{figures['installation_bytes'] / 1e6:,.0f}",
                "import, s": f"{median(figures['import_s']):.1f}",
                "import, MB": f"{median(figures['import_bytes']) / 1e6:,.0f}",
                "set up, s": f"{median(figures['set_up_s']):.1f}",
                "first batch, s": f"{median(figures['first_batch_s']):.3f}",
            }
            for name, figures in measured.items()
        ]
    )


def growth_table(measured: dict) -> str:
    rows = []
    for name, figures in measured.items():
        row, first = {"": name}, figures["growth"]["1"]
        for copies, grown in figures["growth"].items():
            slower, limit = (
                median(first[kind]) / median(grown[kind])
                for kind in ("images_s", "gather_images_s")
            )
            held = (grown["bytes"] - int(copies) * EXAMPLES_BYTES) / 1e6
            row[f"{copies} x 60,000"] = f"{slower:.2f} (gather {limit:.2f}), {held:,.0f} MB"
        rows.append(row)
    return table(rows)


def shapes_table(measured: dict) -> str:
    return table(
        [
            {"": name}
            | {
                label: spread(ratios(shape, "images_s", "take_images_s"))
                for label, shape in figures["shapes"].items()
            }
            for name, figures in measured.items()
        ]
    )


def larger_table(larger: dict) -> str:
    return table(
        [
            {
                "": name,
                "rows/s": speed(figures["rows_s"]),
                "of the mapped file": spread(ratios(figures, "rows_s", "mapped_rows_s")),
            }
            for name, figures in larger.items()
        ]
    )


def exchange_table(exchanged: dict) -> str:
    return table(
        [
            {"": direction}
            | {
                f"{int(size):,} bytes": f"{median(times[direction] for times in repetitions):.1f}"
                for size, repetitions in exchanged.items()
            }
            for direction in ("torch to JAX", "JAX to torch")
        ]
    )


def scans_table(times: dict) -> str:
    saved = {
        count: [1 - share for share in ratios(times, count, "0")] for count in times if count != "0"
    }
    return table([{f"{count} in a call": spread(shares) for count, shares in saved.items()}])


def missed(results: dict) -> list[str]:
    """A sentence for each mark that is missed."""
    said = []
    for name, figures in results["lessons"].items():
        share = median(ratios(figures, "tuned_images_s", "numpy_images_s"))
        if share < (mark := TUNED_MARKS.get(name, 0)):
            said.append(f"{name} misses its mark: {share:.2f} of the NumPy gather, not {mark}.")
        if photos := figures["photos"].get(JUDGED_WORKERS):
            share = median(ratios(photos, "images_s", "limit_images_s"))
            if share < FILES_MARK:
                said.append(
                    f"{name} misses its mark: {share:.2f} of the same decoder in {JUDGED_WORKERS} "
                    f"processes, not {FILES_MARK}."
                )
        multiple = median(ratios(figures, "epoch_s", "resident_epoch_s"))
        if results["device"] != "cpu" and multiple > EPOCH_MARK:
            said.append(
                f"{name} misses its mark: an epoch takes {multiple:.2f} times that of resident "
                f"data, not {EPOCH_MARK}."
            )
    return said


def disturbed(results: dict) -> list[str]:
    """A sentence for each lesson that was measured while other work ran."""
    said = []
    for name, figures in results["lessons"].items():
        others, limit = max(figures["busy_cores"]), figures["numpy_images_s"]
        if others > BUSY:
            said.append(f"{name}: the machine was not quiet, others kept {others:.1f} cores busy.")
        if max(limit) > VARIES * min(limit):
            said.append(
                f"{name}: the machine was not quiet, the reference itself varied from "
                f"{min(limit):,.0f} to {max(limit):,.0f} images/s."
            )
    return said


def windows_line(figures: dict) -> str:
    """What was measured of the lesson on text, and whether it reaches its mark."""
    said = f"language_model_data: {speed(figures['tokens_s'])} tokens/s in windows"
    shares = ratios(figures, "tokens_s", "copy_tokens_s")
    return judged(said, shares, "a copy of as many", WINDOWS_MARK)


def hidden_line(figures: dict) -> str:
    """What was measured of the lesson on storage, and whether it reaches its mark."""
    said = (
        f"files_and_storage: {speed(figures['rows_s'])} rows/s where each answer waits 20 ms "
        f"({speed(figures['one_rows_s'])} with one request after the other)"
    )
    shares = ratios(figures, "rows_s", "at_once_rows_s")
    return judged(said, shares, "the same without waiting", HIDDEN_MARK)


def judged(said: str, shares: list[float], reference: str, mark: float) -> str:
    said += f", {spread(shares)} of {reference} (mark {mark})"
    return said + (": it misses its mark." if median(shares) < mark else ".")
