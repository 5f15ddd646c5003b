"""Check and time the other loaders, beside the references of the lessons.

    tox run -e others -- [--quick] [LOADER ...]
    tox run -e others-apart -- [--quick] [LOADER ...]

Each loader is checked promise by promise, in a process of its own, with the contract that the
lessons keep. What loses, repeats or changes an example is not timed. What lacks another promise
is, and the table says which. Each repetition times the loader, then its references: the forms of
NumPy's gather, and the one decoder of all lessons in as many processes. Every repetition goes to
benchmarks/results-others/<machine>.json; a loader that is not run keeps what is there. `--quick`
runs everything once, and writes nothing.
"""

import argparse
import functools
import importlib.util
import os
import sys
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks import bench, report
from benchmarks import lesson as in_process
from benchmarks.others.loaders import LOADERS
from benchmarks.others.other import NEEDED, Other
from tools import lessons, machine

RESULTS = lessons.ROOT / "benchmarks" / "results-others"


CHECKS = {
    "tuned_batches": "check_arrays",
    "file_batches": "check_photographs",
    "stored_batches": "check_stored",
}
WAITS = (0.02, 0.0)  # seconds, before each answer of the object store
ENVIRONMENT = {
    "MPLBACKEND": "agg",
    "PYTHONPATH": str(lessons.ROOT),  # workers of any kind import this package
    "RAY_USAGE_STATS_ENABLED": "0",
    "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
}


def here() -> list[str]:
    """The loaders whose library this environment has."""
    found = importlib.util.find_spec
    return [name for name, of in LOADERS.items() if found(of.module.partition(".")[0])]


def measure(name: str, repetitions: int, seconds: float) -> dict:
    """The verdicts on one loader, and every repetition of what may be timed."""
    of = LOADERS[name]
    figures = {
        "title": of.title,
        "licence": of.licence,
        "installation_bytes": bench.installation_bytes([of.module]),
        "import": [bench.import_cost([of.module]) for _ in range(min(repetitions, 3))],
        "busy_cores": [bench.busy()],
    }
    with bench.ready(bench.Process(name, kind=Other)) as [loader]:
        figures["version"] = loader.call("version")
        figures["verdicts"] = {}
        for function, check in CHECKS.items():
            if loader.call("offers", function):
                bench.say(name, check.replace("_", " "))
                figures["verdicts"][function] = loader.call(check)
    timed = [
        function
        for function, verdicts in figures["verdicts"].items()
        if not any(verdicts.get(promise) for promise in NEEDED)
    ]
    if "tuned_batches" in timed:
        figures |= arrays(name, repetitions, seconds)
    if "file_batches" in timed:
        figures["photos"] = photos(name, repetitions, seconds)
    if "stored_batches" in timed:
        figures["stored"] = stored(name, repetitions)
    figures["busy_cores"].append(bench.busy())
    return figures


def stored(name: str, repetitions: int) -> dict[str, list[float]]:
    """Rows per second from the object store, for each of the waits in turn."""
    found = {f"{wait:g}": [] for wait in WAITS}
    with bench.ready(bench.Process(name, kind=Other)) as [loader]:
        bench.say(name, "an object store")
        for _ in range(repetitions):
            speeds = loader.call("rows_per_second", WAITS)
            for figures, speed in zip(found.values(), speeds, strict=True):
                figures.append(speed)
    return found


def arrays(name: str, repetitions: int, seconds: float) -> dict:
    """The stream and the gathers in turn. The fastest form is the reference."""
    speeds, gathers = [], {form: [] for form in in_process.GATHERS}
    with bench.ready(bench.Process(name, kind=Other)) as [loader]:
        for repetition in range(repetitions):
            bench.say(name, f"repetition {repetition + 1} of {repetitions}")
            speeds.append(loader.call("throughput", "tuned_batches", seconds))
            for form, found in gathers.items():
                found.append(loader.call("gather_throughput", seconds, form))
    return {"tuned_images_s": speeds} | bench.fastest(gathers)


