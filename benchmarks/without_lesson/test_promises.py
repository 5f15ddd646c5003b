"""The loaders that this environment has still keep and break what the stored results say.

Run by hand, as the job of their environment does: no other one has their libraries.
"""

import pytest

from benchmarks import bench
from benchmarks.without_lesson import study
from tools import lessons
from tools import results as stored


@pytest.fixture(scope="module", autouse=True)
def environment():
    with pytest.MonkeyPatch.context() as patch:
        variables = lessons.kernel_environment() | bench.ENVIRONMENT | study.ENVIRONMENT
        for key, value in variables.items():
            patch.setenv(key, value)
        (lessons.NOTEBOOKS / "data").mkdir(exist_ok=True)
        yield


def broken(verdicts: dict[str, dict[str, str]]) -> dict[str, set[str]]:
    return {function: {p for p, said in of.items() if said} for function, of in verdicts.items()}


@pytest.mark.parametrize("name", study.here())
def test_a_loader_keeps_and_breaks_what_is_stored(name):
    with bench.ready(bench.Process(name, kind=study.Studied)) as [loader]:
        found = loader.call("verdicts")
    for results in stored.stored(stored.WITHOUT_LESSON):
        stored_verdicts = broken(results["loaders"][name]["verdicts"])
        assert broken(found).items() <= stored_verdicts.items(), found
