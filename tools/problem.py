"""What every program here says when it cannot go on. Needs nothing but Python itself."""

INSTALL = "`python -m pip install -r requirements.txt -c constraints.txt` (pip 26.1 or newer)"


class Problem(Exception):
    """One sentence for the user: what is wrong and what to do."""
