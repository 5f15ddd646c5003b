"""The built site in a real Chromium, as readers see it: three widths, two themes.

`tox run -e browser` builds the site and runs this. `tox run -e test` does not.
"""

import gzip
import html
import itertools
import re
import struct
from http import HTTPStatus
from urllib.parse import unquote, urljoin, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from built import LAPTOP, PAGES, PREFIX, READ, SCREENSHOTS, SITE, WIDTHS

from tools.lesson import copies, lessons
from tools.site import front_page, navigation

FRONT, SEARCH = "index.html", "search.html?q="
GRAIN, TORCH = "notebooks/grain.html", "notebooks/pytorch_dataloader.html"
IN_DEPTH = "notebooks/pytorch_dataloader_in_depth.html"
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

each_theme = pytest.mark.parametrize("theme", ["light", "dark"])
each_width = pytest.mark.parametrize("width", WIDTHS)
each_page = pytest.mark.parametrize("page", PAGES)


def style(found, name: str) -> str:
    """How the browser draws the first element found."""
    return found.first.evaluate("(e, name) => getComputedStyle(e)[name]", name)


def copied(tab, block) -> str:
    """What the copy button of the block puts into the clipboard."""
    block.hover()
    block.locator("button.copybtn").click()
    tab.wait_for_selector("button.copybtn.success")
    return tab.evaluate("navigator.clipboard.readText()").strip()


def is_on_screen(tab, found) -> bool:
    """Whether the first element found begins within the window."""
    return 0 <= found.first.bounding_box()["y"] < tab.viewport_size["height"]


def links(page: str) -> list[str]:
    return re.findall(r'<a\b[^>]*?\bhref="([^"]+)"', (SITE / page).read_text())


# Every page ----------------------------------------------------------------------------------


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


# What readers come for -------------------------------------------------------------------------

LOADERS, MEMORY = "notebooks/choose_a_loader.html", "notebooks/memory_that_grows.html"
RESUME, PHOTOGRAPHS = "stop-it-and-go-on", "read-a-folder-of-photographs"
MESSAGES, WORDS = "pages/troubleshooting.html#index-", "pages/glossary.html#term-"
FEED, HOSTS = "notebooks/feed_the_device.html", "notebooks/many_devices.html"
TO_TORCH, TO_GRAIN = "PyTorch: A folder of photographs", "Grain: A folder of photographs"
COSTS, SPEED = "Choose a loader", "Know when speed decides"
# What readers come for: where they start (a search counts as the one that they may make), how the
# links end that they click, and where they arrive.
TASKS = {
    "resume in Grain": (FRONT, ["Grain: Resume at any step"], f"{GRAIN}#{RESUME}"),
    "read a folder with PyTorch": (FRONT, [TO_TORCH], f"{TORCH}#{PHOTOGRAPHS}"),
    "do the same with Grain": (FRONT, [TO_TORCH, TO_GRAIN], f"{GRAIN}#{PHOTOGRAPHS}"),
    "what each loader costs": (FRONT, [COSTS], LOADERS),
    "what it costs on a GPU": (FRONT, [COSTS, SPEED], f"{LOADERS}#know-when-speed-decides"),
    "is my GPU waiting": (
        FRONT,
        [r"waiting for data\?", "The short answer"],
        f"{FEED}#the-short-answer",
    ),
    "what is checked": (FRONT, ["compared with the page"], "pages/checked.html"),
    "a tensor without a copy": (FRONT, ["TensorFlow and CuPy"], "notebooks/dlpack_zero_copy.html"),
    "train on many hosts": (FRONT, ["many processes, exact resume"], HOSTS),
    "search a section": ("photographs+pytorch", ["> Read a folder of photographs"], TORCH),
    "search why memory grows": (
        "memory+grows",
        ["Memory that grows"],
        MEMORY,
    ),
    "search a message": ("Disallowed+host-to-device+transfer", ["Troubleshooting"], MESSAGES),
    "search a hang": ("DataLoader+timed+out", ["Troubleshooting"], MESSAGES),
    "search a word": ("packing", ["Glossary"], f"{WORDS}packing"),
}


