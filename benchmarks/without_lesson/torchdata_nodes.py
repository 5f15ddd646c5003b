"""torchdata.nodes: a graph of nodes around an iterable of one's own.

The order is the iterable's, so it starts anywhere. Its own state counts what was yielded, and an
iterable without a state is read again up to there: the start of the iterable costs nothing.
"""

import functools

from torchdata.nodes import Batcher, IterableWrapper, Loader, Mapper, ParallelMapper, Prefetcher

from benchmarks.without_lesson.shared import cropped, keys, shuffled_rows, stacked


def tuned_batches(images, labels, batch_size, seed, start=0, process=0, processes=1):
    def gathered(epoch_and_rows):
        _, rows = epoch_and_rows
        return images.take(rows, axis=0), labels.take(rows)

    rows = shuffled_rows(len(images), batch_size, seed, start, process, processes)
    yield from Loader(Mapper(IterableWrapper(rows), gathered))


def file_batches(folder, batch_size, size, seed, start=0, workers=0, process=0, processes=1):
    node = IterableWrapper(keys(folder, batch_size, seed, start, process, processes))
    # Threads: the decoder lets them run side by side, and nothing has to be pickled.
    cut = functools.partial(cropped, size=size)
    node = ParallelMapper(node, cut, num_workers=workers, in_order=True, method="thread")
    node = Mapper(Batcher(node, batch_size // processes), stacked)
    yield from Loader(Prefetcher(node, prefetch_factor=2) if workers else node)
