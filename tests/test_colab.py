"""The comparison with Colab's packages, on a list like the one that Colab publishes."""

from tools import colab, lessons

FREEZE = """\
jax==0.9.1
numpy==2.1.3
torch @ https://example.org/torch.whl
tensorflow-datasets==4.9.10
"""


def test_old_and_missing_packages_are_named():
    bounds = colab.bounds((lessons.ROOT / "requirements.txt").read_text())
    names = {requirement.name for requirement in bounds}
    assert {"jax", "torch", "grain", "datasets", "tensorflow-cpu"} <= names
    assert not names & {"nbval", "ruff", "tensorflow"}
    outside, missing = colab.compare(bounds, colab.versions(FREEZE))
    [lowest] = [requirement.specifier for requirement in bounds if requirement.name == "jax"]
    assert outside == [f"jax 0.9.1 is not {lowest}"]
    assert {"torch", "grain", "datasets"} <= set(missing)
    assert not {"numpy", "tensorflow-datasets"} & set(missing)


def test_no_network_is_one_sentence(python, tmp_path):
    code = "import sys; sys.path.insert(0, sys.argv[1]); from tools import colab;"
    code += "colab.PUBLISHED = sys.argv[2]; colab.main()"
    done = python("-c", code, lessons.ROOT, (tmp_path / "no such list").as_uri())
    assert done.returncode == 1
    assert done.stderr.startswith("colab: ") and done.stderr.count("\n") == 1
