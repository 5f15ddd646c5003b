"""What a pipeline promises. Checks that raise Refused, in one sentence, where it breaks a promise.

The data names itself: each example, each photograph says which one it is, whatever the pipeline
does with it. So what is lost, repeated, mixed up or changed is found, on data of any size. The
benchmark runs these checks before it times a lesson, and tests/lessons/test_carry_over.py with
many cases.
"""

from benchmarks.contract.arrays import *  # noqa: F403
from benchmarks.contract.folders import *  # noqa: F403
from benchmarks.contract.photographs import *  # noqa: F403
from benchmarks.contract.streams import *  # noqa: F403
