"""Run the lessons with the versions that Colab has, and compare what they print with the page.

    tox run -e colab -- [--record] [LESSON ...]
    tox run -e colab -- --renew

colab.txt pins what Colab publishes for its runtime. Each lesson runs alone, as in a new Colab
notebook: in a fresh copy of an environment of those versions, in a folder that holds nothing but
the data, and it installs what its own `%pip install` lines name. `_build/colab/NAME.ipynb` keeps
the outputs of the last run. The comparison is that of `pytest --nbval`.

A reader meets these versions, so a cell that fails here has to be mended, or to be listed in KNOWN.
`--record` stores what passed. `--renew` takes the list that Colab publishes today (git and a
network).
"""

import argparse
import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import nbformat
import pytest
from packaging.utils import canonicalize_name

from offline import lay_out
from offline.problem import Problem, told
from tools.lesson import lessons, machine
from tools.run import kernels, nbval_cells, record

PUBLISHED = "https://github.com/googlecolab/backend-info"
PINS = lessons.ROOT / "colab.txt"
RECORD = lessons.COLAB_RECORD
WORK = lessons.ROOT / "_build" / "colab"
STUB = lessons.ROOT / "tools" / "run" / "google_colab.py"
UV = (sys.executable, "-m", "uv", "--quiet")

# The cells that cannot hold in Colab: why, and of each lesson the words that only this cell has. A
# run is green when exactly these fail.
KNOWN = {
    "Grain 0.2.18 warns beside a jaxlib before 0.11; the batches are the same": {
        "start_here": ["def train_for("],
        "start_here_in_depth": ["def train_for("],
        "four_loaders": ["source = tfds.data_source("],
        "decode_photographs_in_depth": ["import grain"],
        "grain": ["import grain"],
        "grain_in_depth": [
            "import absl.flags",
            "def stream_of(",
            "def fails_at_9(",
            "class FailsAt9(",
            "Proof: an epoch holds each class whole, and workers change no pixel",
            "def platforms(",
            "image = np.zeros((224, 224, 3)",
            "FLAGS.unparse_flags()",
        ],
        "language_model_data": ["import grain"],
        "memory_that_grows_in_depth": ["import absl.flags"],
        "silent_data_bugs": ["import grain"],
    },
    "Ray says that Colab's ipywidgets is older than its notebook output needs": {
        "choose_a_loader_in_depth": ["import ray.data"],
        "remote_workers": ["import collections"],
        "remote_workers_in_depth": ["import collections"],
    },
    "assert_equal of JAX 0.7.2 compares the copies of a global array": {
        "many_devices": ["def unequal("],
    },
    "device_put of JAX 0.7.2 refuses on all processes but the first": {
        "many_devices_in_depth": ["def placements("],
    },
    "JAX 0.7.2 has no shutdown_timeout_seconds: the hang would last 300 s": {
        "many_devices_in_depth": ["def uneven("],
    },
}

# What a lesson imports or upgrades there; `--renew` adds what these need.
NEEDED = """
absl-py array_record attrs datasets dill flax fsspec grain ipykernel ipython ipywidgets jax jaxlib
matplotlib multiprocess numpy opencv-python-headless optax orbax-checkpoint pandas pillow pip
protobuf psutil pyarrow scikit-learn setuptools simplejpeg tensorflow tensorflow-datasets tokenizers
torch torchcodec torchdata torchvision transformers
"""
# A wheel of torch brings the CUDA that it was built with; Colab's own is another build.
LEFT_OUT = re.compile(r"cuda-|nvidia-|triton$")
HEADER = """\
# What Colab's runtime holds: Python {python} and, of its packages, those that a lesson can need.
# Published {date} as commit {commit} of github.com/googlecolab/backend-info.
# `tox run -e colab` runs the lessons with it, `tox run -e colab -- --renew` renews it.
"""


def run(*command: str | Path, stdin: str | None = None) -> str:
    """What the command prints. Raises Problem with what it says when it fails."""
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)
    if done.returncode:
        line, said = " ".join(map(str, command)), " ".join(done.stderr.split())
        raise Problem(f"`{line[:100]}` failed: {said[:500]}")
    return done.stdout


