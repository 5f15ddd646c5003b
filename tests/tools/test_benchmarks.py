"""The benchmark refuses what is wrong before it times anything, and ends what it has started."""

import contextlib
import errno
import json
import os
import signal
import subprocess
import time

import psutil
import pytest

from benchmarks import bench, contract, in_process
from offline.problem import Problem
from tools.lesson import benchmark_results, lessons, machine, modules

pytestmark = pytest.mark.slow

# A lesson in a process of its own -----------------------------------------------------------


class Trouble:
    """A lesson that ends as its methods say, and leaves a process running."""

    def __init__(self, name: str):
        self.started = subprocess.Popen(["sleep", "600"])

    def started_pid(self) -> int:
        return self.started.pid

    def omp_threads(self) -> str:
        return os.environ["OMP_NUM_THREADS"]

    def refuse(self) -> None:
        raise in_process.Refused("it repeats.")

    def fill_the_disk(self) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    def die(self) -> None:
        self.started.kill()  # nobody else would
        os._exit(3)


def test_a_process_has_its_own_environment_and_what_it_has_started_ends_with_it(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    alone = bench.Process("alone", kind=Trouble, environment={"OMP_NUM_THREADS": "1"})
    with bench.ready(alone, bench.Process("trouble", kind=Trouble)) as processes:
        assert [process.call("omp_threads") for process in processes] == ["1", "2"]
        sleepers = [psutil.Process(process.call("started_pid")) for process in processes]
        assert all(sleeper.is_running() for sleeper in sleepers)
    assert psutil.wait_procs(sleepers, timeout=10)[1] == []
    assert os.environ["OMP_NUM_THREADS"] == "2"


def test_a_refusal_and_a_death_name_the_lesson_and_a_fault_of_the_benchmark_goes_up():
    with bench.ready(bench.Process("trouble", kind=Trouble)) as [process]:
        with pytest.raises(in_process.Refused, match=r"^trouble is refused: it repeats\.$"):
            process.call("refuse")
        with pytest.raises(OSError, match="No space left") as full:
            process.call("fill_the_disk")
        assert full.value.__notes__ == ["This is of trouble."]
        for method in ("die", "refuse"):  # nothing can be asked of it any more
            with pytest.raises(Problem, match=r"^trouble: its process ended with 3\.$"):
                process.call(method)


def test_a_module_that_fails_names_the_page(monkeypatch, tmp_path):
    (tmp_path / "feed_tiny.py").write_text("1 / 0")
    monkeypatch.setattr(modules, "FOLDER", tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(Problem, match=r"^tiny does not import: ZeroDivisionError: "):
        in_process.imported("tiny")


SCRIPT = """
import sys, time
sys.path[:0] = {paths!r}
from test_benchmarks import Trouble, bench
if __name__ == "__main__":
    with bench.ready(bench.Process("trouble", kind=Trouble)) as [process]:
        process.call("started_pid")
        print("ready", flush=True)
        time.sleep(600)
"""


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_run_leaves_no_process(in_terminal, tmp_path, sent):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(paths=[str(lessons.ROOT), os.path.dirname(__file__)]))
    process = in_terminal(script)
    process.wait_until_it_says("ready")
    started = process.descendants()
    workers = [found for found in started if found.name() != "sleep"]
    assert workers
    os.kill(process.pid, sent)
    process.wait(60)
    left = psutil.wait_procs(workers, timeout=10)[1]
    for found in started:  # what a lesson has started outlives a program that was killed
        with contextlib.suppress(psutil.NoSuchProcess):
            found.kill()
    assert left == []


# What is measured ----------------------------------------------------------------------------


def test_the_decoder_of_all_lessons_reads_any_folder(tmp_path):
    contract.flat_photographs(tmp_path / "mixed")
    modules.renew()
    with bench.ready(bench.Process(in_process.DECODER)) as [process]:
        assert process.call("file_throughput", 0, 0.1, str(tmp_path / "mixed"))[0] > 0


SPEEDS = dict(zip(in_process.GATHERS, (1.0, 3.0, 2.0), strict=True))


class Answers:
    """A process that answers as a lesson would: one form of the gather is the fastest."""

    name = "my_loader"

    def call(self, method, *arguments):
        return SPEEDS[arguments[1]] if method == "gather_throughput" else 0.5


def test_the_fastest_gather_is_the_reference():
    pipelines = {"tuned_images_s": "tuned_batches"}
    figures = bench.alternate(Answers(), 2, 0.1, pipelines, bench.EPOCHS)
    gathers = {form: [s, s] for form, s in SPEEDS.items()}
    half = {key: [0.5, 0.5] for key in ("tuned_images_s", *bench.EPOCHS)}
    assert figures == half | {
        "numpy_form": in_process.TAKE,
        "numpy_images_s": [3.0, 3.0],
        "gathers_images_s": gathers,
    }


def test_rate_does_not_count_the_first_batch():
    def stream():
        for wait in (0.3, *[0.01] * 100):
            time.sleep(wait)
            yield [0] * 64, None

    assert 64 / 0.3 < in_process.rate(stream(), 0.1) < 64 / 0.01
    with pytest.raises(in_process.Refused, match="ends while it is timed"):
        in_process.rate(stream(), 10)


def test_installation_counts_what_jax_does_not_bring():
    with_numpy = bench.installed(["jax"])
    assert {"jax", "jaxlib", "numpy"} <= with_numpy.keys() and min(with_numpy.values()) > 0
    assert "numpy" in bench.installed(["grain"])  # more than all else that Grain needs
    assert 0 < bench.installation_bytes(["grain"]) < with_numpy["numpy"]
    assert bench.installation_bytes(["jax"]) == 0


def test_lesson_without_pipeline_is_named(python):
    done = python(lessons.ROOT / "benchmarks" / "bench.py", "dlpack_zero_copy")
    assert done.returncode == 2
    assert "no pipeline in dlpack_zero_copy: choose grain, " in done.stderr


@pytest.mark.weekly
def test_quick_run_measures_everything_and_writes_nothing(python):
    before = {path: path.read_bytes() for path in benchmark_results.FOLDER.iterdir()}
    bench = lessons.ROOT / "benchmarks" / "bench.py"
    done = python(bench, "--quick", "pytorch_dataloader", timeout=1_800)  # beside other tests
    assert done.returncode == 0, done.stderr
    for words in (
        "NumPy gather",
        "resident data",
        "same decoder",
        "from disk",
        "nothing is written",
    ):
        assert words in done.stdout
    assert before == {path: path.read_bytes() for path in benchmark_results.FOLDER.iterdir()}


def test_what_is_measured_anew_takes_the_place_of_what_was_stored(tmp_path):
    file = machine.path(tmp_path, "cpu")
    before = {"lessons": {"a": 1, "b": 2}, "larger": {"a": 5}, "tokens": {"old": 1}}
    file.write_text(json.dumps(before))
    quick = bench.store(tmp_path, "cpu", {"lessons": {"b": 3}}, {})
    assert quick == machine.describe("cpu") | {"lessons": {"b": 3}}
    assert json.loads(file.read_text()) == before

    for news in ({"lessons": {"b": 3}}, {"larger": {"c": 6}}, {"tokens": {"new": 1}}):
        found = bench.store(tmp_path, "cpu", news, None)
    assert found == json.loads(file.read_text())
    assert found == machine.describe("cpu") | {
        "lessons": {"a": 1, "b": 3},
        "larger": {"a": 5, "c": 6},
        "tokens": {"new": 1},
    }
