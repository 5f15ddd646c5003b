"""gpu.sh, with a `python` that only writes down how it is called: there is no GPU here."""

import os
import shutil
import subprocess
import tarfile

import pytest

from benchmarks import bench
from tools.lesson import lessons

CALLED = """#!/bin/sh
echo "$*" >> called
case "$*" in *require-gpu*broken*) echo differs; exit 1;; *execute*raises*) exit 1;; esac
"""
CHECK = "-m pytest --nbval --require-gpu -v --color=no "


@pytest.fixture
def gpu(tmp_path):
    """A folder with three lessons; run the script in it."""
    for folder in ("tools/run", "bin", "notebooks", "benchmarks/results"):
        (tmp_path / folder).mkdir(parents=True)
    shutil.copy(lessons.ROOT / "tools/run/gpu.sh", tmp_path / "tools/run")
    for name in ("sound", "broken", "raises"):
        (tmp_path / f"notebooks/{name}.ipynb").write_text("{}")
    (tmp_path / "benchmarks/results/h200.json").touch()
    (tmp_path / "benchmarks/results/.h200.json.lock").touch()
    (tmp_path / "bin/python").touch(0o755)

    def run(*arguments, python=CALLED):
        (tmp_path / "bin/python").write_text(python)
        done = subprocess.run(
            [tmp_path / "tools/run/gpu.sh", *arguments],
            env={**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            check=False,
        )
        called = tmp_path / "called"
        return done, called.read_text().splitlines()[1:] if called.exists() else []

    return run


def test_a_lesson_that_fails_stays_as_it_is_and_stops_no_other(gpu, tmp_path):
    done, called = gpu()
    assert called == [
        f"{CHECK}notebooks/broken.ipynb",
        f"{CHECK}notebooks/raises.ipynb",
        "-m tools.run.execute raises",
        f"{CHECK}notebooks/sound.ipynb",
        "-m tools.run.execute sound",
    ]
    failures = [line for line in done.stdout.splitlines() if line.startswith("gpu: ")]
    assert done.returncode == 1
    assert failures == [
        "gpu: broken does not pass here, and nothing of it was stored.",
        "gpu: raises does not run or pass with what is stored here.",
    ]
    with tarfile.open(tmp_path / "gpu.tar.gz") as packed:
        names = {member.name for member in packed if member.isfile()}
        report = packed.extractfile("gpu_report.txt").read().decode()
    assert report.splitlines() == ["differs", *failures]
    notebooks = {f"notebooks/{name}.ipynb" for name in ("sound", "broken", "raises")}
    assert names == {*notebooks, "benchmarks/results/h200.json", "gpu_report.txt"}


@pytest.fixture
def real_notebooks(tmp_path, gpu):
    """The folder has the lessons as they are."""
    for name in lessons.names():
        (tmp_path / f"notebooks/{name}.ipynb").symlink_to(lessons.notebook_path(name))


@pytest.fixture
def loaders(monkeypatch):
    """The lessons that the benchmark takes as loaders, in its order."""
    known = []

    def arguments(doc, what, names):
        known.extend(names)
        return names, True, ()

    monkeypatch.setattr(bench, "arguments", arguments)
    monkeypatch.setattr(bench, "measuring", lambda *_: None)
    bench.main()
    return [name for name in known if name not in bench.PARTS]


@pytest.mark.usefixtures("real_notebooks")
def test_each_loader_that_the_benchmark_knows_is_timed_once(gpu, loaders):
    assert len(loaders) > 3
    *_, last = gpu()[1]
    assert last.startswith("benchmarks/bench.py ")
    assert sorted(last.split()[1:]) == sorted(loaders)


@pytest.mark.usefixtures("real_notebooks")
def test_in_parts_and_without_the_benchmark(gpu):
    assert gpu("dlpack_zero_copy", "grain", "grain_in_depth")[1][-1] == "benchmarks/bench.py grain"
    done, called = gpu("--no-bench", "grain")
    assert (done.returncode, called[-1]) == (0, "-m tools.run.execute grain")


@pytest.mark.parametrize(
    ("arguments", "python", "status", "sentence"),
    [
        (["no_such"], CALLED, 2, "gpu: there is no lesson no_such: choose from broken raises "),
        ([], "#!/bin/sh\necho 1; echo no CUDA; exit 1", 1, "gpu: JAX sees no GPU here (no CUDA): "),
    ],
)
def test_it_ends_early_in_one_sentence(gpu, arguments, python, status, sentence):
    done, called = gpu(*arguments, python=python)
    assert (done.returncode, done.stdout, called) == (status, "", [])
    assert done.stderr.startswith(sentence) and done.stderr.count("\n") == 1
