"""The tests import what readers copy: a module of each page, which is made here.

They run with the settings of a lesson's kernel, made before a library is imported. Workers that a
test starts find the modules by PYTHONPATH.
"""

import contextlib
import os
import sys

with contextlib.suppress(ImportError):
    import triton  # noqa: F401  after TensorFlow it would end the process, over LLVM's options

from tools.lesson import modules
from tools.run import kernels

os.environ |= kernels.kernel_environment() | {
    "MPLBACKEND": "agg",
    "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
    "PYTHONPATH": os.pathsep.join([str(modules.FOLDER), os.environ.get("PYTHONPATH", "")]),
}
import jax

# The page on DLPack copies from one to the other. Not by a variable, which all that is started has.
jax.config.update("jax_num_cpu_devices", 2)

modules.renew()
sys.path.insert(0, str(modules.FOLDER))  # not before: Python remembers a folder that is missing
