"""What readers copy from a lesson, in a process of its own: imported, checked and timed.

Nothing here knows a loader.
"""

import collections
import functools
import importlib
import itertools
import multiprocessing
import os
import platform
import signal
import sys
import tempfile
import threading
import time
import types
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import psutil

from benchmarks import contract
from benchmarks.contract import Refused
from offline import lay_out
from offline.problem import Problem
from tools.lesson import lessons, machine, modules

BATCH = 128
BATCHES = 60_000 // BATCH
PHOTOS_BATCH = 64
PHOTOS_SIZE = 224
WARM_UP = 8  # batches of photographs: until then workers start, or hand out what they had ready
# The forms in which NumPy gathers a batch. The fastest of a run is its reference.
GATHERS = {
    "X[i]": lambda array, i: array[i],
    "X.take(i, axis=0)": lambda array, i: array.take(i, axis=0),
    'X.take(i, axis=0, mode="clip")': lambda array, i: array.take(i, axis=0, mode="clip"),
}
TAKE = "X.take(i, axis=0)"
# The lesson whose decoder is the reference for the photographs of all lessons.
DECODER = "decode_photographs"
RESIDENT = "feed_the_device"  # and that with the epoch of data on the device


def imported(page: str) -> types.ModuleType:
    """The module of a page, made now. Raises Problem where it does not import."""
    if str(modules.FOLDER) not in sys.path:
        sys.path.insert(0, str(modules.FOLDER))
    try:
        return importlib.import_module(modules.module_name(page))
    except Exception as error:
        raise Problem(f"{page} does not import: {type(error).__name__}: {error}.") from error


def rate(stream: Iterator, seconds: float) -> float:
    """Images per second. The first batch, for which the stream is set up, is not counted."""
    next(stream)
    images, start = 0, time.perf_counter()
    for batch, _ in stream:
        images += len(batch)
        elapsed = time.perf_counter() - start
        if elapsed > seconds:
            return images / elapsed
    raise Refused("the stream ends while it is timed.")


