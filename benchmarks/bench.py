"""Time the lessons' own pipelines, each beside its reference.

    tox run -e bench -- [--quick] [LESSON ...]

Runs the tagged cells of the loader lessons, each lesson in a process of its own. Checks a pipeline
before it is timed, and refuses one that loses, repeats or mis-types an example. Then measures in
alternation with the references, several times, and prints medians with their spread. Every
repetition goes to benchmarks/results/<machine>.json; a lesson that is not run keeps what is there.
`--quick` runs everything once, in a few minutes, and writes nothing.
"""

import argparse
import contextlib
import json
import multiprocessing
import os
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path
from statistics import median
from unittest import mock

import filelock
import packaging.requirements
import packaging.utils
import psutil
import tabulate

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from benchmarks import lesson as in_process
from tools import lessons, machine

RESULTS = Path(__file__).resolve().parent / "results"
# At least this share of the reference, as medians of the ratios of each repetition.
TUNED_MARKS = {  # while `tuned_batches` is a function of an epoch
    "grain": 0.4,
    "huggingface_datasets": 0.5,
    "pytorch_dataloader": 0.4,
    "tensorflow_datasets": 0.2,
}
# What the loader of a lesson is: not what else the lesson imports.
MODULES = {
    "grain": ["grain"],
    "huggingface_datasets": ["datasets"],
    "pytorch_dataloader": ["torch.utils.data"],
    "tensorflow_datasets": ["tensorflow", "tensorflow_datasets"],
}
STREAM_MARKS = {  # of the streams of rewritten lessons
    "grain": 0.9,
    "huggingface_datasets": 0.9,
    "pytorch_dataloader": 0.85,
    "tensorflow_datasets": 0.55,
}
# At least this share of the same decoder in as many processes, at every number of workers.
FILES_MARKS = {
    "grain": 0.75,
    "huggingface_datasets": 0.6,
    "pytorch_dataloader": 0.7,
    "tensorflow_datasets": 0.7,
}
FILES_STREAM_MARK = 0.85  # of rewritten lessons, with two workers
TEXT = "language_model_data"  # its windows are timed beside a copy, and nothing else of it
WINDOWS_MARK = 0.8  # of that copy
STORAGE = "files_and_storage"  # its stream, from a store that waits and from one that does not
HIDDEN_MARK = 0.9  # of the speed without waiting
EPOCH_MARK = 1.05  # at most this multiple of resident data; judged on a GPU only
FORM_BEFORE = "X[i]"  # of results that do not name their reference
SIZES = [2**power for power in range(10, 27, 4)]  # bytes of a DLPack hand-over
COUNTS = (0, 1, 4, 16, 64)  # short steps in a call: 0 is the step itself, not stacked
COPIES = (1, 4, 16)  # times the 60,000 examples
EXAMPLES_BYTES = 60_000 * (28 * 28 + 4)  # what the training set itself takes, as NumPy arrays
BUSY = 0.2  # cores: more work of others than this, and the machine is not quiet
VARIES = 1.5  # largest by smallest repetition of a reference: the same
CONTEXT = multiprocessing.get_context("spawn")


class Process:
    """A `kind` of in_process, made in a new process, whose methods are called from here.

    Raises lessons.Problem where a cell fails or the process dies, in_process.Refused where a
    pipeline is refused.
    """

    def __init__(self, name: str, copies: int = 1, kind: type = in_process.Lesson):
        self.name = name
        self.connection, self.theirs = CONTEXT.Pipe()
        arguments = (self.theirs, kind, name, copies)
        self.process = CONTEXT.Process(target=in_process.serve, args=arguments)

    def __enter__(self):
        self.process.start()
        self.theirs.close()
        return self

    def ask(self, method: str, *arguments) -> None:
        self.connection.send((method, arguments))

    def answer(self):
        try:
            kind, value = self.connection.recv()
        except EOFError:
            self.process.join()
            raise lessons.Problem(
                f"{self.name}: its process ended with exit code {self.process.exitcode}."
            ) from None
        if kind == "refused":
            raise in_process.Refused(f"{self.name} is refused: {value}")
        if kind == "failed":
            raise lessons.Problem(
                f"{self.name} does not run: {value}. "
                f"`pytest --nbval notebooks/{self.name}.ipynb` shows where."
            )
        return value

    def call(self, method: str, *arguments):
        self.ask(method, *arguments)
        return self.answer()

    def memory(self) -> int:
        """Bytes that only this process and its workers hold."""
        tree = [psutil.Process(self.process.pid)]
        tree += tree[0].children(recursive=True)
        return sum(process.memory_full_info().uss for process in tree)

    def __exit__(self, *_):
        descendants = []  # asked for now: those of a process that has ended are nobody's
        with contextlib.suppress(psutil.NoSuchProcess):
            descendants = psutil.Process(self.process.pid).children(recursive=True)
        with contextlib.suppress(OSError):
            self.connection.send(None)
        self.process.join(10)
        self.process.kill()
        for descendant in descendants:
            with contextlib.suppress(psutil.NoSuchProcess):
                descendant.kill()


