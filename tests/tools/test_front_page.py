"""What the front page shows follows from the stored results and from the lessons' own cells."""

import copy
import json
from xml.etree import ElementTree

import pytest

from tools.lesson import lessons
from tools.site import front_page, records

SVG = "{http://www.w3.org/2000/svg}"


def figures(first, tuned, date="2026-11-22"):
    found = {"first_images_s": [first] * 3, "tuned_images_s": [tuned] * 3, "date": date}
    found |= {"numpy_images_s": [5e6] * 3, "step_epoch_s": [1.0] * 3}
    return found | {"versions": {"jax": "0.12.0"}}


@pytest.fixture
def results():
    """Of two lessons; the step takes 59,904 images a second."""
    timed = {"grain": figures(5e3, 4e6), "pytorch_dataloader": figures(8e4, 3e6)}
    timed["decode_photographs"] = {"date": "2026-11-30"}  # has no such pipeline
    machine = {"processor": "A machine", "cores": 2, "device": "cpu"}
    return machine | {"lessons": timed}


def drawn(results):
    figure = front_page.picture(results)
    return ElementTree.fromstring(
        figure.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ')
    )


def test_the_claim_counts_what_was_measured(results):
    assert front_page.claim(results) == (
        "Measured: what people write first is slower than the training step of a small model, with "
        "1 of 2; the tuned pipeline is faster than it, with all 2 loaders."
    )
    results["lessons"]["grain"] |= {"short_images_s": [6e4]}
    results["lessons"]["pytorch_dataloader"] |= {
        "short_images_s": [5e4],
        "tuned_images_s": [5e4] * 3,
    }
    assert front_page.claim(results).startswith("Measured with 1 of 2: what people write first ")
    assert front_page.claim(results).endswith(
        "; the short answer is faster than it; the tuned pipeline is faster than it."
    )


@pytest.mark.parametrize("figure", ["first_images_s", "tuned_images_s", "step_epoch_s"])
def test_what_was_not_measured_is_a_gap(results, figure):
    del results["lessons"]["grain"][figure]
    assert "1 of 1" not in front_page.claim(results)
    said = {text.text for text in drawn(results).iter(f"{SVG}text")}
    assert "PyTorch DataLoader" in said and ("Grain" in said) == (figure != "tuned_images_s")
    del results["lessons"]["pytorch_dataloader"][figure]
    assert bool(front_page.speeds(results)) == (figure == "first_images_s")


@pytest.mark.parametrize("short", [None, 1e5])
def test_the_picture_draws_each_measurement_where_it_is(results, short):
    if short:
        results["lessons"]["grain"]["short_images_s"] = [short]
    svg = drawn(results).find(f"{SVG}svg")
    assert svg.get("role") == "img" and svg.find(f"{SVG}title").text
    filled = [c for c in svg.iter(f"{SVG}circle") if c.get("fill") == "currentColor"]
    _, torch, grain = [float(circle.get("cx")) for circle in filled]  # the legend's comes first
    assert torch < grain < front_page.RIGHT  # in the order of the lessons
    diamonds = [path for path in svg.iter(f"{SVG}path") if path.get("d").endswith("z")]
    assert len(diamonds) == 2 * bool(short)
    said = [text.text for text in svg.iter(f"{SVG}text")]
    assert {"PyTorch DataLoader", "Grain", "the training step", "1k", "10M"} <= set(said)
    assert ("short answer" in said) == bool(short)


def test_the_picture_changes_with_the_results_and_names_its_machine(results):
    before = front_page.picture(results)
    assert "A machine, 2 cores, JAX on cpu, version 0.12.0, 2026-11-22. Medians of 3" in before
    faster = copy.deepcopy(results)
    faster["lessons"]["grain"]["tuned_images_s"] = [9e6] * 3
    after = front_page.picture(faster)
    assert "4,000,000" in before and "9,000,000" in after
    assert before.partition("<figcaption>")[0] != after.partition("<figcaption>")[0]


def test_the_newest_machine_is_shown_and_a_gpu_before_others(results, tmp_path):
    def store(name, device, date):
        timed = {"grain": figures(1, 2, date=date)}
        stored = {"processor": name, "cores": 2, "device": device, "lessons": timed}
        (tmp_path / f"{name}.json").write_text(json.dumps(stored))

    store("a", "cpu", "2026-11-02")
    store("b", "cpu", "2026-11-01")
    assert front_page.newest(tmp_path)["processor"] == "a"
    store("c", "NVIDIA H200", "2026-10-01")
    assert front_page.newest(tmp_path)["processor"] == "c"


USES_IT = """
import torch

images = torch.arange(100.0)
dataset = torch.utils.data.TensorDataset(images, images.int() % 10)
stream = batches(dataset, 25, start=3)
last, *epoch = [next(stream) for _ in range(5)]
assert sorted(float(x) for batch in epoch for x in batch[0]) == sorted(images.tolist())
assert all((batch[0] % 10 == batch[1]).all() for batch in [last, *epoch])
"""


def test_what_the_front_page_offers_to_copy_runs_as_it_is(python, tmp_path):
    done = python("-W", "ignore", "-c", front_page.code() + USES_IT, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_the_readme_says_of_gpus_what_the_records_say():
    readme = " ".join((lessons.ROOT / "README.md").read_text().split())
    recorded = records.gpus(records.by_page())
    assert ("never on a GPU" in readme) == (not recorded)
    assert "every output that you read" not in readme.lower()  # pictures are not compared
