"""The lesson that chooses, and its depth: the table leads to proofs, any results will do.

The results in it are of one machine or of many, with any numbers: here they are made up.
"""

import copy
import json
import re

import feed_choose_a_loader_in_depth as depth
import pytest

from tools.lesson import benchmark_results, lessons, result_cells

pytestmark = pytest.mark.slow

NAME, SHORT = "choose_a_loader_in_depth", "choose_a_loader"
PROGRAMS = "Run Ray Data, SPDL or WebDataset from any step"
DASH = "\N{EN DASH} "  # begins an entry that has no answer, but a reason


def run_cell(cell, names: dict) -> None:
    """Run a cell of a page with these names.

    The pages themselves are tried here, with other results than theirs: what they print, draw and
    prove. A module has none of that.
    """
    exec(compile(lessons.python(cell.source), "page", "exec"), names)


# The decision table --------------------------------------------------------------------------


def rows_of_the_table() -> list[list[str]]:
    text = lessons.md_path(NAME).read_text()
    table = text.partition("## Find every way\n")[2].partition("\n## ")[0]
    return [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("|")]


def test_every_entry_of_the_decision_table_answers_in_words_and_leads_to_its_proof():
    head, _, *body = rows_of_the_table()
    assert len(head) == 6 and len(body) >= 12
    for row in body:
        assert len(row) == len(head), row
        assert sum("**" in entry for entry in row[1:]) <= 1, f"{row[0]}: one is the best"
        for entry in row[1:]:
            said = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", entry)
            begins = rf"(\*\*)?(yes|no|not)\b|{DASH}[a-z]{{2,}}"
            assert re.match(begins, said), f"{row[0]}: {entry}"
            assert entry.startswith(DASH) or re.search(r"\]\((\w+\.ipynb)?#", entry), entry


def test_the_programs_that_show_no_results_have_a_section():
    assert f"\n## {PROGRAMS}\n" in lessons.md_path(NAME).read_text()


# What keeps up -------------------------------------------------------------------------------


