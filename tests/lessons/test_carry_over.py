"""The pipelines of every lesson keep the contract on data of many sizes, not only on MNIST.

    CARRY_OVER_CASES=2000 pytest tests/lessons/test_carry_over.py

tries as many inputs, other ones each time. Without it there are 200, the same in each run.
"""

import jupytext
import pytest
from carried_over import CarriedOver

from benchmarks import bench
from tools.lesson import lessons

pytestmark = pytest.mark.slow


ENTRY = """
[[lesson]]
name = "{name}"
group = "Loaders"
have = "a loader"
question = "Does it carry over?"
hardware = "any"
run = 1
"""


def promising() -> list[str]:
    """The lessons with a pipeline that promises what the contract says."""
    promised = "tuned-pipeline", "files-pipeline"
    return [name for name in lessons.names() if lessons.subject_cells(name, *promised)]


@pytest.mark.parametrize("name", promising())
def test_a_lesson_carries_over(name):
    with bench.ready(bench.Process(name, kind=CarriedOver)) as [lesson]:
        lesson.call("check_pipelines")
        if lessons.subject_cells(name, "tuned-pipeline"):
            assert lesson.call("epoch") > 0  # the benchmark trains with it


def test_lessons_are_tried_in_processes_of_their_own(workshop, python):
    """The template of new lessons, right and with a count of MNIST, in a copy of the repository."""
    right = "len(images), batch_size, *part"
    for name, count in {"tiny_right": "len(images)", "tiny_wrong": "60_000"}.items():
        assert python("-m", "tools.check.new", name, cwd=workshop).returncode == 0
        depth = workshop / "md" / f"{name}_in_depth.md"
        assert depth.read_text().count(right) == 1
        depth.write_text(depth.read_text().replace(right, f"{count}, batch_size, *part"))
        for page in (name, f"{name}_in_depth"):
            source = workshop / "md" / f"{page}.md"
            jupytext.write(jupytext.read(source), workshop / "notebooks" / f"{page}.ipynb")
        with (workshop / "lessons.toml").open("a") as listed:
            listed.write(ENTRY.format(name=name))
    tests = "tests/lessons/test_carry_over.py", "-m", "slow", "-k", "lesson_carries_over and tiny"
    done = python("-m", "pytest", *tests, cwd=workshop, env={"CARRY_OVER_CASES": "20"})
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert "tiny_wrong is refused: 0 examples for batches of 4: raises IndexError" in done.stdout
    assert not (workshop / ".hypothesis").exists()
