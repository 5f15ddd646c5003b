"""This machine, and the files that say what `bench` measured on it."""

import contextlib
import datetime
import json
import platform
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import filelock
import psutil

from offline.problem import Problem
from tools.lesson import files

# The packages whose versions a result or a record names, where they are there.
LIBRARIES = (
    "jax",
    "numpy",
    "torch",
    "torchvision",
    "tensorflow",
    "tensorflow-cpu",
    "tensorflow-datasets",
    "grain",
    "datasets",
)


def processor() -> str:
    """CPU name as the OS reports it: Python alone says "arm" of any Mac."""
    with contextlib.suppress(OSError, subprocess.CalledProcessError):
        if platform.system() == "Darwin":
            ask = ["sysctl", "-n", "machdep.cpu.brand_string"]
            return subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def device() -> str:
    """The device that JAX computes on, as it names it, and how many there are."""
    import jax  # noqa: PLC0415 (the light environment has none)

    count = jax.device_count()
    return jax.devices()[0].device_kind + (f" x{count}" if count > 1 else "")


def device_from_outside() -> str:
    """The same, asked in another process: JAX keeps a GPU's memory until its process ends."""
    asked = [sys.executable, "-c", "from tools.lesson import machine; print(machine.device())"]
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(asked, cwd=root, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1]


def describe(device: str) -> dict[str, str | int]:
    """This machine. `device`: what JAX computes on, as JAX names it."""
    return {
        "processor": processor(),
        "cores": psutil.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 1e9),
        "system": f"{platform.system()} {platform.machine()}",
        "device": device,
    }


def path(folder: Path, device: str) -> Path:
    """One file for each machine: named after its GPU, or its processor and number of cores."""
    name = f"{processor()} {psutil.cpu_count()} cores" if device == "cpu" else device
    return folder / (re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") + ".json")


def today() -> str:
    return datetime.datetime.now(datetime.UTC).date().isoformat()


def read(file: Path) -> dict:
    """What the file holds; {} when there is none. Raises Problem when it is damaged."""
    try:
        return json.loads(file.read_text())
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise Problem(f"{file} is not JSON: restore it with git, or delete it.") from error


def update(file: Path, change: Callable[[dict], dict]) -> dict:
    """Store `change(content)` in place of the file's content, {} when there is no file.

    Returns what is stored. A lock lets one process at a time read, change and write, so none loses
    what another stores meanwhile; and an interruption leaves the old file or the new one.
    Raises Problem when the file is damaged or cannot be written.
    """
    try:
        file.parent.mkdir(exist_ok=True)
        with filelock.FileLock(file.with_name(f".{file.name}.lock")):
            content = change(read(file))
            with files.replacing(file) as scratch:
                scratch.write_text(json.dumps(content, indent=1) + "\n")
    except OSError as error:
        raise Problem(f"{file} cannot be written: {error.strerror}.") from error
    return content
