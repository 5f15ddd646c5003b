"""What a reader copies from the lesson on text for a language model gets its texts."""

import shutil

import pytest

from offline import lay_out
from tools.lesson import lessons

NAME = "language_model_data"
ARCHIVE = "raw/main/offline/shakespeare/plays.tar.xz"


@pytest.fixture
def source() -> str:
    """The lesson's cell that looks for the texts, or fetches them."""
    cells = lessons.code_cells(lessons.read_md(NAME))
    [source] = [cell.source for cell in cells if "DownloadManager" in cell.source]
    return "from pathlib import Path\n" + source


def test_the_texts_are_fetched_from_the_repository(
    tmp_path, source, data, monkeypatch, lesson_environment
):
    packed = tmp_path / "repository" / ARCHIVE
    packed.parent.mkdir(parents=True)
    shutil.copy(lay_out.SHAKESPEARE / "plays.tar.xz", packed)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("datasets.config.EXTRACTED_DATASETS_PATH", str(tmp_path / "extracted"))
    address = f'REPOSITORY = "{tmp_path / "repository"}"'
    before, _, after = source.partition("REPOSITORY = ")
    names: dict = {}
    exec(before + address + "\n" + after.partition("\n")[2], names)
    fetched, laid_out = (
        {file.name: file.read_bytes() for file in folder.glob("*.txt")}
        for folder in (names["TEXTS"], data / "shakespeare")
    )
    assert fetched == laid_out and len(fetched) == 42


def test_the_repository_has_the_address_of_conf_py(source):
    [line] = [line for line in source.splitlines() if line.startswith("REPOSITORY")]
    assert "https://github.com/" in line and f"{line}\n" in (lessons.ROOT / "conf.py").read_text()
