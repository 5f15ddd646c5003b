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
import functools
import json
import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from statistics import median

import filelock
import packaging.requirements
import packaging.utils
import psutil

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from benchmarks import from_disk, report
from benchmarks import lesson as in_process
from tools import lessons, machine

RESULTS = Path(__file__).resolve().parent / "results"
# What the loader of a lesson is: not what else the lesson imports.
MODULES = {
    "grain": ["grain"],
    "huggingface_datasets": ["datasets"],
    "pytorch_dataloader": ["torch.utils.data"],
    "tensorflow_datasets": ["tensorflow", "tensorflow_datasets"],
}
# Of these lessons one thing is timed beside its reference: it has a key of its own in the results.
PARTS = {
    "language_model_data": (
        "tokens",
        (in_process.Windows, "tokens_per_second", ("tokens_s", "copy_tokens_s")),
    ),
    "files_and_storage": (
        "storage",
        (in_process.Storage, "rows_per_second", ("rows_s", "at_once_rows_s", "one_rows_s")),
    ),
}
LARGER = from_disk.FromDisk, "rows_per_second", ("rows_s", "mapped_rows_s")
# Shapes of an image, and batch sizes, beside those of MNIST in batches of 128.
SHAPES = [((28, 28), 32), ((28, 28), 512), ((32, 32, 3), 128), ((96, 96, 3), 128)]
SIZES = [2**power for power in range(10, 27, 4)]  # bytes of a DLPack hand-over
COUNTS = (0, 1, 4, 16, 64)  # short steps in a call: 0 is the step itself, not stacked
COPIES = (1, 4, 16)  # times the 60,000 examples
CONTEXT = multiprocessing.get_context("spawn")


class Process:
    """A `kind` of in_process, made in a new process, whose methods are called from here.

    `environment`: variables that the process gets beside those of this one.
    Raises lessons.Problem where a cell fails or the process dies, in_process.Refused where a
    pipeline is refused.
    """

    def __init__(
        self,
        name: str,
        copies: int = 1,
        kind: type = in_process.Lesson,
        environment: dict[str, str] | None = None,
    ):
        self.name = name
        self.connection, self.theirs = CONTEXT.Pipe()
        arguments = (self.theirs, kind, name, copies, environment or {})
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
        "date": machine.today(),
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
        figures["versions"] = lesson.call("versions")
        figures |= alternate(lesson, repetitions, seconds)
        figures |= lesson.call("transfers")
        figures["shapes"] = shapes(lesson, repetitions, seconds / 2)
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
    return figures | fastest(gathers)


def fastest(gathers: dict[str, list[float]]) -> dict:
    """The reference among the forms of NumPy's gather, and what each of them reached."""
    best = max(gathers, key=lambda form: median(gathers[form]))
    return {"numpy_images_s": gathers[best], "numpy_form": best, "gathers_images_s": gathers}


def shapes(lesson: Process, repetitions: int, seconds: float) -> dict[str, dict[str, list[float]]]:
    """For each other size of image and batch: the pipeline and NumPy's take, in turn."""
    found = {}
    for shape, batch_size in SHAPES:
        label = f"{batch_size} of {'x'.join(map(str, shape))}"
        say(lesson.name, f"batches of {label}")
        figures = {"images_s": [], "take_images_s": []}
        for _ in range(repetitions):
            speeds = lesson.call("of_shape", shape, batch_size, seconds)
            for values, speed in zip(figures.values(), speeds, strict=True):
                values.append(speed)
        found[label] = figures
    return found


def photos(lesson: Process, repetitions: int, seconds: float) -> dict[str, dict[str, list[float]]]:
    """With 1, 2, … workers: the loader, and the same decoder in as many processes at once.

    `decoder_images_s` is one reference for all lessons: the decoder of one of them, the fastest
    within its bound of pixels, in as many processes on the same files. It is shown, not judged.
    """
    found, folder = {}, lesson.call("photographs_folder")
    # A DataLoader's worker computes on one thread: so do the processes that are the limit.
    alone = functools.partial(Process, environment={"OMP_NUM_THREADS": "1"})
    for workers in worker_counts():
        say(lesson.name, f"a folder of JPEGs, {workers} at a time")
        names = ("images_s", "cores", "limit_images_s", "limit_cores")
        figures = {name: [] for name in (*names, "decoder_images_s")}
        own = [alone(lesson.name) for _ in range(workers)]
        of_all = [alone(in_process.DECODER, kind=in_process.Decoder) for _ in range(workers)]
        with ready(*own) as others, ready(*of_all) as decoders:
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


