"""What a reader copies from the lesson on text for a language model gets its texts."""

import re
import shutil
from pathlib import Path

import datasets
import pytest

from offline import lay_out
from tools.lesson import lessons

NAME = "language_model_data"


@pytest.fixture
def source() -> str:
    """The lesson's cell that looks for the texts, or fetches them."""
    cells = lessons.code_cells(lessons.read_md(NAME))
    [source] = [cell.source for cell in cells if "DownloadManager" in cell.source]
    return source


def test_the_texts_are_fetched_from_the_repository(tmp_path, source, data, monkeypatch):
    """The archive at the page's address is one that `datasets` unpacks, with all 42 texts."""
    [path] = re.findall(r'address = f"\{REPOSITORY\}/raw/main/(.+)"', source)
    assert "datasets.DownloadManager().download_and_extract(address)" in source
    assert lessons.ROOT / path == lay_out.SHAKESPEARE / "plays.tar.xz"
    packed = tmp_path / "repository" / path
    packed.parent.mkdir(parents=True)
    shutil.copy(lessons.ROOT / path, packed)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("datasets.config.EXTRACTED_DATASETS_PATH", str(tmp_path / "extracted"))
    texts = datasets.DownloadManager().download_and_extract(str(packed))
    fetched, laid_out = (
        {file.name: file.read_bytes() for file in folder.glob("*.txt")}
        for folder in (Path(texts), data / "shakespeare")
    )
    assert fetched == laid_out and len(fetched) == 42


def test_the_repository_has_the_address_of_conf_py(source):
    [line] = [line for line in source.splitlines() if line.startswith("REPOSITORY")]
    assert "https://github.com/" in line and f"{line}\n" in (lessons.ROOT / "conf.py").read_text()
