"""The benchmark refuses what is wrong before it times anything, and says what a figure is worth."""

import copy
import itertools
import json
import subprocess
import time

import numpy as np
import psutil
import pytest

from benchmarks import bench, contract
from benchmarks import lesson as in_process
from tools import lessons, machine

LABELS = np.tile(np.arange(10, dtype=np.int32), 6_000)
# 60,000 images that differ: the first four pixels hold the index.
IMAGES = np.zeros((60_000, 28, 28), np.uint8)
IMAGES.reshape(60_000, 784)[:, :4] = np.arange(60_000, dtype="<u4").view(np.uint8).reshape(-1, 4)


def order(epoch):
    return np.random.default_rng(epoch).permutation(60_000)[: 468 * 128].reshape(468, 128)


def right(epoch):
    for indices in order(epoch):
        yield IMAGES[indices], LABELS[indices]


@pytest.fixture(scope="module")
def truth():
    return set(in_process.records(IMAGES, LABELS))


def loses(epoch):
    return itertools.islice(right(epoch), 467)


def repeats(epoch):
    yield from itertools.islice(right(epoch), 467)
    yield next(right(epoch))


def mislabels(epoch):
    for images, labels in right(epoch):
        yield images, np.roll(labels, 1)


def never_shuffles(epoch):
    return right(0)


def has_no_seed(epoch):
    return right(np.random.SeedSequence().entropy)


class Unlike:
    """Makes of each batch of `right` another one."""

    def __init__(self, change):
        self.change = change

    def __call__(self, epoch):
        return (self.change(*batch) for batch in right(epoch))


def test_right_pipeline_passes(truth):
    in_process.check_tuned(right, truth)


@pytest.mark.parametrize(
    ("pipeline", "sentence"),
    [
        (loses, "an epoch has 59,776 images, not 59,904."),
        (repeats, "128 images come more than once."),
        (mislabels, "are not MNIST's, or have another label."),
        (never_shuffles, "epochs 0 and 1 have the same order."),
        (has_no_seed, "epoch 0 has another order the second time."),
        (
            Unlike(lambda i, t: (i / np.float32(255), t)),
            "images are float32 (128, 28, 28), not uint8",
        ),
        (Unlike(lambda i, t: (i, t.astype(np.int64))), "labels are int64 (128,), not int32"),
        (Unlike(lambda i, t: (i[..., None], t)), "images are uint8 (128, 28, 28, 1), not uint8"),
        (Unlike(lambda i, t: (i.tolist(), t)), "images are a list, not a NumPy array."),
        (Unlike(lambda i, t: (i, t, t)), "a batch has 3 parts, not images and labels."),
        (Unlike(lambda i, t: (i[:64], t[:64])), "images are uint8 (64, 28, 28)"),
        (Unlike(lambda i, t: (255 - i, t)), "59,904 images are not MNIST's"),
    ],
)
def test_bad_pipeline_is_refused(truth, pipeline, sentence):
    with pytest.raises(in_process.Refused) as refused:
        in_process.check_tuned(pipeline, truth)
    assert sentence in str(refused.value)


def photographs(epoch, workers, *, last=512, seed=None, noise=True):
    """What `file_batches` yields: 512 images of two classes, each with pixels of its own."""
    for start in range(0, last, 64):
        pixels = np.zeros((64, 224, 224, 3), np.uint8)
        if noise:
            entropy = [epoch if seed is None else seed, start]
            drawn = np.random.default_rng(entropy).integers(0, 256, (64, 8), np.uint8)
            pixels[:, 0, :8, 0] = drawn
        yield pixels, (np.arange(64, dtype=np.int32) + start) // 256


def test_right_folder_passes():
    in_process.check_files(photographs)


@pytest.mark.parametrize(
    ("pipeline", "sentence"),
    [
        (
            lambda epoch, workers: photographs(epoch, workers, last=448),
            "an epoch of the folder has 448 images, not 256 of each class.",
        ),
        (
            lambda epoch, workers: photographs(epoch, workers, seed=workers + 10 * epoch),
            "two workers make other images of the folder than none.",
        ),
        (
            lambda epoch, workers: photographs(epoch, workers, seed=0),
            "epochs 0 and 1 of the folder share pixels.",
        ),
        (
            lambda epoch, workers: photographs(epoch, workers, noise=False),
            "the same pixels more than once in an epoch.",
        ),
    ],
)
def test_bad_folder_is_refused(pipeline, sentence):
    with pytest.raises(in_process.Refused) as refused:
        in_process.check_files(pipeline)
    assert sentence in str(refused.value)


def test_records_of_mnist_are_60000():
    assert len(in_process.mnist_records()) == 60_000


def test_definitions_leave_out_what_a_cell_shows():
    source = (
        "import math\ndef f():\n    return math.pi\nx = f()\nprint(x)\nassert x > 3\nwith x: y = 1"
    )
    names = {}
    exec(in_process.definitions(source), names)
    assert names["x"] == names["f"]() and "y" not in names


def stored_results():
    paths = sorted(bench.RESULTS.glob("*.json"))
    assert paths, "no results are committed"
    return [json.loads(path.read_text()) for path in paths]


@pytest.mark.parametrize("results", stored_results(), ids=lambda results: results["device"])
def test_committed_results_hold_every_lesson(results):
    assert set(results["lessons"]) == set(bench.TUNED_MARKS)
    loaders = {name for name in lessons.names() if lessons.has_pipeline(name)}
    assert set(bench.TUNED_MARKS) == set(bench.FILES_MARKS) == set(bench.MODULES) == loaders
    said = bench.report(results)
    for name, figures in results["lessons"].items():
        assert said.count(name) >= 5
        assert {"python", "jax", "numpy"} < set(figures["versions"])


