"""Pack the executed notebooks, with all that their check needs, into one archive for a release.

    tox run -e archive -- v1.0 [FOLDER]

writes feed-jax-v1.0.zip and notes.md, the part of CHANGELOG.md on this release, into FOLDER, which
is _build/release unless you name one. Unpacked in an empty folder, the notebooks open in Jupyter,
and `tox run -e test -- notebooks` compares them strictly.
"""

import argparse
import re
import subprocess
import sys
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tools import lessons

PARTS = (
    "LICENSE",
    "CITATION.cff",
    "README.md",
    "checked",
    "conftest.py",
    "constraints.txt",
    "nbval_sanitize.cfg",
    "notebooks",
    "offline",
    "requirements-gpu.txt",
    "requirements.txt",
    "tools",
    "tox.ini",
    "toxfile.py",
)
SAME_DAY = (1980, 1, 1, 0, 0, 0)  # the same files make the same archive


def files() -> list[str]:
    """What git tracks of PARTS: not the data that a run has laid out, nor what it wrote."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--", *PARTS], cwd=lessons.ROOT, capture_output=True, check=True
    )
    return sorted(filter(None, listed.stdout.decode().split("\0")))


def pack(path: Path, version: str) -> None:
    """Write the archive. All lies in one folder, so that unpacking it covers nothing."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in files():
            entry = zipfile.ZipInfo(f"feed-jax-{version}/{file}", SAME_DAY)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, (lessons.ROOT / file).read_bytes())


def notes(version: str) -> str:
    """The part of the changelog on this release. Raises Problem if a file does not name it."""
    changelog = (lessons.ROOT / "CHANGELOG.md").read_text()
    number = version.removeprefix("v")
    part = rf"^## {re.escape(number)} \((.*?)\)\n(.*?)(?=^## |\Z)"
    found = re.search(part, changelog, re.M | re.DOTALL)
    if not found:
        raise lessons.Problem(
            f"CHANGELOG.md has no heading `## {number} (YEAR-MONTH-DAY)`: "
            "name the release there before you tag it."
        )
    citation = (lessons.ROOT / "CITATION.cff").read_text()
    for field, value in {"version": number, "date-released": found[1]}.items():
        if not re.search(rf"^{field}: [\"']?{re.escape(value)}[\"']?$", citation, re.M):
            raise lessons.Problem(
                f"CITATION.cff has no line `{field}: {value}`: "
                "who cites the release should name it as it is."
            )
    return found[2].strip() + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("version", help="the tag, such as v1.0")
    parser.add_argument("folder", nargs="?", type=Path, default=lessons.ROOT / "_build" / "release")
    arguments = parser.parse_args()
    try:
        said = notes(arguments.version)
    except lessons.Problem as problem:
        sys.exit(f"archive: {problem}")
    arguments.folder.mkdir(parents=True, exist_ok=True)
    path = arguments.folder / f"feed-jax-{arguments.version}.zip"
    pack(path, arguments.version)
    (arguments.folder / "notes.md").write_text(said)
    print(f"archive: {path.name} has {len(files())} files, {path.stat().st_size / 1e6:.0f} MB.")


if __name__ == "__main__":
    main()
