"""Runs of `train_for`: resumed, refused, damaged, not finite."""

import functools
import shutil
from pathlib import Path

import feed_start_here as lesson
import jax
import numpy as np
import optax
import pytest
from expecting import refusal
from flax import nnx
from orbax.checkpoint import v1 as ocp


def untrained(classes: int = 3, rule=None, **options):
    """A model of images of 4 x 5 x 2, and its optimizer."""
    model = lesson.CNN((4, 5, 2), classes, largest=255, rngs=nnx.Rngs(0))
    if options:
        model.out = nnx.Linear(4, classes, rngs=nnx.Rngs(0), **options)
    return model, nnx.Optimizer(model, rule or optax.adam(3e-3), wrt=nnx.Param)


ARRAYS = {
    "inputs": np.random.default_rng(0).integers(0, 255, (40, 4, 5, 2), dtype=np.uint8),
    "labels": np.arange(40) % 3,
}


def leaves(*parts):
    return jax.tree.leaves(nnx.state(parts))


def alike(one, other, within=1e-5) -> bool:
    """Whether models and optimizers have the same numbers, to rounding."""
    pairs = zip(leaves(*one), leaves(*other), strict=True)
    return all(np.allclose(a, b, atol=within) for a, b in pairs)


def trained(steps, batches=None, **options):
    """A model and its optimizer after these steps, by a plain loop."""
    batches = batches or lesson.Batches(ARRAYS, 16)
    pair = untrained(**options)
    for step in range(steps):
        _, gradients = nnx.value_and_grad(lesson.cross_entropy)(pair[0], batches[step])
        pair[1].update(pair[0], gradients)
    return pair


def train_for(
    folder, steps, pair=None, batches=None, step=lesson.train_step, save_every=10, **options
):
    pair = pair or untrained()
    batches = batches or lesson.Batches(ARRAYS, 16)
    lesson.train_for(folder, *pair, batches, steps, step, save_every, **options)
    return pair


def kept(folder) -> list[int]:
    """The steps of the checkpoints in a folder."""
    return sorted(int(path.name) for path in Path(folder).iterdir())


@pytest.fixture(scope="module")
def straight():
    return trained(23)


def test_resume(tmp_path, straight, capsys):
    """A continued run says so, and ends with the parameters of one that was never stopped."""
    assert alike(train_for(tmp_path / "whole", 23), straight)
    train_for(tmp_path / "parts", 13)
    assert kept(tmp_path / "parts") == [10, 13], "the last step is not saved"
    assert "continuing" not in capsys.readouterr().out
    assert alike(train_for(tmp_path / "parts", 23), straight)
    assert capsys.readouterr().out.startswith("continuing at step 13\n")
    assert kept(tmp_path / "parts") == [20, 23]
    assert alike(train_for(tmp_path / "parts", 23), straight), "a run that is over"
    refusal("an earlier step", lambda: train_for(tmp_path / "parts", 9))
    train_for(tmp_path / "parts", 31)
    assert kept(tmp_path / "parts") == [30, 31]
    halves = lesson.Batches(ARRAYS, 8, processes=2)  # who would train on the other half?
    message = refusal("half", lambda: train_for(tmp_path / "parts", 40, batches=halves))
    assert "2 processes share the batches, JAX has 1" in message


def test_threads_change_nothing(tmp_path, straight):
    """And an error in a thread ends the run, also where the batches end too early."""
    train_for(tmp_path / "whole", 13, threads=3)
    assert alike(train_for(tmp_path / "whole", 23, threads=3), straight)
    few = [lesson.Batches(ARRAYS, 16)[step] for step in range(9)]
    with pytest.raises(IndexError):
        train_for(tmp_path / "few", 23, batches=few, threads=3)
    assert kept(tmp_path / "few") == [0]


def test_resume_of_the_same_model(tmp_path, straight):
    """Stopped before the first save and called again with the model in memory: no step twice."""
    pair, left = untrained(), iter(range(7))

    def interrupted(*arguments):
        if next(left, None) is None:
            raise KeyboardInterrupt
        return lesson.train_step(*arguments)

    with pytest.raises(KeyboardInterrupt):
        train_for(tmp_path, 23, pair, step=interrupted, save_every=1_000)
    assert kept(tmp_path) == [0] and not alike(pair, untrained())
    assert alike(train_for(tmp_path, 23, pair, save_every=1_000), straight)
    assert kept(tmp_path) == [0, 23]


