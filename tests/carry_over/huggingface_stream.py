"""The corrected pipeline of a Hugging Face dataset: its rows as Arrow has them, in one piece."""

import numpy as np
import pyarrow as pa
from datasets import Dataset, Features, List, Value

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
