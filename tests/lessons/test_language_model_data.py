"""What a reader copies from the lesson on text for a language model works on other documents.

Each broken copy, which differs in one place, is refused: so every check is seen to bite.
"""

import hashlib
import tarfile
from pathlib import Path

import pytest
from carry_over.broken import assert_refused
from carry_over.language_model import LanguageModel

from benchmarks import bench
from offline import lay_out
from tools import lessons

NAME = "language_model_data"


@pytest.fixture(scope="module")
def lesson(lesson_environment):
    with bench.ready(bench.Process(NAME, kind=LanguageModel)) as [lesson]:
        yield lesson


@pytest.mark.parametrize(
    "check",
    [
        "check_texts",
        "check_windows",
        "check_packs",
        "check_grain",
        "check_buckets",
        "check_model",
        "check_inputs",
    ],
)
def test_copied_cells_carry_over(lesson, check):
    lesson.call(check)


# The function, what it says, what is put in its place, the check, what the check says.
BROKEN = {
    "gives Grain a target too few": (
        "Pieces",
        "[: self.sizes[index] + 1]",
        "[: self.sizes[index]]",
        "check_grain",
        "pieces are lost|raises",
    ),
    "adds a blank": (
        "train_tokenizer",
        "add_prefix_space=False",
        "add_prefix_space=True",
        "check_texts",
        "does not decode|raises ValueError",
    ),
    "lacks bytes": (
        "train_tokenizer",
        "initial_alphabet=bytes_only.alphabet(),",
        "",
        "check_texts",
        "does not decode|raises ValueError|lost",
    ),
    "believes the text": (
        "tokenize",
        "tokenizer.encode_special_tokens = True",
        "tokenizer.encode_special_tokens = False",
        "check_texts",
        "raises ValueError",
    ),
    "does not look": (
        "encoded",
        "if again != text or stop in tokens:",
        "if False:",
        "check_texts",
        "strips: goes through",
    ),
    "has 16 bits for all": (
        "tokenize",
        "np.uint16 if largest < 2**16 else np.uint32",
        "np.uint16",
        "check_texts",
        "OverflowError|goes through|large vocabulary",
    ),
    "takes a str": (
        "encoded",
        "isinstance(documents, str)",
        "False",
        "check_texts",
        "one str: goes through",
    ),
    "says the beginning": (
        "encoded",
        "max([*map(str.__ne__, text, again), 1].index(1) - 9, 0)",
        "0",
        "check_texts",
        "is told as",
    ),
    "counts from each block": (
        "encoded",
        "zip(texts, back, ids, numbers)",
        "zip(numbers, texts, back, ids)",
        "check_texts",
        "raises|is told as",
    ),
    "encodes all at once": (
        "encoded",
        "next(ends) >> 20",
        "next(ends) >> 30",
        "check_texts",
        "characters are encoded at once",
    ),
    "loses the end of a block": (
        "encoded",
        "texts = list(some)",
        "texts = list(some)[:1000]",
        "check_texts",
        "documents in blocks",
    ),
    "reads what is left": (
        "mapped",
        "os.path.getsize(file) != whole",
        "os.path.getsize(file) % np.dtype(dtype).itemsize",
        "check_texts",
        "goes through",
    ),
    "takes any dtype": (
        "mapped",
        'dtype not in ("uint16", "uint32") or',
        "",
        "check_texts",
        "goes through|raises TypeError|the sentence is",
    ),
    "counts one too many": (
        "tokenize",
        'f"{stem}.{count}.{dtype}"',
        'f"{stem}.{count + 1}.{dtype}"',
        "check_texts",
        "raises ValueError",
    ),
    "forgets the parts": (
        "starts_of",
        "i * chunk + np.flatnonzero(p == end)",
        "np.flatnonzero(p == end)",
        "check_texts",
        "raises ValueError|come back",
    ),
    "takes paragraphs for lines": (
        "documents_in",
        r'r"\r?\n(?:[ \t]*\r?\n)+"',
        r'r"\n\n"',
        "check_texts",
        "the documents of a folder",
    ),
    "loses documents": (
        "encoded",
        "yield tokens",
        "yield tokens if number % 3 else []",
        "check_texts",
        "come back",
    ),
    "overlaps by two": (
        "window_batches",
        "grid = view[rng.integers(length) :: length]",
        "grid = view[:: max(length - 1, 1)]",
        "check_windows",
        "has a target twice",
    ),
    "loses a target between windows": (
        "window_batches",
        ":: length]",
        ":: length + 1]",
        "check_windows",
        "raises IndexError|leaves out",
    ),
    "counts a window too many": (
        "window_batches",
        "len(tokens) // length - 1, None",
        "len(tokens) // length, None",
        "check_windows",
        "IndexError|goes through|same order|not the rest|twice",
    ),
    "one grid for the stream": (
        "window_batches",
        "default_rng((seed, epoch, 1))",
        "default_rng((seed, start, 1))",
        "check_windows",
        "is not the rest",
    ),
    "cuts no document": (
        "pieces_of",
        "sizes = np.minimum(np.repeat(lengths, counts) - place, length)",
        "sizes = np.minimum(np.repeat(lengths, counts), length)",
        "check_packs",
        "lost, repeated|padding|packs of|IndexError",
    ),
    "takes empty documents": (
        "pieces_of",
        "lengths.min() < 1",
        "False",
        "check_inputs",
        "goes through|raises",
    ),
    "goes on with the positions": (
        "laid_out",
        "number, within",
        "number, places % length",
        "check_packs",
        "the positions of a document",
    ),
    "has one segment": (
        "laid_out",
        "np.arange(len(row)) - first + 1",
        "np.ones_like(row)",
        "check_packs",
        "the positions of a document|lost",
    ),
    "predicts itself": (
        "laid_out",
        "tokens[source + 1]",
        "tokens[source]",
        "check_packs",
        "lost, repeated or changed",
    ),
    "packs one piece a row": (
        "packs_of",
        "free >> size or",
        "0 or",
        "check_packs",
        "packs of",
    ),
    "overfills": (
        "packs_of",
        "free >> size or",
        "free >> size - 1 or",
        "check_packs",
        "packs of|raises|IndexError",
    ),
    "drops the end of a bucket": (
        "bucket_batches",
        "np.cumsum(-(-counts // full))",
        "np.cumsum(np.maximum(counts // full, 1))",
        "check_buckets",
        "lost|IndexError|wrong bucket",
    ),
    "pads too far": (
        "bucket_batches",
        "bucket, full = np.searchsorted(bounds, sizes)",
        "bucket, full = np.full(len(sizes), len(bounds) - 1)",
        "check_buckets",
        "wrong bucket",
    ),
    "gives all rows to each process": (
        "bucket_batches",
        "[at : at + rows][process::processes]",
        "[at : at + rows][: rows // processes]",
        "check_buckets",
        "do not share",
    ),
    "starts in the first epoch": (
        "bucket_batches",
        "itertools.count(start // ends[-1])",
        "itertools.count()",
        "check_buckets",
        "is not the rest",
    ),
    "keeps an array for each batch": (
        "bucket_batches",
        "(start // ends[-1]):",
        "(start // ends[-1]):\n        kept = [(n, np.arange(1)) for n in range(ends[-1])]",
        "check_buckets",
        "bytes of each",
    ),
    "takes a bound of 0": (
        "bucket_batches",
        "0 < b <= budget",
        "0 <= b <= budget",
        "check_inputs",
        "the sentence is|goes through|raises",
    ),
    "takes the next row": (
        "packed_row",
        "slice(bounds[row], bounds[row + 1])",
        "slice(bounds[row] + 1, bounds[row + 1] + 1)",
        "check_packs",
        "makes another row|raises",
    ),
    "reads the last input": (
        "token_losses",
        'embedding.at[inputs].get(mode="fill")',
        "embedding[inputs]",
        "check_model",
        "input is out of range",
    ),
    "reads the last target": (
        "token_losses",
        'embedding.at[targets].get(mode="fill")',
        "embedding[targets]",
        "check_model",
        "target is out of range",
    ),
    "reads the last position": (
        "token_losses",
        'places.at[positions].get(mode="fill")',
        "places[positions]",
        "check_model",
        "position is out of range",
    ),
    "learns from padding": (
        "mean_loss",
        "(losses * counts).sum() / jnp.maximum(counts.sum(), 1)",
        "losses.mean()",
        "check_model",
        "padding counts",
    ),
}


@pytest.mark.parametrize("case", BROKEN.values(), ids=BROKEN)
def test_a_broken_copy_is_refused(lesson, case):
    assert_refused(lesson, case)


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
