"""The environment for a process with a lesson's cells."""

import pytest

from tools.lesson import lessons


@pytest.fixture(scope="module")
def lesson_environment():
    """What a process that runs a lesson's cells needs: a kernel's environment, and the data."""
    variables = lessons.kernel_environment()
    variables |= {"MPLBACKEND": "agg", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    with pytest.MonkeyPatch.context() as patch:
        for key, value in variables.items():
            patch.setenv(key, value)
        lessons.lay_out_data()
        yield
