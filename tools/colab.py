"""Compare the packages that Colab publishes for its runtime with the bounds of requirements.txt.

    tox run -e colab

A reader in Colab gets Colab's versions: a lesson installs only what Colab lacks. Fails when a
version lies outside of a bound, and names what has to be looked at.
"""

import sys
import urllib.error
import urllib.request
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
PUBLISHED = "https://raw.githubusercontent.com/googlecolab/backend-info/main/pip-freeze.txt"
# Who reads a lesson in Colab needs none of these: they test it or make the site.
NOT_FOR_READERS = "# Notebooks: written as Markdown, run, compared"


def parse(text: str) -> list[Requirement]:
    """What a file of requirements asks for, without its comments and options."""
    lines = (line.partition(" #")[0].strip() for line in text.splitlines())
    return [Requirement(line) for line in lines if line and line[0] not in "#-"]


def bounds(text: str) -> list[Requirement]:
    """The requirements of the lessons themselves, in Colab's environment: Linux on x86-64."""
    found = parse(text.partition(NOT_FOR_READERS)[0])
    linux = {"sys_platform": "linux", "platform_machine": "x86_64"}
    return [r for r in found if r.marker is None or r.marker.evaluate(linux)]


def versions(freeze: str) -> dict[str, str]:
    """`name==version` of each line; what was installed from an address has no version here."""
    pairs = (line.split("==") for line in freeze.splitlines() if line.count("==") == 1)
    return {canonicalize_name(name): version.strip() for name, version in pairs}


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


def main() -> None:
    try:
        with urllib.request.urlopen(PUBLISHED, timeout=60) as answer:
            installed = versions(answer.read().decode())
    except (urllib.error.URLError, TimeoutError) as error:
        sys.exit(f"colab: {PUBLISHED} cannot be read ({error}): try again with a network.")
    if not installed:
        sys.exit(f"colab: {PUBLISHED} names no version: has its format changed?")
    outside, missing = compare(bounds((ROOT / "requirements.txt").read_text()), installed)
    print(
        "not in Colab, so the lesson that needs it must install it:", ", ".join(missing) or "none"
    )
    if outside:
        sys.exit("colab: " + "; ".join(outside) + ".")
    print("colab: every other package is within its bound.")


if __name__ == "__main__":
    main()
