"""The search of the site: Sphinx's, which then finds headings, and sections by readers' own words.

pages/search.toml has those words. Sphinx's script is changed when the site is built.
"""

import json
import tomllib
from pathlib import Path

from offline.problem import Problem
from tools.lesson import lessons

SEARCH = {
    # A heading is found by most of the words, of which it has one, and its page the others.
    """      if (
        title.toLowerCase().trim().includes(queryLower)
        && queryLower.length >= title.length / 2
      ) {
        for (const [file, id] of foundTitles) {
""": """      const words = queryLower.split(/\\s+/);
      if (words.some((word) => title.toLowerCase().includes(word))) {
        for (const [file, id] of foundTitles) {
          const place = `${titles[file]} ${title}`.toLowerCase();
          const known = words.filter((word) => place.includes(word)).length / words.length;
          if (known < MOST) continue;
""",
    """          const score = Math.round(
            (Scorer.title * queryLower.length) / title.length,
          );
""": """          const share = Math.min(1, queryLower.length / title.length);
          const whole = 2 * Scorer.title + Math.round(Scorer.title * share);
          const score = known === 1 ? whole : Scorer.partialTitle * known;
""",
    "titles[file] === title ? 1 : 0": "known === 1 && titles[file] === title ? Scorer.title : 0",
    # What a reader calls otherwise than the section that answers it: WORDS. The more of the query
    # they are, the higher it stands.
    "    // search for explicit entries in index directives\n": """\
    const stemmer = new Stemmer();
    const stems = (words) => words.split(/\\s+/).map((word) => stemmer.stemWord(word));
    const typed = stems(queryLower);
    for (const [said, page, id] of WORDS) {
      const named = said.map(stems).filter((words) => words.every((word) => typed.includes(word)));
      if (!named.length) continue;
      const share = Math.max(...named.map((words) => words.length)) / typed.length;
      const file = docNames.indexOf(page);
      const [heading] = Object.entries(allTitles).find(([, found]) =>
        found.some(([where, place]) => where === file && place === id),
      ) ?? [null];
      const score = (share > 0.5 ? 4 : 1 + 3 * share) * Scorer.title;
      const title = heading ? `${titles[file]} > ${heading}` : titles[file];
      const kind = SearchResultKind.title;
      normalResults.push([page, title, `#${id}`, null, score, filenames[file], kind]);
    }

    // search for explicit entries in index directives
""",
    # A page is found by most of the words too, below those that have all.
    """      if (
        wordList.length !== searchTerms.size
        && wordList.length !== filteredTermCount
      )
        continue;
""": """      const known = wordList.length / Math.max(searchTerms.size, 1);
      const all = known === 1 || wordList.length === filteredTermCount;
      if (!all && known < MOST) continue;
""",
    "const score = Math.max(...wordList.map((w) => scoreMap.get(file).get(w)));": (
        "const most = Math.max(...wordList.map((w) => scoreMap.get(file).get(w)));\n"
        "      const score = all ? most : (most * known) / 4;"
    ),
    # A letter is no word: "can't" is not found by each t.
    "queryTerm.match(/^\\d+$/)) return;": "queryTerm.match(/^\\d+$|^.$/u)) return;",
    # What was found is shown from the article, by the words that were typed, of the first ten: from
    # its text, if the words are there, and else from its code. The link leads to that section.
    "  htmlToText: (htmlString, anchor) => {\n": """\
  sectionOf: (html, words) => {
    const page = new DOMParser().parseFromString(html, "text/html");
    const known = (section) => {
      const own = [...section.children].filter((part) => part.tagName !== "SECTION");
      const text = own.map((part) => part.textContent).join(" ").toLowerCase();
      return words.filter((word) => text.includes(word)).length;
    };
    const sections = [...page.querySelectorAll("article.bd-article section[id]")];
    const most = Math.max(1, ...sections.map(known));
    const found = sections.find((section) => known(section) === most);
    if (found?.parentElement.tagName !== "SECTION") return null;
    const heading = found.querySelector(":is(h2, h3)");
    heading.querySelector(".headerlink")?.remove();
    return [found.id, heading.textContent];
  },

  htmlToText: (htmlString, anchor, without = []) => {
""",
    "htmlElement.querySelector('[role=\"main\"]')": (
        'htmlElement.querySelector("article.bd-article")'
    ),
    "    if (anchor) {\n": """\
    htmlElement.querySelectorAll("p, li, td, th, dt, dd").forEach((el) => el.append(" "));
    if (anchor) {
""",
    "if (anchorContent) return anchorContent.textContent;": (
        'if (anchorContent) return anchorContent.closest("section, article").textContent;'
    ),
    '[".headerlink", "script", "style"]': (
        '[".headerlink", ".also", ".ways-out", "svg", "summary", "script", "style", "h1, h2, h3",'
        " ...without]"
    ),
    # An excerpt is of whole words.
    """    summary.textContent =
      top + text.substr(startWithContext, 240).trim() + tail;
""": """\
    let said = text.substr(startWithContext, 240);
    if (top) said = said.replace(/^\\S*\\s/, "");
    if (tail) said = said.replace(/\\s\\S*$/, "");
    summary.textContent = top + said.trim() + tail;
""",
    "    const text = Search.htmlToText(htmlText, anchor);\n": """\
    const prose = Search.htmlToText(htmlText, anchor, ["pre"]);
    const inProse = [...keywords].some((word) => prose.toLowerCase().includes(word));
    const text = inProse ? prose : Search.htmlToText(htmlText, anchor);
""",
    """        if (data)
          listItem.appendChild(
            Search.makeSearchSummary(data, searchTerms, anchor),
          );
""": """        if (data) {
          const words = [...searchTerms, ...highlightTerms];
          const place = anchor ? null : Search.sectionOf(data, words);
          if (place) {
            linkEl.setAttribute("href", `${linkUrl}#${place[0]}`);
            linkEl.append(` > ${place[1]}`);
          }
          const address = linkEl.getAttribute("href");
          const same = [...Search.output.querySelectorAll("li > a")].filter(
            (link) => link.getAttribute("href") === address,
          );
          same.slice(1).forEach((link) => link.parentElement.remove());
          const where = place ? `#${CSS.escape(place[0])}` : anchor;
          listItem.appendChild(Search.makeSearchSummary(data, words, where));
        }
""",
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
MOST = 0.6  # of the words that were typed: of two both, of three two


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
        if f'<section id="{anchor}"' not in (site / f"{page}.html").read_text():
            raise Problem(f"pages/search.toml names {page}#{anchor}, which is not there.")
    return f"const MOST = {MOST}, WORDS = {json.dumps(places)};"


def find_places(script: str) -> str:
    """Sphinx's search, which then finds headings, above the pages that only have the words.

    Sphinx takes a heading only if the query is half of it. Here all words of the query have to be
    in the heading and the title of its page, and one in the heading: "resume grain". Raises
    Problem if Sphinx has changed, so that the build says so.
    """
    for old, new in SEARCH.items():
        if script.count(old) != 1:
            raise Problem(f"Sphinx's search has changed: no single {old!r} in it.")
        script = script.replace(old, new)
    return script