def beside(
    name: str, kind: type, method: str, keys: tuple[str, ...], repetitions: int, seconds: float
) -> dict:
    """The date, the versions, and under the keys what the method returns, each time.

    That is a speed and the speeds of its references.
    """
    say(name, f"{kind.__name__}: {method.replace('_', ' ')}")
    figures = {key: [] for key in keys}
    with ready(Process(name, kind=kind)) as [lesson]:
        lesson.call("check")
        for _ in range(repetitions):
            for values, speed in zip(figures.values(), lesson.call(method, seconds), strict=True):
                values.append(speed)
        return {"date": machine.today(), "versions": lesson.call("versions")} | figures


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


def merged(before: dict, news: dict) -> dict:
    """The results of before, with the lessons and all else of `news` in their place."""
    of_lessons = ("lessons", "larger")
    found = {key: before.get(key, {}) | news.get(key, {}) for key in of_lessons}
    others = ("exchange", "scans", "tokens", "storage")
    return found | {key: news.get(key, before.get(key, {})) for key in others}


def store(device: str, news: dict, before: dict, quick: bool) -> dict:
    """Put `news` into this machine's file; into `before`, where it is quick. Returns it all.

    Raises lessons.Problem when the file is damaged or cannot be written.
    """

    def with_news(content: dict) -> dict:
        return machine.describe(device) | merged(content, news)

    return with_news(before) if quick else machine.update(machine.path(RESULTS, device), with_news)


def jobs(
    names: list[str], repetitions: int, seconds: float
) -> Iterator[tuple[str, str, Callable[[], dict]]]:
    """What there is to measure: its key in the results, its lesson there or "", and the call."""
    how = repetitions, seconds
    loaders = [name for name in names if name not in PARTS]
    for name in loaders:
        yield "lessons", name, functools.partial(measure, name, *how)
    for name in names:
        if name in from_disk.STREAMS:
            yield "larger", name, functools.partial(beside, name, *LARGER, *how)
        if name in PARTS:
            key, what = PARTS[name]
            yield key, "", functools.partial(beside, name, *what, *how)
    if loaders:
        yield "exchange", "", functools.partial(exchange, repetitions)
        yield "scans", "", functools.partial(scans, repetitions)


def run(names: list[str], quick: bool) -> int:
    """Measure, store after each lesson, print the report. Returns the exit status."""
    repetitions, seconds = (1, 0.2) if quick else (5, 2.0)
    os.environ.update(lessons.kernel_environment())
    os.environ.update(MPLBACKEND="agg", XLA_PYTHON_CLIENT_PREALLOCATE="false")
    lessons.lay_out_data()
    start, results, troubles = time.perf_counter(), {}, []
    device = machine.device_from_outside()
    for key, name, measured in jobs(names, repetitions, seconds):
        try:
            figures = measured()
        except (in_process.Refused, lessons.Problem) as trouble:
            troubles.append(str(trouble))
            continue
        results = store(device, {key: {name: figures} if name else figures}, results, quick)
    if results:
        file = machine.path(RESULTS, results["device"]).relative_to(lessons.ROOT)
        minutes = (time.perf_counter() - start) / 60
        took = f"{minutes:.0f} minutes; {'nothing is written' if quick else file}."
        print(report.text(results), took, sep="\n\n")
    print(*troubles, sep="\n", file=sys.stderr)
    return 1 if troubles else 0


def measuring(job: str, what: str, run: Callable[[], int]) -> None:
    """Run it while no other run measures, and exit with its status, or with one sentence."""
    (lessons.NOTEBOOKS / "data").mkdir(exist_ok=True)
    lock = filelock.FileLock(lessons.NOTEBOOKS / "data" / ".bench.lock")
    try:
        with lock.acquire(timeout=0):
            code = run()
    except filelock.Timeout:
        sys.exit(f"{job}: another run is measuring: wait for it, or both are wrong.")
    except lessons.Problem as problem:
        sys.exit(f"{job}: {problem}")
    except KeyboardInterrupt:
        sys.exit(f"{job}: interrupted; the {what} that were finished are stored.")
    sys.exit(code)


def main() -> None:
    loaders = [name for name in lessons.names() if lessons.has_pipeline(name)]
    known = [*loaders, *(name for name in PARTS if lessons.notebook_path(name).is_file())]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="LESSON", help=f"of {', '.join(known)}")
    parser.add_argument("--quick", action="store_true", help="all of it once; writes nothing")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(known):
        parser.error(f"no pipeline in {', '.join(sorted(unknown))}: choose {', '.join(known)}.")
    if unknown := set(loaders) - MODULES.keys():
        sys.exit(
            "bench: say in MODULES of bench.py, and in the marks of report.py, what "
            f"{', '.join(sorted(unknown))} needs."
        )
    measuring("bench", "lessons", lambda: run(arguments.names or known, arguments.quick))


if __name__ == "__main__":
    main()
