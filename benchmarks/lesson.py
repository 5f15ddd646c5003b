"""A lesson in a process of its own: its tagged cells are run as they stand, checked and timed.

The cells are those that the reader reads, in the order of the page. Nothing here knows a loader.
"""

import ast
import collections
import contextlib
import functools
import itertools
import multiprocessing
import os
import platform
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import filelock
import numpy as np
import psutil
from nbformat import NotebookNode

from benchmarks import contract
from benchmarks.contract import Refused
from offline import lay_out
from tools.lesson import files, lessons, machine

BATCH = 128
BATCHES = 60_000 // BATCH
PHOTOS_BATCH = 64
PHOTOS_SIZE = 224
WARM_UP = 8  # batches of photographs: until then workers start, or hand out what they had ready
PIPELINES = {"setup", "short-answer", "first-pipeline", "tuned-pipeline", "files-pipeline"}
# The forms in which NumPy gathers a batch. The fastest of a run is its reference.
GATHERS = {
    "X[i]": lambda array, i: array[i],
    "X.take(i, axis=0)": lambda array, i: array.take(i, axis=0),
    'X.take(i, axis=0, mode="clip")': lambda array, i: array.take(i, axis=0, mode="clip"),
}
TAKE = "X.take(i, axis=0)"
# The lesson whose decoder is the reference for the photographs of all lessons.
DECODER = "decode_photographs"