@contextlib.contextmanager
def ready(*processes: Process):
    """All of them, started together, with their cells run."""
    with contextlib.ExitStack() as stack:
        for process in processes:
            stack.enter_context(process)
        for process in processes:
            process.set_up_s = process.answer()
        yield processes


def say(name: str, what: str) -> None:
    print(f"  {name:<22} {what}", file=sys.stderr, flush=True)


def import_cost(modules: list[str]) -> dict[str, float]:
    """Seconds and bytes of importing `modules`, in a new process that has JAX already.

    The bytes are resident, and count a library's pages also where another process has them too.
    """
    code = """
import importlib, json, sys, time
import jax, psutil
jax.block_until_ready(jax.numpy.ones(8))
process = psutil.Process()
held, start = process.memory_info().rss, time.perf_counter()
for module in sys.argv[1:]:
    importlib.import_module(module)
seconds = time.perf_counter() - start
print(json.dumps({"import_s": seconds, "import_bytes": process.memory_info().rss - held}))
"""
    done = subprocess.run(
        [sys.executable, "-c", code, *modules], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def installed(distributions: list[str]) -> dict[str, int]:
    """Bytes on the disk of these distributions and of all that they require."""
    sizes, wanted = {}, list(distributions)
    while wanted:
        name = packaging.utils.canonicalize_name(wanted.pop())
        if name in sizes:
            continue
        distribution = metadata.distribution(name)
        paths = [Path(file.locate()) for file in distribution.files or ()]
        sizes[name] = sum(path.stat().st_size for path in paths if path.is_file())
        for line in distribution.requires or ():
            requirement = packaging.requirements.Requirement(line)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                wanted.append(requirement.name)
    return sizes


def installation_bytes(modules: list[str]) -> int:
    """What the modules' distributions add to an installation of JAX, on the disk."""
    of_module = metadata.packages_distributions()
    wanted = [name for module in modules for name in of_module[module.partition(".")[0]]]
    without = installed(["jax"])
    return sum(size for name, size in installed(wanted).items() if name not in without)


def code_lines(name: str, tag: str) -> int:
    """Lines of the cells with this tag, without blank lines and comments."""
    cells = lessons.code_cells(lessons.read_notebook(name))
    source = [cell.source for cell in cells if tag in lessons.tags(cell)]
    lines = "\n".join(source).splitlines()
    return sum(bool(line.strip()) and not line.lstrip().startswith("#") for line in lines)


def busy() -> float:
    """Cores that work while this program does not, over one second."""
    return psutil.cpu_percent(interval=1) / 100 * psutil.cpu_count()


def measure(name: str, repetitions: int, seconds: float) -> dict:
    """Every figure of one lesson."""
    figures = {
        "installation_bytes": installation_bytes(MODULES[name]),
        "tuned_lines": code_lines(name, "tuned-pipeline"),
        "files_lines": code_lines(name, "files-pipeline"),
        "busy_cores": [busy()],
    }
    say(name, "check")
    with ready(Process(name)) as [lesson]:
        lesson.call("check")
    say(name, "cold start")
    figures |= {"import_s": [], "import_bytes": [], "set_up_s": [], "first_batch_s": []}
    for _ in range(min(repetitions, 3)):  # half a minute each
        for figure, value in import_cost(MODULES[name]).items():
            figures[figure].append(value)
        with ready(Process(name)) as [lesson]:
            figures["set_up_s"].append(lesson.set_up_s)
            figures["first_batch_s"].append(lesson.call("first_batch"))
    with ready(Process(name)) as [lesson]:
        figures |= {"device": lesson.call("device"), "versions": lesson.call("versions")}
        figures["streams"] = lesson.call("streams")
        figures |= alternate(lesson, repetitions, seconds)
        figures |= lesson.call("transfers")
        figures["photos"] = photos(lesson, repetitions, seconds)
    figures["growth"] = growth(name, repetitions, seconds)
    figures["busy_cores"].append(busy())
    return figures


def alternate(lesson: Process, repetitions: int, seconds: float) -> dict:
    """The pipelines and their references in turn, so that a disturbance meets all of them.

    `numpy_images_s` is the best of `gathers_images_s`: the reference, whose name is
    `numpy_form`.
    """
    pipelines, epochs = (
        {"tuned": "tuned_batches", "first": "first_batches"},
        ("epoch", "resident_epoch"),
    )
    if lesson.call("has_short_answer"):
        pipelines["short"] = "batches"
    figures = {f"{name}_images_s": [] for name in pipelines} | {f"{name}_s": [] for name in epochs}
    gathers = {form: [] for form in in_process.GATHERS}
    for repetition in range(repetitions):
        say(lesson.name, f"repetition {repetition + 1} of {repetitions}")
        for name, function in pipelines.items():
            figures[f"{name}_images_s"].append(lesson.call("throughput", function, seconds))
        for form, speeds in gathers.items():
            speeds.append(lesson.call("gather_throughput", seconds, form))
        for name in epochs:
            figures[f"{name}_s"].append(lesson.call(name))
    best = max(gathers, key=lambda form: median(gathers[form]))
    reference = {"numpy_images_s": gathers[best], "numpy_form": best, "gathers_images_s": gathers}
    return figures | reference


def photos(lesson: Process, repetitions: int, seconds: float) -> dict[str, dict[str, list[float]]]:
    """With 1, 2, … workers: the loader, and the same decoder in as many processes at once.

    `decoder_images_s` is one reference for all lessons: the decoder of one of them, the fastest
    within its bound of pixels, in as many processes on the same files. It is shown, not judged.
    """
    found, folder = {}, lesson.call("photographs_folder")
    # A DataLoader's worker computes on one thread: so do the processes that are the limit.
    one_thread = mock.patch.dict(os.environ, OMP_NUM_THREADS="1")
    for workers in worker_counts():
        say(lesson.name, f"a folder of JPEGs, {workers} at a time")
        names = ("images_s", "cores", "limit_images_s", "limit_cores")
        figures = {name: [] for name in (*names, "decoder_images_s")}
        own = [Process(lesson.name) for _ in range(workers)]
        of_all = [Process(in_process.DECODER, kind=in_process.Decoder) for _ in range(workers)]
        with one_thread, ready(*own) as others, ready(*of_all) as decoders:
            for _ in range(repetitions):
                speeds = [lesson.call("file_throughput", workers, seconds)]
                for other in others:
                    other.ask("file_throughput", 0, seconds)
                limits = [other.answer() for other in others]
                sums = (
                    sum(column) for rows in (speeds, limits) for column in zip(*rows, strict=True)
                )
                for name, value in zip(names, sums, strict=True):
                    figures[name].append(value)
                for decoder in decoders:
                    decoder.ask("folder_throughput", folder, seconds)
                figures["decoder_images_s"].append(sum(d.answer() for d in decoders))
        found[str(workers)] = figures
    return found


def worker_counts() -> list[int]:
    """1, 2, 4, … up to the number of cores."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return [2**power for power in range(cores.bit_length()) if 2**power <= cores]


def growth(name: str, repetitions: int, seconds: float) -> dict[str, dict]:
    """Throughput and memory when the dataset grows: `tuned_batches` and NumPy's take, in turn."""
    say(name, f"{', '.join(map(str, COPIES))} times the examples")
    grown = {str(copies): {"images_s": [], "gather_images_s": []} for copies in COPIES}
    with ready(*[Process(name, copies) for copies in COPIES]) as processes:
        for _ in range(repetitions):
            for process, figures in zip(processes, grown.values(), strict=True):
                speed = process.call("throughput", "tuned_batches", seconds)
                figures["images_s"].append(speed)
                figures["gather_images_s"].append(process.call("gather_throughput", seconds))
        for process, figures in zip(processes, grown.values(), strict=True):
            figures["bytes"] = process.memory()
    return grown


def windows(repetitions: int, seconds: float) -> dict[str, list[float]]:
    """Tokens per second of the windows of the lesson on text, and of a copy of as many."""
    say(TEXT, "windows")
    figures = {"tokens_s": [], "copy_tokens_s": []}
    with ready(Process(TEXT, kind=in_process.Windows)) as [lesson]:
        lesson.call("check")
        for _ in range(repetitions):
            for values, speed in zip(
                figures.values(), lesson.call("tokens_per_second", seconds), strict=True
            ):
                values.append(speed)
    return figures


def windows_line(figures: dict[str, list[float]]) -> str:
    """What was measured, and whether it reaches its mark."""
    shares = ratios(figures, "tokens_s", "copy_tokens_s")
    said = (
        f"{TEXT}: {median(figures['tokens_s']):,.0f} tokens/s in windows, "
        f"{spread(shares)} of a copy of as many (mark {WINDOWS_MARK})"
    )
    return said + (": it misses its mark." if median(shares) < WINDOWS_MARK else ".")


def hidden(repetitions: int, seconds: float) -> dict[str, list[float]]:
    """Rows per second of the stream, from a store that waits 20 ms and from one that does not."""
    say(STORAGE, "a store that waits")
    figures = {"rows_s": [], "at_once_rows_s": []}
    with ready(Process(STORAGE, kind=in_process.Storage)) as [lesson]:
        lesson.call("check")
        for _ in range(repetitions):
            for values, speed in zip(
                figures.values(), lesson.call("rows_per_second", seconds), strict=True
            ):
                values.append(speed)
    return figures


def hidden_line(figures: dict[str, list[float]]) -> str:
    """What was measured, and whether it reaches its mark."""
    shares = ratios(figures, "rows_s", "at_once_rows_s")
    said = (
        f"{STORAGE}: {median(figures['rows_s']):,.0f} rows/s where each answer waits 20 ms, "
        f"{spread(shares)} of the same without waiting (mark {HIDDEN_MARK})"
    )
    return said + (": it misses its mark." if median(shares) < HIDDEN_MARK else ".")


def exchange(repetitions: int) -> dict[str, list[dict[str, float]]]:
    """For each size in bytes, the microseconds of a DLPack hand-over in each direction."""
    say("dlpack_zero_copy", "hand-overs")
    times = {str(size): [] for size in SIZES}
    with ready(Process("dlpack_zero_copy", kind=in_process.Exchange)) as [process]:
        process.call("microseconds", SIZES[0])  # the first call imports and compiles
        for _ in range(repetitions):
            for size in SIZES:
                times[str(size)].append(process.call("microseconds", size))
    return times


def scans(repetitions: int) -> dict[str, list[float]]:
    """For each number of short steps in a call, the seconds of as many steps on a stream."""
    say("feed_the_device", "steps in a call")
    times = {str(count): [] for count in COUNTS}
    with ready(Process("feed_the_device")) as [process]:
        for _ in range(repetitions):
            for count in COUNTS:
                times[str(count)].append(process.call("short_steps", count))
    return times


def ratios(figures: dict, of: str, to: str) -> list[float]:
    """Repetition by repetition: what was measured side by side is compared."""
    return [a / b for a, b in zip(figures[of], figures[to], strict=True)]


def cpu_ms(figures: dict, cores: str, images_s: str) -> float:
    """Milliseconds of one core for an image."""
    return 1e3 * median(ratios(figures, cores, images_s))


def spread(values: list[float]) -> str:
    return f"{median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def tuned_mark(name: str, figures: dict) -> float:
    """What was measured is judged, and stored results may be older than the lesson."""
    stream = figures.get("streams", {}).get("tuned")
    return (STREAM_MARKS if stream else TUNED_MARKS).get(name, 0)


def files_mark(name: str, figures: dict, workers: str) -> float:
    stream = figures.get("streams", {}).get("file")
    return FILES_STREAM_MARK if stream and workers == "2" else FILES_MARKS.get(name, 0)


def report(results: dict) -> str:
    """The tables, then a sentence for each missed mark and each disturbance."""
    measured = results["lessons"]
    parts = [
        f"{results['processor']}, {results['cores']} cores, JAX on {results['device']}",
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
    ]
    if results["exchange"]:
        parts.append("DLPack: microseconds of a hand-over")
        parts.append(exchange_table(results["exchange"]))
    if results.get("scans"):
        parts.append("short steps on a stream: the share of the time that a scan of several saves")
        parts.append(scans_table(results["scans"]))
    return "\n\n".join([*parts, *missed(results), *disturbed(results)])


def table(rows: list[dict]) -> str:
    return tabulate.tabulate(rows, headers="keys", disable_numparse=True, stralign="right")


def tuned_table(measured: dict) -> str:
    return table(
        [
            {
                "": name,
                "images/s": f"{median(figures['tuned_images_s']):,.0f}",
                "of the reference": spread(ratios(figures, "tuned_images_s", "numpy_images_s")),
                "mark": tuned_mark(name, figures) or "",
                "reference": figures.get("numpy_form", FORM_BEFORE),
                "its images/s": f"{median(figures['numpy_images_s']):,.0f}",
                "short answer, images/s": speed(figures.get("short_images_s")),
                "first_batches, images/s": speed(figures["first_images_s"]),
            }
            for name, figures in measured.items()
        ]
    )


def speed(images_s: list[float] | None) -> str:
    return f"{median(images_s):,.0f}" if images_s else ""


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
                "mark": files_mark(name, figures, workers) or "",
                "busy cores": f"{median(photos['cores']):.1f}",
                "limit's cores": f"{median(photos['limit_cores']):.1f}",
                "one for all, images/s": speed(photos.get("decoder_images_s")),
                "of it": of_the_decoder(photos),
                "CPU ms an image": f"{cpu_ms(photos, 'cores', 'images_s'):.2f}",
                "limit's": f"{cpu_ms(photos, 'limit_cores', 'limit_images_s'):.2f}",
            }
            for name, figures in measured.items()
            for workers, photos in figures["photos"].items()
        ]
    )


