"""One of the other loaders in a process of its own: checked promise by promise, and timed."""

import contextlib
import dataclasses
import functools
import importlib
import itertools
import logging
import os
import tempfile
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import numpy as np

from benchmarks import contract
from benchmarks import lesson as in_process
from benchmarks.contract import Refused
from benchmarks.others import parts
from offline import lay_out
from tools import lessons

PHOTOGRAPHS = Path("data/photographs")  # where parts.make_photographs makes them


def epochs(stream: contract.Stream) -> list[contract.Batch]:
    return stream.take(contract.EPOCHS * stream.steps)


def starts(stream: contract.Stream, start: int) -> None:
    batches = epochs(stream)
    start %= len(batches)
    for number in sorted({stream.steps, start}):
        contract.check_start(stream, batches, number)
    contract.check_late(stream, start)


def splits(stream: contract.Stream, case: contract.Case) -> None:
    if case.processes > 1:
        batches = epochs(stream)
        contract.check_processes(stream, batches, case.processes, case.start % len(batches))


def refuses(stream: contract.Stream) -> None:
    """Raises Refused unless what cannot be batched, or split, is a ValueError."""
    if not stream.steps:
        contract.check_short_refused(stream, stream.batch_size)
        return
    contract.check_short_refused(stream, stream.source.count + 1)
    contract.check_split_refused(stream)
    contract.check_short_refused(stream, 0)


def verdict(check: Callable, *arguments) -> str:
    """An empty string, or the sentence with which the check refuses."""
    try:
        check(*arguments)
    except Refused as refused:
        return str(refused)
    except Exception as error:
        return f"raises {type(error).__name__}: {contract.first_line(error)}"
    return ""


# What a stream of arrays promises, on cases whose dtypes JAX has.
PROMISES = {
    "each once": lambda stream, _: contract.check_epochs(stream),
    "shuffled whole": lambda stream, _: contract.check_shuffle(stream, epochs(stream)),
    "seed decides": lambda stream, _: contract.check_together(stream, epochs(stream)),
    "starts anywhere": lambda stream, case: starts(stream, case.start),
    "splits batches": splits,
    "refuses": lambda stream, _: refuses(stream),
}
# What one of photographs promises, in the order in which contract.check_files tries it.
FILE_PROMISES = {
    "each once": lambda mixed, ramps: contract.check_epochs(mixed),
    "shuffled whole": lambda mixed, ramps: contract.check_shuffle(mixed, epochs(mixed)),
    "seed decides": lambda mixed, ramps: contract.check_together(ramps, epochs(ramps)),
    "starts anywhere": lambda mixed, ramps: starts(mixed, 7),
    "splits batches": lambda mixed, ramps: contract.check_processes(ramps, epochs(ramps), 2, 1),
    "crops": lambda mixed, ramps: contract.check_windows(ramps),
    "workers": lambda mixed, ramps: [contract.check_workers(ramps, n) for n in (1, 2)],
}
STORED_PROMISES = {promise: check for promise, check in PROMISES.items() if promise != "refuses"}
STORED = contract.Case(2_000, 50, (784,), start=17, processes=5)
NEEDED = {
    "each once",
    "crops",
    "filter",
    "upright",
}  # or the work is not the same, and its speed says nothing


