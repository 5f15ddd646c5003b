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

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks import bench, contract, report
from benchmarks import lesson as in_process
from offline import lay_out
from tools import lessons, machine, measured
from tools import results as stored


class Loader(NamedTuple):
    title: str
    distribution: str
    module: str  # what a program imports


LOADERS = {  # by their modules here
    "torchdata_nodes": Loader("torchdata.nodes", "torchdata", "torchdata.nodes"),
    "spdl_pipelines": Loader("SPDL", "spdl", "spdl.pipeline"),
    "webdataset_tars": Loader("WebDataset", "webdataset", "webdataset"),
    "litdata_chunks": Loader("LitData", "litdata", "litdata"),
    "ray_data": Loader("Ray Data", "ray", "ray.data"),
    "jax_dataloader_arrays": Loader("jax-dataloader", "jax-dataloader", "jax_dataloader"),
    "cyreal_arrays": Loader("cyreal", "cyreal", "cyreal.loader"),  # `import cyreal` brings nothing
    "mosaicml_shards": Loader("MosaicML streaming", "mosaicml-streaming", "streaming"),
    "datarax_arrays": Loader("datarax", "datarax", "datarax"),
}
FUNCTIONS = ("tuned_batches", "file_batches", "stored_batches")  # a module has one or more
# Without these promises the work is not the same, and its speed says nothing.
NEEDED = {"each once", "crops", "filter", "upright"}
STORED = contract.Case(2_000, 50, (784,), start=17, processes=5)
WAITS = (0.02, 0.0)  # seconds, before each answer of the object store
PHOTOGRAPHS = Path("data/photographs")
ENVIRONMENT = {
    "PYTHONPATH": str(lessons.ROOT),  # workers of any kind import this package
    "RAY_USAGE_STATS_ENABLED": "0",
}


class Studied(in_process.Lesson):
    """What the module of a loader defines, in place of a lesson's cells."""

    def __init__(self, name: str, copies: int = 1):
        start = time.perf_counter()
        logging.disable()  # what libraries say of the errors that the checks provoke
        os.chdir(lessons.NOTEBOOKS)
        self.shared = importlib.import_module("benchmarks.without_lesson.shared")
        module = importlib.import_module(f"benchmarks.without_lesson.{name}")
        self.shared.make_photographs()
        images, labels = lay_out.read_split("train")
        data = {"train_images": images, "train_labels": labels, "PHOTOGRAPHS": PHOTOGRAPHS}
        self.names, self.name, self.photographs = vars(module) | data, name, {}
        self.set_up_s = time.perf_counter() - start

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
        elif function == "stored_batches":
            arrays = STORED.arrays()
            of_rows = functools.partial(make, self.store(*arrays, "few"), STORED.count)
            source = contract.Examples(*arrays)
            stream = contract.Stream(of_rows, source, STORED.batch_size, STORED.seed)
            found = contract.promises(stream, STORED.start, STORED.processes)
            yield from (promise for promise in found if promise[0] != "refuses")
        else:
            for case in contract.CASES:
                stream = contract.case_stream(make, case)
                if stream.steps:
                    yield "keeps dtypes", functools.partial(stream.take, 1)
                stream = contract.case_stream(make, dataclasses.replace(case, label_dtype="int32"))
                yield from contract.promises(stream, case.start, case.processes)

    def store(self, images, labels, folder: str) -> str:
        """Put rows into an object store, in the library's own format. Returns their URL."""
        if not hasattr(self, "server"):
            self.server = self.shared.storage()
            endpoint = dict.fromkeys(("AWS_ENDPOINT_URL", "S3_ENDPOINT_URL"), self.server.url)
            keys = dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), "any")
            os.environ.update(
                keys | endpoint, AWS_DEFAULT_REGION="us-east-1", AWS_ALLOW_HTTP="true"
            )
        url = f"{self.server.url}/data/{folder}"
        with tempfile.TemporaryDirectory() as scratch:
            self.names["write_rows"](images, labels, Path(scratch, folder))
            self.shared.upload(Path(scratch, folder), url)
        return url

    def rows_per_second(self) -> list[float]:
        """Of an epoch of 60,000 rows, for each wait of the store, from the call to the last batch.

        With what comes before the first batch: some read everything there.
        """
        images, labels = (self.names[name] for name in ("train_images", "train_labels"))
        if not hasattr(self, "many"):
            self.many = self.store(images.reshape(len(images), -1), labels, "many")
        found = []
        for seed, wait in enumerate(WAITS):
            self.server.tell(wait=wait)
            start = time.perf_counter()
            stream = self.names["stored_batches"](self.many, len(images), in_process.BATCH, seed)
            with contextlib.closing(stream):
                epoch = itertools.islice(stream, in_process.BATCHES)
                rows = sum(len(images) for images, _ in epoch)
            found.append(rows / (time.perf_counter() - start))
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
    timed = {
        function
        for function, verdicts in figures["verdicts"].items()
        if not any(verdicts.get(promise) for promise in NEEDED)
    }
    if "tuned_batches" in timed:
        pipelines = {"tuned_images_s": "tuned_batches"}
        with bench.ready(process()) as [loader]:
            figures |= bench.alternate(loader, repetitions, seconds, pipelines, {})
    if "file_batches" in timed:
        with bench.ready(process(environment={"OMP_NUM_THREADS": "1"})) as [loader]:
            figures["photos"] = bench.photos(loader, repetitions, seconds, limit=False)
    if "stored_batches" in timed:
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
