"""The pytest plugin that says what a run does: a line for each file when its last test has ended.

What fails is named at once: a run takes minutes, and may be stopped.
"""

from collections import Counter, defaultdict

import pytest


class Progress:
    """`expected`: how many tests each file has. Workers of pytest-xdist say nothing."""

    def __init__(self, config):
        self.config = config
        self.expected = Counter()
        self.outcomes = defaultdict(Counter)
        self.seconds = Counter()

    def expect(self, node_ids: list[str]) -> None:
        self.expected = Counter(map(file_of, node_ids))

    def write(self, line: str) -> None:
        self.config.pluginmanager.getplugin("terminalreporter").write_line(line)

    def pytest_report_teststatus(self, report):
        if report.when == "call" and report.passed:
            return "passed", "", "PASSED"  # no dot
        return None

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report):
        file = file_of(report.nodeid)
        self.seconds[file] += report.duration
        if report.failed:
            self.write(f"failed: {report.nodeid}")
        if report.when == "call" or not report.passed:
            self.outcomes[file][report.outcome] += 1
        if report.when == "teardown":
            self.outcomes[file]["ended"] += 1
            if self.outcomes[file]["ended"] == self.expected[file]:
                self.write(self.line(file))

    def line(self, file: str) -> str:
        """Such as `12 of 46 files  notebooks/grain.ipynb: 14 passed in 39 s`."""
        ended = sum(of["ended"] == self.expected[name] for name, of in self.outcomes.items())
        found = [
            f"{count} {outcome}"
            for outcome, count in sorted(self.outcomes[file].items())
            if outcome != "ended"
        ]
        seconds = f"{self.seconds[file]:.0f} s"
        return f"{ended:>3} of {len(self.expected)} files  {file}: {', '.join(found)} in {seconds}"


def file_of(node_id: str) -> str:
    return node_id.partition("::")[0]
