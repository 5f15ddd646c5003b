"""What the tests of what readers copy expect: a refusal in one sentence, equal pytrees."""

import jax
import numpy as np

from benchmarks.contract import Refused


def refusal(said, call, kind=ValueError) -> str:
    """The sentence of this kind of error that `call()` raises. Raises Refused if it raises none."""
    try:
        call()
    except kind as error:
        message = str(error)
    except Exception as error:
        found = f"raises {type(error).__name__}, no {kind.__name__}"
        raise Refused(f"{said}: {found}: {error}") from error
    else:
        raise Refused(f"{said}: goes through.")
    if "\n" in message:
        raise Refused(f"{said}: says more than a sentence: {message}")
    return message


def same(one, other) -> bool:
    """Whether two pytrees have equal arrays."""
    return jax.tree.all(jax.tree.map(np.array_equal, one, other))


def refuses_lost_arrays(dataset_of) -> None:
    """Arrays whose mask, names or lengths would be lost are refused before TensorFlow has them."""
    numbers = np.ma.masked_equal(np.arange(8.0), 3)
    labels = np.arange(8)
    for images in (numbers, labels.astype(str), labels[1:]):
        refusal("arrays", lambda images=images: dataset_of(images, labels))
