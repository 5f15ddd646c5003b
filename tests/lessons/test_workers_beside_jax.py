"""Threads that decode share no file."""

import sys
import types
from concurrent.futures import ThreadPoolExecutor

import pytest

from tools import lessons

KINDS, MAKE = "%%writefile workers_kinds.py\n", "%%writefile workers_make.py\n"
SHARED = ("io.BytesIO(JPEG.getvalue())", "JPEG")  # a file has one position, for all threads


@pytest.mark.parametrize("changed, right", [((), True), (SHARED, False)], ids=["own", "shared"])
def test_threads_decode_as_one_does(monkeypatch, changed, right):
    cells = lessons.code_cells(lessons.read_md("workers_beside_jax"))
    [kinds], [make] = (
        [cell.source.removeprefix(head) for cell in cells if cell.source.startswith(head)]
        for head in (KINDS, MAKE)
    )
    if changed:
        assert make.count(changed[0]) == 1
        make = make.replace(*changed)
    module = types.ModuleType("workers_kinds")
    monkeypatch.setitem(sys.modules, "workers_kinds", module)
    exec(kinds, vars(module))
    names = {}
    exec(make, names)
    alone = names["decode"](0)

    def same(index: int) -> bool:
        try:
            return alone.equal(names["decode"](index))
        except Exception:  # no photograph, or a part of one
            return False

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # the threads take turns all the time
    try:
        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(same, range(256))) == right
    finally:
        sys.setswitchinterval(interval)
