"""Start a lesson from the template, which holds to the contract and runs as it stands.

tox run -e new -- NAME
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tools import check, lessons

TEMPLATE = Path(__file__).with_name("lesson_template.md")


def new(name: str) -> None:
    """Write md/NAME.md. Raises lessons.Problem for a bad name or one that is taken."""
    if not (name.isidentifier() and name.islower() and name.isascii()):
        raise lessons.Problem(
            f"{name!r} cannot name a lesson: use a-z, 0-9 and _, as in my_loader."
        )
    if name in lessons.names():
        raise lessons.Problem(f"the lesson {name} exists already: choose another name.")
    text = check.with_copied_cells(
        name, TEMPLATE.read_text().replace("LESSON", name.replace("_", " "))
    )
    with lessons.md_path(name).open("x") as file:
        file.write(text)
    check.fix(name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", metavar="NAME", help="the name of its files, as in my_loader")
    name = parser.parse_args().name
    try:
        new(name)
    except lessons.Problem as problem:
        sys.exit(f"new: {problem}")
    print(f"md/{name}.md is there and runs. Next:")
    print(f"  1. edit it, then `tox run -e execute -- {name}`")
    print("  2. give it an entry in lessons.toml")
    print("  3. `tox run -e check -- --fix`")


if __name__ == "__main__":
    main()
