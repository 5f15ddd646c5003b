"""The contract bites: right pipelines pass its checks, and what breaks one promise is refused."""

import functools
import io
import itertools
import operator
import re
from unittest import mock

import hypothesis_cases
import numpy as np
import pytest
import right_pipelines
from PIL import Image, ImageOps
from right_pipelines import cropping, index_batches, listed, load, photographs, shown, tuned_batches

from benchmarks import contract
from benchmarks.contract import Case, Refused

MANY = Case(50_000, 128, processes=4, start=777)
ORDINARY = Case(1_010, 20, processes=2, start=57)


def refused(check, *arguments) -> str:
    with pytest.raises(Refused) as refusal:
        check(*arguments)
    return str(refusal.value)


# Arrays --------------------------------------------------------------------------------------


def test_a_right_pipeline_passes():
    for case in (*contract.CASES, MANY):
        contract.check_case(tuned_batches, case)
    hypothesis_cases.run(tuned_batches)


def changed(change):
    """A pipeline that makes another batch of each."""

    def changed_batches(*given, **others):
        return (change(*batch) for batch in tuned_batches(*given, **others))

    return changed_batches


def ordered(order_of):
    """A pipeline whose epochs have the order `order_of(count, seed, epoch)`, all else right."""

    def ordered_batches(images, labels, batch_size, seed, start=0, process=0, processes=1):
        next(index_batches(len(images), batch_size, seed, 0, process, processes))  # may raise
        steps = len(images) // batch_size
        for step in itertools.count(start):
            order = order_of(len(images), seed, step // steps)
            rows = order[step % steps * batch_size :][:batch_size][process::processes]
            yield images[rows], labels[rows]

    return ordered_batches


def permutation(count, *key):
    return np.random.default_rng(key).permutation(count)


def in_a_buffer(count, seed, epoch):
    """A shuffle that holds 50 examples."""
    return np.argsort(np.arange(count) + np.random.default_rng((seed, epoch)).uniform(0, 50, count))


def uses_its_memory_again(images, labels, batch_size, seed, **others):
    memory = np.empty((batch_size, *images.shape[1:]), images.dtype)
    for batch, batch_labels in tuned_batches(images, labels, batch_size, seed, **others):
        memory[: len(batch)] = batch
        yield memory[: len(batch)], batch_labels


def writes(images, labels, *arguments, **others):
    images[1] = 0
    return tuned_batches(images, labels, *arguments, **others)


GENERATOR = np.random.RandomState()


def shares_a_generator(images, labels, batch_size, seed, start=0, process=0, processes=1):
    GENERATOR.seed(seed)
    orders = {}

    def order_of(count, seed, epoch):
        for number in range(len(orders), epoch + 1):
            orders[number] = GENERATOR.permutation(count)
        return orders[epoch]

    stream = ordered(order_of)
    return stream(images, labels, batch_size, seed, start, process, processes)


OPEN = []


def knows_the_others(images, labels, batch_size, seed, **others):
    """The second of two open streams gets another seed."""
    OPEN.append(seed)
    try:
        yield from tuned_batches(images, labels, batch_size, seed + 7 * (len(OPEN) > 1), **others)
    finally:
        OPEN.pop()


def ends(images, labels, batch_size, seed, **others):
    stream = tuned_batches(images, labels, batch_size, seed, **others)
    return itertools.islice(stream, len(images) // batch_size)


def starts(change):
    """A pipeline that begins at `change(start, steps)`."""

    def started_batches(images, labels, batch_size, seed, start=0, **others):
        start = change(start, max(len(images) // batch_size, 1))
        return tuned_batches(images, labels, batch_size, seed, start, **others)

    return started_batches


def gives_all_the_same(images, labels, batch_size, seed, start=0, process=0, processes=1):
    """Each process gets the first rows of a batch."""
    next(index_batches(len(images), batch_size, seed, 0, process, processes))  # may raise
    for batch in tuned_batches(images, labels, batch_size, seed, start):
        yield tuple(array[: batch_size // processes] for array in batch)


def unchecked(error=None):
    """A pipeline that checks nothing but, by `error(count, batch_size)`, what is short."""

    def unchecked_batches(images, labels, batch_size, seed, start=0, process=0, processes=1):
        if error and batch_size > len(images):
            raise error(len(images), batch_size)
        steps = len(images) // batch_size
        for step in itertools.count(start) if steps else ():
            order = permutation(len(images), seed, step // steps)
            rows = order[step % steps * batch_size :][:batch_size][process::processes]
            yield images[rows], labels[rows]

    return unchecked_batches


def divides(images, labels, batch_size, seed, **others):
    """Counts the steps before it looks at the size of a batch."""
    divmod(others.get("start", 0), len(images) // batch_size or 1)
    return tuned_batches(images, labels, batch_size, seed, **others)


# What it does, and what the contract says of it.
BROKEN = [
    (changed(lambda i, t: (i / np.float32(255), t)), r"images are float32 \(20, 8, 8\)"),
    (changed(lambda i, t: (i.tolist(), t)), "images are a list, not a NumPy"),
    (changed(lambda i, t: (i, t, t)), "a batch has 3 parts"),
    (changed(lambda i, t: (i[:, ::-1], t)), "images are none of the data's"),
    (changed(lambda i, t: (i, np.sort(t))), "have another label"),
    (
        ordered(lambda count, *key: np.resize(permutation(count, *key)[:800], count)),
        "epoch 0 gives 200 examples again, from batch 40 of 50 on, and",
    ),
    (
        ordered(lambda count, *key: permutation(count // 20 * 20, *key)),
        "every epoch leaves out the same 10 examples",
    ),
    (ordered(lambda count, *_: np.arange(count)), "epochs 0 and 1 have the same order"),
    (
        ordered(lambda n, s, e: permutation(n, s, e) if e else np.arange(n)),
        "epoch 0 is in the order of the data",
    ),
    (ordered(lambda n, s, e: permutation(n, e)), "seeds 0 and 1 have the same order"),
    (
        ordered(lambda n, s, e: permutation(n, s + e)),
        "the next seed's epoch 0 has the order of this seed's epoch 1",
    ),
    (
        ordered(functools.lru_cache(2)(lambda n, s, e: np.random.permutation(n))),
        "the same seed gives other batches the second time",
    ),
    (ordered(in_a_buffer), "the shuffle is not whole"),
    (
        ordered(lambda n, s, e: permutation(n, s, min(e, 500))),
        "epochs 1000 and 1001 have the same order",
    ),
    (uses_its_memory_again, "batch 0 changes after it was handed out"),
    (writes, "writes into the arrays"),
    (shares_a_generator, "other batches when a second one is open"),
    (knows_the_others, "opened beside another gives other batches than alone"),
    (ends, "ends after 50 batches"),
    (starts(lambda start, steps: 0), "a stream from batch 50 is not the rest of one from 0"),
    (
        starts(lambda start, steps: start // steps * steps),
        "a stream from batch 57 is not the rest of one from 0",
    ),
    (
        starts(lambda start, steps: start if start < 900 * steps else start // steps * steps),
        "a stream from batch 50,057 is not the rest of one from 50,000",
    ),
    (gives_all_the_same, "2 processes lack 10 of the 20 rows of batch 57"),
    (unchecked(), "1010 examples for batches of 1011: ends without a batch"),
    (divides, "1010 examples for batches of 0: raises ZeroDivisionError, not ValueError"),
    (unchecked(lambda *_: ValueError("too few")), "the error does not say so"),
    (unchecked(lambda n, b: ValueError(f"{n}\n{b}")), "the error is more than one sentence"),
    (
        unchecked(lambda n, b: ValueError(f"{n} do not fill {b}")),
        "21 processes for batches of 20: gives a batch, without a ValueError",
    ),
]


@pytest.mark.parametrize(("broken", "sentence"), BROKEN)
def test_a_broken_promise_is_refused(broken, sentence):
    assert re.search(sentence, refused(contract.check_case, broken, ORDINARY))


def test_a_refusal_names_the_case():
    ignores_the_seed = ordered(lambda n, s, e: permutation(n, e))
    assert "count=1010, batch_size=20" in refused(contract.check_case, ignores_the_seed, ORDINARY)
    assert "have the same order. [Case(count=" in refused(hypothesis_cases.run, ignores_the_seed)


def test_a_pipeline_that_never_answers_is_refused(monkeypatch):
    def loops(count, batch_size):
        while True:
            pass

    monkeypatch.setattr(contract, "PATIENCE_S", 1)
    sentence = refused(contract.check_case, unchecked(loops), ORDINARY)
    assert "batches of 1011: gives no batch, and no error, within 1 s." in sentence


def test_a_short_answer_with_an_example_twice_is_refused():
    twice = ordered(lambda count, *key: np.resize(permutation(count, *key)[:800], count))
    contract.check_idiom(tuned_batches, ORDINARY)
    assert "the first epoch gives examples again" in refused(contract.check_idiom, twice, ORDINARY)


@pytest.mark.parametrize("dtype", hypothesis_cases.DTYPES)
@pytest.mark.parametrize("shape", hypothesis_cases.SHAPES)
def test_examples_name_themselves(shape, dtype):
    images, labels = contract.examples(5_000, shape, dtype)
    assert (images.dtype, images.shape) == (np.dtype(dtype), (5_000, *shape))
    source = contract.Examples(images, labels)  # no two are equal
    order = np.random.default_rng(0).permutation(5_000)
    assert np.array_equal(source.identify(images[order], labels[order]), order)
    halves = np.concatenate([images[:, :2], np.roll(images, 1, axis=0)[:, 2:]], axis=1)
    assert "5,000 of 5,000 images are none" in refused(source.identify, halves, labels)
    if dtype != "uint8":
        assert images.min() < 0
    if dtype == "float32":
        assert (images % 1).any()


# Datasets of Hugging Face --------------------------------------------------------------------


def dataset_of(images, labels):
    from datasets import Dataset

    return Dataset.from_dict({"image": images.tolist(), "label": labels.tolist()})


def rows_that_are_left(dataset, *arguments, **others):
    images, labels = np.array(dataset["image"], np.uint8), np.array(dataset["label"], np.int32)
    return tuned_batches(images, labels, *arguments, **others)


def rows_that_were_taken_out(dataset, *arguments, **others):
    """Reads the table, without the indices that say which of its rows are left."""
    return rows_that_are_left(dataset.data.table.to_pydict(), *arguments, **others)


def test_rows_that_were_taken_out_of_a_dataset_are_refused():
    contract.check_views(rows_that_are_left, dataset_of)
    said = refused(contract.check_views, rows_that_were_taken_out, dataset_of)
    assert said.startswith("filter: ") and "none of the data's" in said


def padded(dataset, batch_size, length, seed, start=0):
    """Texts of different lengths, padded with zeros, and the mask of what is text."""
    texts = dataset["tokens"][:]
    if max(map(len, texts), default=0) > length:
        raise ValueError(f"A text of {max(map(len, texts))} tokens is longer than {length=}.")
    for _, indices in index_batches(len(texts), batch_size, seed, start):
        mask = np.arange(length) < np.array([[len(texts[index])] for index in indices])
        tokens = np.zeros(mask.shape, np.uint16)
        tokens[mask] = np.concatenate([texts[index] for index in indices])
        yield tokens, mask


def padded_otherwise(change):
    """Texts of which `change(tokens, mask)` makes others."""
    return lambda *given, **others: (change(*batch) for batch in padded(*given, **others))


BROKEN_TEXTS = [
    (padded_otherwise(lambda t, m: (t.astype(int), m)), "all texts: tokens are int64"),
    (padded_otherwise(lambda t, m: (t, t > 0)), "all texts: a row does not end in zeros"),
    (padded_otherwise(lambda t, m: (t[[0] * len(t)], m[[0] * len(m)])), "none, or too often"),
    (lambda d, b, n, s, start=0: padded(d, b, n, s), "from a batch is not the rest of one from 0"),
]


@pytest.mark.parametrize(("texts", "sentence"), BROKEN_TEXTS)
def test_texts_that_are_padded_wrongly_are_refused(texts, sentence):
    contract.check_text(padded)
    assert sentence in refused(contract.check_text, texts)


# Folders of photographs ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    folder = tmp_path_factory.mktemp("photographs")
    mixed = contract.flat_photographs(folder / "mixed")
    return {"mixed": mixed, "ramps": contract.Ramps(folder / "ramps")}


def test_a_right_folder_passes(tmp_path):
    contract.check_files(photographs(), tmp_path)


def unfiltered(file, size, key):
    """A crop that is made of the four nearest pixels only."""
    photograph = Image.open(file).convert("RGB")
    box = right_pipelines.window(*photograph.size, np.random.default_rng(key))
    extent = Image.Transform.EXTENT
    crop = photograph.transform((size, size), extent, box, resample=Image.Resampling.BILINEAR)
    return np.asarray(crop)


def square(width, height, rng):
    """RandomResizedCrop with another range of ratios."""
    side = np.inf
    while side > min(width, height):
        side = (width * height * rng.uniform(0.08, 1)) ** 0.5
    left, top = rng.uniform(0, width - side), rng.uniform(0, height - side)
    return left, top, left + side, top + side


def in_the_middle(width, height, rng):
    left, top, right, bottom = right_pipelines.window(width, height, rng)
    w, h = right - left, bottom - top
    return (width - w) / 2, (height - h) / 2, (width + w) / 2, (height + h) / 2


def after(change):
    """The right crop, then a change."""
    return photographs(lambda *given: change(load(*given)))


def found_classes(folder):
    files, _ = listed(folder)
    names = sorted({file.parent.name for file in files})
    return files, [names.index(file.parent.name) for file in files]


def only(*suffixes):
    """The files with these suffixes; what else there is, is passed over."""

    def files_of(folder):
        classes = sorted(filter(shown, folder.iterdir()))
        found = [
            (path, label)
            for label, of_class in enumerate(classes)
            for path in sorted(of_class.iterdir())
            if path.suffix in suffixes and shown(path)
        ]
        if not found:
            raise ValueError(f"There is no photograph in {folder}.")
        return tuple(zip(*found, strict=True))

    return files_of


def minds_hidden_files(folder):
    for path in folder.rglob("*"):
        if path.name == ".DS_Store":
            raise ValueError(f"{path.name} is no photograph.")
    return listed(folder)


def skips_what_is_broken(file, size, key):
    try:
        return load(file, size, key)
    except ValueError:
        return np.zeros((size, size, 3), np.uint8)


def ends_where_there_is_none(folder, *given, **others):
    return photographs()(folder, *given, **others) if any(folder.glob("*/*")) else iter(())


SUFFIXES = (".jpg", ".JPG", ".jpeg", ".JPEG", ".png", ".PNG")
# The part of the contract, what is given to it, and what it says.
BROKEN_PHOTOGRAPHS = [
    ("stream", photographs(files_of=found_classes), "another label than their class's number in"),
    ("stream", photographs(files_of=minds_hidden_files), "raises ValueError: .DS_Store"),
    ("stream", photographs(files_of=only(".jpg")), r"and 3\d of 43 never come"),
    ("stream", after(lambda pixels: pixels - pixels // 8), "photographs are none of the folder's"),
    (
        "windows",
        photographs(cropping(lambda width, height, rng: (0, 0, width, height))),
        "crops take 1.00 to 1.00 of a photograph's area, not 0.08 to 1",
    ),
    (
        "windows",
        photographs(cropping(square)),
        "crops are 0.9[89] to 1.0[0-2] times as wide as high, not 0.75 to 1.33",
    ),
    ("windows", photographs(cropping(in_the_middle)), r"lie at 0.50 ± 0.0\d of the free width"),
    ("windows", photographs(cropping(flips=0)), "flips 0 of 480 photographs"),
    ("windows", after(operator.itemgetter(slice(None, None, -1))), "turns photographs upside down"),
    ("windows", after(lambda pixels: pixels.swapaxes(0, 1)), "crops are no upright windows"),
    (
        "windows",
        photographs(key=lambda s, e, i, w: (s, e)),
        "photographs of one batch share their crops",
    ),
    ("windows", photographs(key=lambda s, e, i, w: (s, i)), "epochs 0 and 1 crop .* alike|crops"),
    ("windows", photographs(key=lambda s, e, i, w: (e, i)), "seeds 3 and 4 crop photographs alike"),
    (
        "windows",
        photographs(key=lambda s, e, i, w: (s + e, i)),
        "the next seed's epoch 0 has the crops of this seed's epoch 1",
    ),
    ("workers", photographs(key=lambda s, e, i, w: (s, e, i, w)), "1 workers make other batches"),
    ("filter", photographs(unfiltered), r"a fine pattern comes out with a deviation of \d+ levels"),
    (
        "filter",
        photographs(cropping(resampling=Image.Resampling.BICUBIC)),
        r"levels 64 and 192 become \d+ to \d+: not bilinear",
    ),
    (
        "filter",
        photographs(cropping(resampling=Image.Resampling.BOX)),
        "an enlarged edge has no levels in between",
    ),
    (
        "turned",
        photographs(cropping(upright=lambda photograph: photograph)),
        "the EXIF orientation [5-8]: does not come out upright",
    ),
    (
        "errors",
        photographs(files_of=only(*SUFFIXES)),
        "a notes.txt among the photographs: gives a batch, without a ValueError",
    ),
    (
        "errors",
        photographs(skips_what_is_broken),
        "a broken.jpg that is text: gives a batch, without a ValueError",
    ),
    ("errors", ends_where_there_is_none, "a folder without a photograph: ends without a batch"),
]


@pytest.mark.parametrize(("part", "file_batches", "sentence"), BROKEN_PHOTOGRAPHS)
def test_a_broken_promise_of_a_folder_is_refused(folders, tmp_path, part, file_batches, sentence):
    mixed = contract.files_stream(file_batches, folders["mixed"], 8)
    ramps = contract.files_stream(file_batches, folders["ramps"], 4)
    check = {
        "stream": lambda: contract.check_stream(mixed, start=7, processes=2),
        "windows": lambda: contract.check_windows(ramps),
        "workers": lambda: contract.check_workers(ramps, 1),
        "filter": lambda: contract.check_filter(file_batches, tmp_path),
        "turned": lambda: contract.check_turned(file_batches, tmp_path),
        "errors": lambda: contract.check_file_errors(file_batches, tmp_path),
    }[part]
    assert re.search(sentence, refused(check))


def test_flat_photographs_are_as_documented(folders):
    source = folders["mixed"]
    files = [path for path in source.files() if path.is_file()]
    shown_files = sorted(path for path in files if contract.is_shown(path, source.folder))
    assert len(files) > len(shown_files) == source.count == 43
    images = [Image.open(path) for path in shown_files]
    assert {image.mode for image in images} == {"RGB", "L", "CMYK"}
    assert {path.suffix for path in shown_files} == {suffix for suffix, _ in contract.KINDS}
    sides = {side for image in images for side in image.size}
    assert min(sides) == 100 and max(sides) == 1_500
    assert len([path for path in source.folder.iterdir() if path.name[0] != "."]) == 9
    assert not list((source.folder / contract.EMPTY).iterdir())
    for name, image in zip((int(path.stem) for path in shown_files), images, strict=True):
        away = np.abs(np.asarray(image.convert("RGB")).astype(int) - source.colours[name])
        assert away.max() <= contract.FLATNESS // 3, (name, away.max())


# Decoders of single photographs ---------------------------------------------------------------


def decoder(upright=ImageOps.exif_transpose, mode="RGB", errors=Exception, change=np.asarray):
    """A right decoder, and those that break a promise by one argument."""

    def decode(data, size, rng):
        try:
            with Image.open(io.BytesIO(data)) as opened:
                if opened.mode.startswith("I"):
                    raise OSError("it has 16 bits for each channel")
                photograph = upright(opened).convert(mode).convert("RGB")
        except errors as error:
            raise ValueError(f"it cannot be decoded: {error}") from error
        left, top = (int(rng.integers(side // 2 + 1)) for side in photograph.size)
        box = left, top, left + -(-photograph.width // 2), top + -(-photograph.height // 2)
        return change(photograph.resize((size, size), Image.Resampling.BILINEAR, box))

    return decode


def whole(image):
    """The photograph, gray where its file ends too early."""
    with mock.patch("PIL.ImageFile.LOAD_TRUNCATED_IMAGES", True):
        return ImageOps.exif_transpose(image)


BROKEN_DECODERS = [
    (decoder(upright=lambda image: image), "EXIF orientation [2-8]: does not come out upright"),
    (decoder(mode="L"), "a RGB JPEG of 1 x 1 pixels: other colours"),
    (decoder(change=lambda image: np.asarray(image) / np.float32(1)), "gives float32"),
    (decoder(errors=()), "UnidentifiedImageError, not ValueError"),
    (decoder(errors=OSError, upright=whole), "half a JPEG: gives a crop"),
    (lambda data, size, _: decoder()(data, size, np.random.default_rng()), "the same random num"),
    (lambda data, size, _: decoder()(data, size, np.random.default_rng(0)), "other random numbers"),
]


@pytest.mark.parametrize(("decode", "sentence"), BROKEN_DECODERS)
def test_a_broken_decoder_is_refused(decode, sentence):
    contract.check_decoder(decoder())
    assert re.search(sentence, refused(contract.check_decoder, decode))


def classes_in(folder):
    return sorted(path.name for path in folder.iterdir() if shown(path))


def with_classes(folder):
    return *listed(folder), classes_in(folder)


def store(upright=ImageOps.exif_transpose, most=120, classes=classes_in, suffix=".jpg"):
    """A right copy with smaller photographs, and what breaks a promise by one argument."""

    def store_smaller(folder, to, side):
        for name in classes(folder):
            (to / name).mkdir(parents=True)
        for file in listed(folder)[0]:
            image = upright(Image.open(file)).convert("RGB")
            scale = min(1, most / min(image.size))
            image = image.resize([max(1, round(scale * edge)) for edge in image.size])
            image.save(to / file.parent.name / f"{file.name}{suffix}")

    return store_smaller


def without_the_empty_class(folder):
    return [name for name in classes_in(folder) if name != contract.EMPTY]


BROKEN_STORES = [
    (store(upright=lambda image: image), "turned-5.jpg.jpg is not upright"),
    (store(most=10_000), "pixels"),
    (store(classes=without_the_empty_class), "other classes"),
    (store(suffix=".png"), "other files"),
]


@pytest.mark.parametrize(("smaller", "sentence"), BROKEN_STORES)
def test_a_broken_store_is_refused(smaller, sentence):
    contract.check_store_smaller(store(), with_classes)
    assert sentence in refused(contract.check_store_smaller, smaller, with_classes)