def machine(workers=(1, 2)) -> dict:
    """Speeds, of which the slowest repetition has nine tenths of the median."""

    def speed(median: int) -> dict:
        return {"images/s": [9 * median // 10, median, 11 * median // 10]}

    loops = {"Grain": 2_000, "Grain, arrays": 8_000, "NumPy": 10_000}
    photographs = {
        "Grain": {f"{n}": speed(50 * n) for n in workers},
        "Hugging Face": {f"{n}": speed(40 * n) for n in workers},
    }
    return {
        "loops": {
            "loops": {loader: speed(median)["images/s"] for loader, median in loops.items()},
            "reads": {"Grain": "PNG", "Grain, arrays": "arrays", "NumPy": "batches"},
        },
        "photographs": photographs,
    }


SAYS = [  # a step's images/s, the workers that were measured, and what is said of both
    (
        30,
        (1, 2),
        "fast enough: Grain (PNG); Grain, arrays (arrays); NumPy (batches).",
        "fast enough: Grain (1 worker); Hugging Face (1 worker).",
    ),
    # Workers are counted as numbers.
    (80, (16, 2, 1), "fast enough: Grain (PNG)", "fast enough: Grain (2 workers); Hugging"),
    # Between the slowest and the median of a loop: the slowest has to be enough.
    (1_900, (1, 2), "fast enough: Grain, arrays (a", "none is fast enough. Grain (2 workers)"),
    (
        100_000,
        (1, 2),
        "none is fast enough. NumPy (batches) delivers 9,000 images/s, 9.0% of that.",
        "none is fast enough. Grain (2 workers) delivers 90 images/s, 0.1% of that.",
    ),
]


@pytest.mark.parametrize(("step", "workers", "mnist", "photographs"), SAYS)
def test_a_step_is_fed_by_the_least_effort_or_told_what_is_missing(
    step, workers, mnist, photographs
):
    said = depth.keeps_up(step, machine(workers))
    assert said.keys() == {"MNIST", "photographs"}
    assert said["MNIST"].startswith(f"MNIST, {mnist}")
    assert said["photographs"].startswith(f"photographs, {photographs}")


@pytest.mark.parametrize("step", [0, -1, float("nan"), float("inf")])
def test_a_step_without_a_speed_is_refused(step):
    with pytest.raises(ValueError, match=rf"^no step uses {step} images/s"):
        depth.keeps_up(step, machine())


# The page with other results -----------------------------------------------------------------


def stored() -> dict:
    """The results that the page holds."""
    [cell] = lessons.code_cells(lessons.read_md(NAME), lessons.RESULTS_TAG)
    names = {"json": json}
    run_cell(cell, names)
    return names["MEASURED"]


def of_two_machines() -> dict:
    """One as it is stored, and one with other numbers of workers, without a first version."""
    results = stored()
    other = copy.deepcopy(next(iter(results.values())))
    other["memory"]["Grain"]["first"] = None
    for found in other["photographs"].values():
        one = found["1"]
        found.clear()
        for workers in (1, 4, 16):
            rates = {kind: [workers * v for v in one[kind]] for kind in ("images/s", "one for all")}
            found[f"{workers}"] = one | rates
    return dict(list(results.items())[:1]) | {"another, 16 cores, JAX on gpu": other}


@pytest.fixture
def run_page():
    """Runs a page's cells, all but the trap, with these results. Returns the figures' axes."""
    import matplotlib.pyplot as plt

    def run(results: dict, name: str = NAME) -> list[int]:
        names, axes = {"__name__": "page"}, []
        section = ""
        for cell in lessons.read_md(name).cells:
            if cell.cell_type == "markdown":
                section = (re.findall(r"^## (.*)", cell.source, re.MULTILINE) or [section])[-1]
            elif section == PROGRAMS:
                continue  # they show no results, and Ray takes a minute
            elif lessons.RESULTS_TAG in lessons.tags(cell):
                names["MEASURED" if name == NAME else "MEDIANS"] = results
            elif "trap" not in lessons.tags(cell):
                run_cell(cell, names)
            axes += [len(plt.figure(number).axes) for number in plt.get_fignums()]
            plt.close("all")
        return axes

    plt.switch_backend("agg")
    with plt.rc_context():
        yield run
    plt.close("all")


def test_the_page_runs_with_several_machines(run_page, capsys):
    results = of_two_machines()
    axes = run_page(results)
    said = capsys.readouterr().out
    assert len(axes) == 5 and all(count % len(results) == 0 for count in axes)
    for name in results:
        assert said.count(name) >= len(axes)
    assert re.search(r"^  Grain +16 ", said, re.MULTILINE)


# Where in the results of a machine, what is put there: a sentence of the page would be wrong.
CONTRADICTIONS = {
    "tuned as slow as first": (("memory", "Grain", "images/s"), [9, 10, 11]),
    "photographs as fast as MNIST": (("photographs", "Grain", "1", "images/s"), [1e9] * 3),
    "decoding that costs nothing": (("loops", "loops", "Grain, arrays"), [9_000] * 3),
    "a cache that is worth nothing": (("loops", "loops", "TFDS, no cache"), [10**6] * 3),
    "workers that do not pay": (("photographs", "Grain", "2", "images/s"), [1, 1, 1]),
    "slow windows": (("tokens", "share"), [0.1, 0.2, 0.3]),
    "reading ahead in vain": (("storage", "one"), [1e9] * 3),
    "a large Grain": (("start", "Grain", "disk MB"), 10**6),
}


@pytest.mark.parametrize("case", CONTRADICTIONS)
def test_a_proof_refuses_results_that_contradict_its_sentence(run_page, case):
    (*path, last), value = CONTRADICTIONS[case]
    results = stored()
    place = next(iter(results.values()))
    for key in path:
        place = place[key]
    assert last in place
    place[last] = value
    with pytest.raises(AssertionError):
        run_page(results)


def medians(results: dict) -> dict:
    return {name: result_cells.medians(machine) for name, machine in results.items()}


def test_the_lesson_runs_with_several_machines(run_page, capsys):
    results = medians(of_two_machines())
    axes = run_page(results, SHORT)
    said = capsys.readouterr().out
    assert axes == [len(results)] and all(name in said for name in results)
    assert re.search(r"photographs/s.*\n.*16 workers", said)


@pytest.mark.parametrize(
    ("part", "loader", "value"),
    [
        ("loops", "Grain", 10**9),
        ("loops", "TFDS", 1),
        ("loops", "NumPy", 10**5),
        ("photographs", "Grain", 10**7),
        ("disk MB", "Grain", 10**6),
        ("disk MB", "TensorFlow Datasets", 1),
    ],
)
def test_a_proof_of_the_lesson_refuses_what_contradicts_it(run_page, part, loader, value):
    results = medians(stored())
    run_page(results, SHORT)
    place = next(iter(results.values()))[part]
    assert loader in place
    place[loader] = value
    with pytest.raises(AssertionError):
        run_page(results, SHORT)


def test_every_line_of_the_table_leads_to_a_lesson():
    text = lessons.md_path(SHORT).read_text()
    table = text.partition("## Find your data\n")[2].partition("\n## ")[0]
    have = [line for line in table.splitlines() if line.startswith("| ")][2:]
    led = {name for line in have for name in re.findall(r"\]\((\w+)\.ipynb#", line)}
    assert all(".ipynb#" in line for line in have)
    assert benchmark_results.bench_entries("loader").keys() <= led