def write_module(source: str) -> None:
    """Do what a cell with `%%writefile` does, whole and only where it is needed.

    Other processes run the same cell, and import what it writes, at the same time.
    """
    magic, _, text = source.rstrip("\n").partition("\n")
    file = Path(magic.split()[1])
    with filelock.FileLock(lessons.NOTEBOOKS / "data" / ".modules.lock"):
        if not file.is_file() or file.read_text() != f"{text}\n":
            with files.replacing(file) as scratch:
                scratch.write_text(f"{text}\n")


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
    """What the tagged cells of a lesson define. One for each process: cells expect their own."""

    run = PIPELINES  # the tags of the cells that are run whole

    def __init__(self, name: str, copies: int = 1):
        """Run the cells of the lesson in notebooks/, as a kernel would.

        `copies`: how often the training set is repeated, before the pipelines are made from it.
        Raises lessons.Problem where a cell fails.
        """
        from IPython.core.interactiveshell import InteractiveShell

        os.chdir(lessons.NOTEBOOKS)
        # "" would become the parent's folder in a worker
        sys.path.insert(0, str(lessons.NOTEBOOKS))
        self.names = InteractiveShell.instance().user_ns
        self.name, self.tags, self.photographs = name, set(), {}
        repeated = copies == 1
        with open(os.devnull, "w") as quiet, contextlib.redirect_stdout(quiet):
            of_lesson = {}
            for page in lessons.subject_pages(name):
                for cell in page:
                    self._take(cell)
                    if not repeated and {"train_images", "train_labels"} <= self.names.keys():
                        for array in ("train_images", "train_labels"):
                            self.names[array] = np.concatenate([self.names[array]] * copies)
                        repeated = True
                self.names.update(of_lesson)  # a depth may call other things by the same names
                of_lesson = dict(self.names)
        # Of `Batches` each process says how many rows it gets; elsewhere all share a batch.
        self.rows_each = "shared-batches" in self.tags
        self.dataset_of = self.names.get("dataset_of", contract.listed)

    def _take(self, cell: NotebookNode) -> None:
        """Run a cell that defines something, whole or without what it shows."""
        tags = set(lessons.tags(cell))
        self.tags |= tags
        copied = "copy" in tags or lessons.shared_tag(cell)
        if cell.source.startswith("%%writefile"):
            if tags & self.run or copied:
                write_module(cell.source)
        elif tags & self.run:
            self.run_cell(cell.source)
        elif copied:
            functions = ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef
            self.run_cell(only(cell.source, functions))

    def run_cell(self, source: str) -> None:
        """Run code beside what the cells have defined. Raises lessons.Problem where it fails."""
        from IPython.core.interactiveshell import InteractiveShell

        try:
            InteractiveShell.instance().run_cell(source).raise_error()
        except Exception as error:
            raise lessons.Problem(
                f"{self.name} does not run: {type(error).__name__}: {error}. "
                f"`pytest --nbval notebooks/{self.name}.ipynb` shows where."
            ) from error

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
                tuned = self.names["tuned_batches"]
                contract.check_case(tuned, case, self.dataset_of, self.rows_each)
        if "files-pipeline" in self.tags:
            with tempfile.TemporaryDirectory() as folder:
                contract.check_files(
                    self.names["file_batches"], Path(folder), rows_each=self.rows_each
                )

    def _check_mnist(self) -> None:
        arrays = self.names["train_images"], self.names["train_labels"]
        mnist = contract.Examples(*lay_out.read_split("train"))
        if len(np.unique(mnist.identify(*arrays))) < mnist.count:
            raise Refused("train_images lack some of MNIST's.")
        tuned = self.names["tuned_batches"]
        tuned = functools.partial(tuned, *self._data(tuned))
        stream = contract.Stream(tuned, contract.Examples(*arrays), BATCH, 0, self.rows_each)
        contract.check_stream(stream, start=BATCHES + 7, processes=2)

    def _data(self, pipeline: Callable, arrays: tuple | None = None) -> tuple:
        """What a pipeline takes first: two arrays, of MNIST if none are given, or one dataset."""
        mnist = self.names["train_images"], self.names["train_labels"]
        if arrays or not contract.takes_dataset(pipeline):
            return contract.given(pipeline, arrays or mnist, self.dataset_of)
        if not hasattr(self, "dataset"):
            self.dataset = self.dataset_of(*mnist)
        return (self.dataset,)

    def _epoch(self, number: int) -> Iterator:
        """The batches of one epoch of `tuned_batches`."""
        tuned = self.names["tuned_batches"]
        steps = len(self.names["train_images"]) // BATCH
        stream = tuned(*self._data(tuned), BATCH, 0, start=number * steps)
        return itertools.islice(stream, steps)

    def _batches(self, pipeline: str) -> Iterator:
        """The batches of a pipeline without end: one seed's stream, or several, or its epochs."""
        batches = self.names[pipeline]
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

    def has_short_answer(self) -> bool:
        return "short-answer" in self.tags and "batches" in self.names

    def gather_throughput(self, seconds: float, form: str = TAKE) -> float:
        """Images per second of a NumPy gather of all images, however many there are."""
        arrays = self.names["train_images"], self.names["train_labels"]
        return rate(gathered(*arrays, BATCH, form), seconds)

    def of_shape(
        self, shape: tuple[int, ...], batch_size: int, seconds: float
    ) -> tuple[float, float]:
        """Images per second of `tuned_batches`, and of NumPy's take, of 64 MB of other images."""
        rng, count = np.random.default_rng(0), 2**26 // int(np.prod(shape))
        images = rng.integers(0, 256, (count, *shape), np.uint8)
        arrays = images, rng.integers(0, 10, count, np.int32)
        tuned = self.names["tuned_batches"]
        stream = tuned(*self._data(tuned, arrays), batch_size, 0)
        return rate(stream, seconds), rate(gathered(*arrays, batch_size, TAKE), seconds)

    def file_throughput(
        self, workers: int, seconds: float, folder: str | None = None
    ) -> tuple[float, float]:
        """Images per second of `file_batches`, and the cores that it and its workers keep busy.

        `folder`: another one than that of the lesson.
        """
        if (workers, folder) not in self.photographs:  # one set of workers at a time
            self.photographs.clear()
            arguments = Path(folder or self.photographs_folder()), PHOTOS_BATCH, PHOTOS_SIZE, 0
            stream = self.names["file_batches"](*arguments, workers=workers)
            self.photographs[workers, folder] = iter(stream)
        stream = self.photographs[workers, folder]
        collections.deque(itertools.islice(stream, WARM_UP), maxlen=0)
        used, start = processor_seconds(), time.perf_counter()
        speed = rate(stream, seconds)
        return speed, (processor_seconds() - used) / (time.perf_counter() - start)

    def photographs_folder(self) -> str:
        """Where the photographs lie, seen from notebooks/."""
        return str(self.names["PHOTOGRAPHS"])

    def epoch(self) -> float:
        """Seconds for a training epoch with `tuned_batches`, one batch ahead if that is taught."""
        step = self.names["train_step"]
        on_device = self.names.get("on_device", iter)  # Grain's own way takes no iterator

        def train(params, number):
            for images, labels in on_device(self._epoch(number)):
                params = step(params, images, labels)
            return params

        return self._timed(train)

    def resident_epoch(self) -> float:
        """Seconds for the same epoch with the dataset on the device: the limit, as it is taught."""
        import jax

        if "resident_epoch" not in self.names:  # once, so that it is compiled once
            kinds = ast.Import | ast.ImportFrom | ast.FunctionDef
            exec(only(tagged("resident-epoch"), kinds), self.names)
        resident = jax.device_put((self.names["train_images"], self.names["train_labels"]))
        whole_epoch = functools.partial(self.names["resident_epoch"], self._one_step)
        return self._timed(
            lambda params, n: whole_epoch(params, jax.random.key(n), resident, BATCH)[0]
        )

    def step_epoch(self) -> float:
        """Seconds for as many steps, on one batch again and again: they wait for no data."""
        import jax

        step, images = self.names["train_step"], self.names["train_images"]
        batch = jax.device_put((images[:BATCH], self.names["train_labels"][:BATCH]))

        def train(params, _):
            for _ in range(len(images) // BATCH):
                params = step(params, *batch)
            return params

        return self._timed(train)

    def _one_step(self, params, batch):
        return self.names["train_step"](params, *batch), None

    def _timed(self, train: Callable) -> float:
        import jax

        images, labels = self.names["train_images"], self.names["train_labels"]
        sizes = images[0].size, 512, 512, int(labels.max()) + 1
        params = self.names["init_params"](jax.random.key(0), sizes)
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


def only(source: str, kinds: type) -> str:
    """The statements of a cell that are of these kinds, without the others."""
    tree = ast.parse(source)
    tree.body = [node for node in tree.body if isinstance(node, kinds)]
    return ast.unparse(tree)


def tagged(tag: str) -> str:
    """The source of the one cell, of all lessons, that has this tag."""
    notebooks = [lessons.read_notebook(path.stem) for path in lessons.NOTEBOOKS.glob("*.ipynb")]
    cells = itertools.chain.from_iterable(map(lessons.code_cells, notebooks))
    [source] = [cell.source for cell in cells if tag in lessons.tags(cell)]
    return source


served = None  # what `make` made: one for each process


def make(kind: type, name: str, copies: int, environment: dict[str, str]) -> None:
    """In a new process: make a `kind`, whose methods `call` then calls."""
    global served  # noqa: PLW0603
    os.environ.update(environment)  # in time for the libraries that a lesson imports
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends this one
    threading.Thread(target=end_with_the_parent, daemon=True).start()
    served = kind(name, copies)


def end_with_the_parent() -> None:
    """A parent that was killed asks for nothing more, and this process would wait for ever."""
    multiprocessing.parent_process().join()
    os._exit(1)


def call(method: str, *arguments):
    """In the same process: what the method returns, or raises."""
    return getattr(served, method)(*arguments)
