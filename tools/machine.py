"""This machine, and the files that say what `bench` measured and `test --record` checked on it."""

import contextlib
import datetime
import json
import platform
import re
from pathlib import Path

import psutil

from tools import lessons


def processor() -> str:
    """The name of the processor, as Linux or else Python tells it."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def device() -> str:
    """The device that JAX computes on, as it names it, and how many there are."""
    import jax  # noqa: PLC0415 (the light environment has none)

    count = jax.device_count()
    return jax.devices()[0].device_kind + (f" x{count}" if count > 1 else "")


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
    """What the file holds; {} when there is none. Raises lessons.Problem when it is damaged."""
    try:
        return json.loads(file.read_text())
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise lessons.Problem(f"{file} is not JSON: restore it with git, or delete it.") from error


def write(file: Path, content: dict) -> None:
    """Replace the file at once, so that an interruption leaves the old one or the new one."""
    scratch = file.with_suffix(".tmp")
    try:
        file.parent.mkdir(exist_ok=True)
        scratch.write_text(json.dumps(content, indent=1) + "\n")
        scratch.replace(file)
    except OSError as error:
        raise lessons.Problem(f"{file} cannot be written: {error.strerror}.") from error
    finally:
        scratch.unlink(missing_ok=True)
