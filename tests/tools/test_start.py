"""The collection starts as the README says: its lines, the Python, the GPU that is not there."""

import os
import re
import runpy
import sys
import types
from importlib import metadata
from pathlib import Path

import pytest

from offline.problem import Problem
from tools.lesson import install, lessons
from tools.run import kernels

pytestmark = pytest.mark.slow

ROOT = lessons.ROOT
SEGFAULT = "import os, signal\nif {unless}:\n    os.kill(os.getpid(), signal.SIGSEGV)\n"
BACKEND = "def default_backend(): return 'cpu'\n"


# The README's lines --------------------------------------------------------------------------


def test_ci_types_the_lines_of_the_readme_first_with_the_path_as_it_found_it():
    script = (ROOT / ".ci/run").read_text().splitlines()
    does = [line for line in script if line.strip() and not line.startswith("#")]
    readme = (ROOT / "README.md").read_text()
    typed = re.search(r"```sh\n(.*?)```", readme, re.DOTALL)[1].splitlines()
    assert does[: 2 + len(typed)] == ["set -euo pipefail", 'cd "$(dirname "$0")/.."', *typed]


@pytest.fixture
def toxfile(monkeypatch):
    """toxfile.py, where tox itself need not be installed."""
    for name in ("tox", "tox.plugin", "tox.tox_env", "tox.tox_env.api", "tox.tox_env.errors"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    sys.modules["tox.plugin"].impl = lambda function: function
    sys.modules["tox.tox_env.api"].ToxEnv = object
    sys.modules["tox.tox_env.errors"].Fail = RuntimeError
    return types.SimpleNamespace(**runpy.run_path(str(ROOT / "toxfile.py")))


@pytest.mark.parametrize(
    ("job", "minor", "said"),
    [
        ("test", 11, ""),
        ("execute", 13, ""),
        ("site", 14, ""),
        ("site", 10, r"tested on Python 3\.11, 3\.12, 3\.13, not 3\.10: type `python3\.13 -m "),
        ("test", 14, r"not 3\.14: type `.* && python3\.13 -m tox run -e test`\. Where there "),
        ("execute", 12, r"what readers see, which is of Python 3\.13, not 3\.12: .* `uvx --python"),
    ],
)
def test_a_job_starts_where_it_was_tested_or_says_what_to_type(toxfile, job, minor, said):
    version = types.SimpleNamespace(major=3, minor=minor)
    environment = types.SimpleNamespace(
        conf=types.SimpleNamespace(name=job),
        base_python=types.SimpleNamespace(version_info=version),
    )
    if said:
        with pytest.raises(RuntimeError, match=said) as refusal:
            toxfile.tox_on_install(environment, None, "", "deps")
        assert "\n" not in str(refusal.value)
    else:
        toxfile.tox_on_install(environment, None, "", "deps")


def test_the_tested_pythons_are_those_of_the_workflow_and_the_jobs_are_there(toxfile):
    workflow, tox = (
        (ROOT / file).read_text() for file in (".github/workflows/test.yml", "tox.ini")
    )
    assert f"python: {[*toxfile.TESTED]}".replace("'", '"') in workflow
    for job in (*toxfile.ON_THE_NEWEST, *toxfile.ON_NEWER_TOO):
        assert f"[testenv:{job}]" in tox


# A GPU that is there, or not -----------------------------------------------------------------


@pytest.fixture
def jax_that(tmp_path, monkeypatch):
    """A JAX whose import does this, for the processes that are started."""
    kernels.has_gpu.cache_clear()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("JAX_PLATFORMS", "")  # so that it is restored, whoever sets it
    monkeypatch.delenv("JAX_PLATFORMS")
    yield (tmp_path / "jax.py").write_text
    kernels.has_gpu.cache_clear()


def test_a_plugin_that_ends_the_process_leaves_the_cpu(jax_that, capsys):
    jax_that(SEGFAULT.format(unless="os.environ.get('JAX_PLATFORMS') != 'cpu'") + BACKEND)
    assert kernels.default_backend() == ("", "the process ends with SIGSEGV")
    assert not kernels.has_gpu()
    assert os.environ["JAX_PLATFORMS"] == "cpu" == kernels.kernel_environment()["JAX_PLATFORMS"]
    said = capsys.readouterr().err
    assert "JAX does not start on a GPU here (the process ends with SIGSEGV)" in said
    assert "JAX_PLATFORMS=cpu" in said and "nvidia-smi" in said


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (SEGFAULT.format(unless="True"), r"\(the process ends with SIGSEGV\)"),
        ("raise ImportError('numpy is too old')", r"\(ImportError: numpy is too old\)"),
    ],
)
def test_a_jax_that_does_not_work_is_not_taken_for_no_gpu(jax_that, source, said):
    jax_that(source)
    with pytest.raises(Problem, match=f"JAX does not work here {said}"):
        kernels.has_gpu()
    assert "JAX_PLATFORMS" not in os.environ


@pytest.mark.skipif(
    not metadata.entry_points(group="jax_plugins") or Path("/dev/nvidia0").exists(),
    reason="asks for requirements-gpu.txt on a machine without a GPU: `tox run -e gpu`",
)
def test_the_real_plugin_without_a_driver_leaves_the_cpu():
    assert kernels.default_backend("cuda")[0] == ""
    assert not kernels.has_gpu() and os.environ["JAX_PLATFORMS"] == "cpu"
    import jax

    assert jax.default_backend() == "cpu"


@pytest.mark.parametrize("backend", ["cpu", "gpu"])
def test_the_backend_is_the_one_that_jax_takes(jax_that, backend):
    jax_that(BACKEND.replace("cpu", backend))
    assert kernels.has_gpu() == (backend == "gpu")


def test_a_read_only_clone_is_one_sentence(monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(Problem, match=r"cannot be written to, .* in a clone of your own"):
        kernels.lay_out_data()


# The line that installs what a lesson needs --------------------------------------------------


def write_imports(*lines):
    cells = "".join(f"\n```{{code-cell}} ipython3\n{line}\n```\n" for line in lines)
    lessons.md_path("tiny").write_text(f"# Tiny\n{cells}")


def test_the_line_has_what_is_imported_and_not_brought_along(repository):
    write_imports(
        "import os, sys\nfrom PIL import Image",
        "%%writefile tiny_module.py\nimport torchvision",
        "import tiny_module\n    import jax.numpy as jnp\nimport numpy as np",
        '%pip install -q "protobuf>=6.31" "moto[s3]" "jax[cuda12]>=0.10.1,<0.12"',
    )
    assert install.command("tiny") == 'pip install jax "moto[s3]" "protobuf>=6.31" torchvision'


def test_a_module_that_no_package_of_the_lock_has_is_one_sentence(repository):
    write_imports("import unheard_of")
    with pytest.raises(Problem, match="imports unheard-of, which constraints"):
        install.command("tiny")
