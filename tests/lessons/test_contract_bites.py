"""The contract bites: right pipelines pass its checks, and what breaks one promise is refused."""

import re
from pathlib import Path

import hypothesis_cases
import numpy as np
import pytest
import right_pipelines

from benchmarks import contract
from benchmarks.contract import Case, Refused

pytestmark = pytest.mark.slow

ORDINARY = Case(1_010, 20, processes=2, start=57)
RIGHT = Path(right_pipelines.__file__).read_text()


def broken(old: str, new: str) -> dict:
    """What right_pipelines.py defines where its text has `new` in the one place of `old`."""
    assert RIGHT.count(old) == 1, f"right_pipelines.py says {old!r} {RIGHT.count(old)} times"
    exec(RIGHT.replace(old, new), names := {})
    return names


def refused(check, *arguments) -> str:
    with pytest.raises(Refused) as refusal:
        check(*arguments)
    return str(refusal.value)


# Arrays --------------------------------------------------------------------------------------

IMAGES, LABELS = "images.take(indices, axis=0)", "labels.take(indices)"
ORDER, STARTS = "np.random.default_rng((seed, epoch)).permutation(count)", "divmod(start, steps)"
TOO_FEW = 'ValueError(f"{count} examples do not fill a batch of {together}.")'
TWICE = f"np.resize({ORDER}[:800], count)"
BUFFER = "np.argsort(np.arange(count) + np.random.default_rng((seed, epoch)).uniform(0, 50, count))"
SHARED = "(epoch or np.random.seed(seed), np.random.permutation(count))[1]"  # one for all streams
MEMORY = f"(m := vars().setdefault('m', {IMAGES})).__setitem__(..., {IMAGES}) or m"
LATE = "divmod(start if start < 900 * steps else start // steps * steps, steps)"

# What the text says, what is put in its place, and what the contract says of it.
BROKEN = [
    (IMAGES, f"{IMAGES} / np.float32(255)", r"images are float32 \(20, 8, 8\)"),
    (IMAGES, f"{IMAGES}.tolist()", "images are a list, not a NumPy"),
    (LABELS, f"{LABELS}, 0", "a batch has 3 parts"),
    (IMAGES, f"{IMAGES}[:, ::-1]", "images are none of the data's"),
    (LABELS, f"np.sort({LABELS})", "have another label"),
    (ORDER, TWICE, "epoch 0 gives 200 examples again, from batch 40 of 50 on, and"),
    (ORDER, ORDER.replace("count", "count // 20 * 20"), "leaves out the same 10 examples"),
    (ORDER, "np.arange(count)", "epochs 0 and 1 have the same order"),
    (ORDER, f"{ORDER} if epoch else np.arange(count)", "epoch 0 is in the order of the data"),
    (ORDER, ORDER.replace("(seed, epoch)", "epoch"), "seeds 0 and 1 have the same order"),
    (ORDER, ORDER.replace("(seed, epoch)", "seed + epoch"), "has the order of this seed's epoch 1"),
    (ORDER, ORDER.replace("(seed, epoch)", ""), "the same seed gives other batches the second"),
    (ORDER, BUFFER, "the shuffle is not whole"),
    (ORDER, ORDER.replace("epoch", "min(epoch, 500)"), "epochs 1000 and 1001 have the same order"),
    (IMAGES, MEMORY, "batch 0 changes after it was handed out"),
    ("    for _, indices", "    images[1] = 0\n    for _, indices", "writes into the arrays"),
    (ORDER, SHARED, "two streams that are open at once give other batches than alone"),
    ("itertools.count(first)", "[first]", "ends after 50 batches"),
    (STARTS, "divmod(0, steps)", "a stream from batch 50 is not the rest of one from 0"),
    (STARTS, "start // steps, 0", "a stream from batch 57 is not the rest of one from 0"),
    (STARTS, LATE, "a stream from batch 50,057 is not the rest of one from 50,000"),
    ("process * batch_size :", ":", "2 processes lack 10 of the 20 rows of b"),
    (f"raise {TOO_FEW}", "return", "1010 examples for batches of 1011: ends without a batch"),
    (TOO_FEW, "IndexError()", "for batches of 1011: raises IndexError, not ValueError"),
    (TOO_FEW, 'ValueError("too few")', "the error does not say so"),
    (TOO_FEW, r'ValueError(f"{count}\n{batch_size}")', "the error is more than one sentence"),
    ("0 < together <=", "0 < batch_size <=", "51 processes for batches of 20: raises ZeroDivision"),
]


