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
import multiprocessing.connection
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from importlib import metadata
from pathlib import Path
from statistics import median

import filelock
import packaging.requirements
import packaging.utils
import psutil

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from benchmarks import from_disk, in_process, loops, parts, photographs, report
from offline.problem import Problem
from tools.lesson import benchmark_results, lessons, machine, modules
from tools.run import kernels, runner

PARTS = {part.lesson: key for key, part in benchmark_results.PARTS.items()}
EPOCHS = {  # by their keys
    "epoch_s": "epoch",
    "resident_epoch_s": "resident_epoch",
}
BY_NAME = {"lessons", "larger"}  # keys of the results, below which figures have names
ENVIRONMENT = {"MPLBACKEND": "agg", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
Job = tuple[str, str, Callable[[], dict]]
FOR_CUDA = "nvidia-", "cuda-", "triton"  # how the names of such distributions begin
CONTEXT = multiprocessing.get_context("spawn")


class Process:
    """A `kind` of in_process.Lesson, made in a new process, whose methods are called from here.

    `environment`: variables that the process gets beside those of this one.
    Raises in_process.Refused where a pipeline is refused, and Problem where a cell fails or the
    process dies, with the name of the lesson. Any other error is one of the benchmark, and goes up
    as it is.
    """

    def __init__(
        self,
        name: str,
        kind: type = in_process.Lesson,
        environment: dict[str, str] | None = None,
    ):
        self.name = name
        self.making = in_process.make, kind, name, environment or {}

    def __enter__(self):
        others = set(multiprocessing.active_children())
        self.pool = ProcessPoolExecutor(1, CONTEXT)
        self.answering = self.pool.submit(*self.making)
        [self.process] = set(multiprocessing.active_children()) - others
        return self

    def ask(self, method: str, *arguments) -> None:
        with self.naming_the_lesson():
            self.answering = self.pool.submit(in_process.call, method, *arguments)

    def answer(self):
        with self.naming_the_lesson():
            return self.answering.result()

    def call(self, method: str, *arguments):
        self.ask(method, *arguments)
        return self.answer()

    @contextlib.contextmanager
    def naming_the_lesson(self) -> Iterator[None]:
        """Errors that this process causes, with the name of its lesson."""
        try:
            yield
        except in_process.Refused as refused:
            raise in_process.Refused(f"{self.name} is refused: {refused}") from refused
        except BrokenProcessPool as broken:
            self.pool.shutdown()  # waits for its exit code
            code = self.process.exitcode
            raise Problem(f"{self.name}: its process ended with {code}.") from broken
        except Exception as error:
            error.add_note(f"This is of {self.name}.")
            raise

    def __exit__(self, *_):
        descendants = []  # asked for now: those of a process that has ended are nobody's
        with contextlib.suppress(psutil.NoSuchProcess):
            descendants = psutil.Process(self.process.pid).children(recursive=True)
        self.pool.shutdown(wait=False, cancel_futures=True)
        multiprocessing.connection.wait([self.process.sentinel], 10)
        self.process.kill()
        self.process.join()
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
            process.answer()
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
    """Bytes on the disk of these distributions and of all that they require, as for a CPU.

    What is there for CUDA only is left out: the wheels of some libraries bring it and those of
    others do not, and JAX for a GPU has most of it already.
    """
    sizes, wanted = {}, list(distributions)
    while wanted:
        name = packaging.utils.canonicalize_name(wanted.pop())
        if name in sizes or name.startswith(FOR_CUDA):
            continue
        distribution = metadata.distribution(name)
        files = [file for file in distribution.files or () if "cuda" not in file.name]
        paths = [Path(file.locate()) for file in files]
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
    lines = "\n".join(cell.source for cell in lessons.subject_cells(name, tag)).splitlines()
    return sum(bool(line.strip()) and not line.lstrip().startswith("#") for line in lines)


def busy() -> float:
    """Cores that work while this program does not, over one second."""
    return psutil.cpu_percent(interval=1) / 100 * psutil.cpu_count()


def in_turn(
    repetitions: int, keys: tuple[str, ...], take: Callable[[], tuple[float, ...]]
) -> dict[str, list[float]]:
    """Under each of the keys its part of what `take` returns, each time.

    What one call measures lies side by side: a disturbance meets all of it.
    """
    taken = [take() for _ in range(repetitions)]
    return dict(zip(keys, map(list, zip(*taken, strict=True)), strict=True))


def measure(name: str, repetitions: int, seconds: float) -> dict:
    """Every figure of one lesson."""
    modules = benchmark_results.bench_entries("modules")[name]
    figures = {
        "date": machine.today(),
        "installation_bytes": installation_bytes(modules),
        "tuned_lines": code_lines(name, "tuned-pipeline"),
        "files_lines": code_lines(name, "files-pipeline"),
        "busy_cores": [busy()],
    }
    say(name, "check")
    with ready(Process(name)) as [lesson]:
        lesson.call("check")
    say(name, "cold start")
    figures |= {"import_s": [], "import_bytes": [], "first_batch_s": []}
    for _ in range(min(repetitions, 3)):  # half a minute each
        for figure, value in import_cost(modules).items():
            figures[figure].append(value)
        with ready(Process(name)) as [lesson]:
            figures["first_batch_s"].append(lesson.call("first_batch"))
    with ready(Process(name)) as [lesson]:
        figures["versions"] = lesson.call("versions")
        pipelines = {"tuned_images_s": "tuned_batches", "first_images_s": "first_batches"}
        figures |= alternate(lesson, repetitions, seconds, pipelines, EPOCHS)
        figures["photos"] = photos(lesson, repetitions, seconds)
    figures["busy_cores"].append(busy())
    return figures


def alternate(
    lesson: Process,
    repetitions: int,
    seconds: float,
    pipelines: dict[str, str],
    epochs: dict[str, str],
) -> dict:
    """The pipelines, by their keys, and their references in turn.

    `numpy_images_s` is the best of `gathers_images_s`: the reference, whose name is `numpy_form`.
    """
    calls = {key: ("throughput", function, seconds) for key, function in pipelines.items()}
    calls |= {form: ("gather_throughput", seconds, form) for form in in_process.GATHERS}
    calls |= {key: (method,) for key, method in epochs.items()}

    def once() -> list[float]:
        say(lesson.name, "a repetition")
        return [lesson.call(*call) for call in calls.values()]

    figures = in_turn(repetitions, tuple(calls), once)
    gathers = {form: figures.pop(form) for form in in_process.GATHERS}
    best = max(gathers, key=lambda form: median(gathers[form]))
    reference = {"numpy_images_s": gathers[best], "numpy_form": best, "gathers_images_s": gathers}
    return figures | reference


def photos(lesson: Process, repetitions: int, seconds: float) -> dict[str, dict[str, list[float]]]:
    """With 1, 2, … workers, or 1 for a single repetition: the loader, and its references, in turn.

    The references run in as many processes: the decoder of the lesson itself, by which it is
    judged, and one for all lessons, which is shown: the fastest within its bound of pixels.
    """
    found = {}
    # A DataLoader's worker computes on one thread: so do the processes that are the limit.
    alone = functools.partial(Process, environment={"OMP_NUM_THREADS": "1"})
    keys = "images_s", "cores", "limit_images_s", "decoder_images_s"
    with photographs.small_photographs() as folder:
        for workers in worker_counts() if repetitions > 1 else [1]:
            say(lesson.name, f"a folder of JPEGs, {workers} at a time")
            own = [alone(lesson.name) for _ in range(workers)]
            of_all = [alone(in_process.DECODER) for _ in range(workers)]

            def once(own=own, of_all=of_all, workers=workers) -> list[float]:
                speeds = [*lesson.call("file_throughput", workers, seconds, folder)]
                for limits in (own, of_all):
                    rates = together(limits, "file_throughput", 0, seconds, folder)
                    speeds.append(sum(speed for speed, _ in rates))
                return speeds

            with ready(*own), ready(*of_all):
                found[str(workers)] = in_turn(repetitions, keys, once)
    return found


def together(processes: list[Process], method: str, *arguments) -> list:
    """What all of them answer, who work at the same time."""
    for process in processes:
        process.ask(method, *arguments)
    return [process.answer() for process in processes]


def worker_counts() -> list[int]:
    """1, 2, 4, … up to the number of cores."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return [2**power for power in range(cores.bit_length()) if 2**power <= cores]


def measure_part(
    name: str, kind: type, keys: tuple[str, ...], repetitions: int, seconds: float
) -> dict:
    """The date, the versions, and what `speeds` of this kind returns, under these keys."""
    say(name, f"{kind.__name__}: {', '.join(keys)}")
    with ready(Process(name, kind=kind)) as [lesson]:
        lesson.call("check")
        speeds = in_turn(repetitions, keys, functools.partial(lesson.call, "speeds", seconds))
        return {"date": machine.today(), "versions": lesson.call("versions")} | speeds


def jobs(names: list[str], repetitions: int, seconds: float) -> Iterator[Job]:
    """What there is to measure: its key in the results, its lesson there or "", and the call."""
    how = repetitions, seconds
    if loops.PAGE in names:
        yield "loops", "", functools.partial(loops.measure, repetitions)
        names = [name for name in names if name != loops.PAGE]
    for name in names:
        if name not in PARTS:
            yield "lessons", name, functools.partial(measure, name, *how)
    for name in names:
        if name in from_disk.STREAMS:
            disk = from_disk.FromDisk
            yield "larger", name, functools.partial(measure_part, name, disk, disk.keys, *how)
        if key := PARTS.get(name):
            part = benchmark_results.PARTS[key]
            kind = getattr(parts, part.kind)
            yield key, "", functools.partial(measure_part, name, kind, part.keys, *how)


def store(folder: Path, device: str, news: dict, before: dict | None) -> dict:
    """Put `news`, a key and its figures, into this machine's file; into `before`, if there is one.

    The figures of other lessons below the same key stay, where they are of "lessons" or "larger".
    Returns all results. Raises Problem for a file that is damaged or cannot be written.
    """

    def with_news(content: dict) -> dict:
        [(key, figures)] = news.items()
        kept = content.get(key, {}) if key in BY_NAME else {}
        return content | machine.describe(device) | {key: kept | figures}

    if before is not None:
        return with_news(before)
    return machine.update(machine.path(folder, device), with_news)


def run(jobs: Iterable[Job], text: Callable[[dict], str], folder: Path, quick: bool) -> int:
    """Measure, store after each job, print the report. Returns the exit status."""
    start, results, troubles = time.perf_counter(), {}, []
    device = machine.device_from_outside()
    for key, name, measured in jobs:
        try:
            figures = measured()
        except (in_process.Refused, runner.Failed, Problem) as trouble:
            troubles.append(str(trouble))
            continue
        news = {key: {name: figures} if name else figures}
        results = store(folder, device, news, results if quick else None)
    if results:
        file = machine.path(folder, device).relative_to(lessons.ROOT)
        minutes = (time.perf_counter() - start) / 60
        took = f"{minutes:.0f} minutes; {'nothing is written' if quick else file}."
        print(text(results), took, sep="\n\n")
    print(*troubles, sep="\n", file=sys.stderr)
    return 1 if troubles else 0


def measuring(job: str, environment: dict[str, str], run: Callable[[], int]) -> None:
    """Run it while no other run measures, and exit with its status, or with one sentence."""
    os.environ.update(kernels.kernel_environment() | ENVIRONMENT | environment)
    (lessons.NOTEBOOKS / "data").mkdir(exist_ok=True)
    lock = filelock.FileLock(lessons.NOTEBOOKS / "data" / ".bench.lock")
    try:
        with lock.acquire(timeout=0):
            code = run()
    except filelock.Timeout:
        sys.exit(f"{job}: another run is measuring: wait for it, or both are wrong.")
    except Problem as problem:
        sys.exit(f"{job}: {problem}")
    except KeyboardInterrupt:
        sys.exit(f"{job}: interrupted; what was finished is stored.")
    sys.exit(code)


def arguments(doc: str, what: str, known: list[str]) -> tuple[list[str], bool, tuple[int, float]]:
    """What the command line asks for: the names, --quick, repetitions and seconds of each."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar=what, help=f"of {', '.join(known)}")
    parser.add_argument("--quick", action="store_true", help="once, one worker; writes nothing")
    given = parser.parse_args()
    if unknown := set(given.names) - set(known):
        parser.error(f"no pipeline in {', '.join(sorted(unknown))}: choose {', '.join(known)}.")
    return given.names or known, given.quick, (1, 0.2) if given.quick else (5, 2.0)


def main() -> None:
    loaders = [name for name in lessons.names() if lessons.subject_cells(name, "tuned-pipeline")]
    others = [loops.PAGE, *PARTS]
    known = [*loaders, *(name for name in others if lessons.notebook_path(name).is_file())]
    names, quick, how = arguments(__doc__, "LESSON", known)
    if unknown := set(loaders) - benchmark_results.bench_entries("modules").keys():
        sys.exit(f"bench: say in lessons.toml what {', '.join(sorted(unknown))} needs.")

    def run_lessons() -> int:
        kernels.lay_out_data()
        modules.renew()
        return run(jobs(names, *how), report.as_text, benchmark_results.FOLDER, quick)

    measuring("bench", {}, run_lessons)


if __name__ == "__main__":
    main()
