"""Check and time loaders that have no lesson, beside the references of the lessons.

    tox run -e others -- [--quick] [LOADER ...]
    tox run -e others-apart -- [--quick] [LOADER ...]

Each is a module beside this one, in a process of its own. The contract of the lessons is tried
promise by promise. What loses, repeats or changes an example is not timed; what lacks another
promise is, and a sentence says which. Every repetition goes to results/<machine>.json; a loader
that is not run keeps what is there. `--quick` runs everything once, and writes nothing.
"""

import contextlib
import dataclasses
import functools
import importlib
import importlib.util
import itertools
import logging
import os
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks import bench, contract, report
from benchmarks import lesson as in_process
from offline import lay_out
from tools.lesson import lessons, machine, measured
from tools.lesson import results as stored


class Loader(NamedTuple):
    title: str
    distribution: str
    module: str  # what a program imports
    bucket: bool = False  # it reads rows from an object store


LOADERS = {  # by their modules here
    "torchdata_nodes": Loader("torchdata.nodes", "torchdata", "torchdata.nodes"),
    "spdl_pipelines": Loader("SPDL", "spdl", "spdl.pipeline"),
    "webdataset_tars": Loader("WebDataset", "webdataset", "webdataset", True),
    "litdata_chunks": Loader("LitData", "litdata", "litdata"),
    "ray_data": Loader("Ray Data", "ray", "ray.data", True),
    "jax_dataloader_arrays": Loader("jax-dataloader", "jax-dataloader", "jax_dataloader"),
    "cyreal_arrays": Loader("cyreal", "cyreal", "cyreal.loader"),  # `import cyreal` brings nothing
    "mosaicml_shards": Loader("MosaicML streaming", "mosaicml-streaming", "streaming", True),
    "datarax_arrays": Loader("datarax", "datarax", "datarax"),
}
FUNCTIONS = ("tuned_batches", "file_batches")  # a module has one or both
# Without these promises the work is not the same, and its speed says nothing.
NEEDED = {"each once", "crops", "filter", "upright"}
WAITS = (0.02, 0.0)  # seconds, before each answer of the object store
PHOTOGRAPHS = Path("data/photographs")
ENVIRONMENT = {
    "PYTHONPATH": str(lessons.ROOT),  # workers of any kind import this package
    "RAY_USAGE_STATS_ENABLED": "0",
}


class Studied(in_process.Lesson):
    """What the module of a loader defines, in place of a lesson's cells."""

    def __init__(self, name: str, copies: int = 1):
        logging.disable()  # what libraries say of the errors that the checks provoke
        os.chdir(lessons.NOTEBOOKS)
        self.shared = importlib.import_module("benchmarks.without_lesson.shared")
        module = importlib.import_module(f"benchmarks.without_lesson.{name}")
        self.shared.make_photographs()
        images, labels = lay_out.read_split("train")
        data = {"train_images": images, "train_labels": labels, "PHOTOGRAPHS": PHOTOGRAPHS}
        self.names, self.name, self.photographs = vars(module) | data, name, {}

    def verdicts(self) -> dict[str, dict[str, str]]:
        """For each function and each promise, the sentence with which it is refused, or ""."""
        found = {}
        with tempfile.TemporaryDirectory() as scratch:
            for function in FUNCTIONS:
                if function in self.names:
                    found[function] = verdicts(self.promises(function, Path(scratch)))
        return found

    def promises(self, function: str, folder: Path) -> Iterator[contract.Promise]:
        """Those of the contract, on its cases, with labels that JAX can hold."""
        make = self.names[function]
        if function == "file_batches":
            yield from contract.file_promises(make, folder)
        else:
            for case in contract.CASES:
                stream = contract.case_stream(make, case)
                if stream.steps:
                    yield "keeps dtypes", functools.partial(stream.take, 1)
                stream = contract.case_stream(make, dataclasses.replace(case, label_dtype="int32"))
                yield from contract.promises(stream, case.start, case.processes)

    def rows_per_second(self) -> list[float]:
        """Of an epoch of 60,000 rows from an object store, for each wait of the store.

        From the call to the last batch, with what comes before the first one: some read everything
        there. Raises Refused where a row comes twice, or changed.
        """
        images, labels = (self.names[name] for name in ("train_images", "train_labels"))
        rows, steps = images.reshape(len(images), -1), in_process.BATCHES
        if not hasattr(self, "server"):
            with tempfile.TemporaryDirectory() as scratch:
                self.names["write_rows"](rows, labels, Path(scratch, "rows"))
                self.server, self.urls = self.shared.in_a_bucket(Path(scratch, "rows"))
        found = []
        for seed, wait in enumerate(WAITS):
            self.server.tell(wait=wait)
            start = time.perf_counter()
            stream = self.names["stored_batches"](self.urls, len(rows), in_process.BATCH, seed)
            with contextlib.closing(stream):
                epoch = [*itertools.islice(stream, steps)]
            found.append(steps * in_process.BATCH / (time.perf_counter() - start))
            parts = map(np.concatenate, zip(*epoch, strict=True))
            order = contract.Examples(rows, labels).identify(*parts)
            if len(np.unique(order)) < steps * in_process.BATCH:
                raise contract.Refused("an epoch from the object store gives a row twice.")
        self.server.tell(wait=0)
        return found


