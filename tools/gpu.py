"""Check the collection on a GPU, store what only a GPU can show, and pack what was found.

    python tools/gpu.py [--no-bench] [--archive gpu.zip] [LESSON ...]

For a machine with a GPU, on its own Python and packages: no tox, no network. Each lesson has to
pass `pytest --nbval` strictly, with the outputs that were stored on a CPU, before the cells that
need a GPU are executed and stored. Then the lessons' pipelines are timed. Where time is short, name
a few lessons: only these are checked and timed, and the others keep what is there. Unpack the
archive in a clone, and review the difference.
"""

import argparse
import subprocess
import sys
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tools import execute, files, lessons
from tools.problem import Problem

REPORT = "gpu_report.txt"


def passes(name: str, report, *options: str) -> bool:
    """Whether the lesson passes strictly. What pytest says goes to the screen and the report."""
    notebook = str(lessons.notebook_path(name).relative_to(lessons.ROOT))
    command = [sys.executable, "-m", "pytest", "--nbval", "-v", "--color=no", *options, notebook]
    return tee(command, report) == 0


def tee(command: list[str], report) -> int:
    """Run the command in the root of the repository, with its output also in the report."""
    with subprocess.Popen(
        command,
        cwd=lessons.ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        for line in process.stdout:
            print(line, end="", flush=True)
            report.write(line)
    return process.returncode


def pack(archive: Path) -> None:
    """Everything that a run here may have written, by its path in the repository."""
    folders = {
        "notebooks": "*.ipynb",
        "checked": "*.json",
        "benchmarks/results": "*.json",
        ".": REPORT,
    }
    with (
        files.replacing(archive) as scratch,
        zipfile.ZipFile(scratch, "w", zipfile.ZIP_DEFLATED) as packed,
    ):
        for folder, pattern in folders.items():
            for file in sorted((lessons.ROOT / folder).glob(pattern)):
                packed.write(file, file.relative_to(lessons.ROOT))


def renew(name: str, report) -> None:
    """Check the lesson, execute and store it, check and record it. Raises Problem."""
    if not passes(name, report):
        raise Problem(f"{name} does not pass here, and nothing of it was stored.")
    execute.execute(name, refresh=False)
    if not passes(name, report, "--record"):  # the record is of what is stored now
        raise Problem(f"{name} does not pass with the outputs that were stored here.")


def run(names: list[str], bench: bool, archive: Path) -> list[str]:
    """Check and execute the lessons; time them; pack. Returns a sentence for each failure."""
    failures = []
    with (lessons.ROOT / REPORT).open("w", buffering=1) as report:  # whole lines, to be packed
        for name in names:
            try:
                renew(name, report)
            except Problem as problem:
                failures.append(str(problem))
            pack(archive)  # after each lesson: an interruption loses one at most
        loaders = [name for name in names if bench and lessons.has_pipeline(name)]
        if loaders and tee([sys.executable, "benchmarks/bench.py", *loaders], report):
            failures.append("the benchmark ended early.")
        report.writelines(f"{sentence}\n" for sentence in failures)
    pack(archive)
    return failures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="LESSON", help="all when none is named")
    parser.add_argument("--no-bench", action="store_true", help="do not time the pipelines")
    parser.add_argument("--archive", type=Path, default=lessons.ROOT / "gpu.zip")
    arguments = parser.parse_args()
    known = lessons.in_order()
    if unknown := sorted(set(arguments.names) - set(known)):
        parser.error(f"unknown lesson {', '.join(unknown)}: choose from {', '.join(known)}")
    if not lessons.has_gpu():
        sys.exit(
            "gpu: JAX sees no GPU here: install requirements-gpu.txt, and look whether "
            "`nvidia-smi` sees one."
        )
    try:
        lessons.lay_out_data()
        names = arguments.names or known
        failures = run(names, not arguments.no_bench, arguments.archive)
    except Problem as problem:
        sys.exit(f"gpu: {problem}")
    except OSError as error:
        sys.exit(f"gpu: {error}: put that right and run this again.")
    except KeyboardInterrupt:
        sys.exit(f"gpu: interrupted; {arguments.archive} holds the lessons that were finished.")
    print(f"{arguments.archive} holds the notebooks, the records, the results and {REPORT}.")
    if failures:
        sys.exit("\n".join(f"gpu: {sentence}" for sentence in failures))


if __name__ == "__main__":
    main()
