"""tox reads this file by itself: no job starts on a Python on which nobody tested it."""

from tox.plugin import impl
from tox.tox_env.api import ToxEnv
from tox.tox_env.errors import Fail

TESTED = ("3.11", "3.12", "3.13")  # those for which constraints.txt is locked
# What these jobs store is what readers see, or is compared with it: of the newest Python and JAX.
ON_THE_NEWEST = ("execute", "bench", "colab")
# They need neither JAX nor TensorFlow, whose wheels for a new Python come last.
ON_NEWER_TOO = ("check", "site", "live")
PROVISION = ".tox"  # where tox installs itself and what it requires: any Python will do


def refusal(job: str, python: tuple[int, int]) -> str:
    """Why `job` does not start on `python`, in a sentence, or "" where it may."""
    here, newest = "{}.{}".format(*python), TESTED[-1]
    first, last = (tuple(map(int, tested.split("."))) for tested in (TESTED[0], newest))
    if job == PROVISION or here == newest:
        return ""
    if job in ON_THE_NEWEST:
        why = f"{job} stores what readers see, which is of Python {newest}, not {here}"
    elif first <= python <= last or (python > last and job in ON_NEWER_TOO):
        return ""
    else:
        why = f"this collection is tested on Python {', '.join(TESTED)}, not {here}"
    start = f"python{newest} -m pip install tox && python{newest} -m tox run -e {job}"
    return (
        f"{why}: type `{start}`. Where there is no Python {newest}, the system's package or pyenv "
        f"brings one; with uv, `uvx --python {newest} tox run -e {job}` does all of it."
    )


@impl
def tox_on_install(tox_env: ToxEnv, arguments: object, section: str, of_type: str) -> None:
    """Before a job installs its first package. Raises Fail, which tox prints and ends the job."""
    version = tox_env.base_python.version_info
    if said := refusal(tox_env.conf.name, (version.major, version.minor)):
        raise Fail(said)