@pytest.mark.parametrize("task", TASKS)
def test_a_task_of_a_reader_takes_a_search_or_two_clicks(open_page, address, task):
    start, clicks, end = TASKS[task]
    search = start != FRONT
    assert len(clicks) <= (1 if search else 2)
    tab = open_page(SEARCH + start if search else start)
    for name in clicks:  # a search has to find it before all else
        found = tab.locator("#search-results li").first if search else tab
        ending = re.compile(name.replace(": ", r"\s*: ") + "$")
        found.get_by_role("link", name=ending).locator("visible=true").last.click()
    tab.wait_for_url(lambda url: url.startswith(urljoin(address, end)))
    if "#" in tab.url:
        assert is_on_screen(tab, tab.locator(f"[id='{urlsplit(tab.url).fragment}']"))


def test_the_search_shows_the_words_that_it_found_not_the_headings(open_page):
    tab = open_page(f"{SEARCH}ArrayRecordWriter")
    lesson = tab.locator("#search-results li", has_text="Feed JAX from Grain")
    lesson.locator("p.context").wait_for()
    assert "arrayrecordwriter" in lesson.inner_text().lower()


def test_copy_buttons_copy_the_code_alone_or_with_its_imports(open_page):
    tab = open_page(TORCH)
    notebook = lessons.read_notebook("pytorch_dataloader")
    [cell] = lessons.code_cells(notebook, "short-answer")
    assert copied(tab, tab.locator(".tag_short-answer .cell_input .highlight").first) == cell.source
    tab.reload()
    fold = tab.locator("details.with-imports").filter(has_text="def batches")
    assert not fold.locator("pre").is_visible()
    fold.locator("summary").click()
    assert copied(tab, fold) in copies.blocks(notebook).values()


@pytest.mark.parametrize("name", lessons.names())
def test_code_has_a_copy_button_and_outputs_have_none(open_page, name):
    tab = open_page(f"notebooks/{name}.html")
    assert tab.locator(".cell_input").count() == tab.locator(".cell_input .copybtn").count()
    assert not tab.locator(".cell_output .copybtn").count()


@pytest.mark.parametrize("name", lessons.names())
def test_buttons_lead_to_the_lesson(name):
    buttons = links(f"notebooks/{name}.html")
    file = f"notebooks/{name}.ipynb"
    for start in ("https://colab.research.google.com/github/", "https://github.com/"):
        ends = f"/blob/main/{file}", f"/blob/main/{file}?plain=1"
        assert [link for link in buttons if link.startswith(start) and link.endswith(ends)]
    assert f"../_sources/{file}" in buttons and f"{name}.md" in buttons
    assert (SITE / "_sources" / file).read_bytes() == (lessons.ROOT / file).read_bytes()


def test_the_same_section_of_another_loader_is_one_click_away_but_not_on_paper(open_page):
    tab = open_page(GRAIN)
    line = tab.locator(f"[id^={RESUME}] p.also")
    link = line.get_by_role("link", name=re.compile(r"TFDS\s*: Resume at any step"))
    assert link.inner_text().startswith("TFDS")
    tab.emulate_media(media="print")
    assert not line.is_visible()
    tab.emulate_media(media="screen")
    link.click()
    tab.wait_for_url("**/tensorflow_datasets.html#stop-it-and-go-on")


def test_a_click_copies_the_page_as_markdown(open_page):
    tab = open_page(GRAIN)
    button = tab.get_by_role("button", name="Copy as Markdown")
    button.click()
    tab.get_by_role("button", name="Copied").wait_for()
    assert (
        tab.evaluate("navigator.clipboard.readText()")
        == (SITE / GRAIN.replace(".html", ".md")).read_text()
    )
    button.wait_for()