def test_another_run_is_refused(tmp_path):
    """One sentence says what differs: data, seed, batch, model, dtype or optimizer."""
    train_for(tmp_path, 5)
    last = {name: np.append(array[:-1], array[:1], axis=0) for name, array in ARRAYS.items()}
    signed = ARRAYS | {"labels": ARRAYS["labels"].astype(np.uint32)}
    flat = ARRAYS | {"inputs": ARRAYS["inputs"].reshape(40, 20, 2)}
    for words, call in {
        "checksum of the data": {"batches": lesson.Batches(last, 16)},
        "data": {"batches": lesson.Batches(signed, 16)},
        " data": {"batches": lesson.Batches(flat, 16)},
        "config None, not {'rate': 0.1}": {"config": {"rate": 0.1}},
        "seed 0, not 1": {"batches": lesson.Batches(ARRAYS, 16, seed=1)},
        "global batch 16, not 20": {"batches": lesson.Batches(ARRAYS, 20)},
        "float32[3], not float32[4]": {"pair": untrained(4)},
        "float32[3], not bfloat16[3]": {"pair": untrained(param_dtype=jax.numpy.bfloat16)},
        "optimizer ScaleByAdamState": {"pair": untrained(rule=optax.sgd(0.1))},
        "EmptyState, not ScaleByAdamState, EmptyState, EmptyState": {
            "pair": untrained(rule=optax.adamw(3e-3))
        },
    }.items():
        message = refusal(words, functools.partial(train_for, tmp_path, 30, **call))
        assert words in message and f"{tmp_path}" in message and len(message) < 400, message
    assert kept(tmp_path) == [0, 5]


def test_a_damaged_checkpoint(tmp_path, straight):
    """It is named, and without it the run continues from the one before."""
    train_for(tmp_path, 20)
    files = [path for path in (tmp_path / "20").rglob("*") if path.is_file()]
    for path in files:
        if path.name not in ("_CHECKPOINT_METADATA", "commit_success.txt"):
            path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    message = refusal("cut", lambda: train_for(tmp_path, 23))
    assert f"cannot read {tmp_path}/20: if it is damaged" in message
    shutil.rmtree(tmp_path / "20")
    assert alike(train_for(tmp_path, 23), straight)


def test_numbers_that_are_not_finite(tmp_path):
    """They end the run before anything of them is saved."""

    def poisoned(at, loss_too):
        steps = iter(range(100))

        def step(model, optimizer, batch):
            loss = lesson.train_step(model, optimizer, batch)
            if next(steps) < at:
                return loss
            model.out.bias[...] = jax.numpy.full_like(model.out.bias[...], np.nan)
            return loss * np.nan if loss_too else loss

        return step

    for number, (at, loss_too, words) in enumerate(
        (
            (12, True, "the loss is not finite after 13 steps"),
            (19, True, "the loss is not finite after 20 steps"),  # the last one
            (9, False, "a parameter is not finite after 10 steps"),
        )
    ):
        folder = tmp_path / f"{number}"
        call = functools.partial(train_for, folder, 20, step=poisoned(at, loss_too))
        message = refusal(words, call, FloatingPointError)
        assert words in message, message
        with ocp.training.Checkpointer(folder) as checkpointer:
            saved = checkpointer.load(checkpointer.latest)
        assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(saved))


def test_folders(tmp_path, monkeypatch):
    """A folder may be relative, or in the home folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", f"{tmp_path}/home")
    train_for("here/run", 1)
    train_for("~/run", 1)
    assert kept("here/run") == kept("home/run") == [0, 1]


class Numbered:
    """Batches of another kind, which have a number and nothing else."""

    def __init__(self, first=0):
        self.batches = lesson.Batches(ARRAYS, 16)
        self.first = first

    def __getitem__(self, step):
        return self.batches[self.first + step]


def test_other_batches(tmp_path, straight):
    """Whatever has batches[step] is trained on, and its batch 0 is compared."""
    train_for(tmp_path, 13, batches=Numbered())
    assert alike(train_for(tmp_path, 23, batches=Numbered()), straight)
    message = refusal("batch 1", lambda: train_for(tmp_path, 30, batches=Numbered(1)))
    assert "batch 0" in message, message
