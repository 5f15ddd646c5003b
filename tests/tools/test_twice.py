"""A cell or a notebook that cannot be run twice is found, on tiny lessons in real kernels."""

import pytest

from tools.lesson import lessons
from tools.run import twice

pytestmark = pytest.mark.slow

FIRST, AGAIN = twice.IN_A_ROW
(WHOLE,) = twice.ANOTHER_DAY


def write(*sources):
    header = "---\nkernelspec:\n  name: python3\n  display_name: Python 3\n---\n\n"
    cells = [f"```{{code-cell}} ipython3\n{source}\n```\n" for source in sources]
    lessons.md_path("tiny").write_text(header + "\n".join(cells))


@pytest.mark.parametrize(
    ("sources", "found"),
    [
        (["n = 1 + globals().get('n', 0)\nprint(n)", "n = n + 1"], {}),  # it may print another
        (["x = [1]", "x.pop()", "x.append(1)"], {(1, AGAIN): "IndexError: pop from empty list"}),
        (
            ["import os\nif 'made' not in globals():\n    os.mkdir('made')\nmade = 1"],
            {(0, WHOLE): "FileExistsError: [Errno 17] File exists: 'made'"},
        ),
        (
            ["import time; time.sleep(60)", "1 / 0"],
            dict.fromkeys([(0, FIRST), (0, WHOLE)], "it did not end within 8 s"),
        ),
    ],
)
@pytest.mark.usefixtures("repository")
def test_each_cell_that_cannot_be_run_again_is_named(sources, found):
    write(*sources)
    sentences = [f"tiny, cell {n} fails {when}: {why}." for (n, when), why in found.items()]
    assert [*twice.faults("tiny", limit=8)] == sentences


def test_the_program_says_by_its_status_what_it_found(workshop, python):
    for source, status in (("1 / 0", 1), ("1", 0)):
        write(source)
        done = python("-m", "tools.run.twice", "--limit=60", "tiny", cwd=workshop)
        assert (done.returncode, done.stderr) == (status, "")
    done = python("-m", "tools.run.twice", "no_such", cwd=workshop)
    assert done.returncode == 1 and "twice: md/no_such.md does not exist: the " in done.stderr
