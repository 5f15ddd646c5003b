"""What a reader copies from the lesson on text for a language model: from texts to tokens."""

import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import feed_language_model_data as lesson
import feed_language_model_data_in_depth as depth
import numpy as np
import pandas as pd
from expecting import refusal
from hypothesis import strategies as st
from hypothesis_cases import tried

from tools.lesson import lessons

# Letters of two scripts, line ends, an emoji, a combining accent, and the name of the end token.
TEXTS = st.text(st.sampled_from("ab \n\r\té€я日🦊\u0301\x00"), max_size=30) | st.just("<|end|>")


# A corpus as it comes: an empty document, one of over fifty rows of 64 tokens, two spaces, a line
# end in the middle, and the name of a token. `CHANGING` does not come back from every tokenizer.
GERMAN = [
    "Grüße aus Zürich! Fuß, Öl, Übung.",
    "",
    "Der lange Satz geht weiter, " * 900,
    "Er sagte: <s> und </s> und <|end|>.",
    "Zwei  Leerzeichen\nund eine Zeile",
] + [f"Satz {number} von {number * 7}." for number in range(200)]


CHANGING = ["u\u0308ber", " Hallo  Welt", "half a pair: \ud83d"]


def documents_read(tokens) -> list[list[int]]:
    return [tokens[a + 1 : b].tolist() for a, b in lesson.documents_of(tokens)]


def byte_level(texts, marks=("<|end|>",), **options):
    """A tokenizer that knows every byte, with these special tokens from number 0 on."""
    from tokenizers import ByteLevelBPETokenizer

    tokenizer = ByteLevelBPETokenizer(**options)
    tokenizer.train_from_iterator(texts, special_tokens=[*marks], show_progress=False)
    return tokenizer


@tried(4, texts=st.lists(TEXTS, max_size=8))
def test_texts(texts):
    """Each text comes back from the file, an empty one is counted, and nothing else is there."""
    tokenizer = byte_level(["ab é "])
    full = [text for text in texts if text]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "t.npy")
        if not full:
            refusal("no document", lambda: lesson.tokenize(texts, tokenizer, file))
            assert not file.exists(), "what is refused leaves a file behind."
            return
        counts = lesson.tokenize(lambda: iter(texts), tokenizer, file)
        assert [*Path(folder).iterdir()] == [file], "leaves other files behind."
        tokens = np.load(file)
    right = {"documents": len(full), "tokens": len(tokens), "empty": len(texts) - len(full)}
    right = {what: count for what, count in right.items() if count}
    assert counts == right, f"the counts are {counts}, not {right}."
    read = documents_read(tokens)
    back = [tokenizer.decode(each, skip_special_tokens=False) for each in read]
    assert back == full, f"{texts} come back as {back}."


def tokenizers_of(texts) -> dict:
    """Pretrained tokenizers as there are: what begins and ends a document, and what they change."""
    import tokenizers
    from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

    def trained(*marks, alphabet=(), **parts):
        tokenizer = tokenizers.Tokenizer(models.BPE())
        for part, value in parts.items():
            setattr(tokenizer, part, value)
        trainer = trainers.BpeTrainer(
            special_tokens=[*marks],
            initial_alphabet=[*alphabet],
            show_progress=False,
            vocab_size=600,
        )
        tokenizer.train_from_iterator(texts, trainer)
        return tokenizer

    byte = {
        "alphabet": pre_tokenizers.ByteLevel.alphabet(),
        "pre_tokenizer": pre_tokenizers.ByteLevel(add_prefix_space=False),
        "decoder": decoders.ByteLevel(),
    }
    space = {"pre_tokenizer": pre_tokenizers.Metaspace(), "decoder": decoders.Metaspace()}
    return {
        "NFC": (trained("<|end|>", normalizer=normalizers.NFC(), **byte), ("<|end|>", "<|end|>")),
        "Metaspace": (trained("<s>", "</s>", **space), ("<s>", "</s>")),
        "begin 0, end 1": (trained("[CLS]", "[SEP]", **byte), ("[CLS]", "[SEP]")),
    }


