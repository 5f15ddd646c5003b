"""The inputs of pipelines that hypothesis tries: 200, or as many as CARRY_OVER_CASES says.

Without it a slow pipeline ends sooner: after 20 no further input is tried when 30 seconds are over.
"""

import itertools
import os
import tempfile
import time

import hypothesis
import hypothesis.configuration
from hypothesis import strategies as st

from benchmarks import contract

CASES = int(os.environ.get("CARRY_OVER_CASES", "200"))
BY_HAND = "CARRY_OVER_CASES" in os.environ
PATIENCE_S = float("inf") if BY_HAND else 30
QUICK = (hypothesis.Phase.generate,)
SHRINK = True  # a check fails on the smallest input that was found, not on the first
SHAPES = ((8, 8), (6, 6, 3), (5,), (28, 28, 1))
DTYPES = ("uint8", "int16", "int32", "float32")

# It keeps what it knows of our modules there, even without a database of examples.
hypothesis.configuration.set_hypothesis_home_dir(os.path.join(tempfile.gettempdir(), "hypothesis"))


@st.composite
def cases(draw) -> contract.Case:
    """0 to 5,000 examples, in 400 batches at most: more of them take long and show nothing new."""
    count = draw(st.integers(0, 60) | st.integers(61, 1_000) | st.integers(1_001, 5_000))
    least = max(1, count // 400)
    batch_size = draw(
        st.integers(least, 100)
        | st.integers(max(least, count // 30), max(least, count // 2))
        | st.integers(least, max(least, count + 2))
    )
    shape, dtype = draw(
        st.tuples(st.sampled_from(SHAPES), st.sampled_from(DTYPES))
        | st.sampled_from([((1,), "float32"), ((4, 4), "bool")])
    )
    return contract.Case(
        count=count,
        batch_size=batch_size,
        shape=shape,
        dtype=dtype,
        label_dtype=draw(st.sampled_from(["int32", "int32", "int64", "uint8"])),
        layout=draw(st.sampled_from(["own", "strided", "read-only"])),
        seed=draw(st.integers(0, 100) | st.integers(0, 2**32)),
        start=draw(st.integers(0, 1_500)),
        processes=draw(st.sampled_from([p for p in (1, 2, 3, 4, 5, 7, 8) if batch_size % p == 0])),
    )


def tried(share: int = 1, **given):
    """A decorator: each call of the check makes CASES // share, with inputs of the strategies.

    They are the same ones each time, unless CASES was given. An error has notes: the input.
    """

    def decorated(check):
        def on_all():
            numbers, end = itertools.count(), time.monotonic() + PATIENCE_S

            @hypothesis.settings(
                max_examples=max(CASES // share, 1),
                phases=list(hypothesis.Phase) if SHRINK else QUICK,
                derandomize=not BY_HAND,
                database=None,
                deadline=None,
                print_blob=False,
                report_multiple_bugs=False,
                suppress_health_check=list(hypothesis.HealthCheck),
            )
            @hypothesis.given(**given)
            def on_one(**drawn):
                if next(numbers) < 20 or time.monotonic() < end:
                    check(**drawn)

            on_one()

        # Not functools.wraps: pytest would take what is drawn for fixtures.
        on_all.__name__ = check.__name__
        on_all.__doc__ = check.__doc__
        return on_all

    return decorated


def run(tuned, dataset_of=None, share: int = 1) -> None:
    """Try `tuned` on CASES // share inputs. Raises Refused, which names the smallest case found."""

    @tried(share, case=cases())
    def check(case):
        contract.check_case(tuned, case, dataset_of)

    check()
