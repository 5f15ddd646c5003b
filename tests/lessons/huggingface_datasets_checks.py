"""What a reader copies from the lesson on Hugging Face beside its pipelines: texts and shards."""

import numpy as np
from copied_cells import refusal
from datasets import Dataset

from benchmarks import contract


def check_texts(names) -> None:
    """Texts are padded as the contract says."""
    contract.check_text(names["text_batches"])


def check_shards(names) -> None:
    """The order of the shards follows from the seed and the epoch."""
    shuffled = names["shuffled_stream"]
    rows = Dataset.from_dict({"row": range(800)}).to_iterable_dataset(8)

    def order(seed, epoch):
        tables = list(shuffled(rows, seed, epoch, 100).iter(100))
        taken = np.concatenate([table["row"] for table in tables])
        assert sorted(taken) == list(range(800)), f"epoch {epoch} of a stream is not each row once"
        return [taken[place] // 100 for place in range(0, 800, 100)]

    assert order(0, 3) == order(0, 3), "the same seed and epoch give two orders of the shards"
    assert order(0, 3) != order(0, 4), "epochs 3 and 4 have the same order of the shards"
    assert order(0, 3) != order(1, 3), "seeds 0 and 1 have the same order of the shards"
    state = shuffled(rows, 0, 3, 100).state_dict()
    refusal("a state of epoch 3 in epoch 4", lambda: shuffled(rows, 0, 4, 100, state=state))


BROKEN = [
    (
        "check_texts",
        "len(tokens), batch_size, seed, start",
        "len(tokens), batch_size, seed",
        "rest",
    ),
    ("check_shards", "stream.set_epoch(epoch)", "stream.set_epoch(0)", "epochs 3 and 4 have the"),
    ("check_shards", 'state["epoch"] != epoch', "False", "a state of epoch 3 in epoch 4: goes"),
]