def photos(name: str, repetitions: int, seconds: float) -> dict[str, dict[str, list[float]]]:
    """With 1, 2, … workers: the stream, and the one decoder in as many processes, in turn."""
    found = {}
    alone = functools.partial(bench.Process, environment={"OMP_NUM_THREADS": "1"})
    for workers in bench.worker_counts():
        bench.say(name, f"a folder of JPEGs, {workers} at a time")
        figures = {"images_s": [], "cores": [], "decoder_images_s": []}
        decoders = [alone(in_process.DECODER, kind=in_process.Decoder) for _ in range(workers)]
        with bench.ready(alone(name, kind=Other)) as [loader], bench.ready(*decoders):
            folder = loader.call("photographs_folder")
            for _ in range(repetitions):
                speed, cores = loader.call("file_throughput", workers, seconds)
                for decoder in decoders:
                    decoder.ask("folder_throughput", folder, seconds)
                figures["images_s"].append(speed)
                figures["cores"].append(cores)
                figures["decoder_images_s"].append(sum(d.answer() for d in decoders))
        found[str(workers)] = figures
    return found


def text(results: dict) -> str:
    """Tables of what was measured, and a sentence for each promise that is not kept."""
    rows, broken = [], []
    for figures in results["loaders"].values():
        row = {
            "": figures["title"],
            "version": figures["version"],
            "MB on disk": f"{figures['installation_bytes'] / 1e6:,.0f}",
            "import, s": f"{median(cost['import_s'] for cost in figures['import']):.1f}",
            "images/s": "",
            "of the reference": "",
        }
        if "tuned_images_s" in figures:
            row["images/s"] = report.speed(figures["tuned_images_s"])
            shares = report.ratios(figures, "tuned_images_s", "numpy_images_s")
            row["of the reference"] = report.spread(shares)
        for workers, of in figures.get("photos", {}).items():
            shares = report.ratios(of, "images_s", "decoder_images_s")
            row[f"photographs/s, {workers}"] = report.speed(of["images_s"])
            row[f"of the decoder, {workers}"] = report.spread(shares)
        for wait, speeds in figures.get("stored", {}).items():
            row[f"stored rows/s, {1000 * float(wait):.0f} ms"] = report.speed(speeds)
        rows.append(row)
        broken += [
            f"{figures['title']}, {function}, {promise}: {said}"
            for function, verdicts in figures["verdicts"].items()
            for promise, said in verdicts.items()
            if said
        ]
    missing = [
        f"{of.title} is not measured: {of.reason}"
        for of in LOADERS.values()
        if of.requirements is None
    ]
    head = f"{results['processor']}, {results['cores']} cores, JAX on {results['device']}"
    return "\n\n".join([head, report.table(rows), *broken, *missing])


def run(names: list[str], quick: bool) -> int:
    """Measure, store after each loader, print the tables. Returns the exit status."""
    repetitions, seconds = (1, 0.2) if quick else (5, 2.0)
    os.environ.update(lessons.kernel_environment() | ENVIRONMENT)
    results, troubles = {"loaders": {}}, []
    for name in names:
        try:
            figures = measure(name, repetitions, seconds)
        except (in_process.Refused, lessons.Problem) as trouble:
            troubles.append(str(trouble))
            continue
        results = store(name, {"date": machine.today()} | figures, results, quick)
    if results["loaders"]:
        print(text(results))
    print(*troubles, sep="\n", file=sys.stderr)
    return 1 if troubles else 0


def store(name: str, figures: dict, before: dict, quick: bool) -> dict:
    """Put the figures into this machine's file; into `before`, where it is quick."""
    device = machine.device_from_outside()

    def with_them(content: dict) -> dict:
        loaders = content.get("loaders", {}) | {name: figures}
        return machine.describe(device) | {"loaders": loaders}

    file = machine.path(RESULTS, device)
    return with_them(before) if quick else machine.update(file, with_them)


def main() -> None:
    known = here()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="LOADER", help=f"of {', '.join(known)}")
    parser.add_argument("--quick", action="store_true", help="all of it once; writes nothing")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(known):
        parser.error(f"not in this environment: {', '.join(sorted(unknown))}.")
    bench.measuring("others", "loaders", lambda: run(arguments.names or known, arguments.quick))


if __name__ == "__main__":
    main()
