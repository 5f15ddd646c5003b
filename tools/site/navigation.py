"""How the lessons are linked with each other on the site: all of it follows from lessons.toml.

A link to a section that is not there fails the build, as every link does that leads nowhere.
"""

import itertools
import re
from collections.abc import Iterator

from tools.lesson import lessons

PLACE = re.compile(r"<!-- lessons of (.*?) -->")


def groups() -> dict[str, list[dict]]:
    """The lessons' entries by their groups, in the order in which they are read."""
    found = {}
    for entry in lessons.listed().values():
        found.setdefault(entry["group"], []).append(entry)
    return found


def tables(minutes: dict[str, int]) -> str:
    """For each group a heading and a table: what one has, the lesson, its minutes."""
    parts = []
    for title, entries in groups().items():
        rows = [
            f"| {entry['have']} | {link(entry['name'])} "
            f"| {minutes[entry['name']]} + {entry['run']} |"
            for entry in entries
        ]
        rows += [
            f"| {other['have']} | {other['instead']} | |"
            for other in lessons.catalogue().get("instead", [])
            if other["group"] == title
        ]
        head = ["| you have | lesson | minutes |", "| --- | --- | --- |"]
        parts += [f"### {title}", "\n".join(head + rows)]
    return "\n\n".join(parts)


def link(name: str) -> str:
    depth = lessons.depth_of(name)
    return f"[](notebooks/{name}.ipynb)" + (f", [in depth](notebooks/{depth}.ipynb)" * bool(depth))


def trees() -> str:
    """The sidebar: each group with its lessons."""
    return "\n\n".join(
        f"```{{toctree}}\n:caption: {title}\n:hidden:\n\n{pages}\n```"
        for title, entries in groups().items()
        if (pages := "\n".join(f"notebooks/{entry['name']}" for entry in entries))
    )


def tree_of(name: str) -> str:
    """What puts the depth of a lesson below it in the sidebar, or nothing."""
    depth = lessons.depth_of(name)
    return f"```{{toctree}}\n:hidden:\n\n{depth}\n```" if depth else ""


def with_places(page: str) -> str:
    """The front page, with the lessons at the places on the way of the bytes where they belong."""

    def links_to(place: re.Match) -> str:
        there = [e for e in lessons.listed().values() if e.get("place") == place[1]]
        return "\n      ".join(
            f'<a href="notebooks/{entry["name"]}.html">{entry["called"]}</a>' for entry in there
        )

    return PLACE.sub(links_to, page)


def loaders() -> dict[str, dict[str, str]]:
    """The lessons that answer the questions of all loaders: `title`, and an anchor by question."""
    return {
        name: entry["sections"] for name, entry in lessons.listed().items() if "sections" in entry
    }


def address(name: str, section: str) -> str:
    """Where a section of a loader stands: in the lesson, or after `in_depth#` in its depth."""
    depth, _, anchor = section.rpartition("#")
    return f"{name}{lessons.DEPTH if depth else ''}.ipynb#{anchor}"


def answer(folder: str, name: str, question: str) -> str:
    """The link to a loader's section. Screen readers say the question, too."""
    sections = loaders()[name]
    said = f'{sections["title"]}<span class="visually-hidden">: {question}</span>'
    return f"[{said}](<{folder}{address(name, sections[question])}>)"


def others(name: str, anchor: str) -> str:
    """A line of Markdown with the same section of the other loaders, or nothing."""
    known, lesson = loaders(), name.removesuffix(lessons.DEPTH)
    sections = {q: there for q, there in known.get(lesson, {}).items() if q != "title"}
    here = {address(lesson, there): question for question, there in sections.items()}
    if not (asked := here.get(f"{name}.ipynb#{anchor}")):
        return ""
    found = [
        answer("", other, asked) for other in known if other != lesson and asked in known[other]
    ]
    return f"{{.also}}\nAlso with: {' · '.join(found)}"


def questions() -> Iterator[str]:
    """The lines of a table of Markdown: for each question, where each loader's lesson answers."""
    known = loaders()
    yield f"| {' | '.join(['question', *(sections['title'] for sections in known.values())])} |"
    yield f"| {' | '.join(itertools.repeat('---', len(known) + 1))} |"
    for question in lessons.catalogue()["questions"]:
        cells = [
            answer("notebooks/", name, question) if question in sections else ""
            for name, sections in known.items()
        ]
        yield f"| {question} | {' | '.join(cells)} |"