def test_a_word_leads_to_the_glossary_where_a_page_first_says_it(open_page):
    tab = open_page(GRAIN)
    first = tab.locator("article a:has(> .std-term)", has_text="worker").first
    assert style(first, "color") == style(tab.locator("article p").last, "color")
    assert "dotted" in style(first, "textDecoration")
    first.click()
    tab.wait_for_url("**/pages/glossary.html#term-worker")
    tab.get_by_role("link", name="A", exact=True).click()
    tab.wait_for_url("**/pages/glossary.html#term-all-reduce")


def test_a_finger_finds_the_buttons_that_copy(browser, address):
    context = browser.new_context(
        viewport={"width": WIDTHS["phone"], "height": 844}, has_touch=True, is_mobile=True
    )
    tab = context.new_page()
    tab.goto(urljoin(address, TORCH), wait_until="networkidle")
    assert style(tab.locator(".cell_input .copybtn"), "opacity") == "1"
    context.close()


def test_page_that_is_not_there(browser, address):
    tab = browser.new_page()
    response = tab.goto(urljoin(address, "notebooks/no/such_lesson.html"))
    assert response.status == HTTPStatus.NOT_FOUND
    assert tab.get_by_role("heading", name="Page not found").is_visible()
    tab.get_by_role("link", name="Feed JAX from Grain").first.click()
    tab.wait_for_url("**/notebooks/grain.html")
    tab.close()


# What stands where -----------------------------------------------------------------------------


def test_the_first_screen_has_the_result_and_the_code(open_page):
    tab = open_page(FRONT)
    tab.set_viewport_size(LAPTOP)
    picture = tab.get_by_role("img", name="Images per second on a logarithmic axis")
    code = tab.locator(".first-program pre").first
    buttons = [tab.get_by_role("link", name=name) for name in ("Start with", "Choose a loader")]
    for seen in (picture, code, *(button.first for button in buttons)):
        box = seen.bounding_box()
        assert box["y"] + box["height"] < LAPTOP["height"]
    assert code.bounding_box()["x"] > picture.bounding_box()["x"]
    tab.set_viewport_size({"width": WIDTHS["desktop"], "height": 900})
    for below in ("text=run from its first cell to its last", "#which-lesson-is-for-me h2"):
        assert is_on_screen(tab, tab.locator(below))
    assert copied(tab, tab.locator(".first-program .highlight").first) == front_page.code()


@each_theme
def test_on_a_phone_the_words_of_the_picture_are_legible(open_page, theme):
    tab = open_page(FRONT, "phone", theme)
    svg = tab.locator(".speeds svg")
    assert svg.locator("text").first.bounding_box()["height"] >= 11
    ends = svg.locator("text").evaluate_all("all => all.map(t => t.getBoundingClientRect().right)")
    assert max(ends) <= WIDTHS["phone"]
    assert style(svg, "color") != style(tab.locator("body"), "backgroundColor")
    figures = tab.locator(".speeds details")
    assert not figures.locator("table").is_visible()
    figures.locator("summary").click()
    assert figures.locator("table").is_visible()


def test_the_lessons_stand_in_the_groups_and_the_order_of_the_front_page(open_page):
    tab = open_page(FRONT)
    groups = tab.locator(".bd-sidebar-primary .caption-text").all_inner_texts()
    assert groups[0] == "Start" and groups[-1] == "Look up"
    headings = tab.locator("#which-lesson-is-for-me h3").all_inner_texts()
    assert [heading.removesuffix("#").strip() for heading in headings] == groups[:-1]
    for name, following in itertools.pairwise(lessons.in_order()):
        page = (SITE / f"notebooks/{name}.html").read_text()
        assert re.findall(r'<a class="right-next"\s+href="([^"]+)"', page) == [f"{following}.html"]


