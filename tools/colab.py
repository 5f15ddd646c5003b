"""Run the lessons with the versions that Colab has, and compare what they print with the page.

    tox run -e colab -- [--record] [LESSON ...]
    tox run -e colab -- --renew

colab.txt pins what Colab publishes for its runtime. Each lesson runs alone, as in a new Colab
notebook: in a fresh copy of an environment of those versions, in a folder that holds nothing but
the data, and it installs what its own `%pip install` lines name. Only what these lines print is
left out of the comparison. `_build/colab/NAME.ipynb` keeps the outputs of the last run.

A reader meets these versions, so a cell that fails here has to be mended, or to be listed in KNOWN.
`--record` stores what passed. `--renew` takes the list that Colab publishes today (git and a
network), says what changed, and what lies outside of the bounds of requirements.txt.
"""

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

import filelock
import nbformat
from jupyter_client.kernelspec import NATIVE_KERNEL_NAME
from nbclient import NotebookClient
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbformat import NotebookNode
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from offline import lay_out
from tools import execute, lessons, machine

PUBLISHED = "https://github.com/googlecolab/backend-info"
PINS = lessons.ROOT / "colab.txt"
RECORD = lessons.COLAB_RECORD
WORK = lessons.ROOT / "_build" / "colab"

# The cells that cannot hold in Colab: lesson, first line of the cell, why. A run is green when
# exactly these fail.
GRAIN_WARNS = "Grain 0.2.18 warns beside a jaxlib before 0.11; the batches are the same"
KNOWN: dict[str, dict[str, str]] = {
    "decode_photographs": {
        "import absl.flags": GRAIN_WARNS,
        "part = functools.partial": GRAIN_WARNS,
    },
    "grain": {
        "_, _, classes = photographs_in(PHOTOGRAPHS)": GRAIN_WARNS,
        "# @title Proof: an epoch holds each class whole, and workers change no pixel": GRAIN_WARNS,
        "step = steps_alone(params, train_images[:128], train_labels[:128])": GRAIN_WARNS,
        "def stream_of(step=1, seed=0, batch_size=4, start=0, workers=0):": GRAIN_WARNS,
        "import orbax.checkpoint as ocp": GRAIN_WARNS,
        "files, labels, _ = photographs_in(PHOTOGRAPHS)": GRAIN_WARNS,
    },
    "many_devices": {
        'said, codes = run(2, "many_faults.py", "uneven", check=False)': (
            "JAX 0.7.2 has no shutdown_timeout_seconds: the hang would last 300 s"
        ),
    },
    "memory_that_grows": {"import absl.flags": GRAIN_WARNS},
    "remote_workers": {
        'os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=os.urandom(32).hex())': (
            "Ray says that Colab's ipywidgets is older than its notebook output needs"
        ),
    },
    "workers_beside_jax": {
        "from workers_sizes import EACH, SIZES, as_array, as_collated, as_tensor": GRAIN_WARNS,
    },
}

# What a lesson imports or upgrades there; `--renew` adds what these need.
NEEDED = """
absl-py array_record attrs datasets dill flax fsspec grain ipykernel ipython ipywidgets jax jaxlib
matplotlib multiprocess numpy opencv-python-headless optax orbax-checkpoint pandas pillow pip
protobuf psutil pyarrow scikit-learn setuptools simplejpeg tensorflow tensorflow-datasets tokenizers
torch torchcodec torchdata torchvision transformers
"""
# What a GPU runtime has beside that: no lesson runs with it here, so it is only noted.
GPU = ["cupy-cuda12x", "jax-cuda12-plugin"]
# A wheel of torch brings the CUDA that it was built with; Colab's own is another build.
LEFT_OUT = re.compile(r"cuda-|nvidia-|triton$")
# What the record tells of an environment.
VERSIONS = ["jax", "numpy", "torch", "tensorflow", "tensorflow-datasets", "grain", "datasets"]
HEADER = """\
# What Colab's runtime holds: Python {python} and, of its packages, those that a lesson can need.
# Published {date} as commit {commit} of github.com/googlecolab/backend-info.
# A GPU runtime holds beside them: {gpu}.
# `tox run -e colab` runs the lessons with it, `tox run -e colab -- --renew` renews it.
"""
# Who reads a lesson in Colab needs none of these: they test it or make the site.
NOT_FOR_READERS = "# Notebooks: written as Markdown, run, compared"

