"""jax-dataloader: a loader of arrays, shuffled by JAX's random numbers.

It has no position, no processes and no workers of its own, and reads no files. An epoch's key
follows from the one before, so a late start draws them all.
"""

import itertools

import jax
import jax_dataloader as jdl

from benchmarks.without_lesson.shared import not_split, steps_of


def tuned_batches(images, labels, batch_size, seed, start=0, process=0, processes=1):
    not_split("jax-dataloader does not split batches among processes.", batch_size, processes)
    loader = jdl.DataLoader(
        jdl.ArrayDataset(images, labels),
        backend="jax",
        batch_size=batch_size,
        shuffle=True,
        drop_last=True,
        generator=jax.random.PRNGKey(seed),
    )
    epochs, skipped = divmod(start, steps_of(len(images), batch_size))
    for _ in range(epochs):
        loader.dataloader.next_key()
    yield from itertools.islice(loader, skipped, None)
    while True:
        yield from loader
