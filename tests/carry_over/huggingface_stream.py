"""The corrected pipeline of a Hugging Face dataset: its rows as Arrow has them, in one piece."""

import numpy as np
import pyarrow as pa
from datasets import Dataset, Features, List, Value

from benchmarks.contract import Refused

from .order import index_batches


def dataset_of(images, labels):
    """A dataset with the columns image, a list of lists of fixed lengths, and label."""
    kind, column = Value(images.dtype.name), pa.array(images.reshape(-1))
    for length in reversed(images.shape[1:]):
        kind = List(kind, length=length)
        column = pa.FixedSizeListArray.from_arrays(column, length)
    features = Features(image=kind, label=Value(labels.dtype.name))
    table = pa.table({"image": column, "label": pa.array(labels)}, schema=features.arrow_schema)
    return Dataset(table)


def array_of(column):
    """A column of numbers, or of lists of fixed lengths, as one NumPy array."""
    column, shape = column.combine_chunks(), []
    while pa.types.is_fixed_size_list(column.type):
        shape.append(column.type.list_size)
        column = column.flatten()
    return column.to_numpy(zero_copy_only=False).reshape(-1, *shape)


def tuned_batches(dataset, batch_size, seed, start=0, process=0, processes=1):
    table = dataset.with_format("arrow")[:]  # the rows that are left, in their order
    images, labels = array_of(table["image"]), array_of(table["label"])
    for _, indices in index_batches(len(images), batch_size, seed, start, process, processes):
        yield np.take(images, indices, axis=0), np.take(labels, indices)


def text_batches(dataset, batch_size, length, seed, start=0):
    """Texts of different lengths, padded with zeros, and the mask of what is text."""
    texts = dataset.with_format(None)["tokens"][:]
    if max(map(len, texts), default=0) > length:
        raise ValueError(f"A text of {max(map(len, texts))} tokens is longer than {length=}.")
    dtype = dataset.features["tokens"].feature.dtype
    for _, indices in index_batches(len(texts), batch_size, seed, start, 0, 1):
        tokens = np.zeros((batch_size, length), dtype)
        mask = np.zeros(tokens.shape, bool)
        for row, index in enumerate(indices):
            tokens[row, : len(texts[index])] = texts[index]
            mask[row, : len(texts[index])] = True
        yield tokens, mask


def shuffled_stream(stream, seed, epoch, block, process=0, state=None):
    """An epoch of a stream: its shards in random order, each block of rows shuffled."""
    stream = stream.with_format("arrow").shuffle(
        seed=seed, buffer_size=1, max_buffer_input_shards=1
    )
    stream = stream.map(
        lambda table, index: table.take(
            np.random.default_rng((seed, epoch, process, index[0])).permutation(len(table))
        ),
        batched=True,
        batch_size=block,
        with_indices=True,
    )
    stream.set_epoch(epoch)
    if state is not None:
        if state["epoch"] != epoch:
            raise ValueError(f"The state is of epoch {state['epoch']}, not of {epoch}.")
        stream.load_state_dict(state)
    return stream


def with_one_order(stream, seed, epoch, block, process=0, state=None):
    """The corrected stream, whose shards have the order of epoch 0 in every epoch."""
    stream = shuffled_stream(stream, seed, epoch, block, process)
    stream.set_epoch(0)
    return stream


def with_one_seed(stream, seed, *arguments, **others):
    return shuffled_stream(stream, 0, *arguments, **others)


def any_state(stream, seed, epoch, block, process=0, state=None):
    """The library ignores a state of another epoch."""
    stream = shuffled_stream(stream, seed, epoch, block, process)
    if state is not None:
        stream.load_state_dict(state)
    return stream


def check_shards(shuffled):
    """Raises Refused unless the order of the shards follows from the seed and the epoch."""
    rows = Dataset.from_dict({"row": range(800)}).to_iterable_dataset(8)

    def order(seed, epoch):
        tables = list(shuffled(rows, seed, epoch, 100).iter(100))
        taken = np.concatenate([table["row"] for table in tables])
        if sorted(taken) != list(range(800)):
            raise Refused(f"epoch {epoch} of a stream is not each row once")
        return [taken[place] // 100 for place in range(0, 800, 100)]

    if order(0, 3) != order(0, 3):
        raise Refused("the same seed and epoch give two orders of the shards")
    if order(0, 3) == order(0, 4):
        raise Refused("epochs 3 and 4 have the same order of the shards")
    if order(0, 3) == order(1, 3):
        raise Refused("seeds 0 and 1 have the same order of the shards")
    state = shuffled(rows, 0, 3, 100).state_dict()
    try:
        shuffled(rows, 0, 4, 100, state=state)
    except ValueError:
        return
    raise Refused("a state of epoch 3 is taken in epoch 4")
