"""What a reader copies works on the reader's data: pipelines run on data of many sizes.

Today's cells, frozen, are refused for the reasons for which they lose a reader's data; small
corrected pipelines pass; pipelines that break one promise each are refused for it, so that every
check is seen to bite. Lessons that are rewritten run in processes of their own.

    CARRY_OVER_CASES=2000 pytest tests/test_carry_over.py

tries as many inputs, other ones each time. Without it there are 200, the same in each run.
"""

import functools
import importlib
import io
import itertools
import operator
import re
from unittest import mock

import jupytext
import numpy as np
import pytest
from carry_over import adapters, cases, numpy_stream, pillow_photographs
from carry_over.lesson import CarryOver
from carry_over.order import index_batches, listed, shown
from PIL import Image, ImageOps

from benchmarks import bench, contract
from benchmarks.contract import Case, Refused
from tools import check, lessons

# Of torchvision's decoder, at each call: the lessons use it as long as it is there.
pytestmark = pytest.mark.filterwarnings("ignore:The image decoding and encoding capabilities")

MANY = Case(50_000, 128, processes=4, start=777)
ORDINARY = Case(1_010, 20, processes=2, start=57)
GRAINY = Case(1_019, 20, processes=2, start=57)  # its halves make 51 and 50 batches of ten


def refused(check, *arguments) -> str:
    with pytest.raises(Refused) as refusal:
        check(*arguments)
    return str(refusal.value)


# Arrays --------------------------------------------------------------------------------------


def torch_first():
    """TensorFlow imported before PyTorch ends the process: both bring LLVM."""
    import torchvision  # noqa: F401


def corrected(name):
    """What the module defines, and how many times fewer cases it tries, where it is slow."""
    torch_first()
    module = importlib.import_module(f"carry_over.{name}")
    share = {"tf_stream": 4, "grain_stream": 8}.get(name, 1)
    return module.tuned_batches, getattr(module, "dataset_of", None), share


@pytest.mark.parametrize(
    "name", ["numpy_stream", "torch_stream", "grain_stream", "huggingface_stream", "tf_stream"]
)
def test_a_corrected_pipeline_passes(name):
    tuned, dataset_of, share = corrected(name)
    for case in (*contract.CASES, MANY):
        contract.check_case(tuned, case, dataset_of)
    cases.run(tuned, dataset_of, share)


WRONG_ORDERS = {
    "no usable": "2 processes lack .* of batch 57",
    "repeat before batch": r"epoch \d gives .* again",
    "repeat before shuffle": "epoch 0 gives .* again",
    "slice before shuffle": "every epoch leaves out the same 19 examples",
    "batch before shuffle": "leaves out the same|the shuffle is not whole|stay together",
    "one order for every epoch": "epochs 0 and 1 have the same order",
}


@pytest.mark.parametrize(("order", "sentence"), WRONG_ORDERS.items(), ids=WRONG_ORDERS)
def test_each_wrong_order_of_grain_is_refused(order, sentence):
    from carry_over import grain_stream

    assert WRONG_ORDERS.keys() == grain_stream.WRONG.keys()
    tuned = grain_stream.pipeline(grain_stream.WRONG[order])
    assert re.search(sentence, refused(contract.check_case, tuned, GRAINY))


def test_tfds_loses_examples_of_other_numbers():
    tuned = adapters.tfds_tuned
    torch_first()
    sentence = refused(contract.check_case, tuned, Case(50_000, 128))
    assert re.search(r"epoch 0 gives [\d,]+ examples again, from batch 360 of 390 on", sentence)
    assert 50_000 - 360 * 128 == 3_920  # are lost in an epoch
    assert "ends after 0 batches" in refused(stream_of, tuned, Case(4_000, 128))


def stream_of(tuned, case):
    """Only the epochs of a pipeline."""
    images, labels = case.arrays()
    make = functools.partial(tuned, images, labels)
    source = contract.Examples(images, labels)
    return contract.check_epochs(contract.Stream(make, source, case.batch_size, case.seed))


def test_huggingface_views_give_back_rows_that_were_taken_out():
    from carry_over.huggingface_stream import dataset_of

    images, labels = contract.examples(200, (28, 28), "uint8")
    dataset = dataset_of(images.reshape(200, 784), labels)
    contract.check_rows(adapters.huggingface_tuned, dataset, images, labels)  # as it came
    few = dataset.filter(lambda row: row["label"] < 50)
    kept = labels < 50
    assert len(few) == kept.sum() < 200
    sentence = refused(
        contract.check_rows, adapters.huggingface_tuned, few, images[kept], labels[kept]
    )
    assert "images are none of the data's" in sentence


