"""What the front page shows follows from the stored results and from the lessons' own cells."""

import copy
import json
from xml.etree import ElementTree

import pytest

from tools.lesson import lessons
from tools.run import kernels
from tools.site import front_page, records

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def results():
    """Of two loaders; the step takes 60,000 images a second."""
    loops = {
        "date": "2026-11-22",
        "versions": {"jax": "0.12.0"},
        "images": 60_000,
        "reads": {"PyTorch": "arrays", "Grain": "PNG"},
        "step_s": [1.0] * 3,
        "alone_s": {"PyTorch": [0.5] * 3, "Grain": [10.0, 12.0, 90.0], "Grain, arrays": [0.1] * 3},
        "trained_s": {"PyTorch": [2.0] * 3, "Grain": [15.0] * 3},
    }
    return {"processor": "A machine", "cores": 2, "device": "cpu", "loops": loops}


def drawn(results):
    figure = front_page.picture(results)
    return ElementTree.fromstring(
        figure.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ')
    )


def test_the_claim_counts_what_was_measured(results):
    said = "of 2 ways to load MNIST deliver more images than the training step takes."
    assert front_page.claim(results) == f"Measured with a small model: 1 {said}"
    results["loops"]["alone_s"]["Grain"] = [0.9] * 3
    assert front_page.claim(results) == f"Measured with a small model: 2 {said}"


def test_a_median_is_drawn():
    loops = {"images": 12, "alone_s": {"a": [1, 2, 90]}, "trained_s": {"a": [3, 1, 4]}}
    assert front_page.speeds(loops) == {"a": {"alone_s": 6, "trained_s": 4}}


def test_the_picture_draws_each_measurement_where_it_is(results):
    svg = drawn(results).find(f"{SVG}svg")
    assert svg.get("role") == "img" and svg.find(f"{SVG}title").text
    circles = [*svg.iter(f"{SVG}circle")]
    for kind in ("currentColor", "none"):
        marks = [float(circle.get("cx")) for circle in circles if circle.get("fill") == kind]
        _, torch, grain = marks  # the legend's comes first
        assert front_page.LEFT < grain < torch < front_page.RIGHT
    said = {text.text for text in svg.iter(f"{SVG}text")}
    assert {"PyTorch: arrays", "Grain: PNG", "the training step alone", "1k"} <= said


def test_the_picture_changes_with_the_results_and_names_its_machine(results):
    before = front_page.picture(results)
    assert "A machine, 2 cores, JAX on cpu, version 0.12.0, 2026-11-22. Medians of 3" in before
    faster = copy.deepcopy(results)
    faster["loops"]["alone_s"]["Grain"] = [0.01] * 3
    after = front_page.picture(faster)
    assert "5,000" in before and "6,000,000" in after
    assert before.partition("<figcaption>")[0] != after.partition("<figcaption>")[0]


def test_the_newest_machine_is_shown_and_a_gpu_before_others(results, tmp_path):
    def store(name, device, date):
        loops = results["loops"] | {"date": date}
        stored = {"processor": name, "cores": 2, "device": device, "loops": loops}
        (tmp_path / f"{name}.json").write_text(json.dumps(stored))

    (tmp_path / "other.json").write_text(json.dumps({"device": "cpu"}))  # timed no loops
    store("a", "cpu", "2026-11-02")
    store("b", "cpu", "2026-11-01")
    assert front_page.newest(tmp_path)["processor"] == "a"
    store("c", "NVIDIA H200", "2026-10-01")
    assert front_page.newest(tmp_path)["processor"] == "c"


@pytest.mark.slow
def test_what_the_front_page_offers_to_copy_runs_as_it_is(python):
    done = python("-c", front_page.code(), cwd=lessons.NOTEBOOKS, env=kernels.kernel_environment())
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("PyTorch: test accuracy 9")


def test_the_readme_says_of_gpus_what_the_records_say():
    readme = " ".join((lessons.ROOT / "README.md").read_text().split())
    recorded = records.gpus(records.by_page())
    assert ("never on a GPU" in readme) == (not recorded)
    assert "every output that you read" not in readme.lower()  # pictures are not compared
