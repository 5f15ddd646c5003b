"""What the benchmark measured travels inside the lesson that chooses, and is never stale there."""

import copy
import json

import pytest

from benchmarks import bench, from_disk
from tools import check, lessons, measured

STORED = [json.loads(file.read_text()) for file in sorted(measured.RESULTS.glob("*.json"))]


def test_every_loader_that_is_measured_is_named():
    assert measured.LOADERS.keys() == bench.MODULES.keys()
    assert measured.FROM_DISK.keys() == from_disk.STREAMS.keys()


def cell() -> str:
    cells = lessons.code_cells(lessons.read_md("choose_a_loader"))
    [source] = [cell.source for cell in cells if measured.lessons.RESULTS_TAG in lessons.tags(cell)]
    return source


def value_of(source: str) -> dict:
    names = {"json": json}
    exec(source, names)
    return names["MEASURED"]


def test_the_lesson_holds_what_was_measured():
    assert cell() == measured.source()
    assert [*value_of(cell())] == [*dict.fromkeys(map(measured.name_of, STORED))]


@pytest.fixture
def folder(tmp_path):
    """Stores results, a file for each machine, in a folder of their own."""

    def store(**machines):
        for name, results in machines.items():
            (tmp_path / f"{name}.json").write_text(json.dumps(results))
        return tmp_path

    return store


def test_a_gpu_comes_first_and_a_part_of_the_lessons_is_left_out(folder):
    part, gpu = copy.deepcopy(STORED[0]), copy.deepcopy(STORED[0]) | {"device": "NVIDIA H200"}
    part["cores"] = 96
    del part["lessons"]["grain"]
    before = copy.deepcopy(STORED[0])
    for key in ("larger", "tokens", "storage"):
        del before[key]
    machines = folder(a_part=part, before=before, cpu=STORED[0], gpu=gpu)
    names = [measured.name_of(gpu), measured.name_of(STORED[0])]
    assert [*value_of(measured.source(machines))] == names


def test_no_whole_results_are_one_sentence(folder):
    with pytest.raises(lessons.Problem, match=r"^No file in benchmarks/results holds every lesson"):
        measured.source(folder())


def test_figures_are_those_of_the_file(folder):
    results = copy.deepcopy(STORED[0])
    grain = results["lessons"]["grain"]
    grain["tuned_images_s"] = [1_000_000.0, 4_000_000.0, 2_345_678.0]
    grain["numpy_images_s"] = [2_000_000.0, 4_000_000.0, 2_345_678.0]
    grain["numpy_form"] = "X[i]"
    grain["growth"] = {
        "1": {"images_s": [100.0], "gather_images_s": [100.0], "bytes": 10**9},
        "4": {
            "images_s": [50.0],
            "gather_images_s": [80.0],
            "bytes": 10**9 + 3 * 60_000 * 788 + 5 * 10**6,
        },
    }
    [found] = value_of(measured.source(folder(cpu=results))).values()
    of_grain = found["memory"]["Grain"]
    assert of_grain["images/s"] == [1_000_000, 2_350_000, 4_000_000]
    assert of_grain["share"] == [0.5, 1.0, 1.0]
    assert found["growth"]["Grain"] == {"4": {"time": 2.0, "gather": 1.25, "MB": 5}}


def test_other_loaders_stand_beside_the_five_of_their_machine(folder, tmp_path):
    figures = {
        "title": "A loader",
        "date": "2026-11-24",
        "version": "1.2",
        "installation_bytes": 12_400_000,
        "import": [{"import_s": 0.52}, {"import_s": 0.46}, {"import_s": 0.5}],
        "verdicts": {"tuned_batches": {"each once": "", "refuses": "goes through."}},
        "tuned_images_s": [2.0, 1.0],
        "numpy_images_s": [4.0, 4.0],
        "stored": {"0.02": [123_456.0]},
    }
    results = {key: STORED[0][key] for key in ("processor", "cores", "device")}
    (tmp_path / "others").mkdir()
    (tmp_path / "others" / "cpu.json").write_text(
        json.dumps(results | {"loaders": {"a_loader": figures}})
    )
    elsewhere = copy.deepcopy(STORED[0]) | {"cores": 96}
    machines = folder(cpu=STORED[0], elsewhere=elsewhere)
    here, there = value_of(measured.source(machines, tmp_path / "others")).values()
    assert there["others"] == {}
    assert here["others"]["A loader"] == {
        "date": "2026-11-24",
        "version": "1.2",
        "disk MB": 12,
        "import s": 0.5,
        "breaks": ["refuses"],
        "memory": [0.25, 0.375, 0.5],
        "storage": {"0.02": [123_000, 123_000, 123_000]},
    }


def test_a_line_breaks_in_no_string():
    names = {f"a machine, {n} cores, with a long name, too": [n, n / 3] * 9 for n in range(9)}
    lines = measured.wrapped(names)
    assert json.loads("\n".join(lines)) == names
    assert len(lines) > 9 and max(map(len, lines)) <= measured.WIDTH
    [one, two] = measured.wrapped({"x" * 90: 1, "y": 2})
    assert "x" * 90 in one and json.loads(one + two) == {"x" * 90: 1, "y": 2}


def test_a_stale_cell_is_found_and_fixed(monkeypatch):
    path = lessons.md_path("choose_a_loader")
    before = path.read_text()
    stale = before.replace('"date": "', '"date": "1999-', 1)
    assert stale != before and check.with_results(stale) == before
    found = lessons.jupytext.reads(stale, fmt="md:myst")
    faults = [*check.check_source("choose_a_loader", found)]
    assert any("is not what benchmarks/results hold" in fault for fault in faults)
