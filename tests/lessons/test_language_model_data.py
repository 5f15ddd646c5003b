"""What a reader copies from the lesson on text for a language model works on other documents."""

import hashlib
import shutil
import tarfile
from pathlib import Path

import pytest

from offline import lay_out
from tools import lessons

NAME = "language_model_data"


@pytest.fixture
def fetching() -> dict:
    """What the lesson's cell defines, without what it fetches."""
    cells = lessons.code_cells(lessons.read_md(NAME))
    [source] = [cell.source for cell in cells if "def fetch_texts" in cell.source]
    names = {"Path": Path}
    exec(source.partition("\n\n\nif not any")[0], names)
    return names


@pytest.fixture
def plays(tmp_path) -> Path:
    """The archive, where the repository at the address of `tmp_path` has it."""
    path = tmp_path / "raw/main/offline/shakespeare/plays.tar.xz"
    path.parent.mkdir(parents=True)
    shutil.copy(lay_out.SHAKESPEARE / "plays.tar.xz", path)
    return path


def test_the_texts_are_fetched_from_the_repository(tmp_path, plays, fetching, data):
    assert hashlib.sha256(plays.read_bytes()).hexdigest() == fetching["SHA256"]
    fetching["fetch_texts"](tmp_path / "texts", tmp_path.as_uri())
    fetched, laid_out = (
        {file.name: file.read_bytes() for file in folder.glob("*.txt")}
        for folder in (tmp_path / "texts", data / "shakespeare")
    )
    assert fetched == laid_out and len(fetched) == 42


def test_the_repository_has_the_address_of_conf_py(fetching):
    address = fetching["REPOSITORY"]
    assert address.startswith("https://github.com/")
    assert f'REPOSITORY = "{address}"\n' in (lessons.ROOT / "conf.py").read_text()


def test_an_interrupted_fetch_leaves_nothing_and_the_next_one_heals(
    tmp_path, plays, fetching, monkeypatch
):
    texts = tmp_path / "data" / "texts"

    def half(plays, to, **others):
        for member in plays.getmembers()[:20]:
            plays.extract(member, to, **others)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(tarfile.TarFile, "extractall", half)
        fetching["fetch_texts"](texts, tmp_path.as_uri())
    assert not any(texts.parent.iterdir())
    texts.mkdir()  # an empty one is no obstacle
    fetching["fetch_texts"](texts, tmp_path.as_uri())
    assert len([*texts.glob("*.txt")]) == 42


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_bytes(b"<html></html>")])
def test_one_sentence_where_the_texts_cannot_be_fetched(tmp_path, plays, fetching, damage):
    damage(plays)
    with pytest.raises(RuntimeError, match=r"^[^\n]*put \.txt files into [^\n]*texts\.$"):
        fetching["fetch_texts"](tmp_path / "texts", tmp_path.as_uri())
    assert not (tmp_path / "texts").exists()


@pytest.mark.parametrize("make", [Path.touch, Path.mkdir])
def test_a_folder_with_other_files_is_refused_in_one_sentence_and_kept(tmp_path, fetching, make):
    texts = tmp_path / "texts"
    texts.mkdir()
    make(texts / "sonnets.TXT")
    with pytest.raises(
        ValueError, match=r"^[^\n]*texts holds files, but no \.txt file: add one\.$"
    ):
        fetching["fetch_texts"](texts, tmp_path.as_uri())
    assert [file.name for file in texts.iterdir()] == ["sonnets.TXT"]
