"""What a pipeline promises. Checks that raise Refused, in one sentence, where it breaks a promise.

The promises of `tuned_batches(images, labels, batch_size, seed, start=0, process=0, processes=1)`
and `file_batches(folder, batch_size, size, seed, start=0, workers=0, process=0, processes=1)`:

- A pipeline is a stream without end, and the step number is its whole state: batch number `step`
  follows from the data, the seed and the step. `len(images) // batch_size` batches are an epoch,
  shuffled by the seed and the epoch, with no example twice. A resume passes `start`.
- Each process gets its own rows of the same batch. `batch_size` is the number of rows of this
  process, so that two processes with 64 rows train on the rows of one with 128.
- Sizes, classes and counts come from the data. Two streams of the same data may run at once.
- Batches are NumPy arrays in the dtypes of the input, or in those that JAX makes of 64 bits.
  `file_batches` yields images uint8 (rows, size, size, 3) and labels int32 (rows,): decoded,
  cropped as RandomResizedCrop does with its defaults, antialiased, flipped half of the time, each
  by the seed, the epoch and the photograph. Each class has a folder, numbered in alphabetical
  order; an empty one keeps its number. Suffixes count in any case; hidden files do not.
- What cannot work raises ValueError at the first batch at the latest, in a sentence that names it:
  fewer examples than a batch of all processes, a folder without an image, a file
  that is none.
- A pipeline whose first argument is called `dataset` takes one instead of the two arrays: a list of
  examples, unless the lesson has `dataset_of(images, labels)`, which makes one.

The data names itself: each example, each photograph says which one it is, whatever the pipeline
does with it. So what is lost, repeated, mixed up or changed is found, on data of any size. The
benchmark runs these checks before it times a lesson, and tests/lessons/test_carry_over.py with
many cases.
"""

from benchmarks.contract.arrays import *  # noqa: F403
from benchmarks.contract.folders import *  # noqa: F403
from benchmarks.contract.photographs import *  # noqa: F403
from benchmarks.contract.streams import *  # noqa: F403