@pytest.mark.parametrize(("old", "new", "sentence"), BROKEN)
def test_a_broken_promise_is_refused(old, new, sentence):
    tuned = broken(old, new)["tuned_batches"]
    assert re.search(sentence, refused(contract.check_case, tuned, ORDINARY))


def test_a_right_pipeline_passes():
    for case in (*contract.CASES, Case(50_000, 128, processes=4, start=777)):
        contract.check_case(right_pipelines.tuned_batches, case)
    hypothesis_cases.run(right_pipelines.tuned_batches)


def test_a_refusal_names_the_case():
    ignores_the_seed = broken("default_rng((seed, epoch))", "default_rng(epoch)")["tuned_batches"]
    assert "count=1010, batch_size=20" in refused(contract.check_case, ignores_the_seed, ORDINARY)
    assert "have the same order. [Case(count=" in refused(hypothesis_cases.run, ignores_the_seed)


def test_a_pipeline_that_never_answers_is_refused(monkeypatch):
    loops = broken(f"raise {TOO_FEW}", "while True: pass")["tuned_batches"]
    monkeypatch.setattr(contract.streams, "PATIENCE_S", 1)
    sentence = refused(contract.check_case, loops, ORDINARY)
    assert "batches of 1011: gives no batch, and no error, within 1 s." in sentence


def test_a_short_answer_with_an_example_twice_is_refused():
    contract.check_idiom(right_pipelines.tuned_batches, ORDINARY)
    twice = broken(ORDER, TWICE)["tuned_batches"]
    assert "the first epoch gives examples again" in refused(contract.check_idiom, twice, ORDINARY)


@pytest.mark.parametrize("dtype", hypothesis_cases.DTYPES)
def test_examples_name_themselves(dtype):
    images, labels = contract.examples(5_000, (5,), dtype)
    source = contract.Examples(images, labels)  # no two are equal
    order = np.random.default_rng(0).permutation(5_000)
    assert np.array_equal(source.identify(images[order], labels[order]), order)
    halves = np.concatenate([images[:, :2], np.roll(images, 1, axis=0)[:, 2:]], axis=1)
    assert "5,000 of 5,000 images are none" in refused(source.identify, halves, labels)
    if dtype != "uint8":
        assert images.min() < 0  # so that a cast changes them
    if dtype == "float32":
        assert (images % 1).any()


def test_rows_that_were_taken_out_of_a_dataset_are_refused():
    from datasets import Dataset

    @contract.some_of
    def dataset_of(images, labels):
        return Dataset.from_dict({"image": images.tolist(), "label": labels.tolist()})

    def left(dataset, *arguments, **others):
        images, labels = np.array(dataset["image"], np.uint8), np.array(dataset["label"], np.int32)
        return right_pipelines.tuned_batches(images, labels, *arguments, **others)

    def all_of_the_table(dataset, *arguments, **others):
        return left(dataset.data.table.to_pydict(), *arguments, **others)

    contract.check_case(left, ORDINARY, dataset_of)
    assert "examples again" in refused(contract.check_case, all_of_the_table, ORDINARY, dataset_of)


# Folders of photographs ----------------------------------------------------------------------

CLASSES, FILES = "sorted(filter(shown, folder.iterdir()))", "sorted(filter(shown, path.iterdir()))"
SUFFIX = "if file.suffix.lower() not in"
KEY, BOX = "(seed, epoch, row)", "window(*photograph.size, rng)"
CROP = "photograph.resize((size, size), Image.Resampling.BILINEAR, box=box)"
UNFILTERED = "photograph.transform((size, size), Image.Transform.EXTENT, box, resample=2)"
PLACE = "rng.integers(0, (width - w, height - h), endpoint=True).tolist()"
MIDDLE = "(width - w) // 2, (height - h) // 2"
NO_CLASS = f"sorted(c for c in {CLASSES} if any(c.iterdir()))"
ONE_SUFFIX = f'if file.suffix != ".jpg":\n                continue\n            {SUFFIX}'
NOT_MOVED = 'raise ValueError(f"{file} is no photograph.")'
NO_IMAGE = 'raise ValueError(f"{file} is no image.") from error'
NO_FILES = 'raise ValueError(f"There is no photograph in {folder}.")'

