"""The other loaders: each has its functions, its row in the table, and its version in one file.

None of their libraries is imported: tests/others runs them, in jobs of their own.
"""

import ast
import configparser
import copy
import json

import pytest
from packaging.requirements import Requirement

from benchmarks.others import loaders
from tools import lessons

FOLDER = lessons.ROOT / "benchmarks" / "others"
MACHINERY = {"__init__", "loaders", "other", "parts", "run"}
SIGNATURES = {
    "tuned_batches": "images, labels, batch_size, seed, start=0, process=0, processes=1",
    "file_batches": "folder, batch_size, size, seed, start=0, workers=0, process=0, processes=1",
    "stored_batches": "url, count, batch_size, seed, start=0, process=0, processes=1",
}
MODULES = sorted({path.stem for path in FOLDER.glob("*.py")} - MACHINERY)


def pinned(file: str) -> dict[str, Requirement]:
    lines = (line.partition("#")[0].strip() for line in (FOLDER / file).read_text().splitlines())
    found = [Requirement(line) for line in lines if line and not line.startswith("-r")]
    return {requirement.name: requirement for requirement in found}


def functions(module: str) -> dict[str, str]:
    tree = ast.parse((FOLDER / f"{module}.py").read_text())
    found = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    return {node.name: ast.unparse(node.args) for node in found}


def test_each_module_has_a_row_and_each_row_a_module_or_a_reason():
    installed = {name for name, of in loaders.LOADERS.items() if of.requirements}
    assert installed == set(MODULES)
    for of in loaders.LOADERS.values():
        assert of.licence
        assert bool(of.reason) == (of.requirements != loaders.COLLECTION), of.title


@pytest.mark.parametrize("module", MODULES)
def test_a_loader_defines_what_the_lessons_define(module):
    defined = functions(module).items() & SIGNATURES.items()
    assert defined
    assert {name for name, _ in defined} == functions(module).keys() & SIGNATURES.keys()


@pytest.mark.parametrize("module", MODULES)
def test_a_loader_says_what_it_cannot_and_what_it_is_installed_from(module):
    tree, of = ast.parse((FOLDER / f"{module}.py").read_text()), loaders.LOADERS[module]
    assert ast.get_docstring(tree).startswith(f"{of.title}: ")
    names = {
        node.targets[0].id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    assert ast.literal_eval(names["DISTRIBUTION"]) == of.distribution
    [pin] = pinned(of.requirements)[of.distribution].specifier
    assert pin.operator == "=="


def test_the_collection_requires_of_the_others_what_its_lessons_take():
    text = (lessons.ROOT / "requirements.txt").read_text()
    lines = [line.partition("#")[0].strip() for line in text.splitlines()]
    required = {Requirement(line).name for line in lines if line}
    others = {of.distribution for of in loaders.LOADERS.values()}
    # Lessons take torchdata's StatefulDataLoader and Ray's workers.
    assert required & others == {"ray", "torchdata"}


def test_each_file_of_requirements_has_a_job():
    tox = configparser.ConfigParser(interpolation=None)
    tox.read(lessons.ROOT / "tox.ini")
    jobs = {tox[f"testenv:{job}"]["deps"] for job in ("others", "others-apart")}
    files = {of.requirements for of in loaders.LOADERS.values() if of.requirements}
    assert jobs == {f"-r benchmarks/others/{file}" for file in files}
    assert "others" in tox["pytest"]["norecursedirs"].split()


def results() -> list[dict]:
    paths = sorted(FOLDER.with_name("results-others").glob("*.json"))
    return [json.loads(path.read_text()) for path in paths]


@pytest.mark.parametrize("stored", results(), ids=lambda stored: stored["device"])
def test_stored_results_name_their_versions_and_time_nothing_that_is_refused(stored):
    from benchmarks.others import other, run

    assert set(stored["loaders"]) == set(MODULES)
    said = run.text(stored)
    for name, figures in stored["loaders"].items():
        assert figures["version"] in said
        verdicts = figures["verdicts"]
        assert set(verdicts) == functions(name).keys() & SIGNATURES.keys()
        timed_as = {"tuned_batches": "tuned_images_s", "file_batches": "photos"}
        for function, timed in (timed_as | {"stored_batches": "stored"}).items():
            broken = {
                promise for promise, sentence in verdicts.get(function, {}).items() if sentence
            }
            assert broken == loaders.LOADERS[name].breaks.get(function, set())
            refused = broken & other.NEEDED
            assert (timed in figures) == (function in verdicts and not refused)


def figures_of_one() -> dict:
    photos = {"images_s": [500.0, 500.0], "cores": [1.0, 1.0], "decoder_images_s": [1000.0, 1000.0]}
    return {
        "title": "A loader",
        "version": "1.2.3",
        "installation_bytes": 10**6,
        "import": [{"import_s": 0.5, "import_bytes": 1}],
        "verdicts": {"file_batches": {"each once": "", "refuses": "goes through."}},
        "photos": {"1": photos},
    }


def test_the_report_shows_shares_and_each_broken_promise():
    from benchmarks.others import run

    machine = {"processor": "A processor", "cores": 2, "device": "cpu"}
    said = run.text(machine | {"loaders": {"a_loader": figures_of_one()}})
    assert "0.50 (0.50 to 0.50)" in said and "1.2.3" in said
    assert "A loader, file_batches, refuses: goes through." in said
    assert "each once" not in said
    assert f"FFCV is not measured: {loaders.LOADERS['ffcv'].reason}" in said


def test_what_is_refused_is_not_timed(monkeypatch):
    from benchmarks.others import run

    monkeypatch.setattr(run.bench, "installation_bytes", lambda modules: 1)
    monkeypatch.setattr(run.bench, "import_cost", lambda modules: {})
    monkeypatch.setattr(run.bench, "Process", lambda name, kind: Answers())
    monkeypatch.setattr(run, "arrays", lambda *_: {"tuned_images_s": [1.0]})
    monkeypatch.setattr(run, "photos", lambda *_: {"1": {}})
    figures = run.measure("cyreal_arrays", 1, 0.1)
    assert "tuned_images_s" not in figures  # an example comes twice
    assert figures["photos"] == {"1": {}}  # only a promise that needs no other work is broken


class Answers:
    """A process that answers as a loader would whose arrays come twice."""

    def __enter__(self):
        self.set_up_s = 0.0
        return self

    def __exit__(self, *_):
        pass

    def answer(self):
        return 0.0

    def call(self, method, *arguments):
        return copy.copy(
            {
                "offers": True,
                "check_arrays": {"each once": "epoch 0 gives 3 examples again."},
                "check_stored": {"each once": "ends."},
                "check_photographs": {"each once": "", "refuses": "goes through."},
            }.get(method, "cpu")
        )
