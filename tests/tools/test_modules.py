"""The modules that are made from the pages: whole, alone, and traced back to their lines."""

import re
import subprocess
import sys

import pytest

from offline.problem import Problem
from tools.lesson import lessons, modules

HEAD = "---\nkernelspec:\n  name: python3\n  display_name: Python 3\n---\n\n# Toys\n"


@pytest.fixture
def page(repository):
    """Makes the source of the module of a page with these cells: their tags and their code."""

    def made(*cells):
        blocks = [
            f"```{{code-cell}} ipython3\n:tags: [{tags}]\n\n{code}\n```\n" for tags, code in cells
        ]
        lessons.md_path("start_here").write_text(HEAD + "\n".join(blocks))
        return modules.source("start_here")

    return made


def test_a_module_has_what_readers_copy_and_all_that_it_needs(page):
    source = page(
        ("setup", "import json\n\nimport numpy as np\n\nSIZE = 3\nprint(SIZE)"),
        ("copy", "# Why it is so.\ndef ones(count):\n    return np.ones(count * SIZE)"),
        ("proof", "# @title Proof: it holds\nassert ones(1).size == 3"),
        ("copy", "from toy_files import twice\n\n\ndef pair(x):\n    return twice(x)"),
        ("copy", "%%writefile toy_files.py\ndef twice(x):\n    return [x, x]"),
    )
    names = {}
    exec(source, names)
    assert names["ones"](2).size == 6 and names["pair"](1) == [1, 1]
    assert "json" not in source and "assert" not in source and "print" not in source
    assert "toy_files" not in source and "# Why it is so." in source
    assert source.startswith('r"""Toys: ') and "pip install" in source and "Apache-2.0" in source


def test_two_definitions_of_a_name_are_refused(page):
    with pytest.raises(Problem, match=r"md/start_here.md defines f twice"):
        page(("copy", "def f():\n    return 1"), ("copy", "def f():\n    return 2"))


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("modules")
    modules.write(folder)
    return folder


def test_the_modules_of_all_pages_pass_ruff(written):
    rules = ["--config", str(lessons.ROOT / "ruff.toml"), "--select=E,F,W,I,B,UP,SIM,A,RUF,PL"]
    ignored = ["--ignore=PLR2004,B905,PLC0415,PLR0913,PLR0917,E501,SIM102"]
    command = [sys.executable, "-m", "ruff", "check", *rules, *ignored, str(written)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", modules.pages())
def test_each_part_says_where_it_stands(written, name):
    lines = lessons.md_path(name).read_text().splitlines()
    source = (written / f"{modules.module_name(name)}.py").read_text()
    parts = re.findall(r"^# md/\w+\.md, line (\d+)\n# .+\n+(.+)$", source, re.MULTILINE)
    assert parts
    for number, first in parts:
        start = int(number) - 1
        end = lines.index("```", start)
        assert lines[start - 1] in ("", "---") or lines[start - 1].startswith((":", "```"))
        assert first in lines[start:end]


@pytest.mark.slow
@pytest.mark.parametrize("name", modules.pages())
def test_each_module_imports_alone(written, name, tmp_path):
    command = [sys.executable, "-W", "ignore", written / f"{modules.module_name(name)}.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
