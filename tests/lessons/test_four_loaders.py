"""The page that compares the loaders: each section runs alone, and on other data."""

import ast
import re

import pytest

from tools.lesson import lessons
from tools.run import kernels

PAGE = "four_loaders"
CELLS = lessons.code_cells(lessons.parsed_md(PAGE))
SECTIONS = {
    found[1]: cell
    for cell in CELLS
    if (found := re.search(r'^train\("(.+?)"', cell.source, re.MULTILINE))
}
MODEL = next(number for number, cell in enumerate(CELLS) if "class Model" in cell.source)
FIRST = [cell.source for cell in CELLS[MODEL : MODEL + 3]]  # the model and the loop
FRAMEWORKS = {
    "PyTorch": {"torch"},
    "TFDS": {"tensorflow"},
    "Grain": set(),
    "Hugging Face": set(),
    "NumPy": set(),
}


def count_lines(source):
    return len([line for line in source.splitlines() if line.strip()])


def test_no_loader_needs_more_than_twelve_lines():
    assert SECTIONS.keys() == FRAMEWORKS.keys()
    lengths = {name: count_lines(cell.source) for name, cell in SECTIONS.items()}
    assert {name: n for name, n in lengths.items() if n > 12} == {}
    folded = {"hide-input", "remove-cell", "proof"}
    visible = [cell.source for cell in CELLS if not folded & {*lessons.tags(cell)}]
    assert sum(map(count_lines, visible)) <= 130


@pytest.mark.slow
@pytest.mark.parametrize("name", FRAMEWORKS)
def test_a_section_runs_alone_below_the_model_and_the_loop(python, name):
    """And imports no framework but its own, and the one that reads the test set."""
    asking = 'import sys; print({"torch", "tensorflow"} & sys.modules.keys())'
    program = "\n\n".join([*FIRST, SECTIONS[name].source, asking])
    done = python("-c", program, cwd=lessons.NOTEBOOKS, env=kernels.kernel_environment())
    assert done.returncode == 0, done.stderr
    trained, imported = done.stdout.strip().splitlines()
    line = rf"{name}: test accuracy ([\d.]+)% \(largest class ([\d.]+)%\), ([\d,]+) rows"
    accuracy, largest, rows = re.match(line, trained).groups()
    assert float(accuracy) > 94 and largest == "11.35" and rows == "59,904"
    assert set(re.findall(r"'(\w+)'", imported)) - {"torch"} == FRAMEWORKS[name] - {"torch"}


OTHER_DATA = """
batch_size, classes = 16, 3
rows = np.arange({rows})
train_images = np.zeros((len(rows), 5, 7), np.uint8)
train_images[:, 0, 0], train_images[:, 0, 1] = np.divmod(rows, 256)
train_labels = rows % 3
test_images, test_labels = train_images[:50], train_labels[:50]
"""
IN_PLACE_OF_MNIST = {  # what a reader writes for the first statement that reads the data
    "PyTorch": "train_set = list(zip(train_images, train_labels))",
    "TFDS": """import tensorflow as tf
dataset = tf.data.Dataset.from_tensor_slices((train_images, train_labels))""",
    "Grain": """source = [
    {"image": image, "label": label} for image, label in zip(train_images, train_labels)
]""",
    "Hugging Face": """import datasets
columns = {"image": list(train_images), "label": train_labels}
features = {"image": datasets.Image(), "label": datasets.Value("int32")}
dataset = datasets.Dataset.from_dict(columns, datasets.Features(features))""",
    "NumPy": "",
}
CHECK = """
batches_of_epoch, trained_on, *_ = results["{name}"]
assert trained_on == {rows} // 16 * 16
orders = []
for epoch in (0, 1):
    order = []
    for images, labels in batches_of_epoch(epoch):
        assert images.shape == (16, 5, 7) and images.dtype == np.uint8
        rows = images[:, 0, 0].astype(int) * 256 + images[:, 0, 1]
        assert (rows % 3 == labels).all()
        order += rows.tolist()
    assert len(set(order)) == len(order) == trained_on
    orders.append(order)
assert orders[0] != orders[1]
"""
READS = re.compile(r"^(train_set|dataset|source) = (MNIST|tfds|load_dataset)\b", re.MULTILINE)