def of_the_decoder(photos: dict) -> str:
    """Results of before do not have the reference."""
    measured = photos.get("decoder_images_s")
    return spread(ratios(photos, "images_s", "decoder_images_s")) if measured else ""


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
        if share < (mark := tuned_mark(name, figures)):
            said.append(f"{name} misses its mark: {share:.2f} of the NumPy gather, not {mark}.")
        for workers, photos in figures["photos"].items():
            share = median(ratios(photos, "images_s", "limit_images_s"))
            if share < (mark := files_mark(name, figures, workers)):
                said.append(
                    f"{name} misses its mark: {share:.2f} of the same decoder in {workers} "
                    f"processes, not {mark}."
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


def run(names: list[str], quick: bool) -> int:
    """Measure, store after each lesson, print the report. Returns the exit status."""
    repetitions, seconds = (1, 0.2) if quick else (5, 2.0)
    os.environ.update(lessons.kernel_environment())
    os.environ.update(MPLBACKEND="agg", XLA_PYTHON_CLIENT_PREALLOCATE="false")
    lessons.lay_out_data()
    start, results, troubles = time.perf_counter(), None, []
    for name in [name for name in names if name not in (TEXT, STORAGE)]:
        try:
            figures = measure(name, repetitions, seconds)
        except (in_process.Refused, lessons.Problem) as trouble:
            troubles.append(str(trouble))
            continue
        path = machine.path(RESULTS, figures["device"])
        if results is None:
            before = {} if quick else machine.read(path)
            kept = {key: before.get(key, {}) for key in ("lessons", "exchange", "scans")}
            results = machine.describe(figures["device"]) | kept
        results["lessons"][name] = {"date": machine.today()} | figures
        if not quick:
            machine.write(path, results)
    if results:
        try:
            results["exchange"] = exchange(repetitions)
            results["scans"] = scans(repetitions)
        except (in_process.Refused, lessons.Problem) as trouble:
            troubles.append(str(trouble))
        if not quick:
            machine.write(path, results)
        where = "nothing is written" if quick else path.relative_to(lessons.ROOT)
        minutes = (time.perf_counter() - start) / 60
        print(report(results), f"{minutes:.0f} minutes; {where}.", sep="\n\n")
    for name, figures, line in (
        (TEXT, windows, windows_line),
        (STORAGE, hidden, hidden_line),
    ):  # printed only: their figures stand in no table
        if name in names:
            try:
                print(line(figures(repetitions, seconds)))
            except (in_process.Refused, lessons.Problem) as trouble:
                troubles.append(str(trouble))
    print(*troubles, sep="\n", file=sys.stderr)
    return 1 if troubles else 0


def main() -> None:
    loaders = [name for name in lessons.names() if lessons.has_pipeline(name)]
    known = [*loaders, *(n for n in (TEXT, STORAGE) if lessons.notebook_path(n).is_file())]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="LESSON", help=f"of {', '.join(known)}")
    parser.add_argument("--quick", action="store_true", help="all of it once; writes nothing")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(known):
        parser.error(f"no pipeline in {', '.join(sorted(unknown))}: choose {', '.join(known)}.")
    if unknown := set(loaders) - MODULES.keys():
        sys.exit(f"bench: say in MODULES and in the marks what {', '.join(sorted(unknown))} needs.")
    (lessons.NOTEBOOKS / "data").mkdir(exist_ok=True)
    lock = filelock.FileLock(lessons.NOTEBOOKS / "data" / ".bench.lock")
    try:
        with lock.acquire(timeout=0):
            code = run(arguments.names or known, arguments.quick)
    except filelock.Timeout:
        sys.exit("bench: another run is measuring: wait for it, or both are wrong.")
    except lessons.Problem as problem:
        sys.exit(f"bench: {problem}")
    except KeyboardInterrupt:
        sys.exit("bench: interrupted; the lessons that were finished are stored.")
    sys.exit(code)


if __name__ == "__main__":
    main()