def test_report_says_what_misses_and_what_disturbed():
    results = copy.deepcopy(stored_results()[0])
    figures = results["lessons"]["grain"]
    figures["tuned_images_s"] = [speed * 0.3 for speed in figures["numpy_images_s"]]
    figures["busy_cores"] = [0.0, 1.3]
    said = bench.report(results)
    assert "grain misses its mark: 0.30 of the NumPy gather, not 0.4." in said
    assert "grain: the machine was not quiet, others kept 1.3 cores busy." in said

    photos = figures["photos"]["2"]
    photos["images_s"] = [speed * 0.5 for speed in photos["limit_images_s"]]
    assert "0.50 of the same decoder in 2 processes, not 0.75." in bench.report(results)

    results["device"] = "NVIDIA H200"
    figures["epoch_s"] = [seconds * 1.2 for seconds in figures["resident_epoch_s"]]
    assert "an epoch takes 1.20 times that of resident data, not 1.05." in bench.report(results)

    figures["numpy_images_s"] = [1_000_000.0, *[2_000_000.0] * (len(figures["epoch_s"]) - 1)]
    assert "varied from 1,000,000 to 2,000,000 images/s." in bench.report(results)


def test_streams_are_held_to_their_own_marks():
    results = copy.deepcopy(stored_results()[0])
    figures = results["lessons"]["grain"]
    figures["tuned_images_s"] = [speed * 0.8 for speed in figures["numpy_images_s"]]
    photos = figures["photos"]["2"]
    photos["images_s"] = [speed * 0.8 for speed in photos["limit_images_s"]]
    assert "grain misses its mark" not in bench.report(results)  # as functions of an epoch
    figures["streams"] = {"tuned": True, "file": True}
    said = bench.report(results)
    assert "grain misses its mark: 0.80 of the NumPy gather, not 0.9." in said
    assert "0.80 of the same decoder in 2 processes, not 0.85." in said
    assert bench.STREAM_MARKS.keys() == bench.TUNED_MARKS.keys()
    assert all(bench.STREAM_MARKS[name] > mark for name, mark in bench.TUNED_MARKS.items())


def test_report_names_the_reference_and_shows_the_short_answer():
    results = copy.deepcopy(stored_results()[0])
    figures = results["lessons"]["grain"]
    line = tuned_line(results)
    assert bench.FORM_BEFORE in line and "1,234,567" not in line  # results of before
    figures |= {"numpy_form": in_process.TAKE, "short_images_s": [1_234_567.0]}
    line = tuned_line(results)
    assert in_process.TAKE in line and "1,234,567" in line


def tuned_line(results) -> str:
    lines = bench.tuned_table(results["lessons"]).splitlines()
    return next(line for line in lines if line.split()[:1] == ["grain"])


def test_report_shows_one_decoder_for_all_lessons():
    results = copy.deepcopy(stored_results()[0])
    photos = results["lessons"]["grain"]["photos"]["2"]
    photos.pop("decoder_images_s", None)
    assert bench.of_the_decoder(photos) == ""  # results of before
    assert in_process.DECODER in bench.report(results)
    photos["decoder_images_s"] = [4 * speed for speed in photos["images_s"]]
    assert bench.of_the_decoder(photos) == "0.25 (0.25 to 0.25)"
    assert "0.25 (0.25 to 0.25)" in bench.photos_table(results["lessons"])
    assert "0.25" not in " ".join(bench.missed(results))  # shown, not judged


def test_the_decoder_of_all_lessons_reads_any_folder(tmp_path):
    contract.flat_photographs(tmp_path / "mixed", count=64)
    with bench.ready(bench.Process(in_process.DECODER, kind=in_process.Decoder)) as [process]:
        assert process.call("folder_throughput", str(tmp_path / "mixed"), 0.1) > 0


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
    indices = order(0)[3]
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


def test_signatures_tell_streams_from_functions_of_an_epoch():
    assert in_process.is_stream(lambda images, labels, batch_size, seed, start=0: ())
    assert in_process.is_stream(lambda folder, batch_size, size, seed, workers=0: ())
    assert not in_process.is_stream(right)
    assert not in_process.is_stream(photographs)


def test_damaged_results_are_named(tmp_path):
    path = tmp_path / "cpu.json"
    assert machine.read(path) == {}
    path.write_text("{")
    with pytest.raises(lessons.Problem, match=r"cpu\.json is not JSON: restore it"):
        machine.read(path)


def test_full_disk_is_named(python, mounted, tmp_path):
    full = mounted("-t tmpfs -o size=64k tmpfs", tmp_path)
    code = "import pathlib, sys; from tools import machine;"
    code += "machine.write(pathlib.Path(sys.argv[1], 'cpu.json'), {'x': 'y' * 10**6})"
    done = python("-c", code, tmp_path, prefix=full, cwd=lessons.ROOT)
    assert "cpu.json cannot be written: No space left on device." in done.stderr


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
    said = bench.windows_line({"tokens_s": [speed] * 3, "copy_tokens_s": [100.0] * 3})
    assert f"{speed:.0f} tokens/s" in said and f"{speed / 100:.2f} (" in said
    assert said.endswith(ends)


@pytest.mark.parametrize(("speed", "ends"), [(95.0, "(mark 0.9)."), (80.0, "misses its mark.")])
def test_hidden_latency_is_judged_beside_no_latency(speed, ends):
    said = bench.hidden_line({"rows_s": [speed] * 3, "at_once_rows_s": [100.0] * 3})
    assert f"{speed:.0f} rows/s" in said and f"{speed / 100:.2f} (" in said
    assert said.endswith(ends)