def test_huggingface_rows_are_those_that_are_left():
    from carry_over.huggingface_stream import dataset_of, tuned_batches

    contract.check_views(tuned_batches, dataset_of)
    without_indices = refused(contract.check_views, leaky, dataset_of)
    assert without_indices.startswith("filter: ") and "none of the data's" in without_indices


def leaky(dataset, *arguments, **others):
    """The corrected pipeline, without the indices of the dataset."""
    from carry_over.huggingface_stream import array_of

    images, labels = (array_of(dataset.data.column(name)) for name in ("image", "label"))
    return numpy_stream.tuned_batches(images, labels, *arguments, **others)


BROKEN_SHARDS = {
    "with_one_order": "epochs 3 and 4 have the same order of the shards",
    "with_one_seed": "seeds 0 and 1 have the same order of the shards",
    "any_state": "a state of epoch 3 is taken in epoch 4",
}


def test_huggingface_shards_have_the_order_of_seed_and_epoch():
    from carry_over import huggingface_stream

    huggingface_stream.check_shards(huggingface_stream.shuffled_stream)
    for name, sentence in BROKEN_SHARDS.items():
        broken = getattr(huggingface_stream, name)
        assert sentence in refused(huggingface_stream.check_shards, broken)


def test_corrected_texts_pass():
    from carry_over.huggingface_stream import text_batches

    contract.check_text(text_batches)


def with_all_rows(dataset, *arguments, **others):
    from carry_over.huggingface_stream import Dataset, text_batches

    return text_batches(Dataset(dataset.data), *arguments, **others)


def with_texts(change):
    """The corrected texts, of which `change(tokens, mask)` makes others."""

    def text_batches(*given, **others):
        from carry_over.huggingface_stream import text_batches

        return (change(*batch) for batch in text_batches(*given, **others))

    return text_batches


BROKEN_TEXTS = {
    "gives all rows": (with_all_rows, "filtered texts: an epoch has texts that are none"),
    "widens": (with_texts(lambda t, m: (t.astype(int), m)), "all texts: tokens are int64"),
    "guesses the mask": (with_texts(lambda t, m: (t, t > 0)), "all texts: a row does not end"),
    "pads with ones": (with_texts(lambda t, m: (np.where(m, t, np.uint16(1)), m)), "end in zeros"),
    "loses a text": (
        with_texts(lambda t, m: (np.repeat(t[:1], len(t), 0), np.repeat(m[:1], len(t), 0))),
        "none, or too often",
    ),
}


@pytest.mark.parametrize(("texts", "sentence"), BROKEN_TEXTS.values(), ids=list(BROKEN_TEXTS))
def test_broken_texts_are_refused(texts, sentence):
    assert re.search(sentence, refused(contract.check_text, texts))


def changed(change, of=numpy_stream.tuned_batches):
    """A pipeline that makes another batch of each."""

    def tuned_batches(*given, **others):
        return (change(*batch) for batch in of(*given, **others))

    return tuned_batches