@pytest.mark.parametrize("name", navigation.loaders())
def test_the_short_answer_of_a_loader_begins_before_900_pixels(open_page, name):
    """The function to copy: `batches`, or in the lesson on tf.data, which has none, the first."""
    tab = open_page(f"notebooks/{name}.html")
    tab.set_viewport_size({"width": 1280, "height": 720})
    short = lessons.code_cells(lessons.read_notebook(name), "short-answer")
    tag = "short-answer" if short else "copy"
    answer = tab.locator(f".cell.tag_{tag} .cell_input").first
    assert answer.is_visible()
    assert answer.evaluate("e => e.getBoundingClientRect().top + scrollY") < 900


@pytest.mark.parametrize("name", lessons.listed())
def test_on_a_phone_the_answer_begins_on_the_first_screen(open_page, name):
    tab = open_page(f"notebooks/{name}.html", "phone")
    tab.set_viewport_size({"width": WIDTHS["phone"], "height": 844})
    answer = tab.locator(".cell.tag_short-answer .cell_input pre, #the-short-answer tbody tr").first
    assert is_on_screen(tab, answer)
    box = tab.locator("article blockquote").first
    assert box.bounding_box()["y"] > answer.bounding_box()["y"]


def test_outputs_do_not_look_like_code(open_page):
    tab = open_page(GRAIN)
    blocks = [tab.locator(f".cell_{side} pre") for side in ("input", "output")]
    assert style(blocks[0], "backgroundColor") != style(blocks[1], "backgroundColor")


@pytest.mark.parametrize("page", [page for page in READ if "_images/" in (SITE / page).read_text()])
def test_a_picture_is_sharp_and_no_white_card(open_page, page):
    """The lightness of a chart is turned over in the dark; photographs keep their colours."""
    tab = open_page(page)
    for theme, blend in (("light", "multiply"), ("dark", "screen")):
        tab.evaluate("theme => { document.documentElement.dataset.theme = theme; }", theme)
        for picture in tab.locator(".cell_output img").all():
            shown, whole = picture.evaluate("p => [p.getAttribute('width'), p.naturalWidth]")
            assert whole >= 2 * int(shown) - 1
            kept = "photographs" in (picture.get_attribute("class") or "").split()
            assert ("invert" in style(picture, "filter")) == (theme == "dark" and not kept)
            assert style(picture, "mixBlendMode") == ("normal" if kept else blend)


def test_on_a_phone_a_picture_scrolls_and_its_labels_stay_legible(open_page):
    tab = open_page(IN_DEPTH, "phone")
    figure = tab.locator(".cell_output figure").first
    shown, whole = figure.evaluate("f => [f.clientWidth, f.scrollWidth]")
    assert shown < whole and figure.locator("img").bounding_box()["width"] >= 576
    for scrolls in (figure, tab.locator(".cell_input pre")):
        assert "gradient" in style(scrolls, "backgroundImage")


def test_troubleshooting_begins_with_a_table_by_symptom(open_page):
    tab = open_page("pages/troubleshooting.html")
    table = tab.locator("article table").first
    assert is_on_screen(tab, table)
    assert table.locator("th").all_inner_texts() == ["you see", "cause", "way out"]
    message = tab.locator("article td code", has_text="t get attribute").first
    assert message.inner_text() == "Can't get attribute"


def test_the_footer_names_the_licences_of_digits_and_photographs():
    for licence in ("by-sa/3.0", "by/2.0"):
        assert f"https://creativecommons.org/licenses/{licence}/" in links(GRAIN)


def test_llms_txt_and_the_sitemap_lead_to_the_pages():
    listed = re.findall(r"\]\((\S+\.(?:md|html))\)", (SITE / "llms.txt").read_text())
    files = [SITE / urlsplit(link).path.removeprefix(PREFIX) for link in listed]
    assert all(file.exists() for file in files)
    markdown = [file for file in files if file.suffix == ".md"]
    assert sorted(file.stem for file in markdown) == lessons.names()
    assert all(file.read_text().startswith("# ") for file in markdown)
    sitemap = re.findall(r"<loc>(.*?)</loc>", (SITE / "sitemap.xml").read_text())
    assert sorted(urlsplit(url).path.removeprefix(PREFIX) for url in sitemap) == READ


