"""What the benchmark stored is told as it was measured, and what is missing is a gap.

That is in the report, in the lesson that chooses and, in test_front_page.py, in the picture.
"""

import json

import jupytext
import pytest

from benchmarks import from_disk, in_process, parts, report
from tools.check import check, fix
from tools.lesson import benchmark_results, lessons, result_cells


def small() -> dict:
    """The results of a machine, of two loaders, of which one has all figures, in round numbers."""
    photos = {"images_s": [90.0], "cores": [1.0], "limit_images_s": [100.0]}
    grain = {
        "date": "2026-11-22",
        "versions": {"python": "3.13.0", "jax": "0.12.0", "grain": "0.2"},
        "installation_bytes": 12_400_000,
        "import_s": [0.5],
        "import_bytes": [5_000_000],
        "first_batch_s": [0.25],
        "tuned_lines": 30,
        "files_lines": 90,
        "busy_cores": [0.0, 0.1],
        "tuned_images_s": [1_000_000.0, 3_000_000.0, 2_345_678.0],
        "numpy_images_s": [2_000_000.0, 3_000_000.0, 2_345_678.0],
        "numpy_form": "X[i]",
        "first_images_s": [5_000.0],
        "epoch_s": [1.1],
        "resident_epoch_s": [1.0],
        "photos": {"2": photos | {"decoder_images_s": [180.0]}},
    }
    torch = {"date": "2026-11-23", "versions": {"torch": "2.15"}, "tuned_images_s": [3e6]}
    return {
        "processor": "A machine",
        "cores": 2,
        "device": "cpu",
        "lessons": {"grain": grain, "pytorch_dataloader": torch},
        "larger": {"grain": {"rows_s": [10.0], "mapped_rows_s": [100.0]}},
        "tokens": {"tokens_s": [90.0] * 3, "copy_tokens_s": [100.0] * 3},
        "storage": {"rows_s": [95.0], "at_once_rows_s": [100.0], "one_rows_s": [7.0]},
        "blocks": {"windows_s": [90.0], "read_windows_s": [100.0]},
        "graphs": {"graphs_s": [90.0], "joined_graphs_s": [100.0]},
        "frames": {"windows_s": [90.0], "decoded_windows_s": [100.0]},
        "loops": {
            "images": 60_000,
            "versions": {"jax": "0.12.0"},
            "date": "2026-11-22",
            "reads": {"Grain": "each image, a PNG", "Grain, arrays": "each image, an array"},
            "step_s": [1.0, 0.5, 2.0],
            "alone_s": {"Grain": [3.0]},
            "trained_s": {"Grain": [5.0]},
        },
    }


def shown(folder, **machines) -> dict:
    """What the lesson shows of these results, a file for each machine in an empty folder."""
    for name, results in machines.items():
        (folder / f"{name}.json").write_text(json.dumps(results))
    _, _, text = result_cells.source(folder).partition('r"""')
    return json.loads(text.removesuffix('""")'))


# What figures are worth ----------------------------------------------------------------------


def test_what_was_measured_side_by_side_is_compared():
    figures = {"a": [1.0, 6.0, 4.0], "b": [2.0, 2.0, 4.0]}
    assert benchmark_results.ratios(figures, "a", "b") == [0.5, 3.0, 1.0]
    assert benchmark_results.span(benchmark_results.ratios(figures, "a", "b")) == (0.5, 1.0, 3.0)
    assert benchmark_results.ratios(figures, "a", "c") == [] and benchmark_results.span([]) is None
    with pytest.raises(ValueError, match="shorter"):
        benchmark_results.ratios(figures | {"b": [1.0]}, "a", "b")


def test_every_part_has_a_class_that_measures_it():
    for part in benchmark_results.PARTS.values():
        assert issubclass(getattr(parts, part.kind), in_process.Lesson)


def test_every_lesson_that_is_measured_is_registered_once():
    loaders = {name for name in lessons.names() if lessons.subject_cells(name, "tuned-pipeline")}
    assert (
        loaders
        == benchmark_results.bench_entries("modules").keys()
        == benchmark_results.bench_entries("loader").keys()
    )
    assert benchmark_results.bench_entries("from_disk").keys() == from_disk.STREAMS.keys()


@pytest.mark.parametrize(
    "file", sorted(benchmark_results.FOLDER.glob("*.json")), ids=lambda file: file.stem
)
def test_stored_results_are_of_lessons_that_are_there_and_can_be_told(file):
    results = json.loads(file.read_text())
    assert results["lessons"].keys() <= benchmark_results.bench_entries("modules").keys()
    said, titles = report.as_text(results), benchmark_results.bench_entries("loader")
    for name, figures in results["lessons"].items():
        assert said.count(titles[name]) >= 4
        assert {"python", "jax", "numpy"} < figures["versions"].keys()