def verdicts(promises: Iterable[contract.Promise]) -> dict[str, str]:
    """For each promise the first sentence that refuses it, or "". Any other error goes up."""
    found = {}
    for promise, check in promises:
        if not found.setdefault(promise, ""):
            try:
                check()
            except contract.Refused as refused:
                found[promise] = str(refused)
    return found


def timed(verdicts: dict[str, dict[str, str]]) -> set[str]:
    """The functions that keep what is NEEDED."""
    return {name for name, said in verdicts.items() if not any(map(said.get, NEEDED))}


def here() -> list[str]:
    """The loaders whose library this environment has."""
    found = importlib.util.find_spec
    return [name for name, of in LOADERS.items() if found(of.module.partition(".")[0])]


def measure(name: str, repetitions: int, seconds: float) -> dict:
    """The verdicts on one loader, and every repetition of what may be timed."""
    of = LOADERS[name]
    figures = {
        "date": machine.today(),
        "title": of.title,
        "version": metadata.version(of.distribution),
        "installation_bytes": bench.installation_bytes([of.module]),
        "import": [bench.import_cost([of.module]) for _ in range(min(repetitions, 3))],
        "busy_cores": [bench.busy()],
    }
    bench.say(name, "check")
    process = functools.partial(bench.Process, name, kind=Studied)
    with bench.ready(process()) as [loader]:
        figures["verdicts"] = loader.call("verdicts")
    may_be_timed = timed(figures["verdicts"])
    if "tuned_batches" in may_be_timed:
        pipelines = {"tuned_images_s": "tuned_batches"}
        with bench.ready(process()) as [loader]:
            figures |= bench.alternate(loader, repetitions, seconds, pipelines, {})
    if "file_batches" in may_be_timed:
        with bench.ready(process(environment={"OMP_NUM_THREADS": "1"})) as [loader]:
            figures["photos"] = bench.photos(loader, repetitions, seconds, limit=False)
    if of.bucket:
        bench.say(name, "an object store")
        waits = tuple(f"{wait:g}" for wait in WAITS)
        with bench.ready(process()) as [loader]:
            call = functools.partial(loader.call, "rows_per_second")
            figures["stored"] = bench.in_turn(repetitions, waits, call)
    figures["busy_cores"].append(bench.busy())
    return figures


def text(results: dict) -> str:
    """A table of what was measured, and a sentence for each promise that is not kept."""
    loaders = {figures["title"]: figures for figures in results["loaders"].values()}
    shown = {title: measured.of_no_lesson(figures) for title, figures in loaders.items()}
    broken = [
        f"{title}, {function}, {promise}: {said}"
        for title, figures in loaders.items()
        for function, verdicts in figures["verdicts"].items()
        for promise, said in verdicts.items()
        if said
    ]
    return "\n\n".join([*report.table(stored.label(results), shown), *broken])


def main() -> None:
    names, quick, how = bench.arguments(__doc__, "LOADER", here())
    jobs = (("loaders", name, functools.partial(measure, name, *how)) for name in names)
    run = functools.partial(bench.run, jobs, text, stored.WITHOUT_LESSON, quick)
    bench.measuring("others", ENVIRONMENT, run)


if __name__ == "__main__":
    main()
