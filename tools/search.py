"""The search of the site: Sphinx's, which then finds headings, and sections by readers' own words.

pages/search.toml has those words. Sphinx's script is changed when the site is built.
"""

import json
import tomllib
from pathlib import Path

from tools import lessons

SEARCH = {
    """      if (
        title.toLowerCase().trim().includes(queryLower)
        && queryLower.length >= title.length / 2
      ) {
        for (const [file, id] of foundTitles) {
""": """      const words = queryLower.split(/\\s+/);
      if (words.some((word) => title.toLowerCase().includes(word))) {
        for (const [file, id] of foundTitles) {
          const place = `${titles[file]} ${title}`.toLowerCase();
          if (!words.every((word) => place.includes(word))) continue;
""",
    """          const score = Math.round(
            (Scorer.title * queryLower.length) / title.length,
          );
""": """          const share = Math.min(1, queryLower.length / title.length);
          const score = Scorer.title + Math.round(Scorer.title * share);
""",
    "titles[file] === title ? 1 : 0": "titles[file] === title ? Scorer.title : 0",
    # What a reader calls otherwise than the section that answers it: WORDS.
    "    // search for explicit entries in index directives\n": """\
    const typed = queryLower.split(/\\s+/);
    for (const [said, page, id] of WORDS) {
      const named = said.some(
        (words) =>
          words.length > queryLower.length / 2
          && words.split(" ").every((word) => typed.includes(word)),
      );
      if (!named) continue;
      const file = docNames.indexOf(page);
      const [heading] = Object.entries(allTitles).find(([, found]) =>
        found.some(([where, place]) => where === file && place === id),
      ) ?? [null];
      const [score, name] = [4 * Scorer.title, filenames[file]];
      const title = heading ? `${titles[file]} > ${heading}` : titles[file];
      const kind = SearchResultKind.title;
      normalResults.push([page, title, `#${id}`, null, score, name, kind]);
    }

    // search for explicit entries in index directives
""",
    # What was found is shown from the article, by the words that were typed, of the first ten.
    "htmlElement.querySelector('[role=\"main\"]')": (
        'htmlElement.querySelector("article.bd-article")'
    ),
    "if (anchorContent) return anchorContent.textContent;": (
        'if (anchorContent) return anchorContent.closest("section, article").textContent;'
    ),
    '".headerlink", "script"': '".headerlink", ".also", ".ways-out", "script"',
    "makeSearchSummary(data, searchTerms, anchor)": (
        "makeSearchSummary(data, [...searchTerms, ...highlightTerms], anchor)"
    ),
    "else if (showSearchSummary)": (
        "else if (showSearchSummary && Search.output.children.length < 10)"
    ),
    # A lesson comes before its depth, which has the same words more often.
    **{
        f"const {side}Score = {of}[4];": f"const {side}Score = {of}[4]"
        f' - {of}[0].endsWith("{lessons.DEPTH}") * Scorer.title;'
        for side, of in {"left": "a", "right": "b"}.items()
    },
}


def mend(site: Path) -> None:
    """Change the search of a built site. Raises Problem if Sphinx or a section has changed."""
    script = site / "_static" / "searchtools.js"
    script.write_text(f"{users_words(site)}\n{find_places(script.read_text())}")


def users_words(site: Path) -> str:
    """JavaScript: WORDS, of each section that readers call otherwise these words and its place.

    Raises Problem where the section is gone.
    """
    found = tomllib.loads((lessons.ROOT / "pages/search.toml").read_text())
    places = [(words, *place.split("#")) for place, words in found.items()]
    for _, page, anchor in places:
        if f'id="{anchor}"' not in (site / f"{page}.html").read_text():
            raise lessons.Problem(f"pages/search.toml names {page}#{anchor}, which is not there.")
    return f"const WORDS = {json.dumps(places)};"


def find_places(script: str) -> str:
    """Sphinx's search, which then finds headings, above the pages that only have the words.

    Sphinx takes a heading only if the query is half of it. Here all words of the query have to be
    in the heading and the title of its page, and one in the heading: "resume grain". Raises
    Problem if Sphinx has changed, so that the build says so.
    """
    for old, new in SEARCH.items():
        if script.count(old) != 1:
            raise lessons.Problem(f"Sphinx's search has changed: no single {old!r} in it.")
        script = script.replace(old, new)
    return script