# What stands for Colab's own package in the kernel. Like that one, it is an extension of IPython
# that is loaded before the first cell, has imported these three, and brings a %pip of its own.
BEGIN, END = "<what pip prints>", "<pip's end>"
STUB = f'''\
"""Stands for Colab's package, so that a lesson finds itself in Colab."""

import sys

import numpy, PIL.Image, psutil

from google.colab import output


def load_ipython_extension(shell):
    def pip(line):
        print("{BEGIN}")
        shell.system(f"{{sys.executable}} -m pip {{line}}")
        print("{END}", shell.user_ns.get("_exit_code"))

    shell.register_magic_function(pip, "line", "pip")
'''


# The list that Colab publishes ---------------------------------------------------------------


def parse(text: str) -> list[Requirement]:
    """What a file of requirements asks for, without its comments, options and hashes."""
    lines = (line.partition(" #")[0].rstrip("\\").strip() for line in text.splitlines())
    return [Requirement(line) for line in lines if line and line[0] not in "#-"]


def bounds(text: str) -> list[Requirement]:
    """The requirements of the lessons themselves, in Colab's environment: Linux on x86-64."""
    found = parse(text.partition(NOT_FOR_READERS)[0])
    linux = {"sys_platform": "linux", "platform_machine": "x86_64"}
    return [r for r in found if r.marker is None or r.marker.evaluate(linux)]


def versions(freeze: str) -> dict[str, str]:
    """The version of each package, of `name==version` or of the address of a wheel.

    What was installed from another address has none. `+cpu` and the like name a build.
    """
    wheel = r" @ \S*/[\w.]+-(?=\S*\.whl)"
    found = re.findall(rf"^([\w.-]+)(?:==|{wheel})(\d[\w.]*)", freeze, re.MULTILINE)
    return {canonicalize_name(name): version for name, version in found}


def compare(
    requirements: list[Requirement], installed: dict[str, str]
) -> tuple[list[str], list[str]]:
    """What lies outside of its bound, and what Colab does not have."""
    outside, missing = [], []
    for requirement in requirements:
        version = installed.get(canonicalize_name(requirement.name))
        if version is None:
            missing.append(requirement.name)
        elif not requirement.specifier.contains(version, prereleases=True):
            outside.append(f"{requirement.name} {version} is not {requirement.specifier}")
    return outside, missing


def uv(*arguments: str | Path, stdin: str | None = None) -> str:
    """What uv prints. Raises lessons.Problem."""
    program = shutil.which("uv")
    if program is None:
        raise lessons.Problem("uv is not installed: `tox run -e colab` brings it.")
    done = subprocess.run(
        [program, *map(str, arguments)], input=stdin, capture_output=True, text=True, check=False
    )
    if done.returncode:
        said = " ".join(done.stderr.split())
        raise lessons.Problem(f"`uv {' '.join(map(str, arguments[:2]))}` failed: {said[:500]}")
    return done.stdout


