"""The pytest plugin behind `--record`: stores what the site says was checked, where and when."""

import contextlib
import platform
from importlib import metadata

from tools import lessons, machine

CHECKED = lessons.ROOT / "checked"


class Record:
    """Counts what happens to each cell, and stores it for each lesson of which every cell ran."""

    def __init__(self):
        self.outcomes = {}
        self.seconds = {}

    def pytest_runtest_logreport(self, report):
        file, _, cell = report.nodeid.partition("::Cell ")
        path = lessons.ROOT / file
        if not cell or path.parent != lessons.NOTEBOOKS:
            return
        of_lesson = self.outcomes.setdefault(path.stem, {})
        if report.when == "call" or report.outcome != "passed":
            of_lesson[cell] = report.outcome
        self.seconds[path.stem] = self.seconds.get(path.stem, 0) + report.duration

    def pytest_terminal_summary(self, terminalreporter):
        passed = {}
        for name, outcomes in self.outcomes.items():
            notebook = lessons.read_notebook(name)
            found = list(outcomes.values())
            if len(found) == len(lessons.code_cells(notebook)) and "failed" not in found:
                passed[name] = {
                    "passed": found.count("passed"),
                    "skipped": found.count("skipped"),
                    "seconds": round(self.seconds[name], 1),
                    "digest": lessons.digest(notebook),
                }
        if passed:
            store(passed)
        terminalreporter.write_line(f"recorded in checked/: {', '.join(passed) or 'no lesson'}")


def store(passed: dict[str, dict]) -> None:
    """Put the lessons into this machine's file, beside what earlier runs left there."""
    device = machine.device_from_outside()
    file = machine.path(CHECKED, device)
    versions = {"python": platform.python_version()}
    for library in machine.LIBRARIES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[library] = metadata.version(library)
    python = "Python " + versions["python"].rpartition(".")[0]
    news = {
        name: {"date": machine.today(), **figures, "versions": versions}
        for name, figures in passed.items()
    }

    def with_news(content: dict) -> dict:
        runs = content.get("runs", {})
        return machine.describe(device) | {"runs": runs | {python: runs.get(python, {}) | news}}

    machine.update(file, with_news)
