"""The benchmark refuses what is wrong before it times anything, and says what a figure is worth."""

import copy
import json
import os
import shutil
import subprocess
import time

import numpy as np
import psutil
import pytest

from benchmarks import bench, contract, from_disk, report
from benchmarks import lesson as in_process
from offline import lay_out
from tools import lessons, machine

LABELS = np.tile(np.arange(10, dtype=np.int32), 6_000)
# 60,000 images that differ: the first four pixels hold the index.
IMAGES = np.zeros((60_000, 28, 28), np.uint8)
IMAGES.reshape(60_000, 784)[:, :4] = np.arange(60_000, dtype="<u4").view(np.uint8).reshape(-1, 4)


def order(epoch):
    return np.random.default_rng(epoch).permutation(60_000)[: 468 * 128].reshape(468, 128)


def test_records_of_mnist_are_60000():
    assert len(in_process.mnist_records()) == 60_000


def test_records_of_mnist_are_read_from_whole_files_only(monkeypatch, tmp_path):
    mnist = shutil.copytree(lay_out.MNIST, tmp_path / "offline/mnist")
    with (mnist / "train-labels-idx1-ubyte.gz").open("ab") as file:
        file.write(b"more")
    monkeypatch.setattr(lay_out, "HERE", mnist.parent)
    monkeypatch.setattr(lay_out, "MNIST", mnist)
    with pytest.raises(lessons.Problem, match=r"train-labels-idx1-ubyte\.gz is damaged"):
        in_process.mnist_records()


def stored_results():
    paths = sorted(bench.RESULTS.glob("*.json"))
    assert paths, "no results are committed"
    return [json.loads(path.read_text()) for path in paths]


@pytest.mark.parametrize("results", stored_results(), ids=lambda results: results["device"])
def test_committed_results_hold_every_lesson(results):
    assert set(results["lessons"]) == set(report.TUNED_MARKS)
    loaders = {name for name in lessons.names() if lessons.has_pipeline(name)}
    assert set(report.TUNED_MARKS) == set(bench.MODULES) == loaders
    assert set(results["larger"]) == set(from_disk.STREAMS) == {*loaders, "files_and_storage"}
    shapes = [figures["shapes"] for figures in results["lessons"].values()]
    assert all(len(of_lesson) == len(bench.SHAPES) for of_lesson in shapes)
    assert results["tokens"] and results["storage"] and results["exchange"] and results["scans"]
    said = report.text(results)
    for name, figures in results["lessons"].items():
        assert said.count(name) >= 5
        assert {"python", "jax", "numpy"} < set(figures["versions"])


def test_report_says_what_misses_and_what_disturbed():
    results = copy.deepcopy(stored_results()[0])
    figures = results["lessons"]["grain"]
    figures["tuned_images_s"] = [speed * 0.3 for speed in figures["numpy_images_s"]]
    figures["busy_cores"] = [0.0, 1.3]
    said = report.text(results)
    assert "grain misses its mark: 0.30 of the NumPy gather, not 0.9." in said
    assert "grain: the machine was not quiet, others kept 1.3 cores busy." in said

    photos = figures["photos"]["2"]
    photos["images_s"] = [speed * 0.5 for speed in photos["limit_images_s"]]
    assert "0.50 of the same decoder in 2 processes, not 0.85." in report.text(results)

    results["device"] = "NVIDIA H200"
    figures["epoch_s"] = [seconds * 1.2 for seconds in figures["resident_epoch_s"]]
    assert "an epoch takes 1.20 times that of resident data, not 1.05." in report.text(results)

    figures["numpy_images_s"] = [1_000_000.0, *[2_000_000.0] * (len(figures["epoch_s"]) - 1)]
    assert "varied from 1,000,000 to 2,000,000 images/s." in report.text(results)


def test_report_names_the_reference_and_shows_the_short_answer():
    results = copy.deepcopy(stored_results()[0])
    figures = results["lessons"]["grain"]
    figures |= {"numpy_form": "X[i]", "short_images_s": [1_234_567.0]}
    line = tuned_line(results)
    assert "X[i]" in line and "1,234,567" in line


