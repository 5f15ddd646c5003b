"""One thing of a lesson, beside its reference: what `PARTS` in benchmark_results.py names.

`speeds(seconds)` of a class returns what is stored under the keys of its part.

The reference does the same reading, gathering or decoding in as many threads, and nothing else.
"""

import collections
import contextlib
import itertools
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from benchmarks.contract import Refused
from benchmarks.in_process import BATCH, Lesson, rate
from tools.lesson import modules


class Tokens(Lesson):
    """Windows of a mapped file of tokens, and a copy of windows as large by NumPy alone."""

    shape = (64, 512)  # rows, and tokens of a row

    def check(self) -> None:
        """Raises Refused unless an epoch has each target once, in windows without a gap."""
        rows, length = self.shape
        numbers = np.arange(400 * length, dtype=np.uint32)
        steps = (len(numbers) - 1) // length // rows
        stream = self.code.window_batches(numbers, rows, length, 0)
        epoch = np.concatenate(list(itertools.islice(stream, steps)))
        targets = np.unique(epoch[:, 1:])
        if (np.diff(epoch.astype(int)) != 1).any() or len(targets) < len(epoch) * length:
            raise Refused("an epoch of windows has a gap, or a target twice.")

    def speeds(self, seconds: float) -> tuple[float, float]:
        """Of 1 GB of tokens: those per second of the lesson's windows, and of NumPy's gather."""
        rows, length = self.shape
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "tokens.npy")
            np.save(file, np.arange(2**29, dtype=np.uint16))  # no cache of a CPU holds it
            tokens = np.asarray(np.load(file, mmap_mode="r"))
            grid = np.lib.stride_tricks.sliding_window_view(tokens, length + 1)[::length]

            def gathered():
                for epoch in itertools.count():
                    order = np.random.default_rng(epoch).permutation(len(grid) // rows * rows)
                    yield from ((grid[some], None) for some in order.reshape(-1, rows))

            stream = self.code.window_batches(tokens, rows, length, 0)
            streams = ((windows, None) for windows in stream), gathered()
            for each in streams:  # the file is read once, before anything is timed
                collections.deque(itertools.islice(each, len(grid) // rows), maxlen=0)
            return tuple(rate(each, seconds) * length for each in streams)


class Storage(Lesson):
    """The stream from object storage, whose answers wait, and the same without waiting."""

    groups, rows, wait = 24, 5000, 0.02  # groups, of so many rows of 784 bytes; seconds

    def check(self) -> None:
        """Write the dataset. Raises Refused unless an epoch of the stream has each row once."""
        rng, rows = np.random.default_rng(0), self.rows
        groups = (
            {"image": rng.integers(0, 256, (rows, 784), np.uint8), "row": np.arange(rows) + first}
            for first in range(0, rows * self.groups, rows)
        )
        store = self.waiting_store()
        self.code.write_shards(groups, store, "benchmark")
        self.source = self.code.Shards(store, "benchmark")
        with contextlib.closing(self.code.batches(self.source, BATCH)) as stream:
            steps = rows * self.groups // BATCH
            rows = np.concatenate([batch["row"] for batch in itertools.islice(stream, steps)])
        if len(np.unique(rows)) != len(rows) or len(rows) != steps * BATCH:
            raise Refused("an epoch from storage has a row twice.")

    def waiting_store(self):
        """The object store of the depth, in a process of its own: it waits when it is told to."""
        from obstore.store import S3Store

        self.folder = tempfile.TemporaryDirectory()  # as long as this process
        modules.write_files("files_and_storage_in_depth", Path(self.folder.name))
        with contextlib.chdir(self.folder.name):
            self.server = self.code.Server()
        return S3Store(
            "data",
            endpoint=self.server.url,
            region="us-east-1",
            access_key_id="any",
            secret_access_key="any",
            client_options={"allow_http": True},
        )

    def speeds(self, seconds: float) -> tuple[float, float, float]:
        """Rows per second with waiting, without, and with waiting for one request after the other.

        They are those of whole epochs, as groups come some at a time, and follow an epoch.
        """
        found, steps, epochs = [], self.rows * self.groups // BATCH, max(round(seconds), 1)
        for wait, options in ((self.wait, {}), (0, {}), (self.wait, {"mix": 1})):
            self.server.tell(wait=wait)
            stream = self.code.batches(self.source, BATCH, **options)
            with contextlib.closing(stream):
                collections.deque(itertools.islice(stream, steps), maxlen=0)
                start = time.perf_counter()
                collections.deque(itertools.islice(stream, epochs * steps), maxlen=0)
                found.append(epochs * steps * BATCH / (time.perf_counter() - start))
        self.server.tell(wait=0)
        return tuple(found)


class Blocks(Lesson):
    """Windows of a Zarr field, and the reads of the same blocks, thrown away."""

    chunks, copies = (8, 2, 96, 96), 14  # of 480 steps, 142 MB: 2 GB

    def check(self) -> None:
        """Write the field. Raises Refused unless an epoch has each window's begin once."""
        import tensorstore
        import zarr

        self.folder = tempfile.TemporaryDirectory()  # as long as this process
        rng = np.random.default_rng(0)
        field = np.tile(rng.normal(280, 5, (480, 2, 96, 96)).astype(np.float32), (1, 1, 2, 2))
        shape = (len(field) * self.copies, *field.shape[1:])
        stored = zarr.create_array(
            self.folder.name, shape=shape, chunks=self.chunks, dtype=field.dtype
        )
        for first in range(0, shape[0], len(field)):
            field[:, 0, 0, 0] = range(first, first + len(field))  # exact in float32
            stored[first : first + len(field)] = field
        spec = {"driver": "zarr3", "kvstore": f"file://{self.folder.name}/"}
        self.array = tensorstore.open(spec, read=True).result()
        ends = self.code.Windows(self.array, (1, 1, 1, 1), 32)
        begins, count = ends.plan(0)[0][:, 0], ends.steps * 32
        if len(np.unique(begins)) != len(begins) or len(begins) != count:
            raise Refused("an epoch has a window twice, or lacks some.")
        # Blocks of eight chunks. Of four, the lesson's least, the share is about 0.05 lower.
        self.windows = self.code.Windows(self.array, (2, None, 64, 64), 32, block=64)
        [corner] = self.windows.plan(0)[0][:1]
        box = tuple(map(slice, corner, np.add(corner, self.windows.sizes)))
        if not np.array_equal(self.windows[0][0], stored[box]):
            raise Refused("a window is not in the field.")

    def speeds(self, seconds: float) -> tuple[float, float]:
        """Windows per second in an epoch, and those of its blocks, read in as many threads."""
        windows, steps = self.windows, self.windows.steps
        firsts = range(0, self.array.shape[0], windows.block)
        every = [(first, min(first + windows.block + 1, self.array.shape[0])) for first in firsts]
        for step in range(4):
            windows[step]
        start = time.perf_counter()
        for step in range(steps):
            windows[step]
        found = [time.perf_counter() - start]
        start = time.perf_counter()
        with ThreadPoolExecutor(windows.mix) as threads:
            reads = threads.map(lambda ends: len(self.code.rows_of(self.array, *ends)), every)
            assert sum(reads) >= self.array.shape[0]
        found.append(time.perf_counter() - start)
        return tuple(steps * windows.batch_size / took for took in found)


class Graphs(Lesson):
    """Batches of graphs, and the same graphs joined by NumPy, of no common shape."""

    batch_size, graphs = 32, 20_000

    def check(self) -> None:
        """Raises Refused unless an epoch has each graph once."""
        random = np.random.default_rng(0)
        self.every = [
            {
                "nodes": random.normal(size=(n, 17)).astype(np.float32),
                "edges": random.normal(size=(3 * n, 2)).astype(np.float32),
                "senders": random.integers(0, n, 3 * n),
                "receivers": random.integers(0, n, 3 * n),
                "globals": np.int32(number),
            }
            for number, n in enumerate(random.integers(5, 60, self.graphs))
        ]
        self.batches = self.code.GraphBatches(self.every, self.batch_size)
        steps = range(self.batches.steps)
        seen = np.concatenate([self.batches[step]["globals"] for step in steps])
        if len(np.unique(seen)) != len(seen) or len(seen) != self.graphs:
            raise Refused("an epoch has a graph twice, or lacks some.")

    def joined(self, step: int) -> dict:
        """The graphs of a step in one, as a loop over them does it."""
        chosen = [self.every[row] for row in self.batches.needed(step)[0]]
        sizes = [len(graph["nodes"]) for graph in chosen]
        first = np.cumsum(sizes) - sizes
        batch = {
            name: np.concatenate([graph[name] for graph in chosen]) for name in ("nodes", "edges")
        }
        for name in ("senders", "receivers"):
            shifted = [graph[name] + n for graph, n in zip(chosen, first, strict=True)]
            batch[name] = np.concatenate(shifted).astype(np.int32)
        return batch | {"globals": np.array([graph["globals"] for graph in chosen])}

    def speeds(self, seconds: float) -> tuple[float, float]:
        """Graphs per second, of the lesson and of the loop."""
        return tuple(
            per_second(make, seconds) * self.batch_size
            for make in (self.batches.__getitem__, self.joined)
        )


class Frames(Lesson):
    """Windows of a video, and the same windows decoded by a bare loop."""

    frames, length, threads, batch_size = 600, 4, 2, 32

    def check(self) -> None:
        """Write the video. Raises Refused unless both decode the same frames."""
        self.folder = tempfile.TemporaryDirectory()  # as long as this process
        shade = np.add.outer(np.arange(240), np.arange(320)).astype(np.uint8)
        images = np.stack([np.roll(shade, 3 * n, 1) for n in range(self.frames)])
        self.file = Path(self.folder.name, "a.mp4")
        self.code.write_video(self.file, np.repeat(images[..., None], 3, axis=-1), 10)
        files, columns = self.code.videos_in(self.folder.name)
        self.windows = self.code.Windows(files, columns, length=self.length)
        for first in (0, 100, len(self.windows) - 1):
            if not np.array_equal(self.bare(first), self.windows[first]["frames"]):
                raise Refused(f"the window from frame {first} on is not what a loop decodes.")

    def bare(self, first: int) -> np.ndarray:
        """Opens, seeks, decodes and converts, and knows that ten frames are a second."""
        import av

        with av.open(str(self.file)) as video:
            stream, frames = video.streams.video[0], []
            stream.codec_context.thread_count = 1
            video.seek(int(first / 10 / stream.time_base), stream=stream)
            for frame in video.decode(stream):
                if frame.time > first / 10 - 0.01:
                    frames.append(frame.to_ndarray(format="rgb24", threads=1))
                if len(frames) == self.length:
                    return np.stack(frames)
        raise Refused(f"the video ends behind frame {first}.")

    def speeds(self, seconds: float) -> tuple[float, float]:
        """Windows per second of the stream, and of the loop in as many threads."""
        batches = self.code.batches(self.windows, self.batch_size, threads=self.threads)
        order = np.random.default_rng(0).permutation(len(self.windows))
        with contextlib.closing(batches) as stream, ThreadPoolExecutor(self.threads) as pool:

            def next_of(_):
                return next(stream)

            def decoded(step):
                rows = order.take(np.arange(self.batch_size) + step * self.batch_size, mode="wrap")
                return list(pool.map(self.bare, rows))

            return tuple(
                per_second(make, 2 * seconds) * self.batch_size for make in (next_of, decoded)
            )


def per_second(make: Callable[[int], object], seconds: float) -> float:
    """How often it was called, with 0, 1, …; the first calls are not counted."""

    def batches() -> Iterator[tuple[tuple[int], None]]:
        for step in itertools.count():
            make(step)
            yield (step,), None

    stream = batches()
    collections.deque(itertools.islice(stream, 4), maxlen=0)
    return rate(stream, seconds)
