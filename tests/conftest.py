"""A copy of the repository to damage, a process in a terminal, and a browser."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tools.lesson import lessons

TIMEOUT_S = 600  # what hangs is killed, and fails


@pytest.fixture
def repository(tmp_path, monkeypatch) -> Path:
    """A copy of the repository without data, in a folder with blanks and non-ASCII letters.

    `tools.lessons` looks at the copy too, until the test ends.
    """
    copy = tmp_path / "Füttere JAX"
    ignored = shutil.ignore_patterns(
        ".git", ".tox", ".venv", "_build", "data", "__pycache__", ".*_cache", ".lay_out*"
    )
    shutil.copytree(lessons.ROOT, copy, ignore=ignored)
    monkeypatch.setattr(lessons, "ROOT", copy)
    monkeypatch.setattr(lessons, "MD", copy / "md")
    monkeypatch.setattr(lessons, "NOTEBOOKS", copy / "notebooks")
    return copy


@pytest.fixture
def workshop(repository, data) -> Path:
    """The copy, with the data beside its notebooks."""
    (repository / "notebooks/data").mkdir()
    for folder in data.iterdir():
        if folder.is_dir():
            (repository / "notebooks/data" / folder.name).symlink_to(folder)
    return repository


@pytest.fixture
def python():
    """Run this Python with the arguments; give back the finished process, its output as text."""

    def run(*arguments, cwd=None, env=None, timeout=TIMEOUT_S):
        command = [sys.executable, *map(str, arguments)]
        environment = {key: os.environ[key] for key in os.environ if not key.startswith("PYTEST_")}
        environment |= env or {}
        return subprocess.run(
            command,
            cwd=cwd,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
        )

    return run


class InTerminal(subprocess.Popen):
    """A process that a terminal started."""

    def wait_until_it_says(self, words: str) -> None:
        if not any(words in line for line in self.stdout):
            pytest.fail(f"It never said “{words}”, but {self.communicate()[1]}")

    def end(self) -> None:
        """Kill it and all that it started, whatever became of it."""
        with contextlib.suppress(psutil.NoSuchProcess):
            for process in (psutil.Process(self.pid), *self.descendants()):
                process.kill()

    def descendants(self) -> list[psutil.Process]:
        return psutil.Process(self.pid).children(recursive=True)

    def press_ctrl_c(self) -> tuple[str, str]:
        """Interrupt it and its children, as a terminal does. Returns what it said until its end."""
        os.killpg(self.pid, signal.SIGINT)
        return self.communicate(timeout=60)


@pytest.fixture
def in_terminal():
    """Start this Python with the arguments, as a terminal does."""

    started = []

    def start(*arguments, cwd=None):
        process = InTerminal(
            # A shell starts its background jobs with SIGINT ignored, and so would pytest in one.
            ["env", "--default-signal=INT", sys.executable, *map(str, arguments)],
            cwd=cwd,
            process_group=0,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.end()
        process.communicate()


@pytest.fixture(scope="session")
def browser():
    """A running Chromium. Without one, CI fails and everybody else skips."""
    from playwright.sync_api import sync_playwright

    path = shutil.which("chromium") or shutil.which("google-chrome")
    if not path:
        reason = "There is no Chromium: install Debian's package `chromium`, or Google Chrome."
        if "CI" in os.environ:
            pytest.fail(reason)
        pytest.skip(reason)
    # Chromium asks its maker for updates and the like, unless it is told not to.
    options = ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
    if os.geteuid() == 0:
        options.append("--no-sandbox")  # Chromium refuses root its sandbox
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=options)
        yield browser
        browser.close()
