"""The search of the site: an index of its sections, made when it is built.

A place that can be found is a section, a row of Troubleshooting or a term of the glossary. How well
a word describes a place is computed here, by BM25 over the fields of a place. search.js adds that
up over the words of a query. pages/search.toml has what readers call otherwise.
"""

import json
import math
import re
import tomllib
from collections import Counter
from pathlib import Path

import snowballstemmer
from bs4 import BeautifulSoup
from sphinx.search.en import ENGLISH_STOPWORDS

from offline.problem import Problem
from tools.lesson import lessons

# Of a field: what a word in it counts, and how much less it counts in a long one (0 to 1).
FIELDS = {
    "heading": (6, 0.4),
    "called": (4, 0.3),  # what readers call it, of pages/search.toml
    "title": (2, 0.2),  # of the page
    "text": (1, 0.6),
    "code": (0.3, 0.7),
}
SATURATION = 1.2  # the more often a word stands in a place, the less one more counts
OF_A_DEPTH = 0.85  # a lesson comes before its depth, which has the same words more often
OF_A_TITLE = 0.8  # a section comes before the beginning of its page
OF_THE_FRONT = 0.5  # which only lists what the pages have
SCALE = 10  # scores are whole numbers in the index; search.js counts a whole name in them
NOT_TEXT = ".headerlink, .also, .ways-out, svg, summary, script, style"

stem = snowballstemmer.stemmer("english").stemWord


def mend(site: Path) -> None:
    """Put the search into a built site, not Sphinx's. Raises Problem if a section is gone."""
    places = [place for page in pages_of(site) for place in places_of(site, page)]
    name_places(places)
    content = json.dumps(index_of(places), ensure_ascii=False, separators=(",", ":"))
    (site / "searchindex.js").write_text(f"const INDEX = {content};\n")
    script = Path(__file__).with_suffix(".js").read_text()
    (site / "_static/searchtools.js").write_text(script)


def pages_of(site: Path) -> list[str]:
    files = (file.relative_to(site).with_suffix("") for file in sorted(site.rglob("*.html")))
    names = [file.as_posix() for file in files]
    return [name for name in names if name not in {"404", "search"} and not name.startswith("_")]


def places_of(site: Path, page: str) -> list[dict]:
    """The places of a page, each with its fields as text."""
    content = BeautifulSoup((site / f"{page}.html").read_text(), "html.parser")
    article = content.select_one("article.bd-article")
    for part in article.select(NOT_TEXT):
        part.decompose()
    for part in article.select("p, li, td, th, dt, dd, br"):
        part.append(" ")
    heading = article.select_one("h1")
    title = one_line(heading) if heading else page
    places = []
    for row in article.select("tr:has([id^=index-])"):
        message = row.select_one("[id^=index-]")
        places.append(place_of(page, message["id"], title, one_line(message), [row.extract()]))
    for term in article.select("dt[id^=term-]"):
        meaning = term.find_next_sibling("dd").extract()
        places.append(place_of(page, term["id"], title, one_line(term), [meaning]))
        term.decompose()
    for section in article.select("section[id]"):
        heading = section.find(re.compile("^h[1-6]$"), recursive=False)
        if heading:
            own = [part for part in section.find_all(recursive=False) if part.name != "section"]
            own.remove(heading)
            place = place_of(page, section["id"], title, one_line(heading), own)
            places.append(place | {"is_title": heading.name == "h1"})
    return places


def place_of(page: str, anchor: str, title: str, heading: str, parts: list) -> dict:
    code = [pre for part in parts for pre in ([part] if part.name == "pre" else part.select("pre"))]
    in_code = " ".join(map(one_line, code))
    for pre in code:
        pre.clear()
    return {
        "page": page,
        "anchor": anchor,
        "title": title,
        "heading": heading,
        "text": " ".join(filter(None, map(one_line, parts))),
        "code": in_code,
        "called": "",
        "is_title": False,
    }


def one_line(part) -> str:
    return " ".join(part.get_text().split())


def name_places(places: list[dict]) -> None:
    """Give each place what readers call it. Raises Problem where a place of search.toml is gone."""
    at = {f"{place['page']}#{place['anchor']}": place for place in places}
    for address, names in tomllib.loads((lessons.ROOT / "pages/search.toml").read_text()).items():
        if address not in at:
            raise Problem(f"pages/search.toml names {address}, which is not there.")
        at[address]["called"] = " ".join(names)
        at[address]["names"] = names


def words_of(text: str) -> list[str]:
    """The stems of a text, of a name such as `os.fork` also those of its parts.

    search.js does the same with a query.
    """
    found = []
    for run in re.findall(r"[\w./:+'-]+", text):
        word = run.strip("./:+'-").lower()
        parts = re.split(r"[_./:+'-]+", word)
        for part in [word, *parts] if len(parts) > 1 else parts:
            if len(part) > 1 and part not in ENGLISH_STOPWORDS:
                found.append(stem(part))
    return found


def index_of(places: list[dict]) -> dict:
    """What the page of the search reads: places, the score of each word there, and names."""
    counts = [{field: Counter(words_of(place[field])) for field in FIELDS} for place in places]
    lengths = {field: [of_place[field].total() for of_place in counts] for field in FIELDS}
    typical = {
        field: sum(all_of) / max(1, sum(map(bool, all_of))) for field, all_of in lengths.items()
    }
    holders = Counter(word for of_place in counts for word in set().union(*of_place.values()))
    terms: dict[str, list[int]] = {}
    for number, (place, of_place) in enumerate(zip(places, counts, strict=True)):
        for word in sorted(set().union(*of_place.values())):
            weight = 0.0
            for field, (counted, shortened) in FIELDS.items():
                length = lengths[field][number] / (typical[field] or 1)
                weight += counted * of_place[field][word] / (1 - shortened + shortened * length)
            rarity = math.log(1 + (len(places) - holders[word] + 0.5) / (holders[word] + 0.5))
            score = rarity * weight * (SATURATION + 1) / (weight + SATURATION)
            score *= OF_A_DEPTH if place["page"].endswith(lessons.DEPTH) else 1
            score *= OF_A_TITLE if place["is_title"] else 1
            score *= OF_THE_FRONT if place["page"] == "index" else 1
            terms.setdefault(word, []).extend([number, round(SCALE * score)])
    names: dict[str, list[int]] = {}
    for number, place in enumerate(places):
        for name in place.get("names", []):
            names.setdefault(" ".join(sorted({*words_of(name)})), []).append(number)
    shown = [
        [place[part] for part in ("page", "anchor", "title", "heading", "text")] for place in places
    ]
    return {"places": shown, "terms": terms, "names": names}
