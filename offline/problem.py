"""What every program here says when it cannot go on. Needs nothing but Python itself."""

import contextlib
import sys
from collections.abc import Iterator

INSTALL = "`python -m pip install -r requirements.txt -c constraints.txt` (pip 26.1 or newer)"


class Problem(Exception):
    """One sentence for the user: what is wrong and what to do."""


@contextlib.contextmanager
def told(program: str, interrupted: str = "run it again") -> Iterator[None]:
    """End the program with one sentence where its user can put something right.

    `interrupted`: what to know or to do after Ctrl-C.
    """
    try:
        yield
    except Problem as problem:
        sys.exit(f"{program}: {problem}")
    except KeyboardInterrupt:
        sys.exit(f"{program}: interrupted; {interrupted}.")
    except OSError as error:  # a full disk, a folder of somebody else
        sys.exit(f"{program}: {error}: put that right and run it again.")
