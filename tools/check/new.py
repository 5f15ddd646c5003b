"""Start a lesson and its depth from templates, which hold to the contract and run as they stand.

tox run -e new -- NAME
"""

import argparse
from pathlib import Path

from offline.problem import Problem, told
from tools.check import fix
from tools.lesson import lessons

TEMPLATES = {
    "{name}": Path(__file__).with_name("lesson_template.md"),
    f"{{name}}{lessons.DEPTH}": Path(__file__).with_name("depth_template.md"),
}


def new(name: str) -> list[str]:
    """Write md/NAME.md and md/NAME_in_depth.md. Returns their names.

    Raises Problem for a bad name or one that is taken.
    """
    if not (name.isidentifier() and name.islower() and name.isascii()):
        raise Problem(f"{name!r} cannot name a lesson: use a-z, 0-9 and _, as in my_loader.")
    made = [form.format(name=name) for form in TEMPLATES]
    for taken in set(made).intersection(lessons.names()):
        raise Problem(f"the lesson {taken} exists already: choose another name.")
    for page, template in zip(made, TEMPLATES.values(), strict=True):
        text = template.read_text().replace("LESSON", name.replace("_", " "))
        text = fix.with_copied_cells(page, text.replace("NAME", name))
        with lessons.md_path(page).open("x") as file:
            file.write(text)
        fix.fix(page)
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", metavar="NAME", help="the name of its files, as in my_loader")
    name = parser.parse_args().name
    with told("new"):
        made = new(name)
    print(f"{' and '.join(f'md/{page}.md' for page in made)} are there and run. Next:")
    print(f"  1. edit them, then `tox run -e execute -- {' '.join(made)}`")
    print(f"  2. give {name} an entry in lessons.toml; its depth needs none")
    print("  3. `tox run -e check -- --fix`")


if __name__ == "__main__":
    main()
