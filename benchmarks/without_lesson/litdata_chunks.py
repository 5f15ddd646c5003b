"""LitData: files of many examples, which a dataset of PyTorch reads in a shuffled order.

Chunks are shuffled, then the examples of each chunk: no example leaves its chunk. The state of the
loader is the epoch and the number of examples that were read. Processes take chunks. It reads
object stores by HTTPS only (0.2.76 lets nobody set `allow_http`): the lessons' one speaks HTTP.
"""

from litdata import StreamingDataLoader, StreamingDataset, optimize

from benchmarks.without_lesson.shared import converted, crop_bytes, not_split, stacked, steps_of

CHUNKS = 8


def example(row_label_file):
    row, label, file = row_label_file
    return {"row": row, "label": label, "name": f"{file}", "photo": file.read_bytes()}


def write(examples, to):
    part = -(-len(examples) // CHUNKS)
    optimize(example, examples, f"{to}", chunk_size=part, num_workers=1, verbose=False)


class Crops(StreamingDataset):
    def __init__(self, to, size, seed):
        super().__init__(f"{to}", shuffle=True, seed=seed, item_shuffle_window="full")
        self.size = size

    def __getitem__(self, index):
        found = super().__getitem__(index)
        key = self.seed, self.current_epoch - 1, found["row"]
        return crop_bytes(found["photo"], found["name"], self.size, key), found["label"]


def at_batch(loader, number):
    """The state of a loader that has read as many batches of the next epoch."""
    state = loader.state_dict()
    read = number * loader.batch_size
    place = {"current_epoch": loader.current_epoch + 1, "num_samples_yielded": read}
    dataset = state["dataset"] | place | {"sample_in_epoch": read}
    worker = (number - 1) % (loader.num_workers or 1)
    return state | place | {"dataset": dataset, "latest_worker_idx": worker}


def file_batches(folder, batch_size, size, seed, start=0, workers=0, process=0, processes=1):
    not_split("LitData gives a process other chunks, not rows of a batch.", batch_size, processes)
    to, count = converted(folder, write)
    place = divmod(start, steps_of(count, batch_size))
    yield from epochs(Crops(to, size, seed), batch_size, workers, *place)


def epochs(dataset, batch_size, workers, epoch, skipped):
    options = {"persistent_workers": True, "multiprocessing_context": "spawn"} if workers else {}
    loader = StreamingDataLoader(
        dataset,
        batch_size=batch_size,
        num_workers=workers,
        collate_fn=stacked,
        drop_last=True,
        **options,
    )
    loader.current_epoch = epoch  # the number of the one before: the library counts from 1
    if skipped:
        loader.load_state_dict(at_batch(loader, skipped))
    while True:
        yield from loader
