"""The pytest plugin behind `--record`: writes into each notebook when and with what it passed.

The processes of pytest-xdist send their reports to the one that controls them, which alone writes.
"""

import contextlib
import platform
from collections import Counter, defaultdict
from importlib import metadata

from nbformat import NotebookNode

from tools.lesson import install, lessons, machine


class Outcomes:
    """The deciding report of each cell, by lesson and number."""

    def __init__(self):
        self.reports = defaultdict(dict)

    def pytest_runtest_logreport(self, report):
        file, _, cell = report.nodeid.partition("::Cell ")
        path = lessons.ROOT / file
        if not cell or path.parent != lessons.NOTEBOOKS:
            return
        if report.when == "call" or not report.passed:
            self.reports[path.stem][int(cell)] = report


class Record(Outcomes):
    """Writes into each notebook of which every cell ran and none failed."""

    def pytest_terminal_summary(self, terminalreporter):
        device = machine.device_from_outside() if self.reports else ""  # it takes seconds
        names = [name for name, reports in self.reports.items() if record(name, reports, device)]
        terminalreporter.write_line(f"recorded in notebooks/: {', '.join(names) or 'no lesson'}")


def record(name: str, reports: dict, device: str) -> bool:
    """Write into the notebook what these reports of its cells show. Returns whether it passed."""
    notebook = lessons.read_notebook(name)
    found = Counter(report.outcome for report in reports.values())
    digests = {dict(report.user_properties).get("digest") for report in reports.values()}
    as_it_ran = lessons.digest(notebook) in digests  # it may be another since
    if found["failed"] or len(reports) != len(lessons.code_cells(notebook)) or not as_it_ran:
        return False
    if found["passed"] < lessons.checked(notebook).get("cells", 0):  # a run on a GPU says more
        return True
    notebook.metadata["checked"] = {
        "date": machine.today(),
        "cells": found["passed"],
        "skipped": found["skipped"],
        "digest": lessons.digest(notebook),
        "device": device,
        **versions(notebook),
    }
    lessons.store(notebook, name)
    return True


def versions(notebook: NotebookNode) -> dict[str, str]:
    """The versions of Python, of JAX, and of the other libraries that the notebook imports."""
    code = "\n".join(cell.source for cell in lessons.code_cells(notebook))
    imported = {"jax", *install.IMPORTED.findall(code)}
    found = {"python": platform.python_version()}
    for library in machine.LIBRARIES:
        module = library.removesuffix("-cpu").replace("-", "_")
        with contextlib.suppress(metadata.PackageNotFoundError):
            if module in imported:
                found[library] = metadata.version(library)
    return found
