"""What a reader copies from the depth of the first lesson: a model in plain JAX, and its training.

Each function is held against the same in NumPy, on other sizes than the page's.
"""

import feed_start_here_in_depth as depth
import jax
import numpy as np
from expecting import refusal, same

SIZES = 12, 7, 5, 3
LARGEST = 20


def some_images(examples: int = 40):
    """Images with numbers from 0 to LARGEST, and labels 0, 1 and 2."""
    random = np.random.default_rng(0)
    images = random.integers(0, LARGEST, (examples, 3, 4), endpoint=True).astype(np.uint8)
    return images, np.arange(examples, dtype=np.int32) % 3


def params_of(sizes=SIZES):
    return depth.init_params(jax.random.key(1), sizes)


def scores_of(params, images):
    """The scores of each class, by NumPy."""
    activations = images.reshape(len(images), -1) / LARGEST
    for number, (weights, bias) in enumerate(params):
        activations = activations @ np.asarray(weights) + np.asarray(bias)
        if number < len(params) - 1:
            activations = np.maximum(activations, 0)
    return activations


def loss_of(params, images, labels):
    scores = scores_of(params, images)
    chances = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    return -np.log(chances[np.arange(len(labels)), labels]).mean()


def with_bias(params):
    """The same with biases that are not 0."""
    return [(weights, bias + 0.1 * np.arange(len(bias))) for weights, bias in params]


def test_params():
    """Each layer has weights of its own, which keep the size of what goes through, and no bias."""
    params = params_of((400, 300, 300, 300))
    for inputs, (weights, bias) in zip((400, 300, 300), params, strict=True):
        assert weights.shape == (inputs, 300) and not bias.any()
        assert np.isclose(np.std(weights), (2 / inputs) ** 0.5, rtol=0.02), "another deviation"
        assert abs(np.mean(weights)) < 0.001, "not around 0"
    assert not same(params[1][0], params[2][0]), "two layers begin alike"


def test_scores_and_loss():
    images, labels = some_images()
    params = with_bias(params_of())
    assert np.allclose(depth.predict(params, images, LARGEST), scores_of(params, images), atol=1e-5)
    found = depth.loss(params, images, labels, LARGEST)
    assert np.isclose(found, loss_of(params, images, labels), rtol=1e-5)


def test_a_step_goes_down():
    """By `rate` times the gradient; without one by a tenth of it, on images of 8 bits."""
    images, labels = some_images()
    params = with_bias(params_of())
    gradients = jax.grad(depth.loss)(params, images, labels, LARGEST)
    stepped = depth.train_step(params, images, labels, 0.5, LARGEST)
    for after, before, gradient in zip(
        *map(jax.tree.leaves, (stepped, params, gradients)), strict=True
    ):
        assert np.allclose(after, before - 0.5 * gradient, atol=1e-6)
    little = depth.train_step(params, images, labels, 0.01, LARGEST)
    assert loss_of(little, images, labels) < loss_of(params, images, labels)
    told = depth.train_step(params, images, labels, 0.1, 255)
    assert same(depth.train_step(params, images, labels), told)


def test_training():
    """One step for each batch, in order."""
    images, labels = some_images()
    batches = [(images[n : n + 8], labels[n : n + 8]) for n in range(0, 40, 8)]
    for options, rate in (({"rate": 0.3}, 0.3), ({}, 0.1)):
        expected = params_of()
        for batch in batches:
            expected = depth.train_step(expected, *batch, rate, LARGEST)
        trained = depth.train(params_of(), batches, LARGEST, **options)
        for found, right in zip(*map(jax.tree.leaves, (trained, expected)), strict=True):
            assert np.allclose(found, right, atol=1e-6)


def test_accuracy():
    images, labels = some_images()
    params = with_bias(params_of())
    right = (scores_of(params, images).argmax(axis=1) == labels).mean()
    assert 0 < right < 1
    assert np.isclose(depth.accuracy(params, images, labels, LARGEST), right)


def test_labels():
    """What would train as another class is refused, before a step; a device is not asked."""
    images, labels = some_images()
    params = params_of()
    for said, wrong in (
        ("-1", labels - 1),
        ("3 of 0, 1, 2", labels + 1),
        ("one too few", labels[1:]),
        ("a column", labels[:, None]),
    ):
        refusal(said, lambda wrong=wrong: depth.check_labels(images, wrong, 3))
        batches = [(images, wrong)]
        refusal(said, lambda batches=batches: depth.train(params, batches, LARGEST))
        refusal(said, lambda wrong=wrong: depth.accuracy(params, images, wrong, LARGEST))
    for right in (labels, labels * 0, labels * 0 + 2):
        depth.check_labels(images, right, 3)
    depth.check_labels(images, jax.device_put(labels + 1), 3)
