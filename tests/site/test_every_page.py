"""Every page of the built site in a real Chromium: three widths, two themes.

`tox run -e browser` builds the site and runs this. `tox run -e test` does not.
"""

import gzip
import html
import re
import struct
from urllib.parse import unquote, urljoin, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from built import (
    LAPTOP,
    PAGES,
    PREFIX,
    READ,
    SCREENSHOTS,
    SITE,
    WIDTHS,
    each_page,
    each_theme,
    links,
    style,
)

HEAVIEST = 1_500_000  # bytes of all that a page asks for
LONGEST = 1_000_000  # bytes of a page itself, without its pictures
FIT_A_PHONE = 3  # columns of a table
SHOWN = {("desktop", "light"), ("phone", "dark")}  # pictures for people to look at; each takes 2 s
PAPER = {"width": 718, "height": 1046}  # A4 between the margins of a browser
# Without preload axe asks for no style sheets of its own.
AXE = {"resultTypes": ["violations"], "preload": False}
STRUCTURE = AXE | {"rules": {"color-contrast": {"enabled": False}}}
CONTRAST = AXE | {"runOnly": ["color-contrast"]}
# Axe looks at the contrast of each word, which takes it 5 to 10 s. One of each kind is enough: the
# same colour and weight, nearly the same size, and the same colours below it.
MARK_A_TEXT_OF_EACH_KIND = """
    const kinds = new Set(), below = new Map(), clear = "rgba(0, 0, 0, 0) none 1";
    const ground = e => {
        if (!e) return "";
        if (!below.has(e)) {
            const {backgroundColor, backgroundImage, opacity} = getComputedStyle(e);
            const own = `${backgroundColor} ${backgroundImage} ${opacity}`;
            const all = own == clear ? "" : own;
            below.set(e, `${all} ${own.startsWith("rgb(") ? "" : ground(e.parentElement)}`);
        }
        return below.get(e);
    };
    for (const e of document.body.querySelectorAll("*")) {
        const text = [...e.childNodes].some(n => n.nodeType == 3 && n.data.trim());
        if (!text || !e.checkVisibility({visibilityProperty: true})) continue;
        const {color, fontSize, fontWeight} = getComputedStyle(e);
        const kind = [color, Math.round(parseFloat(fontSize)), fontWeight, ground(e)].join();
        if (!kinds.has(kind)) { kinds.add(kind); e.dataset.sample = ""; }
    }
"""
SAMPLES = {"include": [["[data-sample]"]]}
# The theme lets the keyboard reach what scrolls, a moment after the window has another width.
SCROLLS_BY_KEYBOARD = """() => [...document.querySelectorAll("pre")]
    .every(e => e.scrollWidth <= e.clientWidth || e.tabIndex == 0)"""


@each_theme
@each_page
def test_page(open_page, page, theme):
    """Its pictures and widths; its colours and structure with both sidebars and with none."""
    tab, name = open_page(page, theme=theme), page.removesuffix(".html").replace("/", "-")
    SCREENSHOTS.mkdir(exist_ok=True)
    assert tab.evaluate("document.documentElement.dataset.theme") == theme
    assert not tab.locator("img:not([alt]), img[alt='']").count(), "a picture without alt text"
    faults = []
    for width, pixels in WIDTHS.items():
        tab.set_viewport_size({"width": pixels, "height": 900})
        if (width, theme) in SHOWN:
            shown = SCREENSHOTS / f"{name}-{width}-{theme}.jpg"
            tab.screenshot(path=shown, full_page=True, quality=80)
        assert tab.evaluate("document.documentElement.scrollWidth") <= pixels
        if width == "tablet":  # which has nothing that neither of the others has
            continue
        tab.wait_for_function(SCROLLS_BY_KEYBOARD)
        tab.evaluate(MARK_A_TEXT_OF_EACH_KIND)
        faults += Axe().run(tab, context=SAMPLES, options=CONTRAST).response["violations"]
        if theme == "light":  # the structure is the same in both
            faults += Axe().run(tab, options=STRUCTURE).response["violations"]
    assert [f"{fault['id']}: {fault['nodes'][0]['html'][:300]}" for fault in faults] == []


