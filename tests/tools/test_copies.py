"""What the site offers to copy runs elsewhere: each block brings all that it needs."""

import ast
import builtins
import collections
import symtable

import nbformat
import pytest

from tools.lesson import copies, lessons

code = nbformat.v4.new_code_cell
HAVE_BLOCKS = [name for name in lessons.names() if copies.blocks(lessons.read_notebook(name))]


def cell(source: str, *tags: str):
    return code(source, metadata={"tags": [*tags]})


def blocks(*cells) -> dict[int, str]:
    return copies.blocks(nbformat.v4.new_notebook(cells=[*cells]))


def test_a_block_has_what_the_function_needs_and_no_more():
    found = blocks(
        cell(
            "import os, sys\nfrom a.b import C, D\nimport numpy as np\nSIZE = 3\nother = 4", "setup"
        ),
        cell(
            "def helper(x):\n    return np.sum(x) + SIZE\n\n\ndef unused():\n    pass", "shared-a"
        ),
        cell("# @title Proof: 1\nassert helper", "proof"),
        cell("@C\ndef batches(x):\n    return helper(x)\n\n\nbatches(other)", "short-answer"),
    )
    assert found == {
        3: "from a.b import C\nimport numpy as np\n\nSIZE = 3\n\n\n"
        "def helper(x):\n    return np.sum(x) + SIZE\n\n\n"
        "@C\ndef batches(x):\n    return helper(x)"
    }


def test_a_block_takes_the_definition_that_holds_in_its_cell():
    first, second = "def helper():\n    return 1", "def helper():\n    return 2"
    uses = "def batches():\n    return helper()"
    found = blocks(
        cell(first), cell(second), cell(uses, "copy"), cell("def helper():\n    return 3")
    )
    assert found == {2: f"{second}\n\n\n{uses}"}


def test_a_block_takes_from_below_what_nothing_above_defines():
    uses, helper = "def batches():\n    return helper()", "def helper():\n    return np.ones(2)"
    below = cell(f"import numpy as np\n\n\n{helper}\n\n\nbatches = 3", "hide-input")
    found = blocks(cell("import numpy as np"), cell(uses, "short-answer"), below)
    assert found == {1: f"import numpy as np\n\n\n{uses}\n\n\n{helper}"}


def test_the_settings_of_a_library_come_with_it():
    setup = "import os\nimport tf\n\nos.environ.update(A=1)\ntf.hide('GPU')\nprint(tf.version())"
    [found] = blocks(cell(setup, "setup"), cell("def f():\n    return tf.x", "copy")).values()
    assert found == "import tf\n\ntf.hide('GPU')\n\n\ndef f():\n    return tf.x"


def test_no_block_for_a_helper_for_what_needs_nothing_or_needs_a_module_of_the_lesson():
    assert not blocks(cell("def alone(x):\n    return x", "copy"))
    helper, uses = "import a\n\n\ndef helper():\n    return a", "def g():\n    return helper()"
    assert [*blocks(cell(helper, "copy"), cell(uses, "copy"))] == [1]
    module = "%%writefile rows.py\nx = 1"
    assert not blocks(cell(module), cell("from rows import x\n\n\ndef f():\n    return x", "copy"))


def test_a_folded_cell_has_a_block_if_it_is_to_copy():
    uses = "def f():\n    return a"
    assert [*blocks(cell("import a"), cell(uses, "copy", "hide-input"))] == [1]
    assert not blocks(cell("import a"), cell(uses, "shared-a", "hide-input"))


@pytest.mark.parametrize("name", HAVE_BLOCKS)
def test_a_block_leaves_no_name_open(name):
    for block in copies.blocks(lessons.read_notebook(name)).values():
        table = symtable.symtable(block, "block", "exec")
        binds = {s.get_name() for s in table.get_symbols() if s.is_assigned() or s.is_imported()}
        open_names = lessons.names_used(table) - binds - {*dir(builtins), "__name__"}
        assert not open_names
        defined = [n.name for n in ast.parse(block).body if hasattr(n, "name")]
        assert [n for n, count in collections.Counter(defined).items() if count > 1] == []