class Other(in_process.Lesson):
    """What the module of a loader defines, in place of a lesson's cells."""

    def __init__(self, name: str, copies: int = 1):
        start = time.perf_counter()
        logging.disable()  # what libraries say of the errors that the checks provoke
        os.chdir(lessons.NOTEBOOKS)
        module = importlib.import_module(f"benchmarks.others.{name}")
        parts.make_photographs()
        images, labels = lay_out.read_split("train")
        data = {"train_images": images, "train_labels": labels, "PHOTOGRAPHS": PHOTOGRAPHS}
        self.names, self.name, self.photographs = vars(module) | data, name, {}
        self.set_up_s = time.perf_counter() - start

    def version(self) -> str:
        return metadata.version(self.names["DISTRIBUTION"])

    def offers(self, function: str) -> bool:
        return function in self.names

    def _stream(self, case: contract.Case) -> contract.Stream:
        arrays = case.arrays()
        make = functools.partial(self.names["tuned_batches"], *arrays)
        return contract.Stream(make, contract.Examples(*arrays), case.batch_size, case.seed)

    def check_arrays(self) -> dict[str, str]:
        """For each promise of `tuned_batches` the first refusal of the contract's cases, or ""."""
        found = dict.fromkeys(("keeps dtypes", *PROMISES), "")
        for case in contract.CASES:
            stream = self._stream(case)
            if stream.steps and not found["keeps dtypes"]:
                found["keeps dtypes"] = verdict(stream.take, 1)
            stream = self._stream(dataclasses.replace(case, label_dtype="int32"))
            for promise, check in PROMISES.items():
                tried = stream.steps or promise == "refuses"
                if tried and not found[promise] and (said := verdict(check, stream, case)):
                    found[promise] = f"{said} [{case}]"
        return found

    def check_photographs(self) -> dict[str, str]:
        """The same of `file_batches`."""
        make = self.names["file_batches"]
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            flat = contract.flat_photographs(folder / "mixed")
            mixed = contract.files_stream(make, flat, 8)
            ramps = contract.files_stream(make, contract.Ramps(folder / "ramps"), 4)
            streams = {
                promise: verdict(check, mixed, ramps) for promise, check in FILE_PROMISES.items()
            }
            return streams | {
                "filter": verdict(contract.check_filter, make, folder),
                "upright": verdict(contract.check_turned, make, folder / "turned"),
                "refuses": verdict(contract.check_file_errors, make, folder / "alone"),
                "errors of workers": verdict(
                    contract.check_file_errors, make, folder / "in workers", 1
                ),
            }

    def store(self, images: np.ndarray, labels: np.ndarray, folder: str) -> str:
        """Put rows into an object store, in the library's own format. Returns their URL."""
        if not hasattr(self, "server"):
            self.server = parts.storage()
            keys = {"AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "any"}
            endpoint = dict.fromkeys(("AWS_ENDPOINT_URL", "S3_ENDPOINT_URL"), self.server.url)
            os.environ.update(
                keys | endpoint, AWS_DEFAULT_REGION="us-east-1", AWS_ALLOW_HTTP="true"
            )
        url = f"{self.server.url}/data/{folder}"
        with tempfile.TemporaryDirectory() as scratch:
            self.names["write_rows"](images, labels, Path(scratch, folder))
            parts.upload(Path(scratch, folder), url)
        return url

    def check_stored(self) -> dict[str, str]:
        """The same of `stored_batches`, on a few rows."""
        arrays = STORED.arrays()
        url = self.store(*arrays, "few")
        make = functools.partial(self.names["stored_batches"], url, STORED.count)
        source = contract.Examples(*arrays)
        stream = contract.Stream(make, source, STORED.batch_size, STORED.seed)
        return {
            promise: verdict(check, stream, STORED) for promise, check in STORED_PROMISES.items()
        }

    def rows_per_second(self, waits: tuple[float, ...]) -> list[float]:
        """Of an epoch of 60,000 rows, for each wait of the store, from the call to the last batch.

        With what comes before the first batch: some read everything there.
        """
        images, labels = (self.names[name] for name in ("train_images", "train_labels"))
        if not hasattr(self, "many"):
            self.many = self.store(images.reshape(len(images), -1), labels, "many")
        found = []
        for seed, wait in enumerate(waits):
            self.server.tell(wait=wait)
            start = time.perf_counter()
            stream = self.names["stored_batches"](self.many, len(images), in_process.BATCH, seed)
            with contextlib.closing(stream):
                epoch = itertools.islice(stream, in_process.BATCHES)
                rows = sum(len(images) for images, _ in epoch)
            found.append(rows / (time.perf_counter() - start))
        self.server.tell(wait=0)
        return found
