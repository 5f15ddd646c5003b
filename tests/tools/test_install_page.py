"""What the page on installation says holds: its messages, its program, the versions of the lock."""

import importlib.util
import itertools
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from tools.lesson import cuda_wheels, lessons

PAGE = (lessons.ROOT / "pages/install.md").read_text()
PROGRAMS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
LIBRARIES = {"jax": "jax.devices()", "torch": "torch.ones(2)", "tensorflow": "tensorflow.zeros(2)"}


def run(code: str, **options) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, **options
    )


def test_the_line_that_asks_what_jax_sees_runs():
    line = re.search(r'python -c "(.*?)"\n', PAGE)[1]
    assert "Device(id=0)" in run(line).stdout


def source_of(module: str) -> str:
    return Path(importlib.util.find_spec(module).origin).read_text()


def test_the_messages_are_those_of_jax():
    """As far as they are in the source of what is installed here, where a line may break."""
    sources = source_of("jax._src.xla_bridge"), source_of("jax._src.lib")
    texts = ["".join(re.findall(r'["\'](.*?)["\']', source)) for source in sources]
    for begins in ("An NVIDIA GPU may be present", "jaxlib version"):
        [said] = re.findall(rf"`({begins}.*?)`", PAGE)
        parts = [part.strip() for part in said.split("…") if part.strip()]
        assert any(all(part in text for part in parts) for text in texts), said


@pytest.mark.skipif(
    not metadata.entry_points(group="jax_plugins"),
    reason="reads the plugin of requirements-gpu.txt: `tox run -e gpu`",
)
def test_the_messages_of_the_plugin_are_in_its_source():
    [plugin, *_] = metadata.entry_points(group="jax_plugins")
    source = source_of(plugin.value)
    for part in ("Unable to use CUDA because of the", "Unable to load {name}. Is it installed?"):
        assert part in source and part.partition("{")[0] in PAGE
    assert "Outdated {name} installation found" in source
    assert "Outdated cuDNN installation found" in PAGE


def write_distribution(folder: Path, name: str, *files: str) -> None:
    about = folder / f"{name}-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (about / "RECORD").write_text("".join(f"{file},,\n" for file in files))
    for file in files:
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).touch()


def test_the_program_names_a_library_that_two_packages_have_written(tmp_path):
    program = PROGRAMS[0]
    shared = "nvidia/tried/lib/libtried.so.9"
    write_distribution(tmp_path, "cudnn-cu12", shared, "one/alone.so")
    write_distribution(tmp_path, "cudnn-cu13", shared, "two/alone.so")
    write_distribution(tmp_path, "plain", "two/alone.py")
    said = run(program, env={"PYTHONPATH": str(tmp_path)}).stdout.splitlines()
    assert f"{shared} is of cudnn-cu12 cudnn-cu13" in said
    assert not any("alone" in line for line in said)


def test_this_jax_takes_a_step_alike_wherever_its_weights_lie():
    """JAX 0.7.2, 0.8.0 and 0.8.1 fail this on a CPU with AVX-512."""
    said = run(PROGRAMS[1])
    assert said.stdout == "0 of 60 steps differ from the first, by up to 0.0\n", said.stderr


def test_the_lock_has_one_version_that_jax_and_pytorch_share():
    assert [*cuda_wheels.faults()] == []
    assert all(f"| {library} |" in cuda_wheels.table() for library in cuda_wheels.SHARED)
    lock = cuda_wheels.read()
    twice = lock + "\nnvidia-cudnn-cu12==9.0\n"
    assert any("of cuDNN: JAX and PyTorch need one" in said for said in cuda_wheels.faults(twice))
    alone = re.sub(r"(nvidia-nccl-cu13==(?:.*\n)+?    # via\n)    #   .*\n", r"\1", lock, count=1)
    assert alone != lock
    assert any("does not bring nvidia-nccl-cu13" in said for said in cuda_wheels.faults(alone))


@pytest.mark.weekly
@pytest.mark.parametrize("order", [*itertools.permutations(LIBRARIES)], ids=" ".join)
def test_every_order_of_imports_works(order):
    lines = [f"import {name}; {LIBRARIES[name]}" for name in order]
    done = run("\n".join(lines))
    assert done.returncode == 0, done.stderr[-2_000:]