def on_other_data(name, rows):
    """The program of a section, whose data are other arrays."""
    source = SECTIONS[name].source
    tree = ast.parse(source)
    lines = source.splitlines()
    changed = {"train_set", "train_images", "train_labels"} if name == "NumPy" else None
    for node in reversed(tree.body):
        text = ast.unparse(node)
        targets = {ast.unparse(target) for target in getattr(node, "targets", [])}
        if targets & changed if changed else READS.match(text):
            lines[node.lineno - 1 : node.end_lineno] = [IN_PLACE_OF_MNIST[name]]
    section = "\n".join(lines)
    assert section != source
    return "\n\n".join([*FIRST, OTHER_DATA.format(rows=rows), section])


@pytest.mark.slow
@pytest.mark.parametrize("name", FRAMEWORKS)
def test_a_section_has_each_row_of_other_data_once_an_epoch(python, name):
    rows = 1_003
    program = on_other_data(name, rows) + CHECK.format(name=name, rows=rows)
    done = python("-c", program, cwd=lessons.NOTEBOOKS, env=kernels.kernel_environment())
    assert done.returncode == 0, done.stderr


TRIED = """
kept = train_images, train_labels, test_images, test_labels
train_labels = train_labels.copy()
{change}
try:
    train("NumPy", array_batches)
except ValueError as error:
    print(str(error).splitlines()[0])
else:
    print("nothing")
train_images, train_labels, test_images, test_labels = kept
"""
WRONG = {  # what is changed after the data are there, and what `check` says
    "train_labels[3] = -1": "labels not in 0 to 2",
    "train_labels[3] = 3": "labels not in 0 to 2",
    "train_labels = train_labels[:, None]": "expected a row of integer labels",
    "train_labels = train_labels.astype(float)": "expected a row of integer labels",
    "train_labels = np.array(list('abc'))[train_labels]": "expected a row of integer labels",
    "train_images = train_images / np.float32(255)": "expected images of",
    "train_images = train_images.transpose(0, 2, 1)": "expected images of",
    "train_images = train_images.astype(int)": "expected images of",
    "test_labels = test_labels[:-1]": "50 images, but 49 labels",
    "train_images = test_images = train_images[:50].astype(int)": "got int64: divide by the",
    "train_images = test_images = train_images[:50] + 200.0": "values up to",
    "train_images = test_images = train_images[:50] / 0.0": "values are missing",
    "test_images = np.where(test_images > 3, np.nan, 300.0)": "values are missing",
    "train_images = test_images = np.where(train_images > 3, np.nan, 300.0)": "values are missing",
    "train_images = np.array([np.zeros(1 + n % 2) for n in range(64)], object)": "expected images",
    "train_images = test_images = train_images[:50] * np.uint8(0)": "all pixels of a batch are",
    "test_labels = test_labels[:, None]": "expected a row of integer labels",
    "import pandas; train_labels = pandas.Series(train_labels)": "got a Series: make a",
    "train_images = np.ma.masked_equal(train_images, 3)": "got a MaskedArray: make a",
}


@pytest.mark.slow
def test_what_would_train_wrongly_is_an_error(python):
    program = [*FIRST, OTHER_DATA.format(rows=64), array_section()]
    for change in WRONG:
        program.append(TRIED.format(change=change))
    done = python("-c", "\n\n".join(program), cwd=lessons.NOTEBOOKS)
    assert done.returncode == 0, done.stderr
    for change, said in zip(WRONG.items(), done.stdout.splitlines(), strict=True):
        assert said.startswith(change[1]), change


def array_section():
    """The definition of the section on arrays, without its data and its call."""
    source = SECTIONS["NumPy"].source
    return source[source.index("def array_batches") : source.index("train(")]


@pytest.mark.slow
@pytest.mark.parametrize("name", FRAMEWORKS)
def test_fewer_rows_than_a_batch_are_an_error(python, name):
    done = python(
        "-c", on_other_data(name, 15), cwd=lessons.NOTEBOOKS, env=kernels.kernel_environment()
    )
    assert f"ValueError: {name}: no batch of 16, epoch 0" in done.stderr
