"""The one line that installs what a lesson needs, from what it imports and what the lock knows."""

import functools
import re
import sys
from collections import defaultdict

from offline.problem import Problem
from tools.lesson import lessons

# Where a distribution is not called as its module is.
DISTRIBUTIONS = {
    "PIL": "pillow",
    "absl": "absl-py",
    "attr": "attrs",
    "cv2": "opencv-python-headless",
    "orbax": "orbax-checkpoint",
    "sklearn": "scikit-learn",
    "tensorflow": "tensorflow-cpu",  # which leaves the GPU to JAX
}
IN_EVERY_KERNEL = {"IPython"}
PREPARES_WITH = {"tensorflow_datasets": "tensorflow"}  # which it does not require
# Depends on extras, which the lock omits: assume none.
BY_EXTRAS = {"etils"}
IMPORTED = re.compile(r"^[ \t]*(?:import|from) (\w+)", re.MULTILINE)
PIP = re.compile(r"^\s*%pip install -q (.+)$", re.MULTILINE)
REQUIREMENT = re.compile(r'"?([A-Za-z][\w.-]*(?:\[[\w,]+\])?)(>=[\d.]+)?')


def command(name: str) -> str:
    """`pip install …` with what the lesson needs beside Jupyter. Raises Problem."""
    asked = (f'"{p}"' if re.search(r"[\[<>]", p) else p for p in packages(name))
    return f"pip install {' '.join(asked)}"


def packages(name: str) -> list[str]:
    """What the lesson imports or installs itself, without what the rest of that brings along.

    Modules that only a cell for a GPU imports are left out. Raises Problem where a module belongs
    to no package of constraints.txt.
    """
    cells = lessons.code_cells(lessons.read_md(name))
    code = "\n".join(cell.source for cell in cells if lessons.GPU_TAG not in lessons.tags(cell))
    written = set(re.findall(r"^%%writefile (\w+)\.py", code, re.MULTILINE))
    modules = {*IMPORTED.findall(code)} - written - sys.stdlib_module_names - IN_EVERY_KERNEL
    modules |= {PREPARES_WITH[module] for module in modules & PREPARES_WITH.keys()}
    distributions = {DISTRIBUTIONS.get(module, module.replace("_", "-")) for module in modules}
    wanted = {name: name for name in ("jax", *distributions)}
    for asked in " ".join(PIP.findall(code)).split():
        requirement, least = REQUIREMENT.match(asked).groups()
        requirement = requirement.replace("_", "-")
        distribution, bracket, _ = requirement.partition("[")
        if distribution != "jax":  # Colab's own JAX is changed for another: not the reader's
            wanted[distribution] = (requirement if bracket else distribution) + (least or "")
    required = brought_along((lessons.ROOT / "constraints.txt").read_text())
    if unknown := sorted(wanted.keys() - required.keys()):
        raise Problem(
            f"md/{name}.md imports {', '.join(unknown)}, which constraints.txt does not know: add "
            "it to requirements.txt and run `tox run -e lock`, or say in tools/lesson/install.py "
            "how its package is called."
        )
    brought = set().union(*(required[distribution] for distribution in wanted))
    return sorted(
        asked
        for distribution, asked in wanted.items()
        if distribution == "jax" or distribution not in brought or asked != distribution
    )


@functools.lru_cache(maxsize=2)
def brought_along(lock: str) -> dict[str, set[str]]:
    """For each package of the lock, all that installing it brings: the lock says who wants what."""
    requires, distribution = defaultdict(set), ""
    for text in lock.splitlines():
        if pin := re.match(r"([\w.-]+)==", text):
            distribution = pin[1]
            requires[distribution]  # also where nothing is required
        elif distribution and (wanted_by := re.match(r"    #(?: via)?\s+([a-z][\w.-]*)$", text)):
            requires[wanted_by[1]].add(distribution)
    requires |= {distribution: set() for distribution in BY_EXTRAS}

    def everything(distribution: str, seen: set[str]) -> set[str]:
        for other in requires[distribution] - seen:
            seen |= {other} | everything(other, seen | {other})
        return seen

    return {distribution: everything(distribution, set()) for distribution in [*requires]}
