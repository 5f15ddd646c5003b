"""datarax: a pipeline of Flax modules whose batches come from one compiled step.

The arrays lie on the device, in JAX's dtypes. An iterator's state is the epoch and the position in
it, so a stream starts anywhere. It splits the shuffled order among shards. Photographs it takes
from Grain, TFDS or Hugging Face: what decodes them is not its own.
"""

import numpy as np
from datarax.pipeline import Pipeline
from datarax.sources import MemorySource, MemorySourceConfig
from flax import nnx

from benchmarks.without_lesson.shared import steps_of


def tuned_batches(images, labels, batch_size, seed, start=0, process=0, processes=1):
    epoch, steps = divmod(start, steps_of(len(images), batch_size, processes))
    config = MemorySourceConfig(shuffle=True, shard_id=process, num_workers=processes)
    arrays = {"images": images, "labels": labels}
    pipeline = Pipeline(
        source=MemorySource(config, arrays, rngs=nnx.Rngs(seed)),
        stages=[],
        batch_size=batch_size // processes,
        rngs=nnx.Rngs(seed),
        drop_last=True,
        num_epochs=None,
    )
    batches = iter(pipeline)
    place = {"epoch": epoch, "position": steps * batch_size // processes}
    batches.set_state(batches.get_state() | place)
    for batch in batches:
        yield np.asarray(batch["images"]), np.asarray(batch["labels"])