def tuned_line(results) -> str:
    lines = report.tuned_table(results["lessons"]).splitlines()
    return next(line for line in lines if line.split()[:1] == ["grain"])


def test_report_shows_one_decoder_for_all_lessons():
    results = copy.deepcopy(stored_results()[0])
    photos = results["lessons"]["grain"]["photos"]["2"]
    assert in_process.DECODER in report.text(results)
    photos["decoder_images_s"] = [4 * speed for speed in photos["images_s"]]
    assert "0.25 (0.25 to 0.25)" in report.photos_table(results["lessons"])
    assert "0.25" not in " ".join(report.missed(results))  # shown, not judged


def test_the_decoder_of_all_lessons_reads_any_folder(tmp_path):
    contract.flat_photographs(tmp_path / "mixed", count=64)
    with bench.ready(bench.Process(in_process.DECODER, kind=in_process.Decoder)) as [process]:
        assert process.call("folder_throughput", str(tmp_path / "mixed"), 0.1) > 0


def test_a_module_that_others_import_now_is_never_half_written(monkeypatch, data, tmp_path):
    monkeypatch.chdir(tmp_path)
    module = tmp_path / "shapes.py"
    in_process.write_module("%%writefile shapes.py\nSIZE = 1")
    with module.open() as reader:  # began before the next one writes
        in_process.write_module("%%writefile shapes.py\nSIZE = 2")
        assert reader.read() == "SIZE = 1\n"
    assert module.read_text() == "SIZE = 2\n"
    before = module.stat()
    in_process.write_module("%%writefile shapes.py\nSIZE = 2\n")
    assert module.stat() == before  # or Python would compile it anew


class Starter:
    """A lesson that leaves a process running."""

    set_up_s = 0

    def __init__(self, name: str, copies: int):
        self.started = subprocess.Popen(["sleep", "600"])

    def pid(self) -> int:
        return self.started.pid


def test_what_a_lesson_has_started_ends_with_its_process():
    with bench.ready(bench.Process("starter", kind=Starter)) as [process]:
        sleeper = psutil.Process(process.call("pid"))
        assert sleeper.is_running()
    assert psutil.wait_procs([sleeper], timeout=10) == ([sleeper], [])


class Threads:
    """Says on how many threads a library would compute that reads the process's environment."""

    set_up_s = 0

    def __init__(self, name: str, copies: int):
        import torch

        self.threads = torch.get_num_threads()

    def number(self) -> int:
        return self.threads