# What is folded, and what needs no script --------------------------------------------------------


def folds(tab, tag: str):
    """The folded cells with this tag. There are some."""
    found = tab.locator(f".cell.tag_{tag} details")
    assert found.count()
    return found


@each_theme
@each_width
def test_a_cell_is_folded_to_its_title_and_one_click_opens_it(open_page, width, theme):
    tab = open_page(IN_DEPTH, width, theme)
    for fold in [folds(tab, "setup").first, *folds(tab, "proof").all()]:
        parts = [fold.locator(".cell_input"), *fold.locator(".cell_output").all()]
        assert not any(part.is_visible() for part in parts)
        title = fold.locator("summary").inner_text()
        assert ": " in title or title == "Imports and data"
        assert "@title" not in fold.inner_text()
        fold.locator("summary").click()
        assert all(part.is_visible() for part in parts)
    assert folds(tab, "proof").locator(".cell_output").count()
    tab.screenshot(path=SCREENSHOTS / f"folds-{width}-{theme}.jpg", full_page=True, quality=80)


def test_a_screen_reader_and_the_keyboard_find_a_proof_by_its_title(open_page):
    tab = open_page(TORCH)
    fold = folds(tab, "proof").first
    summary = fold.locator("summary")
    assert tab.get_by_text(summary.inner_text(), exact=True).first.is_visible()
    summary.focus()
    tab.keyboard.press("Enter")
    assert fold.locator(".cell_input").is_visible()
    assert not tab.locator("article summary[aria-label]").count()


def test_on_paper_proofs_stay_one_line_and_other_folds_are_printed(open_page):
    tab = open_page(TORCH)
    drawing = folds(tab, "hide-input").locator(".cell_input").first
    assert not drawing.is_visible()
    tab.emulate_media(media="print")
    assert drawing.is_visible() and tab.locator("article h1").is_visible()
    assert not any(code.is_visible() for code in folds(tab, "proof").locator(".cell_input").all())


@pytest.mark.parametrize("page", [FRONT, TORCH])
def test_a_page_is_painted_without_a_script(browser, address, page):
    context = browser.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto(urljoin(address, page))
    assert tab.locator(".speeds svg" if page == FRONT else ".tag_short-answer").first.is_visible()
    assert tab.get_by_role("heading", level=2).first.is_visible()
    block = tab.locator(".highlight-python, .highlight-ipython3").locator("visible=true").first
    colours = "all => all.map(word => getComputedStyle(word).color)"
    words = block.locator("pre span[class]").evaluate_all(colours)
    assert len(set(words)) > 2, "code has the colours of its words"
    if page == TORCH:
        folds(tab, "proof").first.locator("summary").click()
        assert folds(tab, "proof").first.locator(".cell_input").is_visible()
    context.close()


@pytest.mark.parametrize("page", [FRONT, GRAIN])
def test_the_first_paint_waits_for_no_script(browser, address, page):
    """Each script is asked for and never comes, as on a bad line."""
    context, held = browser.new_context(), []
    tab = context.new_page()
    tab.route("**/*.js*", lambda route: held.append(route.request.url))
    tab.goto(urljoin(address, page), wait_until="commit")
    painted = "performance.getEntriesByName('first-contentful-paint').length"
    tab.wait_for_function(painted, timeout=10_000)
    assert held and tab.get_by_role("heading", level=1).is_visible()
    context.close()


def test_icons_need_no_script(open_page):
    icons = open_page(GRAIN).locator(".bd-header-article i[class*='fa-']:visible")
    glyphs = icons.evaluate_all("all => all.map(i => getComputedStyle(i, '::before').content)")
    assert len(glyphs) > 4 and not {"none", "normal", '""'} & set(glyphs)
