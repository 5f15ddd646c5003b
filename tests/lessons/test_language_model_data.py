"""What a reader copies from the lesson on text for a language model works on other documents."""

import hashlib
import shutil
import tarfile
from pathlib import Path

import language_model_data_checks
import pytest
from copied_cells import assert_refused, checks_of

from offline import lay_out
from tools import lessons

NAME = "language_model_data"


# The check, what a cell says, what is put in its place, what the check says then.
BROKEN = [
    ("check_texts", "special_tokens = True", "special_tokens = False", "raises ValueError"),
    ("check_texts", "yield tokens", "yield tokens if number % 3 else []", "come back"),
    ("check_files", r'r"\r?\n(?:[ \t]*\r?\n)+"', r'r"\n\n"', "the documents of a folder"),
    ("check_files", "if again != text or stop in tokens:", "if False:", "strips: goes through"),
    (
        "check_saved",
        "np.uint16 if largest < 2**16 else np.uint32",
        "np.uint16",
        "OverflowError|large",
    ),
    ("check_saved", "getsize(file) != whole", "getsize(file) % 2", "goes through"),
    ("check_blocks", "next(ends) >> 20", "next(ends) >> 30", "characters are encoded at once"),
    ("check_blocks", "texts = list(some)", "texts = list(some)[:1000]", "documents in blocks"),
    ("check_windows", "grid = view[rng.integers(length) :: length]", "grid = view[::2]", "twice"),
    (
        "check_windows",
        "default_rng((seed, epoch, 1))",
        "default_rng((seed, start, 1))",
        "not the rest",
    ),
    ("check_packs", "free >> size or", "0 or", "packs of"),
    ("check_packs", "number, within", "number, places % length", "the positions of a document"),
    ("check_packs", "tokens[source + 1]", "tokens[source]", "lost, repeated or changed"),
    ("check_grain", "[: self.sizes[index] + 1]", "[: self.sizes[index]]", "pieces are lost|raises"),
    (
        "check_buckets",
        "-(-counts // full)",
        "np.maximum(counts // full, 1)",
        "lost|Index|wrong bucket",
    ),
    ("check_buckets", "rows][process::processes]", "rows][: rows // processes]", "do not share"),
    (
        "check_many",
        "(start // ends[-1]):",
        "(start // ends[-1]):\n        kept = [(n, np.arange(1)) for n in range(ends[-1])]",
        "bytes of each",
    ),
    (
        "check_model",
        'embedding.at[targets].get(mode="fill")',
        "embedding[targets]",
        "target is out",
    ),
    (
        "check_model",
        "(losses * counts).sum() / jnp.maximum(counts.sum(), 1)",
        "losses.mean()",
        "counts",
    ),
    ("check_inputs", "lengths.min() < 1", "False", "goes through|raises"),
    ("check_inputs", "0 < b <= budget", "0 <= b <= budget", "sentence is|goes through|raises"),
]


@pytest.mark.parametrize("check", checks_of(language_model_data_checks))
def test_copied_cells_carry_over(lesson, check):
    lesson.call("attempt", check)


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_copy_is_refused(lesson, broken):
    assert_refused(lesson, *broken)


# The texts -----------------------------------------------------------------------------------


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


def test_the_texts_are_fetched_from_the_repository(tmp_path, plays, fetching):
    assert hashlib.sha256(plays.read_bytes()).hexdigest() == fetching["SHA256"]
    fetching["fetch_texts"](tmp_path / "texts", tmp_path.as_uri())
    found = {file.name: file.read_bytes() for file in (tmp_path / "texts").iterdir()}
    assert found == lay_out.read_plays() and len(found) == 42


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
