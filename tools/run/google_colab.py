"""What stands for Colab's own package in a kernel: an extension of IPython.

Like that one it is loaded before the first cell, has imported these three, and brings a %pip of its
own. This one is silent, as only the lesson's own words are compared, and raises when pip fails.
"""

import shlex
import subprocess
import sys

import numpy  # noqa: F401
import PIL.Image  # noqa: F401
import psutil  # noqa: F401
from google.colab import output  # noqa: F401


def load_ipython_extension(shell):
    def pip(line):
        command = [sys.executable, "-m", "pip", *shlex.split(line)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            said = f"{done.stdout}\n{done.stderr}".strip().splitlines()
            raise RuntimeError(f"%pip failed: {said[-1]}")

    shell.register_magic_function(pip, "line", "pip")