# The report ----------------------------------------------------------------------------------


def test_the_report_tells_what_was_measured():
    said = report.as_text(small())
    for words in ("X[i]", "2,350,000", "2: images/s", "12 ", "30, 90"):
        assert words in said
    assert "misses" not in said and "not quiet" not in said


@pytest.mark.parametrize(
    ("place", "changed", "sentence"),
    [
        ("grain", {"numpy_images_s": [2e6, 6e6, 9e6]}, "Grain misses its mark: 0.50 of the NumPy"),
        ("grain", {"busy_cores": [0.0, 1.3]}, "the machine was not quiet, others kept 1.3 cores"),
        ("grain", {"numpy_images_s": [1e6, 2e6, 1e6]}, "varied from 1,000,000 to 2,000,000 images"),
        ("grain", {"epoch_s": [1.2]}, "an epoch takes 1.20 times that of resident data, not 1.05."),
        ("photos", {"images_s": [50.0]}, "0.50 of the same decoder in 2 processes, not 0.85."),
        ("tokens", {"tokens_s": [70.0] * 3}, "language_model_data misses its mark: 0.70 of a copy"),
        ("storage", {"rows_s": [70.0]}, "files_and_storage misses its mark: 0.70 of the same with"),
        (
            "blocks",
            {"windows_s": [70.0]},
            "arrays_on_disk misses its mark: 0.70 of the reads",
        ),
    ],
)
def test_the_report_says_what_misses_and_what_disturbed(place, changed, sentence):
    results = small() | {"device": "NVIDIA H200"}
    assert sentence not in report.as_text(results)
    grain = results["lessons"]["grain"]
    (results | {"grain": grain, "photos": grain["photos"]["2"]})[place].update(changed)
    assert sentence in report.as_text(results)


def without(results: dict):
    """The results, with one key of one dictionary less, whichever."""
    for key, value in results.items():
        if key not in ("processor", "cores", "device", "date"):
            yield {k: v for k, v in results.items() if k != key}
        if isinstance(value, dict) and key in ("lessons", "grain"):
            yield from (results | {key: less} for less in without(value))


@pytest.mark.parametrize("results", [*without(small())])
def test_what_was_not_measured_is_a_gap(results):
    said = report.as_text(results)
    assert said.startswith("A machine, 2 cores") and "nan" not in said and "None" not in said
    summary = result_cells.summary(results)
    assert summary.keys() == result_cells.summary(small()).keys()
    json.dumps(summary)


# The lesson that chooses ---------------------------------------------------------------------


def test_the_lesson_holds_what_was_measured_and_a_stale_cell_is_found_and_fixed():
    before = lessons.md_path("choose_a_loader").read_text()
    stale = before.replace('"date": "', '"date": "1999-', 1)
    assert stale != before and fix.with_results(stale) == before
    for source, fault in ((before, False), (stale, True)):
        faults = check.check_source("choose_a_loader", jupytext.reads(source, fmt="md:myst"))
        assert any("is not what benchmarks/results hold" in said for said in faults) == fault


def test_figures_are_those_of_the_file(tmp_path):
    [found] = shown(tmp_path, cpu=small()).values()
    assert found["date"] == "2026-11-23" and found["python"] == "3.13.0"
    assert found["memory"]["Grain"] == {
        "images/s": [1_000_000, 2_350_000, 3_000_000],
        "share": [0.5, 1.0, 1.0],
        "first": [5_000] * 3,
    }
    assert "PyTorch DataLoader" not in found["memory"]  # without a reference it has no share
    reads = {"Grain": "each image, a PNG"}
    assert found["loops"] == {
        "step": [30_000, 60_000, 120_000],
        "loops": {"Grain": [20_000] * 3},
        "reads": reads,
    }


def test_a_gpu_comes_first_and_a_machine_without_a_part_is_left_out(tmp_path):
    gpu, part = small() | {"device": "NVIDIA H200"}, small() | {"cores": 96}
    del part["storage"]
    names = shown(tmp_path, a_part=part, cpu=small(), gpu=gpu)
    assert [*names] == [benchmark_results.label(gpu), benchmark_results.label(small())]


def test_a_line_breaks_in_no_string():
    names = {f"a machine, {n} cores, with a long name, too": [n, n / 3] * 9 for n in range(9)}
    lines = result_cells.wrapped(names | {"x" * 90: 1})
    assert json.loads("\n".join(lines)) == names | {"x" * 90: 1}
    assert len(lines) > 9 and max(map(len, lines[:-1])) <= result_cells.WIDTH
