"""The other loaders that this environment has, on the same cases as the lessons."""

import dataclasses

import hypothesis_cases
import numpy as np
import pytest

from benchmarks import bench, contract
from benchmarks.others import loaders, other, run
from tools import lessons


class Tried(other.Other):
    """A loader that also runs the inputs of hypothesis."""

    def check_many(self, share: int) -> None:
        """Raises Refused where an epoch of any input is not whole."""

        @hypothesis_cases.tried(share, case=hypothesis_cases.cases())
        def check(case):
            stream = self._stream(dataclasses.replace(case, label_dtype="int32"))
            if stream.steps:
                contract.check_epochs(stream)

        check()

    def break_stream(self) -> None:
        """From now on each batch comes twice."""
        made = self.names["tuned_batches"]

        def twice(*arguments, **options):
            for batch in made(*arguments, **options):
                yield from (batch, tuple(map(np.copy, batch)))

        self.names = dict(self.names) | {"tuned_batches": twice}


@pytest.fixture(scope="module", autouse=True)
def environment():
    with pytest.MonkeyPatch.context() as patch:
        for key, value in (lessons.kernel_environment() | run.ENVIRONMENT).items():
            patch.setenv(key, value)
        (lessons.NOTEBOOKS / "data").mkdir(exist_ok=True)
        yield


@pytest.mark.parametrize("name", run.here())
def test_a_loader_keeps_and_breaks_what_the_table_says(name):
    with bench.ready(bench.Process(name, kind=Tried)) as [loader]:
        verdicts = {
            function: loader.call(check)
            for function, check in run.CHECKS.items()
            if loader.call("offers", function)
        }
    broken = {function: {p for p, said in of.items() if said} for function, of in verdicts.items()}
    expected = {function: set() for function in broken} | loaders.LOADERS[name].breaks
    assert broken == expected, verdicts


# Each epoch of Ray Data is an execution of seconds: contract.CASES are what it is tried on.
FAST = [name for name in run.here() if name != "ray_data"]


@pytest.mark.parametrize("name", FAST)
def test_epochs_of_any_data_are_whole(name):
    with bench.ready(bench.Process(name, kind=Tried)) as [loader]:
        if loader.call("offers", "tuned_batches"):
            loader.call("check_many", 4)
        else:
            assert loader.call("offers", "file_batches")  # whose folders are all tried above


# One of each environment, with arrays
@pytest.mark.parametrize("name", [n for n in FAST if n in ("torchdata_nodes", "datarax_arrays")])
def test_a_loader_that_repeats_is_not_timed(name):
    with bench.ready(bench.Process(name, kind=Tried)) as [loader]:
        loader.call("break_stream")
        verdicts = loader.call("check_arrays")
    assert "again, from batch" in verdicts["each once"]
    assert "each once" in other.NEEDED
