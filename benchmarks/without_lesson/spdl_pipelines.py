"""SPDL: a pipeline of stages in threads, behind one event loop.

`max_failures=0` ends a pipeline at the first error: by default SPDL logs it and leaves the example
out. It tells the error as a PipelineFailure. Its own decoder, FFmpeg, scales no JPEG while it
decodes, and knows no EXIF note: the decoder of all loaders takes its place.
"""

import functools

from spdl.pipeline import PipelineBuilder

from benchmarks.without_lesson.shared import cropped, keys, shuffled_rows, stacked

RUN = 16  # batches that pass from stage to stage together: each pass costs as much as a batch


def running(builder, threads):
    pipeline = builder.add_sink(2).build(num_threads=threads)
    with pipeline.auto_stop():
        yield from pipeline


def tuned_batches(images, labels, batch_size, seed, start=0, process=0, processes=1):
    def gathered(run):
        return [(images.take(rows, axis=0), labels.take(rows)) for _, rows in run]

    rows = shuffled_rows(len(images), batch_size, seed, start, process, processes)
    builder = PipelineBuilder().add_source(rows).aggregate(RUN).pipe(gathered, max_failures=0)
    for run in running(builder, 1):
        yield from run


def file_batches(folder, batch_size, size, seed, start=0, workers=0, process=0, processes=1):
    examples = keys(folder, batch_size, seed, start, process, processes)
    cut, threads = functools.partial(cropped, size=size), max(workers, 1)
    builder = PipelineBuilder().add_source(examples)
    builder.pipe(cut, concurrency=threads, output_order="input", max_failures=0)
    builder.aggregate(batch_size // processes).pipe(stacked, max_failures=0)
    yield from running(builder, threads)