def versions(freeze: str) -> dict[str, str]:
    """The version of each package, of `name==version` or of the address of a wheel.

    What was installed from another address has none. `+cpu` and the like name a build.
    """
    wheel = r" @ \S*/[\w.]+-(?=\S*\.whl)"
    found = re.findall(rf"^([\w.-]+)(?:==|{wheel})(\d[\w.]*)", freeze, re.MULTILINE)
    return {canonicalize_name(name): version for name, version in found}


def renew() -> None:
    """Write colab.txt anew: of what Colab publishes, what NEEDED names and what that needs."""
    with tempfile.TemporaryDirectory() as clone:
        run("git", "clone", "--quiet", "--depth", "1", PUBLISHED, clone)
        commit, date = run("git", "-C", clone, "log", "-1", "--format=%H %cs").split()
        published = versions(Path(clone, "pip-freeze.txt").read_text())
        system = Path(clone, "os-info.txt").read_text()
        python = re.search(r"^Python (3\.\d+)", system, re.MULTILINE)
        if not python or not published:
            raise Problem(f"{PUBLISHED} names no versions: has its format changed?")
        names = [name for name in sorted(published) if not LEFT_OUT.match(name)]
        pins = {name: f"{name}=={published[name]}\n" for name in names}
        constraints = Path(clone, "constraints.txt")
        constraints.write_text("".join(pins.values()))
        needed = "\n".join(name for name in NEEDED.split() if canonicalize_name(name) in pins)
        options = ["--constraint", constraints, "--python-version", python[1]]
        options += ["--python-platform", "x86_64-manylinux_2_28"]
        compiled = run(*UV, "pip", "compile", "-", *options, stdin=needed)
    fields = HEADER.format(python=python[1], date=date, commit=commit[:12])
    PINS.write_text(fields + "".join(pins[name] for name in versions(compiled) if name in pins))
    print(f"{PINS.name}: published {date}")


def header() -> dict[str, str]:
    """What the comment of colab.txt says: python, date, commit."""
    pattern = re.sub(r"\\{(\w+)\\}", r"(?P<\1>.+)", re.escape(HEADER))
    return re.match(pattern, PINS.read_text()).groupdict()


@functools.cache
def environment() -> Path:
    """The environment of colab.txt, of which each lesson gets a copy.

    Raises Problem where this is not Colab's Python: uv must not look for one.
    """
    python, this = header()["python"], "{}.{}".format(*sys.version_info)
    if python != this:
        raise Problem(
            f"Colab runs Python {python}, and this is {this}: start tox with that one, as in "
            f"`python{python} -m tox run -e colab`."
        )
    print(f"making an environment of {PINS.name}", flush=True)
    folder = WORK / "environment"
    run(*UV, "venv", "--allow-existing", "--python", sys.executable, folder)
    # Compiled here, or every lesson would compile its copy.
    options = ["--exact", "--compile-bytecode", "--python", folder / "bin" / "python"]
    run(*UV, "pip", "install", *options, "--requirement", PINS)
    return folder


def known(name: str) -> dict[int, tuple[str, str]]:
    """The cells of a lesson that cannot hold: by number the words of each, and why.

    Raises Problem where words of KNOWN do not name one cell.
    """
    cells = lessons.code_cells(lessons.read_notebook(name))
    found = {}
    for why, of_lessons in KNOWN.items():
        for words in of_lessons.get(name, []):
            numbers = [number for number, cell in enumerate(cells) if words in cell.source]
            if len(numbers) != 1:
                raise Problem(
                    f"KNOWN in tools/run/colab.py names a cell of {name} by the words “{words}”, "
                    f"which {len(numbers)} cells have: give it words that one has."
                )
            found[numbers[0]] = words, why
    return found


class Lesson(nbval_cells.Notebook):
    """A lesson, whose kernel has a folder and an environment of its own."""

    def kernel_options(self) -> dict:
        self.own = WORK / self.path.stem
        shutil.rmtree(self.own, ignore_errors=True)  # of a run that was killed
        content, stub, copy = (self.own / name for name in ("content", "stub", "environment"))
        # Hard links: pip replaces a file, and never writes into one.
        shutil.copytree(environment(), copy, symlinks=True, copy_function=os.link)
        package = stub / "google" / "colab"  # no google/__init__.py: others have a part in `google`
        package.mkdir(parents=True)
        shutil.copy(STUB, package / "__init__.py")
        (package / "output.py").touch()
        content.mkdir()
        # What was laid out, without what other lessons left there.
        for laid_out in lay_out.folders(lessons.NOTEBOOKS / "data"):
            shutil.copytree(laid_out, content / "data" / laid_out.name)
        variables = {
            "IPYTHONDIR": str(stub / "ipython"),  # not the settings of the user
            "PATH": f"{copy / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "PYDEVD_DISABLE_FILE_VALIDATION": "1",  # or its debugger warns on our terminal
            "PYTHONPATH": str(stub),
            "VIRTUAL_ENV": str(copy),
        }
        return {
            "folder": content,
            "python": copy / "bin" / "python",
            "environment": variables,
            "arguments": ("--IPKernelApp.extensions=google.colab",),
        }

    def teardown(self):
        super().teardown()
        nbformat.write(self.ran, WORK / self.path.name)
        shutil.rmtree(self.own, ignore_errors=True)


