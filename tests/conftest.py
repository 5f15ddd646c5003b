"""A copy of the repository to damage, and the mounts that stand for bad disks."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools import lessons


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
def python():
    """Run this Python with the arguments; give back the finished process, its output as text."""

    def run(*arguments, prefix=(), cwd=None, env=None):
        command = [*map(str, prefix), sys.executable, *map(str, arguments)]
        environment = {key: os.environ[key] for key in os.environ if not key.startswith("PYTEST_")}
        environment |= env or {}
        return subprocess.run(
            command, cwd=cwd, env=environment, capture_output=True, text=True, check=False
        )

    return run


@pytest.fixture
def interruptible():
    """Start this Python with the arguments, as from a terminal, where Ctrl-C interrupts."""

    def start(*arguments, cwd=None):
        return subprocess.Popen(
            # A shell starts its background jobs with SIGINT ignored, and so would pytest in one.
            ["env", "--default-signal=INT", sys.executable, *map(str, arguments)],
            cwd=cwd,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return start


@pytest.fixture
def mounted():
    """The prefix of a command that sees `folder` mounted in its own way, as on a bad disk."""

    def prefix(mount: str, folder: Path, meanwhile: str = "true"):
        alone = ["unshare", "--map-root-user", "--mount", "sh", "-c"]
        try_it = [*alone, f'mount {mount} "$0"', str(folder)]
        if not shutil.which("unshare") or subprocess.run(try_it, check=False).returncode:
            pytest.skip("this machine does not let us mount (unshare --map-root-user --mount)")
        return [*alone, f'mount {mount} "$0" || exit 99; ({meanwhile}) & exec "$@"', str(folder)]

    return prefix
