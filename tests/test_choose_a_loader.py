"""The lesson that chooses: each entry of its table is proven, its figures come from the files."""

import ast
import io
import json
import re
import urllib.request
import zipfile
from pathlib import Path

import pytest

from tools import lessons

RESULTS = sorted(path.name for path in (lessons.ROOT / "benchmarks/results").glob("*.json"))


def cell(words: str) -> str:
    """The source of the one cell with these words."""
    cells = lessons.code_cells(lessons.read_md("choose_a_loader"))
    [source] = [cell.source for cell in cells if words in cell.source]
    return source


def results_files(repository: str):
    """The lesson's function, as if the lesson were opened where `repository` is its address."""
    names = {"Path": Path, "io": io, "urllib": urllib, "zipfile": zipfile}
    names["REPOSITORY"] = repository
    exec(cell("def results_files"), names)
    return names["results_files"]


def zipped(folder: Path, content: dict[str, str]) -> None:
    path = folder / "archive/refs/heads/main.zip"
    path.parent.mkdir(parents=True)
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in content.items():
            archive.writestr(f"feed-jax-main/{name}", text)


def test_results_are_read_beside_the_notebook(monkeypatch):
    monkeypatch.chdir(lessons.NOTEBOOKS)
    found = results_files("https://nowhere.invalid")()
    assert sorted(Path(name).name for name in found) == RESULTS


def test_results_are_fetched_from_the_repository(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    content = {"benchmarks/results/cpu.json": "{}", "benchmarks/bench.py": "", "a.json": ""}
    zipped(tmp_path, content)
    found = results_files(tmp_path.as_uri())()
    assert found == {"feed-jax-main/benchmarks/results/cpu.json": b"{}"}


@pytest.mark.parametrize("damage", ["missing", "not a zip"])
def test_one_sentence_where_the_results_cannot_be_fetched(monkeypatch, tmp_path, damage):
    monkeypatch.chdir(tmp_path)
    if damage == "not a zip":
        zipped(tmp_path, {})
        (tmp_path / "archive/refs/heads/main.zip").write_text("<html>not found</html>")
    with pytest.raises(RuntimeError, match=r"main\.zip cannot be read .* clone it, or try again\."):
        results_files(tmp_path.as_uri())()


def test_damaged_results_are_named():
    names = {"results_files": lambda: {"cpu.json": b"{"}, "json": json, "LOADERS": {}}
    with pytest.raises(RuntimeError, match=r"^cpu\.json is damaged: restore it\.$"):
        exec(cell("MACHINES = {}"), names)


def test_results_of_some_lessons_only_are_left_out(capsys):
    whole = json.dumps(
        {"processor": "p", "cores": 2, "device": "cpu", "lessons": {"a": {"date": 1}}}
    )
    part = json.dumps({"lessons": {}})
    found = {"part.json": part, "whole.json": whole}
    names = {"results_files": lambda: found, "json": json, "LOADERS": {"a": "A"}}
    exec(cell("MACHINES = {}"), names)
    assert list(names["MACHINES"]) == ["p, 2 cores, JAX on cpu"]
    assert "part.json is left out: its benchmark ran for some" in capsys.readouterr().out


def test_address_is_that_of_conf_py():
    address = re.search(r'^REPOSITORY = (".*")$', cell("LOADERS = {"), re.MULTILINE)[1]
    assert f"REPOSITORY = {address}\n" in (lessons.ROOT / "conf.py").read_text()
    assert ast.literal_eval(address).startswith("https://github.com/")
    assert f"REPOSITORY = {address}\n" in lessons.md_path("language_model_data").read_text()


def test_every_entry_of_the_decision_table_leads_to_its_proof():
    text = lessons.md_path("choose_a_loader").read_text()
    table = text.partition("## Decide\n")[2].partition("\n### ")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("|")]
    head, _, *body = rows
    assert len(head) == 5 and len(body) >= 10
    for row in body:
        assert len(row) == 5
        for entry in row[1:]:
            assert re.search(r"\]\((https://|#|\w+\.ipynb#)", entry), entry
