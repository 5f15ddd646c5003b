"""The pytest plugin behind `--record`: stores what the site says was checked, where and when."""

import contextlib
import platform
from collections import Counter, defaultdict
from importlib import metadata

from tools.lesson import lessons, machine

CHECKED = lessons.ROOT / "checked"


class Outcomes:
    """What became of each cell: by lesson and number the report that tells, and the seconds."""

    def __init__(self):
        self.reports, self.seconds = defaultdict(dict), Counter()

    def pytest_runtest_logreport(self, report):
        file, _, cell = report.nodeid.partition("::Cell ")
        path = lessons.ROOT / file
        if not cell or path.parent != lessons.NOTEBOOKS:
            return
        if report.when == "call" or not report.passed:
            self.reports[path.stem][int(cell)] = report
        self.seconds[path.stem] += report.duration


class Record(Outcomes):
    """Stores what happened to the cells of each lesson of which every cell ran and none failed."""

    def pytest_terminal_summary(self, terminalreporter):
        passed = {}
        for name, reports in self.reports.items():
            notebook = lessons.read_notebook(name)
            found = Counter(report.outcome for report in reports.values())
            if len(reports) == len(lessons.code_cells(notebook)) and not found["failed"]:
                passed[name] = {
                    "passed": found["passed"],
                    "skipped": found["skipped"],
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
