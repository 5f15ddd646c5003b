"""What the kernel of a lesson needs: environment, packages, data; and whether there is a GPU."""

import functools
import importlib.util
import os
import re
import signal
import subprocess
import sys

from offline.problem import INSTALL, Problem
from tools.lesson import lessons


def kernel_environment() -> dict[str, str]:
    """What `execute` and nbval give to a kernel: the same, so that outputs agree."""
    environment = dict(os.environ)
    # ipykernel turns off its capture of child processes' output when it sees pytest.
    environment.pop("PYTEST_CURRENT_TEST", None)
    if not os.access(os.path.expanduser("~"), os.W_OK):
        # Without a home, libraries warn.
        environment["HOME"] = str(lessons.NOTEBOOKS / "data")
    return environment | {
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        "HF_HUB_OFFLINE": "1",  # take the dataset that offline/ laid out
        "DATASETS_VERBOSITY": "error",  # or it logs a path and a date to stderr
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }


@functools.cache
def has_gpu() -> bool:
    """Whether JAX sees a GPU: asked in another process, which gives its memory back.

    Where JAX's plugin for CUDA ends a process because there is no driver, this process and all
    that it starts run on the CPU from here on. Raises Problem where JAX does not work at all.
    """
    if not importlib.util.find_spec("jax"):  # ask_for_packages says what is missing
        return False
    backend, said = default_backend()
    if not backend and "JAX_PLATFORMS" not in os.environ and default_backend("cpu")[0]:
        os.environ["JAX_PLATFORMS"] = "cpu"
        print(
            f"JAX does not start on a GPU here ({said}), and on the CPU it does: everything runs "
            "with JAX_PLATFORMS=cpu. `nvidia-smi` shows whether this machine has a driver.",
            file=sys.stderr,
        )
        return False
    if not backend:
        raise Problem(
            f'JAX does not work here ({said}): `python -c "import jax; jax.devices()"` shows all.'
        )
    return backend == "gpu"


def default_backend(platforms: str = "") -> tuple[str, str]:
    """The backend that JAX takes in a new process, or "" and how the process ended without one.

    `platforms`: its JAX_PLATFORMS, if not that of this process.
    """
    done = subprocess.run(
        [sys.executable, "-c", "import jax; print(jax.default_backend())"],
        env=os.environ | ({"JAX_PLATFORMS": platforms} if platforms else {}),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 0:
        return done.stdout.split()[-1], ""
    if done.returncode < 0:
        return "", f"the process ends with {signal.Signals(-done.returncode).name}"
    return "", (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]


def ask_for_packages(name: str) -> None:
    """Raises Problem when a notebook imports what is neither installed nor written by itself."""
    cells = lessons.code_cells(lessons.read_notebook(name))
    code = "\n".join(cell.source for cell in cells if lessons.GPU_TAG not in lessons.tags(cell))
    imported = set(re.findall(r"^(?:import|from) (\w+)", code, re.MULTILINE))
    written = set(re.findall(r"^%%writefile (\w+)\.py$", code, re.MULTILINE))
    missing = [m for m in sorted(imported - written) if not importlib.util.find_spec(m)]
    if missing:
        notebook = lessons.notebook_path(name).relative_to(lessons.ROOT)
        raise Problem(f"{notebook} imports {' and '.join(missing)}, not installed here: {INSTALL}.")


def lay_out_data() -> None:
    """Put the data where the libraries that are installed here look for it. Raises Problem."""
    if not os.access(lessons.NOTEBOOKS, os.W_OK):
        raise Problem(
            f"{lessons.NOTEBOOKS} cannot be written to, and lessons write files beside themselves: "
            "run them in a clone of your own."
        )
    command = [sys.executable, str(lessons.ROOT / "offline" / "lay_out.py")]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise Problem(done.stderr.strip())
