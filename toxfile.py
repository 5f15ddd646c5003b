"""tox reads this file by itself: no job starts on a Python on which nobody tested it."""

from tox.plugin import impl
from tox.tox_env.api import ToxEnv
from tox.tox_env.errors import Fail

TESTED = ("3.11", "3.12", "3.13")  # those for which constraints.txt is locked
PROVISION = ".tox"  # where tox installs itself and what it requires: any Python will do


@impl
def tox_on_install(tox_env: ToxEnv, arguments: object, section: str, of_type: str) -> None:
    """Before a job installs its first package. Raises Fail, which tox prints and ends the job."""
    if tox_env.conf.name == PROVISION:
        return
    found = tox_env.base_python.version_info
    if f"{found.major}.{found.minor}" not in TESTED:
        raise Fail(
            f"this collection is tested on Python {', '.join(TESTED)}, not {found.major}."
            f"{found.minor}: install one of these, and start tox with it."
        )
