"""The archive of a release: what is in it is what git has, and it passes in an empty folder."""

import zipfile

import nbformat
import pytest

from tools import archive, lessons

QUICK = "choose_a_loader"  # seconds, and no data


@pytest.fixture
def unpacked(tmp_path):
    path = tmp_path / "feed-jax.zip"
    archive.pack(path, "v1.0")
    with zipfile.ZipFile(path) as packed:
        packed.extractall(tmp_path / "empty")
    [folder] = (tmp_path / "empty").iterdir()
    assert folder.name == "feed-jax-v1.0"
    return folder


def test_it_has_every_lesson_and_each_file_as_it_is(unpacked):
    found = [path.relative_to(unpacked) for path in unpacked.rglob("*") if path.is_file()]
    assert sorted(map(str, found)) == archive.files()
    for file in found:
        assert (unpacked / file).read_bytes() == (lessons.ROOT / file).read_bytes()
    packed = {path.stem for path in (unpacked / "notebooks").glob("*.ipynb")}
    assert packed == set(lessons.names())
    assert not (unpacked / "notebooks" / "data").exists()


def test_the_same_files_make_the_same_archive(tmp_path):
    for name in ("a", "b"):
        archive.pack(tmp_path / name, "v1.0")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_notebook_of_it_passes_strictly_in_an_empty_folder(unpacked, python):
    quick = unpacked / "notebooks" / f"{QUICK}.ipynb"
    done = python("-m", "pytest", "--nbval", "-q", quick, cwd=unpacked)
    assert done.returncode == 0, done.stdout
    notebook = lessons.read_notebook(QUICK)
    lessons.code_cells(notebook)[0].source = "1 / 0"
    nbformat.write(notebook, quick)
    assert python("-m", "pytest", "--nbval", "-q", quick, cwd=unpacked).returncode == 1


def test_the_notes_are_those_of_the_release(monkeypatch, tmp_path):
    monkeypatch.setattr(lessons, "ROOT", tmp_path)
    parts = ["# Changelog", "## Unreleased", "- c", "## 1.1 (2026-12-01)", "- b"]
    text = "\n\n".join([*parts, "## 1.0 (2026-11-01)", "- a\n"])
    (tmp_path / "CHANGELOG.md").write_text(text)
    cite(tmp_path, "1.1", "2026-12-01")
    assert archive.notes("v1.1") == "- b\n"
    cite(tmp_path, '"1.0"', "2026-11-01")
    assert archive.notes("v1.0") == "- a\n"
    with pytest.raises(lessons.Problem, match=r"no heading `## 2\.0 "):
        archive.notes("v2.0")


@pytest.mark.parametrize(
    "cited", [("1.1", "2026-11-01"), ("1.0", "2026-12-01"), ("10", "2026-11-01")]
)
def test_a_release_is_cited_by_its_version_and_its_day(monkeypatch, tmp_path, cited):
    monkeypatch.setattr(lessons, "ROOT", tmp_path)
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## 1.0 (2026-11-01)\n\n- a\n")
    cite(tmp_path, *cited)
    with pytest.raises(lessons.Problem, match=r"CITATION\.cff has no line"):
        archive.notes("v1.0")


def cite(folder, version, day):
    (folder / "CITATION.cff").write_text(f"version: {version}\ndate-released: {day}\n")
