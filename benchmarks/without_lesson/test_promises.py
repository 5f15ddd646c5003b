"""The loaders that this environment has still keep and break what the stored results say.

Run by hand, as the job of their environment does: no other one has their libraries.
"""

import numpy as np
import pytest

from benchmarks import bench
from benchmarks.without_lesson import study
from tools import lessons
from tools import results as stored


class Repeats(study.Studied):
    """A loader each of whose batches comes twice."""

    def __init__(self, name: str, copies: int = 1):
        super().__init__(name)
        made = self.names["tuned_batches"]

        def twice(*arguments, **options):
            for batch in made(*arguments, **options):
                yield from (batch, tuple(map(np.copy, batch)))

        self.names = {"tuned_batches": twice}


@pytest.fixture(scope="module", autouse=True)
def environment():
    with pytest.MonkeyPatch.context() as patch:
        variables = lessons.kernel_environment() | bench.ENVIRONMENT | study.ENVIRONMENT
        for key, value in variables.items():
            patch.setenv(key, value)
        (lessons.NOTEBOOKS / "data").mkdir(exist_ok=True)
        yield


def verdicts(name: str, kind: type) -> dict[str, dict[str, str]]:
    with bench.ready(bench.Process(name, kind=kind)) as [loader]:
        return loader.call("verdicts")


def broken(verdicts: dict[str, dict[str, str]]) -> dict[str, set[str]]:
    return {function: {p for p, said in of.items() if said} for function, of in verdicts.items()}


@pytest.mark.parametrize("name", study.here())
def test_a_loader_keeps_and_breaks_what_is_stored(name):
    found = verdicts(name, study.Studied)
    for results in stored.stored(stored.WITHOUT_LESSON):
        assert broken(found) == broken(results["loaders"][name]["verdicts"]), found


@pytest.mark.parametrize("name", {"torchdata_nodes", "datarax_arrays"}.intersection(study.here()))
def test_a_loader_that_repeats_is_refused_what_is_needed(name):
    said = verdicts(name, Repeats)["tuned_batches"]["each once"]
    assert "again, from batch" in said and "each once" in study.NEEDED
