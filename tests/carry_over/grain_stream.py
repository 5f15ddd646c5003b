"""The corrected pipeline of arrays as a chain of Grain: shuffle, slice, batch, repeat."""

import grain

IN_MEMORY = grain.ReadOptions(num_threads=0)


def right(rows, usable, size, process, processes):
    return rows.shuffle()[process:usable:processes].batch(size).repeat()


# Every other order loses or repeats rows.
WRONG = {
    "no usable": lambda rows, usable, size, process, processes: (
        rows.shuffle()[process::processes].batch(size, drop_remainder=True).repeat()
    ),
    "repeat before batch": lambda rows, usable, size, process, processes: (
        rows.shuffle().repeat()[process::processes].batch(size)
    ),
    "repeat before shuffle": lambda rows, usable, size, process, processes: (
        rows.repeat().shuffle()[process::processes].batch(size)
    ),
    "slice before shuffle": lambda rows, usable, size, process, processes: (
        rows[process:usable:processes].shuffle().batch(size).repeat()
    ),
    "batch before shuffle": lambda rows, usable, size, process, processes: (
        rows.batch(size, drop_remainder=True).shuffle()[process::processes].repeat()
    ),
    "one order for every epoch": lambda rows, usable, size, process, processes: (
        rows.shuffle()[process:usable:processes].batch(size).repeat(reseed_each_epoch=False)
    ),
}


def pipeline(chain):
    """A pipeline whose steps are in the order of `chain`."""

    def tuned_batches(images, labels, batch_size, seed, start=0, process=0, processes=1):
        if not 0 < batch_size <= len(images) or batch_size % processes:
            raise ValueError(f"{len(images)} do not fill {batch_size=} for {processes=}.")
        usable = len(images) // batch_size * batch_size
        rows = grain.MapDataset.range(len(images)).seed(seed)
        batches = chain(rows, usable, batch_size // processes, process, processes)[start:]
        batches = batches.map(lambda rows: (images[rows], labels[rows]))
        return iter(batches.to_iter_dataset(IN_MEMORY))

    return tuned_batches


tuned_batches = pipeline(right)
