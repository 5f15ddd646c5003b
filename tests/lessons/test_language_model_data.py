"""What a reader copies from the lesson on text for a language model works on other documents."""

import hashlib
import tarfile
from pathlib import Path

import language_model_data_checks
import pytest
from copied_cells import assert_refused, checks_of

from offline import lay_out
from tools import lessons

NAME = "language_model_data"


# The check, the function, what it says, what is put in its place, what the check says then.
BROKEN = [
    (
        "check_texts",
        "tokenize",
        "tokenizer.encode_special_tokens = True",
        "tokenizer.encode_special_tokens = False",
        "raises ValueError",
    ),
    (
        "check_texts",
        "encoded",
        "yield tokens",
        "yield tokens if number % 3 else []",
        "come back",
    ),
    (
        "check_files",
        "documents_in",
        r'r"\r?\n(?:[ \t]*\r?\n)+"',
        r'r"\n\n"',
        "the documents of a folder",
    ),
    (
        "check_files",
        "encoded",
        "if again != text or stop in tokens:",
        "if False:",
        "strips: goes through",
    ),
    (
        "check_saved",
        "tokenize",
        "np.uint16 if largest < 2**16 else np.uint32",
        "np.uint16",
        "OverflowError|goes through|large vocabulary",
    ),
    (
        "check_saved",
        "mapped",
        "os.path.getsize(file) != whole",
        "os.path.getsize(file) % np.dtype(dtype).itemsize",
        "goes through",
    ),
    (
        "check_blocks",
        "encoded",
        "next(ends) >> 20",
        "next(ends) >> 30",
        "characters are encoded at once",
    ),
    (
        "check_blocks",
        "encoded",
        "texts = list(some)",
        "texts = list(some)[:1000]",
        "documents in blocks",
    ),
    (
        "check_windows",
        "window_batches",
        "grid = view[rng.integers(length) :: length]",
        "grid = view[:: max(length - 1, 1)]",
        "has a target twice",
    ),
    (
        "check_windows",
        "window_batches",
        "default_rng((seed, epoch, 1))",
        "default_rng((seed, start, 1))",
        "is not the rest",
    ),
    ("check_packs", "packs_of", "free >> size or", "0 or", "packs of"),
    (
        "check_packs",
        "laid_out",
        "number, within",
        "number, places % length",
        "the positions of a document",
    ),
    (
        "check_packs",
        "laid_out",
        "tokens[source + 1]",
        "tokens[source]",
        "lost, repeated or changed",
    ),
    (
        "check_grain",
        "Pieces",
        "[: self.sizes[index] + 1]",
        "[: self.sizes[index]]",
        "pieces are lost|raises",
    ),
    (
        "check_buckets",
        "bucket_batches",
        "np.cumsum(-(-counts // full))",
        "np.cumsum(np.maximum(counts // full, 1))",
        "lost|IndexError|wrong bucket",
    ),
    (
        "check_buckets",
        "bucket_batches",
        "[at : at + rows][process::processes]",
        "[at : at + rows][: rows // processes]",
        "do not share",
    ),
    (
        "check_many",
        "bucket_batches",
        "(start // ends[-1]):",
        "(start // ends[-1]):\n        kept = [(n, np.arange(1)) for n in range(ends[-1])]",
        "bytes of each",
    ),
    (
        "check_model",
        "token_losses",
        'embedding.at[targets].get(mode="fill")',
        "embedding[targets]",
        "target is out of range",
    ),
    (
        "check_model",
        "mean_loss",
        "(losses * counts).sum() / jnp.maximum(counts.sum(), 1)",
        "losses.mean()",
        "padding counts",
    ),
    ("check_inputs", "pieces_of", "lengths.min() < 1", "False", "goes through|raises"),
    (
        "check_inputs",
        "bucket_batches",
        "0 < b <= budget",
        "0 <= b <= budget",
        "the sentence is|goes through|raises",
    ),
]


@pytest.mark.parametrize("check", checks_of(language_model_data_checks))
def test_copied_cells_carry_over(lesson, check):
    lesson.call("attempt", check)


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_copy_is_refused(lesson, broken):
    assert_refused(lesson, *broken)


# The texts -----------------------------------------------------------------------------------


def fetching(folder: Path):
    """What the lesson's cell defines, without what it fetches."""
    cells = lessons.code_cells(lessons.read_md(NAME))
    [source] = [cell.source for cell in cells if "def fetch_texts" in cell.source]
    names = {"Path": Path}
    exec(source.partition("\n\n\nif not any")[0], names)
    return names


def test_the_texts_are_fetched_from_the_repository(tmp_path):
    packed = (lay_out.SHAKESPEARE / "plays.tar.xz").read_bytes()
    path = tmp_path / "raw/main/offline/shakespeare/plays.tar.xz"
    path.parent.mkdir(parents=True)
    path.write_bytes(packed)
    names = fetching(tmp_path)
    assert hashlib.sha256(packed).hexdigest() == names["SHA256"]
    names["fetch_texts"](tmp_path / "texts", tmp_path.as_uri())
    found = {file.name: file.read_bytes() for file in (tmp_path / "texts").iterdir()}
    assert found == lay_out.read_plays() and len(found) == 42


def test_an_interrupted_fetch_leaves_nothing_and_the_next_one_heals(tmp_path, monkeypatch):
    path = tmp_path / "raw/main/offline/shakespeare/plays.tar.xz"
    path.parent.mkdir(parents=True)
    path.write_bytes((lay_out.SHAKESPEARE / "plays.tar.xz").read_bytes())
    names, texts = fetching(tmp_path), tmp_path / "data" / "texts"

    def half(plays, to, **others):
        for member in plays.getmembers()[:20]:
            plays.extract(member, to, **others)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(tarfile.TarFile, "extractall", half)
        names["fetch_texts"](texts, tmp_path.as_uri())
    assert not any(texts.parent.iterdir())
    texts.mkdir()  # an empty one is no obstacle
    names["fetch_texts"](texts, tmp_path.as_uri())
    assert len([*texts.glob("*.txt")]) == 42


@pytest.mark.parametrize("damage", ["missing", "another file"])
def test_one_sentence_where_the_texts_cannot_be_fetched(tmp_path, damage):
    if damage == "another file":
        path = tmp_path / "raw/main/offline/shakespeare/plays.tar.xz"
        path.parent.mkdir(parents=True)
        path.write_bytes(b"<html>not found</html>")
    names = fetching(tmp_path)
    with pytest.raises(RuntimeError, match=r"put \.txt files into .*texts\.$") as error:
        names["fetch_texts"](tmp_path / "texts", tmp_path.as_uri())
    assert "\n" not in str(error.value) and not (tmp_path / "texts").exists()


@pytest.mark.parametrize("other", ["notes.md", "sonnets.TXT", "a folder"])
def test_a_folder_with_other_files_is_refused_in_one_sentence_and_kept(tmp_path, other):
    texts = tmp_path / "texts"
    texts.mkdir()
    (texts / other).mkdir() if other == "a folder" else (texts / other).write_text("mine")
    names = fetching(tmp_path)
    said = r"texts holds files, but no \.txt file: add one\.$"
    with pytest.raises(ValueError, match=said) as error:
        names["fetch_texts"](texts, tmp_path.as_uri())
    assert "\n" not in str(error.value)
    assert [file.name for file in texts.iterdir()] == [other]