def ordered(order_of):
    """A pipeline whose epochs have the order `order_of(count, seed, epoch)`, all else right."""

    def tuned_batches(images, labels, batch_size, seed, start=0, process=0, processes=1):
        next(index_batches(len(images), batch_size, seed, 0, process, processes))  # may raise
        steps = len(images) // batch_size
        for step in itertools.count(start):
            order = order_of(len(images), seed, step // steps)
            rows = order[step % steps * batch_size :][:batch_size][process::processes]
            yield images[rows], labels[rows]

    return tuned_batches


def permutation(count, *key):
    return np.random.default_rng(key).permutation(count)


def straddles(images, labels, batch_size, seed, start=0, process=0, processes=1):
    """Shuffle, repeat, batch: batches hold the end of an epoch and the beginning of the next."""
    epochs = (permutation(len(images), seed, epoch) for epoch in itertools.count())
    rows = itertools.chain.from_iterable(epochs)
    while True:
        batch = list(itertools.islice(rows, batch_size))
        yield images[batch], labels[batch]


def uses_its_memory_again(images, labels, batch_size, seed, **others):
    memory = np.empty((batch_size, *images.shape[1:]), images.dtype)
    for batch, batch_labels in numpy_stream.tuned_batches(
        images, labels, batch_size, seed, **others
    ):
        memory[: len(batch)] = batch
        yield memory[: len(batch)], batch_labels


def writes(images, labels, *arguments, **others):
    images[1] = 0
    return numpy_stream.tuned_batches(images, labels, *arguments, **others)


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
        yield from numpy_stream.tuned_batches(
            images, labels, batch_size, seed + 7 * (len(OPEN) > 1), **others
        )
    finally:
        OPEN.pop()


def starts(change):
    """A pipeline that begins at `change(start, steps)`."""

    def tuned_batches(images, labels, batch_size, seed, start=0, **others):
        steps = max(len(images) // batch_size, 1)
        return numpy_stream.tuned_batches(
            images, labels, batch_size, seed, change(start, steps), **others
        )

    return tuned_batches


def splits(rows_of):
    """A pipeline whose processes get `rows_of(batch, process, processes)`."""

    def tuned_batches(images, labels, batch_size, seed, start=0, process=0, processes=1):
        next(index_batches(len(images), batch_size, seed, 0, process, processes))  # may raise
        for batch in numpy_stream.tuned_batches(images, labels, batch_size, seed, start):
            yield tuple(rows_of(array, process, processes) for array in batch)

    return tuned_batches


def own_share(images, labels, batch_size, seed, start=0, process=0, processes=1):
    """Each process shuffles a share of its own, of the data and not of the batch."""
    next(index_batches(len(images), batch_size, seed, 0, process, processes))  # may raise
    images, labels = images[process::processes], labels[process::processes]
    return numpy_stream.tuned_batches(images, labels, batch_size // processes, seed, start)


def unchecked(images, labels, batch_size, seed, start=0, process=0, processes=1):
    """No check of what cannot work."""
    steps = len(images) // batch_size
    for step in itertools.count(start) if steps else ():
        order = permutation(len(images), seed, step // steps)
        rows = order[step % steps * batch_size :][:batch_size][process::processes]
        yield images[rows], labels[rows]


def complains(error, late=False):
    """`unchecked`, with an `error(count, batch_size)` for what is short."""

    def tuned_batches(images, labels, batch_size, seed, **others):
        if batch_size > len(images):
            if late:
                yield images, labels
            raise error(len(images), batch_size)
        yield from unchecked(images, labels, batch_size, seed, **others)

    return tuned_batches


def divides(images, labels, batch_size, seed, **others):
    """Counts the steps before it looks at the size of a batch."""
    divmod(others.get("start", 0), len(images) // batch_size or 1)
    return numpy_stream.tuned_batches(images, labels, batch_size, seed, **others)


def loops(images, labels, batch_size, seed, **others):
    while batch_size > len(images):
        pass
    return unchecked(images, labels, batch_size, seed, **others)


def buffered(count, seed, epoch, buffer=50):
    """A shuffle that holds 50 examples."""
    return np.argsort(np.arange(count) + np.random.default_rng((seed, epoch)).uniform(0, 50, count))


def in_whole_batches(count, seed, epoch):
    """A shuffle of batches of 20 neighbours."""
    rows = np.arange(count // 20 * 20).reshape(-1, 20)
    return rows[permutation(len(rows), seed, epoch)].ravel()


BROKEN = {
    "casts": (changed(lambda i, t: (i / np.float32(255), t)), r"images are float32 \(20, 8, 8\)"),
    "widens labels": (changed(lambda i, t: (i, t.astype(np.int64))), "labels are int64"),
    "adds an axis": (changed(lambda i, t: (i[..., None], t)), r"images are uint8 \(20, 8, 8, 1\)"),
    "gives lists": (changed(lambda i, t: (i.tolist(), t)), "images are a list, not a NumPy"),
    "gives three": (changed(lambda i, t: (i, t, t)), "a batch has 3 parts"),
    "inverts": (changed(lambda i, t: (255 - i, t)), "images are none of the data's"),
    "mirrors": (changed(lambda i, t: (i[:, ::-1], t)), "images are none of the data's"),
    "mixes labels up": (changed(lambda i, t: (i, np.sort(t))), "have another label"),
    "loses the end of the data": (
        ordered(lambda count, *key: permutation(count - 20, *key)),
        "epoch 0 gives .* again, from batch 49|images are uint8 \\(10, 8, 8\\), not uint8 \\(20",
    ),
    "loses a block": (
        ordered(lambda count, *key: np.resize(permutation(count, *key)[:800], count)),
        "epoch 0 gives 200 examples again, from batch 40 of 50 on, and",
    ),
    "repeats a row": (
        ordered(lambda count, *key: np.append(permutation(count, *key)[:999], 5)[:1000]),
        "epoch 0 gives 1 examples again|epoch 1 gives 1 examples again",
    ),
    "straddles epochs": (straddles, r"epoch 1 gives \d+ examples again"),
    "cuts before it shuffles": (
        ordered(lambda count, *key: permutation(count // 20 * 20, *key)),
        "every epoch leaves out the same 10 examples",
    ),
    "never shuffles": (ordered(lambda count, *_: np.arange(count)), "epochs 0 and 1 have the same"),
    "shuffles from epoch 1 on": (
        ordered(lambda n, s, e: permutation(n, s, e) if e else np.arange(n)),
        "epoch 0 is in the order of the data",
    ),
    "ignores the seed": (ordered(lambda n, s, e: permutation(n, e)), "seeds 0 and 1 have the same"),
    "ignores the epoch": (
        ordered(lambda n, s, e: permutation(n, s)),
        "epochs 0 and 1 have the same order",
    ),
    "adds seed and epoch": (
        ordered(lambda n, s, e: permutation(n, s + e)),
        "the next seed's epoch 0 has the order of this seed's epoch 1",
    ),
    "draws without a seed": (
        ordered(functools.lru_cache(2)(lambda n, s, e: np.random.permutation(n))),
        "the same seed gives other batches the second time",
    ),
    "shuffles in a buffer": (ordered(buffered), "the shuffle is not whole"),
    "shuffles whole batches": (ordered(in_whole_batches), "the shuffle is not whole|leaves out"),
    "comes to rest": (
        ordered(lambda n, s, e: permutation(n, s, min(e, 500))),
        "epochs 1000 and 1001 have the same order",
    ),
    "uses its memory again": (uses_its_memory_again, "batch 0 changes after it was handed out"),
    "writes into the input": (writes, "writes into the arrays"),
    "shares a generator": (shares_a_generator, "other batches when a second one is open"),
    "knows the others": (knows_the_others, "opened beside another gives other batches than alone"),
    "ends": (
        lambda *given, **others: itertools.islice(
            numpy_stream.tuned_batches(*given, **others), len(given[0]) // others["batch_size"]
        ),
        "ends after 50 batches",
    ),
    "ignores the start": (
        starts(lambda start, steps: 0),
        "a stream from batch 50 is not the rest of one from 0",
    ),
    "starts within epoch 0": (
        starts(lambda start, steps: start % steps),
        "a stream from batch 50 is not the rest of one from 0",
    ),
    "starts at whole epochs": (
        starts(lambda start, steps: start // steps * steps),
        "a stream from batch 57 is not the rest of one from 0",
    ),
    "starts late epochs anew": (
        starts(lambda start, steps: start if start < 900 * steps else start // steps * steps),
        "a stream from batch 50,057 is not the rest of one from 50,000",
    ),
    "gives all processes all": (splits(lambda a, *_: a), r"images are uint8 \(20, 8, 8\), not"),
    "gives all processes the same": (
        splits(lambda a, process, processes: a[: len(a) // processes]),
        "2 processes lack 10 of the 20 rows of batch 57",
    ),
    "splits the data": (own_share, r"2 processes lack \d+ of the 20 rows"),
    "is silent": (unchecked, "1010 examples for batches of 1011: ends without a batch"),
    "gives a short batch": (
        complains(lambda *_: ValueError("fewer"), late=True),
        "1010 examples for batches of 1011: gives a batch, without a ValueError",
    ),
    "divides by a batch of no rows": (
        divides,
        "1010 examples for batches of 0: raises ZeroDivisionError, not ValueError",
    ),
    "raises another error": (complains(IndexError), "raises IndexError, not ValueError"),
    "says nothing": (complains(lambda *_: ValueError("too few")), "the error does not say so"),
    "says too much": (
        complains(lambda n, b: ValueError(f"{n}\n{b}")),
        "the error is more than one sentence",
    ),
    "drops rows of the batch": (
        complains(lambda n, b: ValueError(f"{n} do not fill {b}")),
        "21 processes for batches of 20: gives a batch, without a ValueError",
    ),
}


@pytest.mark.parametrize(("tuned", "sentence"), BROKEN.values(), ids=BROKEN)
def test_a_broken_promise_is_refused(tuned, sentence):
    assert re.search(sentence, refused(contract.check_case, tuned, ORDINARY))


def test_a_refusal_names_the_case():
    assert "count=1010, batch_size=20" in refused(contract.check_case, unchecked, ORDINARY)
    ignores_the_seed = ordered(lambda n, s, e: permutation(n, e))
    assert "have the same order. [Case(count=" in refused(cases.run, ignores_the_seed)


def test_a_pipeline_that_never_answers_is_refused(monkeypatch):
    monkeypatch.setattr(contract, "PATIENCE_S", 1)
    sentence = refused(contract.check_case, loops, ORDINARY)
    assert "batches of 1011: gives no batch, and no error, within 1 s." in sentence


@pytest.mark.parametrize("dtype", cases.DTYPES)
@pytest.mark.parametrize("shape", cases.SHAPES)
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


# Folders of photographs ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    folder = tmp_path_factory.mktemp("photographs")
    sizes = {"mixed": contract.SIZES, "small": ((200, 300),), "large": ((330, 340), (400, 320))}
    named = tuple(name for name in contract.CLASSES if name != contract.EMPTY)
    found = {"mixed": contract.flat_photographs(folder / "mixed")}
    for name in ("small", "large"):  # more than 512, no empty class
        found[name] = contract.flat_photographs(
            folder / name, 600, sizes[name], named, hidden=False
        )
    found["ramps"] = contract.Ramps(folder / "ramps")
    found["large ramps"] = contract.Ramps(folder / "large ramps", ((640, 480), (480, 640)))
    return found


@pytest.mark.parametrize(("name", "workers"), [("pillow", (2,)), ("torch", (1, 2))])
def test_a_corrected_folder_passes(name, workers, tmp_path):
    module = importlib.import_module(f"carry_over.{name}_photographs")
    contract.check_files(module.file_batches, tmp_path, workers)


FROZEN_PHOTOGRAPHS = {
    # 512 are baked in, and the files are in the order of their classes: the last ones never come.
    "torch: 512": ("torch", "large", r"from batch 8 of 9 on, and 88 of 600 never come"),
    "torch: an empty class": ("torch", "mixed", "raises FileNotFoundError: .* classes dog"),
    "grain: *.jpg": (
        "grain",
        "large",
        r"again, from batch \d of 9 on, and 4\d\d of 600 never come",
    ),
    "grain: 320 pixels": ("grain", "small", "box can't exceed original image size"),
    "huggingface: 512": ("huggingface", "large", "from batch 8 of 9 on, and 88 of 600 never come"),
    "huggingface: 320 pixels": ("huggingface", "small", "box can't exceed original image size"),
}


@pytest.mark.parametrize(
    ("loader", "folder", "sentence"), FROZEN_PHOTOGRAPHS.values(), ids=FROZEN_PHOTOGRAPHS
)
def test_a_frozen_folder_is_refused(folders, loader, folder, sentence, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # Hugging Face writes into data/
    monkeypatch.setattr(contract, "EPOCHS", 1)  # of 600 photographs
    file_batches = adapters.photographs(f"{loader}_photographs")
    source = resized(folders[folder], 224)
    stream = contract.files_stream(file_batches, source, min(64, source.count))
    assert re.search(sentence, refused(contract.check_epochs, stream))


def resized(source, size):
    """The same folder, from which photographs of another size are asked."""
    other = object.__new__(type(source))
    other.__dict__ = source.__dict__ | {"size": size, "shape": (size, size, 3)}
    return other


def test_frozen_crops_see_a_corner_only(folders):
    huggingface = adapters.defined("huggingface_photographs")["crop_and_flip"]
    grain = adapters.defined("grain_photographs", start_worker=None)["decode_and_crop"]
    ramps = resized(folders["large ramps"], 224)
    for load in (
        lambda file, key: huggingface(Image.open(file), key),
        lambda file, key: grain((file, 0), np.random.default_rng(key))[0],
    ):
        stream = contract.files_stream(adapters.crops(load), ramps, 2)
        assert re.search(
            "crops take 0.08 to 0.3. of a photograph's area, not 0.08 to 1",
            refused(contract.check_windows, stream),
        )


def photographs(load=pillow_photographs.load, files_of=listed, key=lambda s, e, i, w: (s, e, i)):
    """A right pipeline, one part of which is replaced. The key seeds what is drawn."""

    def file_batches(folder, batch_size, size, seed, start=0, workers=0, process=0, processes=1):
        files, labels = files_of(folder)
        labels = np.array(labels, np.int32)
        order = index_batches(len(files), batch_size, seed, start, process, processes)
        for epoch, rows in order:
            keys = [key(seed, epoch, row, workers) for row in rows.tolist()]
            images = [load(files[row], size, k) for row, k in zip(rows, keys, strict=True)]
            yield np.stack(images), labels[rows]

    return file_batches


def cropped(window, filtered=Image.Resampling.BILINEAR, flips=0.5):
    """A `load` whose crop is `window(width, height, rng)`."""

    def load(file, size, key):
        rng = np.random.default_rng(key)
        photograph = Image.open(file).convert("RGB")
        box = window(*photograph.size, rng)
        if filtered is None:  # bilinear, but of the four nearest pixels only
            mode = Image.Transform.EXTENT
            photograph = photograph.transform(
                (size, size), mode, box, resample=Image.Resampling.BILINEAR
            )
        else:
            photograph = photograph.resize((size, size), filtered, box=box)
        pixels = np.asarray(photograph)
        return pixels[:, ::-1] if rng.random() < flips else pixels

    return load


def narrowed(area, ratio):
    """RandomResizedCrop with other ranges."""

    def window(width, height, rng):
        while True:
            size = width * height * rng.uniform(*area)
            shape = np.exp(rng.uniform(*np.log(ratio)))
            w, h = (size * shape) ** 0.5, (size / shape) ** 0.5
            if w <= width and h <= height:
                left, top = rng.uniform(0, width - w), rng.uniform(0, height - h)
                return left, top, left + w, top + h

    return window


def moved(place):
    """The window of the contract, at another place in the free part of the photograph."""

    def window(width, height, rng):
        left, top, right, bottom = pillow_photographs.window(width, height, rng)
        w, h = right - left, bottom - top
        left, top = place(left, width - w), place(top, height - h)
        return left, top, left + w, top + h

    return window


def after(change):
    """The right `load`, then a change."""
    return lambda file, size, key: change(pillow_photographs.load(file, size, key))


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


def counts_hidden_folders(folder):
    files, labels = listed(folder)
    return files, [label + 1 for label in labels]


def minds_hidden_files(folder):
    for path in folder.rglob("*"):
        if path.name == ".DS_Store":
            raise ValueError(f"{path.name} is no photograph.")
    return listed(folder)


def skips_what_is_broken(file, size, key):
    try:
        return pillow_photographs.load(file, size, key)
    except ValueError:
        return np.zeros((size, size, 3), np.uint8)


def raises_as_pillow_does(file, size, key):
    return cropped(pillow_photographs.window)(file, size, key)


def without_a_name(file, size, key):
    try:
        return pillow_photographs.load(file, size, key)
    except ValueError:
        raise ValueError("a file is damaged") from None


RIGHT = pillow_photographs.window
SUFFIXES = (".jpg", ".JPG", ".jpeg", ".JPEG", ".png", ".PNG")
STREAMS, WINDOWS, FILTER, TURNED = "mixed", "ramps", "filter", "turned"
ERRORS, WORKERS = "errors", "workers"
BROKEN_PHOTOGRAPHS = {
    "numbers the classes it finds": (
        STREAMS,
        photographs(files_of=found_classes),
        "another label than their class's number in alphabetical order",
    ),
    "numbers hidden folders": (
        STREAMS,
        photographs(files_of=counts_hidden_folders),
        "43 of 43 photographs|photographs have another label",
    ),
    "minds hidden files": (
        STREAMS,
        photographs(files_of=minds_hidden_files),
        "raises ValueError: .DS_Store",
    ),
    "takes .jpg only": (STREAMS, photographs(files_of=only(".jpg")), r"and 3\d of 43 never come"),
    "bakes the size in": (
        STREAMS,
        photographs(lambda file, _, key: pillow_photographs.load(file, 24, key)),
        r"images are uint8 \(8, 24, 24, 3\)",
    ),
    "puts channels first": (
        STREAMS,
        photographs(after(lambda pixels: pixels.transpose(2, 0, 1))),
        r"images are uint8 \(8, 3, 32, 32\)",
    ),
    "mixes channels up": (
        STREAMS,
        photographs(after(lambda pixels: pixels[..., ::-1])),
        "photographs are none of the folder's|have another label|photographs again",
    ),
    "darkens": (
        STREAMS,
        photographs(after(lambda pixels: pixels - pixels // 8)),
        "photographs are none of the folder's",
    ),
    "leaves the photograph": (
        STREAMS,
        photographs(cropped(lambda w, h, rng: (0, 0, w + w // 4, h), None)),
        "photographs are none of the folder's",
    ),
    "does not crop": (
        WINDOWS,
        photographs(cropped(lambda w, h, rng: (0, 0, w, h))),
        "crops take 1.00 to 1.00 of a photograph's area, not 0.08 to 1",
    ),
    "crops large parts only": (
        WINDOWS,
        photographs(cropped(narrowed((0.5, 1), (3 / 4, 4 / 3)))),
        r"crops take 0.\d\d to \d.\d\d of a photograph's area",
    ),
    "crops squares only": (
        WINDOWS,
        photographs(cropped(narrowed((0.08, 1), (0.999, 1.001)))),
        "crops are 0.9[89] to 1.0[0-2] times as wide as high, not 0.75 to 1.33",
    ),
    "crops a corner": (
        WINDOWS,
        photographs(cropped(moved(lambda low, free: low * 0.3))),
        r"crops lie at 0.1\d ± 0.\d\d of the free width",
    ),
    "crops the middle": (
        WINDOWS,
        photographs(cropped(moved(lambda low, free: free / 2))),
        r"crops lie at 0.50 ± 0.0\d of the free width",
    ),
    "never flips": (WINDOWS, photographs(cropped(RIGHT, flips=0)), "flips 0 of 480 photographs"),
    "always flips": (WINDOWS, photographs(cropped(RIGHT, flips=2)), "flips 480 of 480"),
    "turns upside down": (
        WINDOWS,
        photographs(after(operator.itemgetter(slice(None, None, -1)))),
        "turns photographs upside down",
    ),
    "turns on the side": (
        WINDOWS,
        photographs(after(lambda pixels: pixels.swapaxes(0, 1))),
        "crops are no upright windows",
    ),
    "crops a batch alike": (
        WINDOWS,
        photographs(key=lambda s, e, i, w: (s, e)),
        "photographs of one batch share their crops",
    ),
    "crops epochs alike": (
        WINDOWS,
        photographs(key=lambda s, e, i, w: (s, i)),
        "epochs 0 and 1 crop photographs alike|crops take|crops reach|crops are",
    ),
    "crops seeds alike": (
        WINDOWS,
        photographs(key=lambda s, e, i, w: (e, i)),
        "seeds 3 and 4 crop photographs alike",
    ),
    "adds seed and epoch": (
        WINDOWS,
        photographs(key=lambda s, e, i, w: (s + e, i)),
        "the next seed's epoch 0 has the crops of this seed's epoch 1",
    ),
    "crops otherwise with workers": (
        WORKERS,
        photographs(key=lambda s, e, i, w: (s, e, i, w)),
        "1 workers make other batches than none",
    ),
    "shrinks without antialiasing": (
        FILTER,
        photographs(cropped(RIGHT, None)),
        r"a fine pattern comes out with a deviation of \d+ levels",
    ),
    "enlarges bicubically": (
        FILTER,
        photographs(cropped(RIGHT, Image.Resampling.BICUBIC)),
        r"levels 64 and 192 become \d+ to \d+: not bilinear",
    ),
    "enlarges to blocks": (
        FILTER,
        photographs(cropped(RIGHT, Image.Resampling.BOX)),
        "an enlarged edge has no levels in between",
    ),
    "leaves it turned": (
        TURNED,
        photographs(cropped(RIGHT)),
        "the EXIF orientation [5-8]: does not come out upright",
    ),
    "passes over what is unknown": (
        ERRORS,
        photographs(files_of=only(*SUFFIXES)),
        "a notes.txt among the photographs: gives a batch, without a ValueError",
    ),
    "passes over what is broken": (
        ERRORS,
        photographs(skips_what_is_broken),
        "a broken.jpg that is text: gives a batch, without a ValueError",
    ),
    "raises what Pillow raises": (
        ERRORS,
        photographs(raises_as_pillow_does),
        "a broken.jpg that is text: raises UnidentifiedImageError, not ValueError",
    ),
    "names no file": (
        ERRORS,
        photographs(without_a_name),
        "a broken.jpg that is text: the error does not say so: a file is damaged",
    ),
    "goes on without photographs": (
        ERRORS,
        lambda *given, **others: (
            photographs()(*given, **others) if any(given[0].glob("*/*")) else iter(())
        ),
        "a folder without a photograph: ends without a batch",
    ),
}


@pytest.mark.parametrize(
    ("part", "file_batches", "sentence"), BROKEN_PHOTOGRAPHS.values(), ids=BROKEN_PHOTOGRAPHS
)
def test_a_broken_promise_of_a_folder_is_refused(folders, tmp_path, part, file_batches, sentence):
    ramps = contract.files_stream(file_batches, folders["ramps"], 4)
    check = {
        STREAMS: lambda: contract.check_stream(
            contract.files_stream(file_batches, folders["mixed"], 8), start=7, processes=2
        ),
        WINDOWS: lambda: contract.check_windows(ramps),
        WORKERS: lambda: contract.check_workers(ramps, 1),
        FILTER: lambda: contract.check_filter(file_batches, tmp_path),
        TURNED: lambda: contract.check_turned(file_batches, tmp_path),
        ERRORS: lambda: contract.check_file_errors(file_batches, tmp_path),
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
    """A corrected decoder, and those that break a promise by one argument."""

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


def test_a_corrected_decoder_passes():
    contract.check_decoder(decoder())


BROKEN_DECODERS = {
    "leaves it turned": (decoder(upright=lambda image: image), "EXIF orientation [2-8]: does not"),
    "is gray": (decoder(mode="L"), "a RGB JPEG of 1 x 1 pixels: other colours"),
    "is BGR": (decoder(change=lambda i: np.asarray(i)[..., ::-1]), "other colours"),
    "is float": (decoder(change=lambda i: np.asarray(i) / np.float32(1)), "gives float32"),
    "adds alpha": (decoder(change=lambda i: np.asarray(i.convert("RGBA"))), r"\(1, 1, 4\), not"),
    "raises what Pillow raises": (decoder(errors=()), "UnidentifiedImageError, not ValueError"),
    "takes half": (
        decoder(errors=OSError, upright=whole),
        "half a JPEG: gives a crop",
    ),
    "crops as it likes": (
        lambda data, size, rng: decoder()(data, size, np.random.default_rng()),
        "the same random numbers give other crops",
    ),
    "never changes": (
        lambda data, size, rng: decoder()(data, size, np.random.default_rng(0)),
        "other random numbers give the same crop",
    ),
}


@pytest.mark.parametrize(
    ("decode", "sentence"), BROKEN_DECODERS.values(), ids=list(BROKEN_DECODERS)
)
def test_a_broken_decoder_is_refused(decode, sentence):
    assert re.search(sentence, refused(contract.check_decoder, decode))


def classes_in(folder):
    return sorted(path.name for path in folder.iterdir() if shown(path))


def with_classes(folder):
    return *listed(folder), classes_in(folder)


def store(upright=ImageOps.exif_transpose, most=120, classes=classes_in, suffix=".jpg"):
    """A corrected copy with smaller photographs, and what breaks a promise by one argument."""

    def store_smaller(folder, to, side):
        for name in classes(folder):
            (to / name).mkdir(parents=True)
        for file in listed(folder)[0]:
            image = upright(Image.open(file)).convert("RGB")
            scale = min(1, most / min(image.size))
            image = image.resize([max(1, round(scale * edge)) for edge in image.size])
            image.save(to / file.parent.name / f"{file.name}{suffix}")

    return store_smaller


def test_a_corrected_store_passes():
    contract.check_store_smaller(store(), with_classes)


BROKEN_STORES = {
    "leaves it turned": (store(upright=lambda image: image), "turned-5.jpg.jpg is not upright"),
    "keeps it large": (store(most=10_000), "pixels"),
    "leaves out an empty class": (
        store(classes=lambda folder: [n for n in classes_in(folder) if n != contract.EMPTY]),
        "other classes",
    ),
    "renames": (store(suffix=".png"), "other files"),
}


@pytest.mark.parametrize(("smaller", "sentence"), BROKEN_STORES.values(), ids=list(BROKEN_STORES))
def test_a_broken_store_is_refused(smaller, sentence):
    assert re.search(sentence, refused(contract.check_store_smaller, smaller, with_classes))


# Lessons -------------------------------------------------------------------------------------


def promising() -> list[str]:
    """The lessons with a pipeline that promises what the contract says."""
    promised = {"tuned-pipeline", "files-pipeline", "short-answer"}
    found = []
    for name in lessons.names():
        if lessons.notebook_path(name).is_file():
            cells = lessons.code_cells(lessons.read_notebook(name))
            if promised.intersection(itertools.chain.from_iterable(map(lessons.tags, cells))):
                found.append(name)
    return found


@pytest.mark.parametrize("name", promising())
def test_a_lesson_carries_over(name, lesson_environment):
    with bench.ready(bench.Process(name, kind=CarryOver)) as [lesson]:
        assert lesson.call("check_carry_over")  # what it tried


def test_lessons_are_tried_in_processes_of_their_own(workshop, python):
    """The template of new lessons, right and with a count of MNIST, in a copy of the repository."""
    right = check.with_shared_cells((workshop / "tools" / "lesson_template.md").read_text())
    wrong = right.replace("len(images), batch_size, *part", "60_000, batch_size, *part")
    assert wrong != right
    for name, source in {"tiny_right": right, "tiny_wrong": wrong}.items():
        notebook = jupytext.reads(source, fmt="md:myst")
        jupytext.write(notebook, workshop / "notebooks" / f"{name}.ipynb")
    tests = (
        "tests/test_carry_over.py",
        "-k",
        "lesson_carries_over and tiny",
        "-p",
        "no:cacheprovider",
    )
    done = python("-m", "pytest", *tests, cwd=workshop, env={"CARRY_OVER_CASES": "20"})
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert "tiny_wrong is refused: 0 examples for batches of 4: raises IndexError" in done.stdout
    assert not (workshop / ".hypothesis").exists()
