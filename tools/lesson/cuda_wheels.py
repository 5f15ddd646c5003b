"""The libraries of NVIDIA that JAX and PyTorch share: which version the lock has, for whom.

Both load the file that lies in the environment. So there has to be one version that suits both, and
for one version of CUDA only.
"""

import re
from collections.abc import Iterator

from tools.lesson import install, lessons

SHARED = {"cuDNN": "nvidia-cudnn-cu", "NCCL": "nvidia-nccl-cu", "cuBLAS": "nvidia-cublas"}
WANTED_BY = {"JAX": "jax-cuda13-plugin", "PyTorch": "torch"}


def pins(lock: str) -> dict[str, list[tuple[str, str]]]:
    """For each shared library the packages of the lock that hold it, and their versions."""
    every = re.findall(r"^([\w.-]+)==([\w.+]+)", lock, re.MULTILINE)
    return {
        library: [pin for pin in every if re.fullmatch(rf"{package}(\d+)?", pin[0])]
        for library, package in SHARED.items()
    }


def faults(lock: str | None = None) -> Iterator[str]:
    """Libraries that JAX and PyTorch would load in different versions, a sentence each."""
    lock = lock or read()
    brought = install.brought_along(lock)
    for library, found in pins(lock).items():
        if len(found) != 1:
            said = ", ".join(map("==".join, found)) or "none"
            yield f"constraints.txt holds {said} of {library}: JAX and PyTorch need one, the same."
            continue
        [(package, _)] = found
        for name, wanting in WANTED_BY.items():
            if package not in brought.get(wanting, ()):
                yield f"constraints.txt: {name} ({wanting}) does not bring {package}."


def table() -> str:
    """Markdown: each shared library with its one version. Raises ValueError where they differ."""
    if found := [*faults()]:
        raise ValueError(" ".join(found))
    rows = [
        f"| {library} | `{package}` | {version} |"
        for library, [(package, version)] in pins(read()).items()
    ]
    head = f"| {' and '.join(WANTED_BY)} share | package | version |"
    return "\n".join([head, "| --- | --- | --- |", *rows])


def read() -> str:
    return (lessons.ROOT / "constraints.txt").read_text()