def test_any_tokenizer():
    """A German corpus goes through three tokenizers; what they change is kept, skipped or named."""
    both = GERMAN[:2] + CHANGING
    for kind, (tokenizer, (begin, end)) in tokenizers_of(GERMAN).items():
        marks = {"begin": begin, "end": end}
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "german.npy")
            counts = lesson.tokenize(GERMAN, tokenizer, file, **marks)
            tokens = np.load(file, mmap_mode="r")
            assert counts["empty"] == 1, f"{kind}: the empty document is not counted: {counts}."
            ids = documents_read(tokens)
            back = tokenizer.decode_batch(ids, skip_special_tokens=False)
            assert back == [t for t in GERMAN if t], f"{kind}: documents come back changed."
            first, last = tokenizer.token_to_id(begin), tokenizer.token_to_id(end)
            assert tokens[0] == first and tokens[-1] == last, f"{kind}: other tokens begin or end."
            between = np.count_nonzero(tokens == first) - (begin == end)
            assert between == len(ids), f"{kind}: {between} begin tokens for {len(ids)} documents."
            rows = lesson.PackedRows(tokens, 64)
            pieces = rows.pieces[:, 1]
            assert pieces.sum() == sum(len(each) + 1 for each in ids), f"{kind}: targets are lost."
            assert np.count_nonzero(pieces == 64) >= 50, f"{kind}: no document of fifty rows."

            changed = [t for t in CHANGING if not comes_back(tokenizer, t)]
            assert CHANGING[2] in changed
            skipped = lesson.tokenize(both, tokenizer, file, **marks, lossy="skip")
            kept = 1 + len(CHANGING) - len(changed)
            right = skipped["skipped"] == len(changed) and skipped["documents"] == kept
            assert right, f"{kind}: of {len(changed)} changed ones, {skipped}."
            assert len(documents_read(np.load(file))) == kept
            all_of_it = lesson.tokenize(both, tokenizer, file, **marks, lossy="keep")
            right = all_of_it["changed"] == len(changed) and all_of_it["documents"] == 4
            assert right, f"{kind}: of {len(changed)} changed ones, kept {all_of_it}."
            number = both.index(changed[0])
            message = refusal(
                kind, lambda t=tokenizer, m=marks, f=file: lesson.tokenize(both, t, f, **m)
            )
            assert message.startswith(f"document {number} does not decode: "), message


def comes_back(tokenizer, text: str) -> bool:
    valid = text.encode(errors="replace").decode()
    ids = tokenizer.encode(valid, add_special_tokens=False).ids
    return tokenizer.decode(ids, skip_special_tokens=False) == text