class Plugin(record.Outcomes):
    """What makes a run of `pytest --nbval` one in Colab, and remembers what became of the cells."""

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collect_file(self, parent):
        collected = yield
        return [Lesson.from_parent(parent, path=file.path) for file in collected]

    def pytest_collection_modifyitems(self, items):
        for item in items:
            words, why = known(item.path.stem).get(item.cell_num, ("", ""))
            if lessons.GPU_TAG in lessons.tags(item.cell):
                item.add_marker(pytest.mark.skip(reason="the pins are of a runtime without a GPU"))
            elif words:
                item.add_marker(pytest.mark.xfail(reason=why, strict=True))

    def recorded(self, name: str) -> dict | None:
        """What to record of a lesson of which all cells ran as KNOWN says, but those for a GPU."""
        notebook = lessons.read_notebook(name)
        reports = self.reports[name]
        passed = sum(report.passed for report in reports.values())
        differ = [known(name)[n] for n, r in sorted(reports.items()) if hasattr(r, "wasxfail")]
        for_gpu = len(lessons.code_cells(notebook, lessons.GPU_TAG))
        if passed + len(differ) + for_gpu < len(lessons.code_cells(notebook)):
            return None
        return {"passed": passed, "differ": dict(differ), "digest": lessons.digest(notebook)}


def store(recorded: dict[str, dict]) -> None:
    """Put the lessons into the record, beside those that earlier runs left there."""
    fields, pins = header(), versions(PINS.read_text())
    published = {"published": fields["date"], "commit": fields["commit"]}
    chosen = {"python": fields["python"], "jax": pins["jax"]}

    def with_recorded(content: dict) -> dict:
        of_these_versions = content.get("commit") == fields["commit"]  # others are no news
        runs = (content.get("lessons", {}) if of_these_versions else {}) | recorded
        return published | {"versions": chosen, "lessons": dict(sorted(runs.items()))}

    machine.update(RECORD, with_recorded)
    print(f"recorded in {RECORD.name}: {', '.join(recorded) or 'no lesson'}")


def check(names: list[str], recording: bool) -> int:
    """Run the lessons. Returns the exit status of pytest. Raises Problem."""
    names = names or lessons.in_order()
    for name in names:
        lessons.read_md(name)  # a Problem where there is none
        known(name)
    WORK.mkdir(parents=True, exist_ok=True)
    plugin = Plugin()
    # conftest.py asks for what the lessons need in this environment, which runs none of them.
    options = ["--noconftest", "--nbval", f"--nbval-sanitize-with={lessons.SANITIZER}"]
    notebooks = [str(lessons.notebook_path(name)) for name in names]
    environment()
    kernels.lay_out_data()
    status = pytest.main([*options, *notebooks], plugins=[nbval_cells, plugin])
    if recording:
        figures = {name: plugin.recorded(name) for name in names}
        store({name: found for name, found in figures.items() if found})
    return status


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="LESSON", help="all when none is named")
    parser.add_argument("--record", action="store_true", help=f"store what passed in {RECORD.name}")
    parser.add_argument("--renew", action="store_true", help="write colab.txt anew, run nothing")
    arguments = parser.parse_args()
    with told("colab"):
        if arguments.renew:
            renew()
            return
        status = check(arguments.names, arguments.record)
    if status == pytest.ExitCode.TESTS_FAILED:
        print(
            "colab: mend the lesson, or add the cell to KNOWN in tools/run/colab.py. A cell that "
            "passes again leaves KNOWN."
        )
    sys.exit(status)


if __name__ == "__main__":
    main()