@pytest.mark.parametrize(
    ("size", "media", "parts"),
    [
        (LAPTOP, "screen", "pre, .pst-scrollable-table-container"),  # beside both sidebars
        (PAPER, "print", ".bd-article :is(pre, img, svg, table)"),
    ],
)
@each_page
def test_nothing_is_cut_off(open_page, page, size, media, parts):
    tab = open_page(page)
    tab.set_viewport_size(size)
    tab.emulate_media(media=media)
    cut_off = (
        "all => all.filter(it => it.checkVisibility() && (it.scrollWidth > it.clientWidth ||"
        " it.getBoundingClientRect().right > innerWidth)).map(it => it.outerHTML.slice(0, 200))"
    )
    assert tab.locator(parts).evaluate_all(cut_off) == []


@each_page
def test_on_a_phone_the_last_column_of_a_table_is_there_or_is_hinted_at(open_page, page):
    tab = open_page(page, "phone")
    for table in tab.locator(".bd-content .pst-scrollable-table-container:visible").all():
        shown, whole = table.evaluate("t => [t.clientWidth, t.scrollWidth]")
        columns = table.locator("tr").first.locator("> *")
        if columns.count() <= FIT_A_PHONE:
            assert whole <= shown, table.inner_text()
        elif whole > shown:
            assert "gradient" in style(table, "backgroundImage")
            over = table.locator("tr, tr > :last-child")  # over the shadow, which shows through
            colours = "all => all.map(e => getComputedStyle(e).backgroundColor)"
            for colour in over.evaluate_all(colours):
                assert re.search(r", 0(\.0\d+)?\)$", colour)
            assert style(columns, "position") == "sticky"


@each_page
def test_keyboard_reaches_everything(open_page, page):
    tab = open_page(page)
    wanted = tab.evaluate(
        """() => {
            const all = document.querySelectorAll("a[href], button, input, summary, select");
            const seen = [...all].filter(
                e => e.checkVisibility({visibilityProperty: true}) && !e.disabled
            );
            seen.forEach((e, i) => { e.dataset.number = i; });
            return seen.map(e => e.outerHTML.slice(0, 200));
        }"""
    )
    missed = dict(enumerate(wanted))
    for _ in range(3 * len(wanted)):  # code that scrolls takes the focus as well
        tab.keyboard.press("Tab")
        missed.pop(int(tab.evaluate("document.activeElement.dataset.number ?? -1")), None)
        if not missed:
            break
    assert wanted and not missed


@each_page
def test_links_inside_lead_somewhere(page):
    for link in links(page):
        parts = urlsplit(link)
        if parts.scheme:
            continue
        path = parts.path.removeprefix(PREFIX) if page == "404.html" else parts.path
        target = (SITE / page).parent / unquote(path) if path else SITE / page
        assert target.is_file(), link
        if parts.fragment:
            assert f'id="{unquote(parts.fragment)}"' in target.read_text(), link


@pytest.mark.parametrize("page", READ)
def test_a_link_to_a_page_has_a_preview(page):
    source = (SITE / page).read_text()

    def meta(name):
        [found] = re.findall(rf'<meta (?:property|name)="{name}" content="([^"]+)"', source)
        return html.unescape(found)

    assert meta("og:title") and meta("og:image:alt")
    for described in (meta("og:description"), meta("description")):
        assert len(described) > 40 and "{" not in described and described[-1] in ".?"
    [title] = re.findall(r"<title>(.*?)</title>", source, re.DOTALL)
    assert title.count("Feed JAX") == 1 or "Feed JAX from" in title, title
    card = SITE / meta("og:image").partition(PREFIX)[2]
    assert struct.unpack(">II", card.read_bytes()[16:24]) == (1200, 630)


@pytest.mark.parametrize("page", [page for page in PAGES if page != "404.html"])
def test_all_that_a_page_asks_for_is_no_heavier_than_a_phone_likes(browser, address, page):
    """As Pages sends it, which compresses texts: with styles, scripts, fonts and pictures."""
    context, asked = browser.new_context(), set()
    tab = context.new_page()
    tab.on("request", lambda request: asked.add(urlsplit(request.url).path))
    tab.goto(urljoin(address, page), wait_until="networkidle")
    context.close()
    sent = {}
    for path in asked:
        file = SITE / path.removeprefix(PREFIX)
        content = file.read_bytes() if path.startswith(PREFIX) else b""
        texts = file.suffix in {".css", ".html", ".js", ".svg"}
        sent[file.name] = len(gzip.compress(content) if texts else content)
    assert sum(sent.values()) < HEAVIEST, sent
    assert (SITE / page).stat().st_size < LONGEST