def fetch() -> dict[str, str]:
    """The fields of HEADER, and the two lists, as Colab publishes them."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["git", "clone", "--quiet", "--depth", "1", PUBLISHED, folder]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            said = " ".join(done.stderr.split())
            raise lessons.Problem(f"{PUBLISHED} cannot be read ({said}): try again with a network.")
        log = ["git", "-C", folder, "log", "-1", "--format=%H %cs"]
        commit, date = subprocess.check_output(log, text=True).split()
        texts = [
            Path(folder, f"{file}.txt").read_text()
            for file in ("pip-freeze", "pip-freeze.gpu", "os-info")
            if Path(folder, f"{file}.txt").is_file()
        ]
    python = re.search(r"^Python (3\.\d+)", texts[-1], re.MULTILINE) if len(texts) == 3 else None
    if not python or not versions(texts[0]):
        raise lessons.Problem(f"{PUBLISHED} names no versions: has its format changed?")
    gpu = versions(texts[1])
    return {
        "python": python[1],
        "date": date,
        "commit": commit[:12],
        "gpu": ", ".join(f"{name}=={gpu[name]}" for name in GPU if name in gpu) or "none of ours",
        "freeze": texts[0],
    }


def closure(installed: dict[str, str], python: str) -> dict[str, str]:
    """Of what is installed, what NEEDED names, and what that needs."""
    pins = {name: version for name, version in installed.items() if not LEFT_OUT.match(name)}
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as constraints:
        constraints.write("".join(f"{name}=={version}\n" for name, version in pins.items()))
        constraints.flush()
        platform = ["--python-version", python, "--python-platform", "x86_64-manylinux_2_28"]
        named = [name for name in NEEDED.split() if canonicalize_name(name) in pins]
        resolved = uv(
            "pip", "compile", "-", "--constraint", constraints.name, *platform,
            "--no-annotate", "--no-header", stdin="\n".join(named),
        )  # fmt: skip
    return {name: version for name, version in versions(resolved).items() if name in pins}


def changes(old: dict[str, str], new: dict[str, str]) -> list[str]:
    names = sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))
    return [f"{name}: {old.get(name, 'none')} -> {new.get(name, 'none')}" for name in names]


def renew() -> None:
    """Write colab.txt anew, and say what changed."""
    fields = fetch()
    old = versions(PINS.read_text()) if PINS.is_file() else {}
    new = closure(versions(fields["freeze"]), fields["python"])
    pins = "".join(f"{name}=={version}\n" for name, version in sorted(new.items()))
    PINS.write_text(HEADER.format(**fields) + pins)
    print(f"{PINS.name}: published {fields['date']}, {len(new)} packages")
    print("\n".join(changes(old, new)) or "nothing changed")
    outside, missing = compare(bounds((lessons.ROOT / "requirements.txt").read_text()), new)
    print("not in Colab, so the lesson that needs it installs it:", ", ".join(missing) or "none")
    print("outside of the bounds of requirements.txt:", "; ".join(outside) or "none")


# An environment of those versions ------------------------------------------------------------


def header() -> dict[str, str]:
    """What the comment of colab.txt says: python, date, commit, gpu."""
    if not PINS.is_file():
        raise lessons.Problem(f"{PINS.name} is missing: `tox run -e colab -- --renew` writes it.")
    pattern = re.sub(r"\\{(\w+)\\}", r"(?P<\1>.+)", re.escape(HEADER))
    found = re.match(pattern, PINS.read_text())
    if not found:
        raise lessons.Problem(
            f"{PINS.name} does not begin as `tox run -e colab -- --renew` writes it: renew it."
        )
    return found.groupdict()


def environment() -> Path:
    """The environment of colab.txt, made once. It is only copied, never used itself."""
    python = header()["python"]
    folder = WORK / f"environment-{hashlib.sha256(PINS.read_bytes()).hexdigest()[:8]}"
    whole = folder / "whole"
    if not whole.is_file():
        for old in WORK.glob("environment-*"):
            shutil.rmtree(old)
        print(f"making an environment of {PINS.name}", flush=True)
        same = python == "{}.{}".format(*sys.version_info)  # else uv looks for one, or fetches it
        uv("venv", "--quiet", "--python", sys.executable if same else python, folder)
        # Compiled here, or every lesson would compile its copy.
        options = ["--quiet", "--compile-bytecode", "--python", folder / "bin" / "python"]
        uv("pip", "install", *options, "--requirement", PINS)
        whole.touch()
    return folder


def write_stub(folder: Path) -> None:
    package = folder / "google" / "colab"  # no google/__init__.py: others have a part in `google`
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(STUB)
    (package / "output.py").touch()


def copy_data(folder: Path) -> None:
    """What was laid out, without what other lessons left there."""
    for top in sorted({layout.path.parts[0] for layout in lay_out.LAYOUTS.values()}):
        if (lessons.NOTEBOOKS / "data" / top).is_dir():
            shutil.copytree(lessons.NOTEBOOKS / "data" / top, folder / "data" / top)


def installed(copy: Path) -> set[str]:
    return {
        folder.name.removesuffix(".dist-info").replace("-", " ")
        for folder in copy.glob("lib/python*/site-packages/*.dist-info")
    }


# A lesson ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Failure:
    number: int  # among the code cells, from 1
    heading: str  # the first line of the cell
    reason: str


@dataclass
class Result:
    failures: list[Failure]
    ran: list[str]  # the headings of the cells that ran
    edited: int  # cells that were edited since they were executed: nothing to compare with
    skipped: int
    ended: str  # why the lesson ended early, or ""
    seconds: float


def heading(cell: NotebookNode) -> str:
    return cell.source.strip().partition("\n")[0]


def run(notebook: NotebookNode, python: Path, folder: Path, stub: Path) -> Result:
    """Run the notebook in `folder` with this Python, past failing cells. It gets the outputs."""
    stored = deepcopy(lessons.code_cells(notebook))
    cells = lessons.code_cells(notebook)
    client = NotebookClient(
        notebook,
        timeout=execute.CELL_TIMEOUT,
        kernel_name=NATIVE_KERNEL_NAME,
        resources={"metadata": {"path": str(folder)}},
        allow_errors=True,
        record_timing=False,
        coalesce_streams=True,
        store_widget_state=False,
        shutdown_kernel="immediate",
        extra_arguments=[
            "--IPKernelApp.log_level=CRITICAL",
            "--IPKernelApp.extensions=google.colab",
        ],
        skip_cells_with_tag=lessons.GPU_TAG,  # the pins are those of a runtime without one
    )
    client.log.setLevel("CRITICAL")  # our own sentences say what failed
    client.create_kernel_manager().kernel_spec.argv[0] = str(python)
    kernel = lessons.kernel_environment() | {
        "IPYTHONDIR": str(stub / "ipython"),  # not the settings of the user
        "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}",
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",  # or its debugger warns on our terminal
        "PYTHONPATH": str(stub),
    }
    kernel.pop("VIRTUAL_ENV", None)
    ran, ended, start = [], "", time.perf_counter()
    client.on_cell_execute = lambda cell, cell_index: ran.append(cells.index(cell))
    try:
        client.execute(env=kernel)
    except CellTimeoutError:
        ended = f"did not end within {client.timeout} s"
    except DeadKernelError:
        ended = "killed the kernel"
    except AssertionError as error:  # after Ctrl-C nbclient cleans up twice, and asserts
        raise KeyboardInterrupt from error
    seconds = time.perf_counter() - start
    failures = [
        Failure(index + 1, heading(cells[index]), reason)
        for index in ran
        if (reason := difference(cells[index], stored[index]))
    ]
    if ended:
        failures = [failure for failure in failures if failure.number != ran[-1] + 1]
        failures.append(Failure(ran[-1] + 1, heading(cells[ran[-1]]), ended))
    return Result(
        failures=failures,
        ran=[heading(cells[index]) for index in ran],
        edited=sum("stamp" not in stored[index].metadata for index in ran),
        skipped=sum(lessons.GPU_TAG in lessons.tags(cell) for cell in cells),
        ended=ended,
        seconds=seconds,
    )


def without_pip(outputs: list[NotebookNode]) -> tuple[list[NotebookNode], str]:
    """The outputs without what a `%pip` line printed; and what it said last if it failed.

    Nothing else is cut: pip prints between two marks of the stub.
    """
    kept, failed = deepcopy(outputs), ""
    for output in kept:
        if output.output_type == "stream":
            pattern = rf"{BEGIN}\n(.*?){END} (\S+)\n"
            for said, code in re.findall(pattern, output.text, re.DOTALL):
                if code != "0":
                    failed = (said.strip().splitlines() or ["nothing"])[-1]
            output.text = re.sub(pattern, "", output.text, flags=re.DOTALL)
    return [output for output in kept if output.get("text") != ""], failed


def difference(cell: NotebookNode, stored: NotebookNode) -> str:
    """Why what a cell printed is not what is stored, in a line; or ""."""
    outputs, failed = without_pip(cell.outputs)
    if failed:
        return f"its %pip line failed: {execute.plain(failed)}"
    for output in outputs:
        if output.output_type == "error":
            message = execute.plain(output.evalue).partition("\n")[0]
            return f"{output.ename}: {message}"[:200]
    here, there = ([*map(execute.masked, each)] for each in (outputs, stored.outputs))
    if here == there or "stamp" not in stored.metadata:  # edited since: nothing to compare with
        return ""
    pair = [*lines(here)], [*lines(there)]
    first = next((n for n, (a, b) in enumerate(zip(*pair, strict=False)) if a != b), None)
    if first is None:
        first = min(map(len, pair))
    new, old = (side[first] if first < len(side) else "nothing" for side in pair)
    return f"stored “{old[:90]}”, here “{new[:90]}”"


def lines(outputs: list[dict]) -> Iterator[str]:
    for output in outputs:
        yield from (output["text"] or "").splitlines()
        for kind, content in sorted(output["data"].items()):
            yield from (content if isinstance(content, str) else f"{kind} {content}").splitlines()
        yield from output["pictures"]


def judge(name: str, result: Result, known: dict[str, str]) -> list[str]:
    """What is not as KNOWN says, in a sentence each that says what to edit."""
    sentences = [
        f"{name}, cell {failure.number} `{failure.heading}`: {failure.reason}. "
        "Mend the lesson, or add the cell to KNOWN in tools/colab.py."
        for failure in result.failures
        if failure.heading not in known
    ]
    failed = {failure.heading for failure in result.failures}
    for line in known:
        if line not in failed and line in result.ran:
            sentences.append(
                f"{name}: the cell `{line}` passes now. Take it out of KNOWN in tools/colab.py."
            )
        elif line not in failed and not result.ended:
            sentences.append(
                f"{name} has no cell `{line}` that ran. Correct KNOWN in tools/colab.py."
            )
    return sentences


def check(name: str, base: Path) -> tuple[Result, dict]:
    """Run a lesson in a folder of its own. Returns what to record of it too."""
    notebook, digest = execute.read(name), lessons.digest(lessons.read_notebook(name))
    folder = WORK / name
    shutil.rmtree(folder, ignore_errors=True)  # of a run that was interrupted
    copy = folder / "environment"
    try:
        # Hard links: pip replaces a file, and never writes into one.
        shutil.copytree(base, copy, symlinks=True, copy_function=os.link)
        write_stub(folder / "stub")
        (folder / "content").mkdir()
        copy_data(folder / "content")
        before = installed(copy)
        result = run(notebook, copy / "bin" / "python", folder / "content", folder / "stub")
        added = sorted(installed(copy) - before)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    nbformat.write(notebook, WORK / f"{name}.ipynb")
    return result, {
        "date": machine.today(),
        "passed": len(result.ran) - len(result.failures),
        "differ": {failure.heading: failure.reason for failure in result.failures},
        "skipped": result.skipped,
        "seconds": round(result.seconds, 1),
        "installed": added,
        "digest": digest,
    }


def report(name: str, result: Result, figures: dict, known: dict[str, str]) -> None:
    count, failed = len(result.ran), len(result.failures)
    verdict = f"{failed} of {count} cells differ" if failed else f"whole: {count} cells"
    print(f"{name}: {verdict}, in {result.seconds:.0f} s", flush=True)
    if result.edited:
        print(f"  {result.edited} only ran: they were edited since they were executed", flush=True)
    if figures["installed"]:
        print(f"  installed {', '.join(figures['installed'])}", flush=True)
    for failure in result.failures:
        because = f" (known: {known[failure.heading]})" if failure.heading in known else ""
        print(f"  cell {failure.number} `{failure.heading}`: {failure.reason}{because}", flush=True)
    if result.ended:
        print("  The cells below it did not run.", flush=True)


def store(recorded: dict[str, dict]) -> None:
    """Put the lessons into the record, beside those that earlier runs left there."""
    fields, pins = header(), versions(PINS.read_text())
    published = {"published": fields["date"], "commit": fields["commit"]}
    chosen = {"python": fields["python"]} | {name: pins[name] for name in VERSIONS if name in pins}

    def with_recorded(content: dict) -> dict:
        of_these_versions = content.get("commit") == fields["commit"]  # others are no news
        runs = (content.get("lessons", {}) if of_these_versions else {}) | recorded
        return published | {"versions": chosen, "lessons": dict(sorted(runs.items()))}

    machine.update(RECORD, with_recorded)
    print(f"recorded in {RECORD.relative_to(lessons.ROOT)}: {', '.join(recorded) or 'no lesson'}")


def check_all(names: list[str], record: bool) -> list[str]:
    """Run the lessons. Returns the sentences that make a run red. Raises lessons.Problem."""
    if unknown := sorted(set(names) - set(lessons.names())):
        raise lessons.Problem(
            f"{unknown[0]} is no lesson: the lessons are {', '.join(lessons.names())}."
        )
    lessons.lay_out_data()
    WORK.mkdir(parents=True, exist_ok=True)
    try:
        with filelock.FileLock(WORK / ".lock", timeout=0):
            return check_each(names or lessons.in_order(), record)
    except filelock.Timeout:
        raise lessons.Problem("another run works in _build/colab: wait for it.") from None


def check_each(names: list[str], record: bool) -> list[str]:
    """Run the lessons one after the other."""
    base, sentences, recorded = environment(), [], {}
    for name in names:
        known = KNOWN.get(name, {})
        result, figures = check(name, base)
        report(name, result, figures, known)
        news = judge(name, result, known)
        sentences += news
        # A lesson that was edited since it was executed is not what the site shows.
        if not news and not result.edited:
            recorded[name] = figures
    if record:
        store(recorded)
    return sentences


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="LESSON", help="all when none is named")
    parser.add_argument("--record", action="store_true", help=f"store what passed in {RECORD.name}")
    parser.add_argument("--renew", action="store_true", help="write colab.txt anew, run nothing")
    arguments = parser.parse_args()
    try:
        if arguments.renew:
            renew()
            return
        sentences = check_all(arguments.names, arguments.record)
    except lessons.Problem as problem:
        sys.exit(f"colab: {problem}")
    except KeyboardInterrupt:
        sys.exit("colab: interrupted; run it again.")
    except OSError as error:  # a full disk, a folder of somebody else
        sys.exit(f"colab: {error}: put that right and run it again.")
    if sentences:
        sys.exit("\n".join(f"colab: {sentence}" for sentence in sentences))
    print("colab: every lesson holds, but for the known failures.")


if __name__ == "__main__":
    main()