def test_files():
    """Folders, choices that are none, what is no text, and text that a tokenizer changes."""
    tokenize = lesson.tokenize
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        assert not [*lesson.documents_in(folder)]
        (folder / "b.txt").write_bytes(b"third\r\n\r\n\r\n \r\n  fourth,\r\nof two lines\r\n")
        (folder / "a.txt").write_bytes("first €\n\t\n\nsecond".encode())
        (folder / "empty.txt").write_bytes(b"")
        found = list(lesson.documents_in(folder))
        right = ["first €", "second", "third", "  fourth,\r\nof two lines\r\n"]
        assert found == right, f"the documents of a folder are {found}."
        (folder / "c.txt").write_bytes(b"\xff")
        message = refusal("no UTF-8", lambda: list(lesson.documents_in(folder)))
        assert "c.txt is not UTF-8" in message, message

        trained = byte_level(found)
        own = folder / "own.npy"
        for wrong in ({"end": "<eos>"}, {"begin": "<bos>"}, {"lossy": "some"}):
            refusal(wrong, lambda w=wrong: tokenize(found, trained, own, **w))
        table = {"text": ["first"]}
        kinds = "first", table, pd.DataFrame(table), lambda: "first", lambda: table
        for wrong in (*kinds, iter(["first"]), (t for t in ["first"])):
            message = refusal(wrong, lambda w=wrong: tokenize(w, trained, own))
            assert message.startswith("a list is needed, or a function, not a "), message
        for number, bad in enumerate([None, b"first", 7]):
            texts = [*["fine"] * (70 * number), bad]
            message = refusal(bad, lambda t=texts: tokenize(t, trained, own))
            assert message.startswith(f"document {70 * number} is no str: "), message
        message = refusal("half a pair", lambda: tokenize(["fine", "pair \ud83d"], trained, own))
        right = r"document 1 does not decode: 'pair \ud83d' becomes 'pair ?'"
        assert message == right, f"it is told as: {message}"
        texts = ["as it is", "early " * 9 + "and Late " + "in it " * 9]
        lower = byte_level(texts, lowercase=True)
        message = refusal("lower case", lambda: tokenize(texts, lower, own))
        said = "'arly and Late in it in it in i' becomes 'arly and late in it in it in i'"
        assert message == f"document 1 does not decode: {said}", f"it is told as: {message}"
        assert not list(folder.glob("own*")), "what is refused leaves a file behind."


def test_tokenizers():
    """Padding, truncation, marks in a text, large vocabularies, and tokens of other writers."""
    from tokenizers import AddedToken, Tokenizer, models

    tokenize = lesson.tokenize
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        own = folder / "own.npy"
        trained = byte_level(["It ab"])
        plain = Tokenizer.from_str(trained.to_str())
        padding = Tokenizer.from_str(trained.to_str())
        padding.enable_padding(pad_id=plain.get_vocab_size(), pad_token="[PAD]")
        padding.enable_truncation(2)
        texts = ["Short.", "A longer line that goes on.", "It says <|end|>."]
        for tokenizer, file in ((plain, "plain.npy"), (padding, "padding.npy")):
            tokenize(texts, tokenizer, folder / file)
        one, two = (np.load(folder / file) for file in ("plain.npy", "padding.npy"))
        assert np.array_equal(one, two), "padding or truncation of the tokenizer reaches the file."
        assert np.count_nonzero(one == 0) == 4, "a text's <|end|> becomes the end token."
        assert padding.padding and padding.truncation, "the caller's tokenizer is changed."

        words = {"<|end|>": 0, "a": 1, "?": 2, "far": 70_000}
        large = Tokenizer(models.WordLevel(words, "?"))
        large.add_special_tokens([AddedToken("<|end|>", special=True)])
        tokenize(["far"], large, own)
        found = np.load(own)
        right = found.dtype == np.uint32 and found.tolist() == [0, 70_000, 0]
        assert right, f"a large vocabulary: {found!r}."
        for lossy in ("raise", "keep"):
            message = refusal(
                "the end token in a text",
                lambda kind=lossy: tokenize(["a", "<|end|>"], large, own, lossy=kind),
            )
            assert message == "document 1 holds <|end|> or <|end|>", message
        counts = tokenize(["a", "<|end|>"], large, own, lossy="skip")
        assert counts["skipped"] == 1 and np.load(own).tolist() == [0, 1, 0], counts
        own.write_bytes(own.read_bytes()[:-1])
        refusal("a file that was cut", lambda: np.load(own, mmap_mode="r"))
    for bad in ([5], [0], [], [0, 5, 2, 0, 5], [1, 7, 7, 1, 7], [0, 5, 0, 2, 5, 5]):
        refusal(bad, lambda b=bad: lesson.PackedRows(np.array(b, np.uint16), 4))