# The part of the contract, what the text says, what is put in its place, what the contract says.
BROKEN_PHOTOGRAPHS = [
    ("stream", CLASSES, NO_CLASS, "another label than their class's number in"),
    ("stream", FILES, "sorted(path.iterdir())", r"raises ValueError: .*\.DS_Store is no photo"),
    ("stream", SUFFIX, ONE_SUFFIX, r"and \d\d of 90 never come"),
    ("stream", "np.stack(images)", "np.stack(images) // 8 * 7", "are none of the folder's"),
    ("windows", BOX, "(0, 0, *photograph.size)", "crops take 1.00 to 1.00 of a photograph's area"),
    ("windows", "np.exp(rng.", "1 or (rng.", "crops are 0.9.* to 1.0.* times as wide as high"),
    ("windows", PLACE, MIDDLE, r"lie at 0.(49|50) ± 0.0\d of the free width"),
    ("windows", "rng.random() < 0.5", "rng.random() < 0", "flips 0 of 480 photographs"),
    ("windows", "pixels[:, ::-1]", "pixels[::-1]", "turns photographs upside down"),
    ("windows", "pixels[:, ::-1]", "pixels.swapaxes(0, 1)", "crops are no upright windows"),
    ("windows", KEY, "(seed, epoch)", "photographs of one batch share their crops"),
    ("windows", KEY, "(seed, row)", "epochs 0 and 1 crop .* alike|crops"),
    ("windows", KEY, "(epoch, row)", "seeds 3 and 4 crop photographs alike"),
    ("windows", KEY, "(seed + epoch, row)", "epoch 0 has the crops of this seed's epoch 1"),
    ("workers", KEY, "(seed, epoch, row, workers)", "1 workers make other batches"),
    ("filter", CROP, UNFILTERED, r"a fine pattern comes out with a deviation of \d+ levels"),
    ("filter", "BILINEAR", "BICUBIC", r"levels 64 and 192 become \d+ to \d+: not bilinear"),
    ("filter", "BILINEAR", "BOX", "an enlarged edge has no levels in between"),
    ("turned", "ImageOps.exif_transpose(opened)", "opened", "[2-8]: does not come out upright"),
    ("errors", NOT_MOVED, "continue", "a notes.txt among the photographs: gives a batch, without"),
    ("errors", NO_IMAGE, "return np.zeros((size, size, 3), np.uint8)", "broken.jpg.*gives a batch"),
    ("errors", 'startswith("I")', 'startswith("?")', "16 bits a channel: gives a batch"),
    ("errors", NO_FILES, "return [], []", "a folder without a photograph: the error does not say"),
]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    folder = tmp_path_factory.mktemp("photographs")
    mixed = contract.flat_photographs(folder / "mixed")
    return {"mixed": mixed, "ramps": contract.Ramps(folder / "ramps")}


@pytest.mark.parametrize(("part", "old", "new", "sentence"), BROKEN_PHOTOGRAPHS)
def test_a_broken_promise_of_a_folder_is_refused(folders, tmp_path, part, old, new, sentence):
    file_batches = broken(old, new)["file_batches"]
    mixed = contract.files_stream(file_batches, folders["mixed"], 8)
    ramps = contract.files_stream(file_batches, folders["ramps"], 4)
    check = {
        "stream": lambda: contract.check_stream(mixed, start=7, processes=2),
        "windows": lambda: contract.check_windows(ramps),
        "workers": lambda: contract.check_workers(ramps, 1),
        "filter": lambda: contract.check_filter(file_batches, tmp_path),
        "turned": lambda: contract.check_turned(file_batches, contract.turned_ramps(tmp_path)),
        "errors": lambda: contract.check_file_errors(file_batches, tmp_path, strict=True),
    }[part]
    assert re.search(sentence, refused(check))


def test_a_right_folder_passes(tmp_path):
    contract.check_files(right_pipelines.file_batches, tmp_path)
    contract.check_file_errors(right_pipelines.file_batches, tmp_path / "strict", strict=True)


def test_a_folder_that_does_not_stay_as_it_was_is_refused(tmp_path):
    source = contract.flat_photographs(tmp_path / "mixed")
    (source.folder / contract.CLASSES[0] / "cached.jpg").touch()
    assert "leaves 91 files in a folder of 90" in refused(source.check_unchanged)