def test_a_process_gets_the_environment_and_nobody_else(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    before = dict(os.environ)
    alone = bench.Process("threads", kind=Threads, environment={"OMP_NUM_THREADS": "1"})
    with bench.ready(alone, bench.Process("threads", kind=Threads)) as processes:
        assert [process.call("number") for process in processes] == [1, min(2, os.cpu_count())]
    assert dict(os.environ) == before


class Answers:
    """A process that answers as a lesson would: one form of the gather is the fastest."""

    name = "my_loader"

    def __init__(self, short):
        self.short = short
        self.speeds = dict(zip(in_process.GATHERS, (1.0, 3.0, 2.0), strict=True))

    def call(self, method, *arguments):
        if method == "gather_throughput":
            return self.speeds[arguments[1]]
        return self.short if method == "has_short_answer" else 0.5


@pytest.mark.parametrize("short", [False, True])
def test_the_fastest_gather_is_the_reference(short):
    answers = Answers(short)
    figures = bench.alternate(answers, 2, 0.1)
    assert figures["numpy_form"] == in_process.TAKE and figures["numpy_images_s"] == [3.0, 3.0]
    assert figures["gathers_images_s"] == {form: [s, s] for form, s in answers.speeds.items()}
    assert ("short_images_s" in figures) == short
    assert figures["tuned_images_s"] == figures["first_images_s"] == [0.5, 0.5]


def test_every_form_gathers_the_same():
    indices = np.random.default_rng(0).permutation(60_000)[:128]
    for gather in in_process.GATHERS.values():
        assert np.array_equal(gather(IMAGES, indices), IMAGES[indices])
        assert np.array_equal(gather(LABELS, indices), LABELS[indices])


def test_rate_does_not_count_the_first_batch():
    def stream():
        time.sleep(0.3)
        while True:
            yield IMAGES[:64], LABELS[:64]
            time.sleep(0.01)

    assert 64 / 0.3 < in_process.rate(stream(), 0.1) < 64 / 0.01
    with pytest.raises(in_process.Refused, match="ends while it is timed"):
        in_process.rate(iter([(IMAGES[:1], LABELS[:1])]), 0.1)


def test_lesson_without_pipeline_is_named(python):
    done = python(lessons.ROOT / "benchmarks" / "bench.py", "dlpack_zero_copy")
    assert done.returncode == 2
    assert "no pipeline in dlpack_zero_copy: choose grain, " in done.stderr


def test_installation_counts_what_jax_does_not_bring():
    with_numpy = bench.installed(["jax"])
    assert {"jax", "jaxlib", "numpy"} <= with_numpy.keys() and min(with_numpy.values()) > 0
    assert "numpy" in bench.installed(["grain"])  # more than all else that Grain needs
    assert 0 < bench.installation_bytes(["grain"]) < with_numpy["numpy"]
    assert bench.installation_bytes(["jax"]) == 0


def test_quick_run_measures_everything_and_writes_nothing(python):
    before = {path: path.read_bytes() for path in bench.RESULTS.iterdir()}
    done = python(lessons.ROOT / "benchmarks" / "bench.py", "--quick", "huggingface_datasets")
    assert done.returncode == 0, done.stderr
    for words in (
        "NumPy gather",
        "resident data",
        "same decoder",
        "growth",
        "scan of several",
        "nothing is written",
    ):
        assert words in done.stdout
    assert before == {path: path.read_bytes() for path in bench.RESULTS.iterdir()}


@pytest.mark.parametrize(("speed", "ends"), [(90.0, "(mark 0.8)."), (70.0, "misses its mark.")])
def test_windows_are_judged_beside_a_copy(speed, ends):
    said = report.windows_line({"tokens_s": [speed] * 3, "copy_tokens_s": [100.0] * 3})
    assert (
        said.startswith(f"language_model_data: {speed:.0f} tokens/s")
        and f"{speed / 100:.2f} (" in said
    )
    assert said.endswith(ends)


@pytest.mark.parametrize(("speed", "ends"), [(95.0, "(mark 0.9)."), (80.0, "misses its mark.")])
def test_hidden_latency_is_judged_beside_no_latency(speed, ends):
    speeds = {"rows_s": [speed] * 3, "at_once_rows_s": [100.0] * 3, "one_rows_s": [7.0] * 3}
    said = report.hidden_line(speeds)
    assert f"{speed:.0f} rows/s" in said and f"{speed / 100:.2f} (" in said and "(7 with" in said
    assert said.endswith(ends)


def test_what_is_measured_anew_takes_the_place_of_what_was_stored(monkeypatch, tmp_path):
    monkeypatch.setattr(bench, "RESULTS", tmp_path)
    file = machine.path(tmp_path, "cpu")
    before = {"lessons": {"a": 1, "b": 2}, "larger": {"a": 5}, "exchange": {"old": 1}, "gone": 3}
    file.write_text(json.dumps(before))
    empty = {key: {} for key in ("larger", "exchange", "scans", "tokens", "storage")}
    quick = bench.store("cpu", {"lessons": {"b": 3}}, {}, quick=True)
    assert quick == machine.describe("cpu") | empty | {"lessons": {"b": 3}}
    assert "gone" in json.loads(file.read_text())

    bench.store("cpu", {"lessons": {"b": 3}, "larger": {"c": 6}}, {}, quick=False)
    stored = bench.store("cpu", {"scans": {"0": []}}, {}, quick=False)
    kept = {"lessons": {"a": 1, "b": 3}, "larger": {"a": 5, "c": 6}, "exchange": {"old": 1}}
    assert stored == json.loads(file.read_text())
    assert stored == machine.describe("cpu") | empty | kept | {"scans": {"0": []}}