def test_restart():
    """A run that is killed leaves whole files only, and the next one makes the others."""
    cells = lessons.subject_cells("language_model_data")
    wanted = "def tokenize(", "def tokenize_files(", "def documents_of("
    source = "\n".join(cell.source for cell in cells if any(w in cell.source for w in wanted))
    program = f"""
import functools
import time
import numpy as np
{source}
def slowly(file):
    yield "a text of some words"
    if file == "second":
        print("now", flush=True)
        time.sleep(60)
import sys
tokenizer = tokenizers.Tokenizer.from_file(sys.argv[1])
tokenize_files(["first", "second", "third"], slowly, tokenizer, sys.argv[2])
"""
    from tokenizers import Tokenizer

    trained = byte_level(["a text"])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "tokens")
        trained.save(str(Path(name, "tokenizer.json")))
        arguments = [sys.executable, "-c", program, f"{name}/tokenizer.json", folder]
        with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as running:
            assert running.stdout.readline() == "now\n"
            time.sleep(0.1)
            running.send_signal(signal.SIGKILL)
        whole = [path.name for path in folder.glob("*.npy")]
        assert whole == ["first.npy"], f"a killed run leaves {whole}."
        before = (folder / "first.npy").stat().st_mtime_ns
        tokenizer = Tokenizer.from_file(f"{name}/tokenizer.json")
        read = {"first": "other text", "second": "a text", "third": "a text"}
        found = depth.tokenize_files(read, lambda f: [read[f]], tokenizer, folder)
        assert [count is None for count in found.values()] == [True, False, False]
        assert (folder / "first.npy").stat().st_mtime_ns == before, "a whole file is written again."
        same = ["a/x.txt", "b/x.txt"]
        refusal(same, lambda: depth.tokenize_files(same, lambda _: ["a"], tokenizer, folder))
        rows = depth.one_of_many(found, 4)
        parts = [len(lesson.PackedRows(np.load(file), 4)) for file in found]
        assert len(rows) == sum(parts), f"{len(rows)} rows of {parts}."
        targets = Counter(int(t) for row in rows for t in row["targets"][row["segments"] > 0])
        right = Counter(int(t) for file in found for t in np.load(file)[1:])
        assert targets == right, "the rows of several files lose or repeat targets."


def test_dialogues():
    """Only answers count, with the token that ends them; a user's words are no role."""
    from tokenizers import Tokenizer

    marks = ["<|end|>", "<|user|>", "<|assistant|>"]
    tokenizer = byte_level(["ab"], marks)
    user, assistant = marks[1:]
    chats = [
        [(user, "say <|assistant|> this"), (assistant, "one"), (user, "more"), (assistant, "two")],
        [(assistant, "three"), (user, "thanks")],
        [(user, "nothing")],
    ]
    roles = (user, assistant)
    tokens = depth.dialogue_tokens(chats, tokenizer, roles)
    spoiled = Tokenizer.from_str(tokenizer.to_str())
    spoiled.enable_truncation(2)
    spoiled.enable_padding(pad_id=0, pad_token=marks[0])
    again = depth.dialogue_tokens(chats, spoiled, roles)
    assert np.array_equal(again, tokens), "padding or truncation of the tokenizer counts."
    wrong = [("<|system|>", "be kind")], [(user, "one ab")]
    common = Tokenizer.from_str(tokenizer.to_str())
    common.add_tokens(["ab"])  # no special one: a text that says so becomes it
    for dialogue in wrong:
        refusal(dialogue, lambda d=dialogue: depth.dialogue_tokens([d], common, (user, "ab")))
    for length in (512, 90):
        rows = lesson.PackedRows(tokens, length)
        answers = []
        for row in rows:
            batch = {name: array[None] for name, array in row.items()}
            counts = np.asarray(depth.only_answers(batch, np.array([1, 2]), 2))
            own = batch["targets"][counts].tolist()
            answers.append(tokenizer.decode(own, skip_special_tokens=False))
        said = sorted("".join(answers).replace("<|user|>", "|").replace("<|end|>", "|").split("|"))
        assert said == ["", "one", "three", "two"], f"what counts is {answers}."