class Lesson:
    """What the modules of a lesson and of its depth define. One for each process.

    `code`: all of it. Of a name that both define, what the depth defines, such as the step of the
    larger model.
    """

    def __init__(self, name: str):
        """Raises Problem where a module does not import."""
        self.name = name
        defined = {}
        self.tags = set()
        self.photographs = {}
        for page in (name, lessons.depth_of(name)):
            if page in modules.pages():
                defined |= vars(imported(page))
        self.code = types.SimpleNamespace(**defined)
        for cell in lessons.subject_cells(name):
            self.tags.update(lessons.tags(cell))
        self.dataset_of = getattr(self.code, "dataset_of", contract.listed)
        images, labels = lay_out.read_split("train")
        self.arrays = images.copy(), labels.astype(np.int32)

    def versions(self) -> dict[str, str]:
        """Of Python and of the libraries that the lesson has imported."""
        found = {"python": platform.python_version()}
        libraries = *machine.LIBRARIES, "av", "obstore", "pyarrow", "tokenizers", "zarr"
        modules = [name.replace("-", "_") for name in libraries]
        loaded = [sys.modules[name] for name in modules if name in sys.modules]
        return found | {library.__name__: library.__version__ for library in loaded}

    def check(self) -> None:
        """Raises Refused if a pipeline breaks a promise, on made-up data or on MNIST."""
        self.check_pipelines()
        self._check_mnist()

    def check_pipelines(self) -> None:
        """Raises Refused if a pipeline that the lesson has breaks a promise on made-up data."""
        if "tuned-pipeline" in self.tags:
            for case in contract.CASES:
                tuned = self.code.tuned_batches
                contract.check_case(tuned, case, self.dataset_of)
        if "files-pipeline" in self.tags:
            with tempfile.TemporaryDirectory() as folder:
                contract.check_files(self.code.file_batches, Path(folder))

    def _check_mnist(self) -> None:
        tuned = self.code.tuned_batches
        tuned = functools.partial(tuned, *self._data(tuned))
        stream = contract.Stream(tuned, contract.Examples(*self.arrays), BATCH, 0)
        contract.check_stream(stream, start=BATCHES + 7, processes=2)

    def _data(self, pipeline: Callable) -> tuple:
        """What a pipeline takes first: the two arrays of MNIST, or one dataset of them."""
        if not contract.takes_dataset(pipeline):
            return contract.given(pipeline, self.arrays, self.dataset_of)
        if not hasattr(self, "dataset"):
            self.dataset = self.dataset_of(*self.arrays)
        return (self.dataset,)

    def _epoch(self, number: int) -> Iterator:
        """The batches of one epoch of `tuned_batches`."""
        tuned = self.code.tuned_batches
        stream = tuned(*self._data(tuned), BATCH, 0, start=number * BATCHES)
        return itertools.islice(stream, BATCHES)

    def _batches(self, pipeline: str) -> Iterator:
        """The batches of a pipeline without end: one seed's stream, or several, or its epochs."""
        batches = getattr(self.code, pipeline)
        of_seed = functools.partial(batches, *self._data(batches), BATCH)
        opened = of_seed(0)
        if isinstance(opened, Iterator):
            parts = itertools.chain([opened], map(of_seed, itertools.count(1)))
        else:  # a loader: each time it is read, an epoch
            parts = itertools.repeat(opened)
        return itertools.chain.from_iterable(parts)

    def first_batch(self) -> float:
        """Seconds to the first batch of `tuned_batches`, in a process that has had none."""
        start = time.perf_counter()
        next(iter(self._epoch(0)))
        return time.perf_counter() - start

    def throughput(self, pipeline: str, seconds: float) -> float:
        """Images per second of a pipeline."""
        return rate(self._batches(pipeline), seconds)

    def gather_throughput(self, seconds: float, form: str = TAKE) -> float:
        """Images per second of a NumPy gather of all images."""
        return rate(gathered(*self.arrays, BATCH, form), seconds)

    def file_throughput(self, workers: int, seconds: float, folder: str) -> tuple[float, float]:
        """Images per second of `file_batches`, and the cores that it and its workers keep busy."""
        if (workers, folder) not in self.photographs:  # one set of workers at a time
            self.photographs.clear()
            arguments = Path(folder), PHOTOS_BATCH, PHOTOS_SIZE, 0
            stream = self.code.file_batches(*arguments, workers=workers)
            self.photographs[workers, folder] = iter(stream)
        stream = self.photographs[workers, folder]
        collections.deque(itertools.islice(stream, WARM_UP), maxlen=0)
        used, start = processor_seconds(), time.perf_counter()
        speed = rate(stream, seconds)
        return speed, (processor_seconds() - used) / (time.perf_counter() - start)

    def epoch(self) -> float:
        """Seconds for a training epoch with `tuned_batches`, one batch ahead if that is taught."""
        step = self.code.train_step
        on_device = getattr(self.code, "on_device", iter)  # Grain's own way takes no iterator

        def train(params, number):
            for images, labels in on_device(self._epoch(number)):
                params = step(params, images, labels)
            return params

        return self._timed(train)

    def resident_epoch(self) -> float:
        """Seconds for the same epoch with the dataset on the device: the limit, as it is taught."""
        import jax

        resident = jax.device_put(self.arrays)
        resident_epoch = imported(RESIDENT).resident_epoch
        whole_epoch = functools.partial(resident_epoch, self._one_step)
        return self._timed(
            lambda params, n: whole_epoch(params, jax.random.key(n), resident, BATCH)[0]
        )

    def _one_step(self, params, batch):
        return self.code.train_step(params, *batch), None

    def _timed(self, train: Callable) -> float:
        import jax

        images, labels = self.arrays
        sizes = images[0].size, 512, 512, int(labels.max()) + 1
        params = self.code.init_params(jax.random.key(0), sizes)
        params = jax.block_until_ready(train(params, 0))  # compiles
        start = time.perf_counter()
        jax.block_until_ready(train(params, 1))
        return time.perf_counter() - start


def gathered(images: np.ndarray, labels: np.ndarray, batch_size: int, form: str) -> Iterator:
    """Shuffled batches by one of GATHERS: what NumPy does where there is no loader."""
    gather = GATHERS[form]
    for epoch in itertools.count():
        order = np.random.default_rng(epoch).permutation(len(images))
        for indices in order[: len(order) // batch_size * batch_size].reshape(-1, batch_size):
            yield gather(images, indices), gather(labels, indices)


def processor_seconds() -> float:
    """What this process and its workers have used so far."""
    this = psutil.Process()
    times = [process.cpu_times() for process in (this, *this.children(recursive=True))]
    return sum(t.user + t.system for t in times)


served = None  # what `make` made: one for each process


def make(kind: type, name: str, environment: dict[str, str]) -> None:
    """In a new process: make a `kind`, whose methods `call` then calls."""
    global served  # noqa: PLW0603
    os.environ.update(environment)  # in time for the libraries that a lesson imports
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends this one
    threading.Thread(target=end_with_the_parent, daemon=True).start()
    served = kind(name)


def end_with_the_parent() -> None:
    """A parent that was killed asks for nothing more, and this process would wait for ever."""
    multiprocessing.parent_process().join()
    os._exit(1)


def call(method: str, *arguments):
    """In the same process: what the method returns, or raises."""
    return getattr(served, method)(*arguments)
