"""The mutator finds the change that no test refuses, and leaves the module as it was."""

import sys
import textwrap

import mutants
import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.version_info < (3, 12), reason="needs sys.monitoring"),
]

MODULE = '''
def clipped(x, low=0):
    """x, but at least low."""
    if x is None:
        raise ValueError("nothing")
    return x if x > low else low


class Pair:
    def __init__(self, one, two):
        self.both = [one, two]

    def first(self):
        return self.both[0]

    @property
    def last(self):
        return self.both[1:]


def unused():
    return 1
'''
TESTS = """
import pytest
from feed_toy import Pair, clipped

def test_clipped():
    assert [clipped(x) for x in (-1, 0, 1)] == [0, 0, 1]
    assert clipped(3, 2) == 3

def test_nothing():
    with pytest.raises(ValueError):
        clipped(None)

def test_pair():
    assert Pair(1, 2).first() == 1
    assert Pair(1, 2).last == [2]
"""


@pytest.fixture
def trial(tmp_path, monkeypatch):
    (tmp_path / "feed_toy.py").write_text(MODULE)
    (tmp_path / "test_toy.py").write_text(textwrap.dedent(TESTS))
    monkeypatch.syspath_prepend(tmp_path)
    trial = mutants.Trial(["feed_toy"])
    options = "-q", "-p", "no:cacheprovider", "-c", str(tmp_path / "pytest.ini")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    assert pytest.main([str(tmp_path / "test_toy.py"), *options], [trial]) == 0
    yield trial
    del sys.modules["feed_toy"], sys.modules["test_toy"]


def test_what_survives_is_found_and_all_else_is_killed(trial):
    assert {(m.function, m.old, m.new) for m in trial.survivors} == {
        ("clipped", "return x if x > low else low", "return x if x >= low else low"),
        ("unused", "no test calls it", ""),
    }
    assert trial.count > 8


def test_the_module_is_as_it_was(trial):
    toy = sys.modules["feed_toy"]
    assert [toy.clipped(x) for x in (-1, 0, 5)] == [0, 0, 5]
    assert toy.clipped.__defaults__ == (0,)
    with pytest.raises(ValueError, match="nothing"):
        toy.clipped(None)
    assert toy.Pair(1, 2).first() == 1 and toy.Pair(1, 2).last == [2]
    assert sys.modules["test_toy"].clipped is toy.clipped


def test_what_hangs_is_killed(tmp_path, monkeypatch):
    monkeypatch.setattr(mutants, "PATIENCE_S", 1)
    (tmp_path / "feed_hangs.py").write_text("def f(n):\n    while n > 0:\n        n = n - 3\n")
    (tmp_path / "test_hangs.py").write_text(
        "import feed_hangs\ndef test_f():\n    feed_hangs.f(3)\n"
    )
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    monkeypatch.syspath_prepend(tmp_path)
    trial = mutants.Trial(["feed_hangs"])
    options = "-q", "-p", "no:cacheprovider", "-c", str(tmp_path / "pytest.ini")
    assert pytest.main([str(tmp_path / "test_hangs.py"), *options], [trial]) == 0
    assert all("n = n + 3" not in mutant.new for mutant in trial.survivors)
    del sys.modules["feed_hangs"], sys.modules["test_hangs"]
