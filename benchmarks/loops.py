"""The loops of the page that compares the loaders: its own cells, as a reader runs them."""

import json
from importlib import metadata

from tools.lesson import lessons, machine
from tools.run import runner

PAGE = "four_loaders"
LIMIT_S = 600  # that a cell may take
LIBRARIES = "jax", "numpy", "torch", "tensorflow", "tensorflow_datasets", "datasets"
ASKED = f"""
import json, sys

print(json.dumps({{
    "images": rows_of_epoch,
    "step_s": step_alone,
    "reads": READS,
    "alone_s": seconds_alone,
    "trained_s": {{name: result[2] for name, result in results.items()}},
    "versions": {{name: sys.modules[name].__version__ for name in {LIBRARIES}}},
}}))
"""


def measure(repetitions: int) -> dict:
    """Seconds of an epoch: of the training step alone, of each loader alone, and with training.

    The loops that the page varies, such as PyTorch without Pillow, are timed alone only.

    Raises runner.Failed where a cell does.
    """
    taken = [once() for _ in range(repetitions)]
    last = taken[-1]
    return {
        "date": machine.today(),
        "versions": last["versions"] | {"grain": metadata.version("grain")},
        "images": last["images"],
        "reads": last["reads"],
        "step_s": [of["step_s"] for of in taken],
        **{
            key: {name: [of[key][name] for of in taken] for name in last[key]}
            for key in ("alone_s", "trained_s")
        },
    }


def once() -> dict:
    """What the page has measured at its end."""
    notebook = lessons.read_notebook(PAGE)
    cells = lessons.code_cells(notebook)
    asking = cells[-1]  # its own proofs are for nbval
    asking.source = ASKED
    with runner.Kernel(notebook, lessons.NOTEBOOKS, LIMIT_S) as kernel:
        for cell in cells:
            kernel.run(cell)
    return json.loads(asking.outputs[-1]["text"])
