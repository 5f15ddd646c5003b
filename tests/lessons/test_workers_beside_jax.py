"""Threads that decode share no file."""

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from copied_cells import write_modules

SHARED = ("io.BytesIO(JPEG.getvalue())", "JPEG")  # a file has one position, for all threads


@pytest.mark.parametrize("changed, right", [((), True), (SHARED, False)], ids=["own", "shared"])
def test_threads_decode_as_one_does(tmp_path, monkeypatch, changed, right):
    write_modules("workers_beside_jax", tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    make, names = (tmp_path / "workers_make.py").read_text(), {}
    if changed:
        assert make.count(changed[0]) == 1
        make = make.replace(*changed)
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
