"""The built site in a real Chromium, as readers see it: three widths, two themes.

`tox run -e browser` builds the site and runs this. `tox run -e test` does not.
"""

import functools
import gzip
import html
import http.server
import itertools
import re
import struct
import threading
from http import HTTPStatus
from urllib.parse import unquote, urljoin, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe

from tools import copies, front_page, lessons, same_section

BUILT = lessons.ROOT / "_build"
SITE = BUILT / "html"
SCREENSHOTS = BUILT / "screenshots"
PREFIX = "/feed-jax/"  # where Pages serves it, and the links of 404.html point
FILES = [path.relative_to(SITE) for path in SITE.rglob("*.html")]
PAGES = sorted(str(file) for file in FILES if file.parts[0] != "_static")
WIDTHS = {"phone": 390, "tablet": 820, "desktop": 1440}
HEAVIEST = 1_500_000  # bytes of a page and its pictures
FIT_A_PHONE = 3  # columns of a table
PAPER = {"width": 718, "height": 1046}  # A4 between the margins of a browser
LAPTOP = {"width": 1280, "height": 800}  # a small one; the right sidebar shows from 1200 on
# Without preload axe asks for no style sheets of its own.
AXE = {"resultTypes": ["violations"], "preload": False}
STRUCTURE = AXE | {"rules": {"color-contrast": {"enabled": False}}}
CONTRAST = AXE | {"runOnly": ["color-contrast"]}
# Axe looks at the contrast of each word, 10 s for the code of a lesson. One word of each colour
# is enough.
MARK_A_WORD_OF_EACH_KIND = """
    const kinds = new Set();
    for (const word of document.querySelectorAll(".highlight span[class]")) {
        if (!kinds.has(word.className)) { word.dataset.sample = ""; kinds.add(word.className); }
    }
"""
WITH_SAMPLES = {"include": [["html"], ["[data-sample]"]], "exclude": [[".highlight"]]}


class Pages(http.server.SimpleHTTPRequestHandler):
    """Serves the site below PREFIX, and 404.html for what is not there, as GitHub Pages does."""

    def translate_path(self, path):
        inside = path.removeprefix(PREFIX) if path.startswith(PREFIX) else "not-there"
        return super().translate_path("/" + inside)

    def send_error(self, code, message=None, explain=None):
        if code != HTTPStatus.NOT_FOUND:
            super().send_error(code, message, explain)
            return
        body = (SITE / "404.html").read_bytes()
        self.send_response(code)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture(scope="session")
def address():
    assert PAGES, "There is no site to test: build it with `tox run -e site`."
    handler = functools.partial(Pages, directory=SITE)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://localhost:{server.server_port}{PREFIX}"
        server.shutdown()


@pytest.fixture
def open_page(browser, address):
    """A function that opens a page. In the end no error and no bad request may have been seen."""
    contexts, troubles = [], []

    def on_request(request):
        if not request.url.startswith((address, "data:", "blob:")):
            troubles.append(f"asks outside: {request.url}")

    def on_response(response):
        # Chromium itself writes to the console what has such a status.
        if response.status >= HTTPStatus.BAD_REQUEST:
            troubles.append(f"{response.status}: {response.url}")

    def open_it(page, width="desktop", theme="light"):
        context = browser.new_context(
            viewport={"width": WIDTHS[width], "height": 900},
            color_scheme=theme,
            permissions=["clipboard-read", "clipboard-write"],
            reduced_motion="reduce",
        )
        contexts.append(context)
        tab = context.new_page()
        tab.on("console", lambda m: m.type in {"error", "warning"} and troubles.append(m.text))
        tab.on("pageerror", lambda error: troubles.append(str(error)))
        tab.on("requestfailed", lambda request: troubles.append(f"failed: {request.url}"))
        tab.on("request", on_request)
        tab.on("response", on_response)
        tab.goto(urljoin(address, page), wait_until="networkidle")
        return tab

    yield open_it
    for context in contexts:
        context.close()
    assert not troubles


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("page", PAGES)
def test_page(open_page, page, width, theme):
    tab = open_page(page, width, theme)
    SCREENSHOTS.mkdir(exist_ok=True)
    name = page.removesuffix(".html").replace("/", "-")
    tab.screenshot(path=SCREENSHOTS / f"{name}-{width}-{theme}.jpg", full_page=True, quality=80)

    assert tab.evaluate("document.documentElement.dataset.theme") == theme
    assert tab.evaluate("document.documentElement.scrollWidth") <= WIDTHS[width]
    assert not tab.locator("img:not([alt]), img[alt='']").count(), "a picture without alt text"
    tab.evaluate(MARK_A_WORD_OF_EACH_KIND)
    faults = Axe().run(tab, context=WITH_SAMPLES, options=CONTRAST).response["violations"]
    if theme == "light":  # the structure is the same in both
        faults += Axe().run(tab, options=STRUCTURE).response["violations"]
    assert [f"{fault['id']}: {fault['nodes'][0]['html'][:300]}" for fault in faults] == []


@pytest.mark.parametrize("page", PAGES)
def test_code_and_tables_fit_beside_both_sidebars(open_page, page):
    tab = open_page(page)
    tab.set_viewport_size(LAPTOP)
    blocks = tab.locator("pre, .pst-scrollable-table-container")
    too_wide = (
        "all => all.filter(it => it.checkVisibility() && it.scrollWidth > it.clientWidth)"
        ".map(it => it.innerText)"
    )
    assert blocks.evaluate_all(too_wide) == []


def test_the_footer_names_the_licences_of_digits_and_photographs(open_page):
    links = (
        open_page("notebooks/grain.html")
        .locator("footer a")
        .evaluate_all("links => links.map(a => a.href)")
    )
    for licence in ("by-sa/3.0", "by/2.0"):
        assert f"https://creativecommons.org/licenses/{licence}/" in links


def test_page_that_is_not_there(browser, address):
    tab = browser.new_page()
    response = tab.goto(urljoin(address, "notebooks/no/such_lesson.html"))
    assert response.status == HTTPStatus.NOT_FOUND
    assert tab.get_by_role("heading", name="Page not found").is_visible()
    tab.get_by_role("link", name="Feed JAX from Grain").first.click()
    tab.wait_for_url("**/notebooks/grain.html")
    tab.close()


def test_search_finds(open_page):
    tab = open_page("search.html?q=forkserver")
    tab.wait_for_selector("#search-results li a")
    found = tab.eval_on_selector_all("#search-results li a", "links => links.map(a => a.href)")
    assert any("notebooks/workers_beside_jax.html" in link for link in found)


def test_copy_button_copies_the_code_alone(open_page):
    tab = open_page("notebooks/pytorch_dataloader.html")
    cells = lessons.code_cells(lessons.read_notebook("pytorch_dataloader"))
    [source] = [cell.source for cell in cells if "short-answer" in lessons.tags(cell)]
    cell = tab.locator(".tag_short-answer .cell_input .highlight").first
    cell.hover()
    cell.locator("button.copybtn").click()
    tab.wait_for_selector("button.copybtn.success")
    assert tab.evaluate("navigator.clipboard.readText()").strip() == source.strip()


@pytest.mark.parametrize("name", lessons.names())
def test_code_has_a_copy_button_and_outputs_have_none(open_page, name):
    tab = open_page(f"notebooks/{name}.html")
    assert tab.locator(".cell_input").count() == tab.locator(".cell_input .copybtn").count()
    assert not tab.locator(".cell_output .copybtn").count()


def test_the_search_shows_the_words_that_it_found_not_the_headings(open_page):
    tab = open_page("search.html?q=ArrayRecordWriter")
    lesson = tab.locator("#search-results li", has_text="Feed JAX from Grain")
    lesson.locator("p.context").wait_for()
    assert "arrayrecordwriter" in lesson.inner_text().lower()


def test_the_contents_open_below_the_section_that_is_read(open_page):
    tab = open_page("notebooks/grain.html")
    shown = tab.locator("#pst-page-toc-nav a:visible, .page-toc a:visible")
    sections = shown.count()
    assert sections < 10  # the questions, which are the same in each lesson
    tab.locator("#read-records-from-disk").scroll_into_view_if_needed()
    here = tab.locator(".bd-sidebar-secondary").get_by_role("link", name="Read records from disk")
    here.wait_for(state="visible")
    box = here.bounding_box()
    assert 0 < box["y"] < tab.viewport_size["height"]


def test_headings_get_smaller_and_outputs_do_not_look_like_code(open_page):
    tab = open_page("notebooks/grain.html")

    def style(selector, name):
        read = "(e, name) => getComputedStyle(e)[name]"
        return tab.locator(selector).first.evaluate(read, name)

    sizes = [float(style(f"article h{n}", "fontSize")[:-2]) for n in (1, 2, 3)]
    assert sizes == sorted(set(sizes), reverse=True)
    assert int(style("article h2", "fontWeight")) >= int(style("article h3", "fontWeight"))
    colours = [style(f".cell_{side} pre", "backgroundColor") for side in ("input", "output")]
    assert colours[0] != colours[1]


def test_imports_are_folded_with_what_they_print_and_one_click_opens_them(open_page):
    tab = open_page("notebooks/grain.html")
    fold = tab.locator(".cell.tag_setup details").first
    assert fold.locator("summary").inner_text().strip() == "Imports and data"
    parts = fold.locator(".cell_input"), fold.locator(".cell_output").first
    assert not any(part.is_visible() for part in parts)
    fold.locator("summary").click()
    assert all(part.is_visible() for part in parts)


@pytest.mark.parametrize("name", same_section.LOADERS)
def test_the_short_answer_of_a_loader_begins_before_900_pixels(open_page, name):
    """The function to copy: `batches`, or in the lesson on tf.data, which has none, the first."""
    tab = open_page(f"notebooks/{name}.html")
    tab.set_viewport_size({"width": 1280, "height": 720})
    tags = [lessons.tags(cell) for cell in lessons.code_cells(lessons.read_notebook(name))]
    tag = "short-answer" if any("short-answer" in found for found in tags) else "copy"
    answer = tab.locator(f".cell.tag_{tag} .cell_input").first
    assert answer.is_visible()
    assert answer.evaluate("e => e.getBoundingClientRect().top + scrollY") < 900


def test_on_a_phone_a_picture_scrolls_and_its_labels_stay_legible(open_page):
    tab = open_page("notebooks/grain.html", "phone")
    figure = tab.locator(".cell_output figure").first
    size = figure.evaluate("f => [f.clientWidth, f.scrollWidth]")
    assert size[0] < size[1] and figure.locator("img").bounding_box()["width"] >= 576
    assert "gradient" in figure.evaluate("f => getComputedStyle(f).backgroundImage")
    inputs = tab.locator(".cell_input pre").first
    assert "gradient" in inputs.evaluate("f => getComputedStyle(f).backgroundImage")


@pytest.mark.parametrize("page", PAGES)
def test_on_a_phone_the_last_column_of_a_table_is_there_or_is_hinted_at(open_page, page):
    tab = open_page(page, "phone")
    tables = tab.locator(".bd-content .pst-scrollable-table-container:visible")
    for table in tables.all():
        shown, whole = table.evaluate("t => [t.clientWidth, t.scrollWidth]")
        columns = table.locator("tr").first.locator("> *")
        if columns.count() <= FIT_A_PHONE:
            assert whole <= shown, table.inner_text()
        elif whole > shown:
            style = "e => getComputedStyle(e)."
            assert "gradient" in table.evaluate(f"{style}backgroundImage")
            over = "tr, tr > :last-child"  # what lies over the shadow lets it through
            colours = table.locator(over).evaluate_all(f"all => all.map({style}backgroundColor)")
            assert all(re.search(r", 0(\.0\d+)?\)$", colour) for colour in colours), colours
            assert columns.first.evaluate(f"{style}position") == "sticky"


def test_the_first_screen_has_the_result_and_the_code(open_page):
    tab = open_page("index.html")
    tab.set_viewport_size(LAPTOP)
    picture = tab.get_by_role("img", name="Images per second on a logarithmic axis")
    code = tab.locator(".ten-lines pre").first
    for seen in (picture, code):
        box = seen.bounding_box()
        assert box["y"] + box["height"] < LAPTOP["height"]
    assert code.bounding_box()["x"] > picture.bounding_box()["x"]
    tab.set_viewport_size({"width": WIDTHS["desktop"], "height": 900})
    rows = tab.locator("#data-in-memory tbody tr").first
    for seen in (tab.get_by_text("run from its first cell to its last"), rows):
        assert seen.bounding_box()["y"] < 900  # what is checked, and the first lessons
    code.hover()
    tab.locator(".ten-lines button.copybtn").first.click()
    tab.wait_for_selector("button.copybtn.success")
    copied = tab.evaluate("navigator.clipboard.readText()").strip()
    assert copied == front_page.code()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_on_a_phone_the_words_of_the_picture_are_legible(open_page, theme):
    tab = open_page("index.html", "phone", theme)
    svg = tab.locator(".speeds svg")
    assert svg.locator("text").first.bounding_box()["height"] >= 11
    ends = svg.locator("text").evaluate_all("all => all.map(t => t.getBoundingClientRect().right)")
    assert max(ends) <= WIDTHS["phone"]
    colours = "e => [getComputedStyle(e).color, getComputedStyle(document.body).backgroundColor]"
    ink, paper = svg.evaluate(colours)
    assert ink != paper
    figures = tab.locator(".speeds details")
    assert not figures.locator("table").is_visible()
    figures.locator("summary").click()
    assert figures.locator("table").is_visible()


def test_the_lessons_stand_in_the_groups_and_the_order_of_the_front_page(open_page):
    tab = open_page("index.html")
    groups = tab.locator(".bd-sidebar-primary .caption-text").all_inner_texts()
    assert groups[0] == "Data in memory" and groups[-1] == "Look up"
    headings = tab.locator("#which-lesson-is-for-me h3").all_inner_texts()
    assert [heading.removesuffix("#").strip() for heading in headings] == groups[:-1]
    path = lessons.in_order()
    for name, following in itertools.pairwise(path):
        page = (SITE / f"notebooks/{name}.html").read_text()
        [after] = re.findall(r'<a class="right-next"\s+href="([^"]+)"', page)
        assert after == f"{following}.html"


FRONT, SEARCH = "index.html", "search.html?q="
GRAIN, TORCH = "notebooks/grain.html", "notebooks/pytorch_dataloader.html"
# What readers come for: where they start (a search counts as the one that they may make), the links
# that they click, and where they arrive.
TASKS = {
    "resume in Grain": (
        FRONT,
        ["Grain: Resume at any step"],
        f"{GRAIN}#resume-at-any-step-on-any-number-of-processes",
    ),
    "a section of a lesson, by a search": (
        f"{SEARCH}photographs+pytorch",
        ["Feed JAX from a PyTorch DataLoader > Read a folder of photographs"],
        f"{TORCH}#read-a-folder-of-photographs",
    ),
    "why memory grows": (
        f"{SEARCH}memory+grows",
        ["Find memory that grows, and bound it"],
        "notebooks/memory_that_grows.html",
    ),
    "read my folder of photographs with PyTorch": (
        FRONT,
        ["PyTorch: A folder of photographs"],
        f"{TORCH}#read-a-folder-of-photographs",
    ),
    "do the same with Grain": (
        FRONT,
        ["PyTorch: A folder of photographs", "Grain: A folder of photographs"],
        f"{GRAIN}#read-a-folder-of-photographs",
    ),
    "what each loader costs": (
        FRONT,
        ["Choose a loader: measured side by side"],
        "notebooks/choose_a_loader.html",
    ),
    "what it costs on a GPU": (
        FRONT,
        ["Choose a loader: measured side by side", "Know when speed decides"],
        "notebooks/choose_a_loader.html#know-when-speed-decides",
    ),
    "is my GPU waiting": (
        FRONT,
        ["Feed the device: keep JAX busy, and prove it", "The short answer"],
        "notebooks/feed_the_device.html#the-short-answer",
    ),
    "a message that I got": (
        f"{SEARCH}Disallowed+host-to-device+transfer",
        ["Troubleshooting"],
        "pages/troubleshooting.html#index-",
    ),
    "a hang of the DataLoader": (
        f"{SEARCH}DataLoader+timed+out",
        ["Troubleshooting"],
        "pages/troubleshooting.html#index-",
    ),
    "what a word means": (f"{SEARCH}packing", ["Glossary"], "pages/glossary.html#term-packing"),
    "what is checked, and where": (FRONT, ["compared with the page"], "pages/checked.html"),
    "a PyTorch tensor in JAX without a copy": (
        FRONT,
        ["Exchange arrays without a copy: DLPack between JAX, PyTorch, NumPy, TensorFlow and CuPy"],
        "notebooks/dlpack_zero_copy.html",
    ),
    "train on many hosts": (
        FRONT,
        ["Scale out: many devices, many processes, exact resume"],
        "notebooks/many_devices.html",
    ),
}


@pytest.mark.parametrize("task", TASKS)
def test_a_task_of_a_reader_takes_a_search_or_two_clicks(open_page, address, task):
    start, clicks, end = TASKS[task]
    assert len(clicks) <= (1 if start.startswith(SEARCH) else 2)
    tab = open_page(start)
    for name in clicks:  # a search has to find it before all else
        found = tab.locator("#search-results li").first if start.startswith(SEARCH) else tab
        exact = re.compile(name.replace(": ", r"\s*: ") + "$")
        found.get_by_role("link", name=exact).locator("visible=true").last.click()
    tab.wait_for_url(lambda url: url.startswith(urljoin(address, end)))
    if "#" in tab.url:
        target = tab.locator(f"[id='{urlsplit(tab.url).fragment}']")
        assert 0 <= target.bounding_box()["y"] < tab.viewport_size["height"]


def test_the_tuned_loader_can_be_copied_with_its_imports(open_page):
    tab = open_page(FRONT)
    tab.get_by_role("link", name=re.compile(r"PyTorch\s*: Is a faster")).click()
    folds = tab.locator("details.with-imports")
    fold = folds.filter(has_text="def tuned_batches")
    assert not fold.locator("pre").is_visible()
    fold.locator("summary").click()
    fold.locator("pre").hover()
    fold.locator("button.copybtn").click()
    tab.wait_for_selector("button.copybtn.success")
    copied = tab.evaluate("navigator.clipboard.readText()").strip()
    assert copied in copies.blocks(lessons.read_notebook("pytorch_dataloader")).values()


def test_the_same_section_of_another_loader_is_one_click_away_but_not_on_paper(open_page):
    tab = open_page(GRAIN)
    line = tab.locator("#resume-at-any-step-on-any-number-of-processes p.also")
    link = line.get_by_role("link", name=re.compile(r"TFDS\s*: Resume at any step"))
    assert link.inner_text().startswith("TFDS")
    tab.emulate_media(media="print")
    assert not line.is_visible()
    tab.emulate_media(media="screen")
    link.click()
    tab.wait_for_url("**/tensorflow_datasets.html#resume-at-any-step-on-any-number-of-processes")


def test_troubleshooting_begins_with_a_table_by_symptom(open_page):
    tab = open_page("pages/troubleshooting.html")
    assert tab.locator("article table").first.bounding_box()["y"] < tab.viewport_size["height"]
    head = tab.locator("article table").first.locator("th").all_inner_texts()
    assert head == ["you see", "cause", "way out"]
    message = tab.locator("article td code", has_text="t get attribute").first
    assert message.inner_text() == "Can't get attribute"


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page not in {"404.html", "search.html"}]
)
def test_a_link_to_a_page_has_a_preview(page):
    source = (SITE / page).read_text()

    def meta(name):
        [found] = re.findall(rf'<meta (?:property|name)="{name}" content="([^"]+)"', source)
        return html.unescape(found)

    assert meta("og:title") and meta("og:image:alt")
    assert len(meta("og:description")) > 40 and meta("description")
    assert "{" not in meta("og:description")
    card = SITE / meta("og:image").partition(PREFIX)[2]
    assert struct.unpack(">II", card.read_bytes()[16:24]) == (1200, 630)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_no_heavier_than_a_phone_likes(page):
    pictures = set(re.findall(r'<img [^>]*src="([^"]+)"', (SITE / page).read_text()))
    own = [(SITE / page).parent / picture for picture in pictures if page != "404.html"]
    assert (SITE / page).stat().st_size + sum(file.stat().st_size for file in own) < HEAVIEST


@pytest.mark.parametrize("page", [page for page in PAGES if page != "404.html"])
def test_all_that_a_page_asks_for_is_no_heavier_either(browser, address, page):
    """As Pages sends it, which compresses texts: with styles, scripts, fonts and the index."""
    context, asked = browser.new_context(), set()
    tab = context.new_page()
    tab.on("request", lambda request: asked.add(urlsplit(request.url).path))
    tab.goto(urljoin(address, page), wait_until="networkidle")
    context.close()
    files = [SITE / path.removeprefix(PREFIX) for path in asked if path.startswith(PREFIX)]
    sent = {file.name: len(sent_as(file)) for file in files}
    assert sum(sent.values()) < HEAVIEST, sent


def sent_as(file):
    data = file.read_bytes()
    return gzip.compress(data) if file.suffix in {".css", ".html", ".js", ".svg"} else data


@pytest.mark.parametrize("page", [FRONT, GRAIN])
def test_a_page_is_painted_without_a_script(browser, address, page):
    context = browser.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto(urljoin(address, page))
    assert tab.locator(".speeds svg" if page == FRONT else ".tag_short-answer").first.is_visible()
    assert tab.get_by_role("heading", level=2).first.is_visible()
    block = tab.locator(".highlight-python, .highlight-ipython3").locator("visible=true").first
    colours = "word => getComputedStyle(word).color"
    words = block.locator("pre span[class]").evaluate_all("all => all.map(" + colours + ")")
    assert len(set(words)) > 2, "code has the colours of its words"
    context.close()


@pytest.mark.parametrize("page", [FRONT, GRAIN])
def test_the_first_paint_waits_for_no_script(browser, address, page):
    """Each script is asked for and never comes, as on a bad line."""
    context, held = browser.new_context(), []
    tab = context.new_page()

    def hold(route):
        held.append(route)

    tab.route("**/*.js*", hold)
    tab.goto(urljoin(address, page), wait_until="commit")
    painted = "performance.getEntriesByName('first-contentful-paint').length"
    tab.wait_for_function(painted, timeout=10_000)
    assert held and tab.get_by_role("heading", level=1).is_visible()
    context.close()


def test_icons_need_no_script(open_page):
    icons = open_page(GRAIN).locator(".bd-header-article i[class*='fa-']:visible")
    glyphs = icons.evaluate_all("all => all.map(i => getComputedStyle(i, '::before').content)")
    assert len(glyphs) > 4 and not {"none", "normal", '""'} & set(glyphs)


def test_llms_txt_leads_to_the_lessons_as_markdown():
    links = re.findall(r"\]\((\S+\.md)\)", (SITE / "llms.txt").read_text())
    assert len(links) == len(lessons.names())
    for link in links:
        file = SITE / urlsplit(link).path.removeprefix(PREFIX)
        assert file.read_text().startswith("# ")
    for link in re.findall(r"\]\((\S+\.html)\)", (SITE / "llms.txt").read_text()):
        assert (SITE / urlsplit(link).path.removeprefix(PREFIX)).exists()


def proofs(tab):
    """The folded proofs of the PyTorch lesson. There are some."""
    found = tab.locator(".cell.tag_proof details")
    assert found.count()
    return found


def is_open(fold) -> bool:
    return fold.evaluate("fold => fold.open")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_a_proof_is_folded_to_its_title_and_one_click_opens_it(open_page, width, theme):
    tab = open_page("notebooks/pytorch_dataloader.html", width, theme)
    for fold in proofs(tab).all():
        title, code = fold.locator("summary"), fold.locator(".cell_input")
        assert not is_open(fold) and not code.is_visible()
        assert ": " in title.inner_text() and "@title" not in fold.inner_text()
        title.click()
        assert is_open(fold) and code.is_visible()
        assert all(output.is_visible() for output in fold.locator(".cell_output").all())
    assert proofs(tab).locator(".cell_output").count()
    tab.screenshot(path=SCREENSHOTS / f"proofs-{width}-{theme}.jpg", full_page=True, quality=80)


def test_a_screen_reader_and_the_keyboard_find_a_proof_by_its_title(open_page):
    tab = open_page("notebooks/pytorch_dataloader.html")
    summary = proofs(tab).first.locator("summary")
    assert summary.get_attribute("aria-label") is None
    assert tab.get_by_text(summary.inner_text(), exact=True).first.is_visible()
    summary.focus()
    tab.keyboard.press("Enter")
    assert is_open(proofs(tab).first)
    assert not tab.locator("summary[aria-label='Toggle hidden content']").count()


def test_a_proof_opens_without_javascript(browser, address):
    context = browser.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto(urljoin(address, "notebooks/pytorch_dataloader.html"))
    fold = proofs(tab).first
    assert not fold.locator(".cell_input").is_visible()
    fold.locator("summary").click()
    assert fold.locator(".cell_input").is_visible()
    context.close()


def test_on_paper_proofs_stay_one_line_and_other_folds_are_printed(open_page):
    tab = open_page("notebooks/pytorch_dataloader.html")
    drawing = tab.locator(".cell.tag_hide-input details .cell_input").first
    assert not drawing.is_visible()
    tab.emulate_media(media="print")
    assert drawing.is_visible() and tab.locator("article h1").is_visible()
    assert not any(fold.locator(".cell_input").is_visible() for fold in proofs(tab).all())


@pytest.mark.parametrize("page", PAGES)
def test_on_paper_nothing_is_cut_off(open_page, page):
    tab = open_page(page)
    tab.set_viewport_size(PAPER)
    tab.emulate_media(media="print")
    wide = (
        "all => all.filter(it => it.checkVisibility() && (it.scrollWidth > it.clientWidth + 1 ||"
        " it.getBoundingClientRect().right > innerWidth)).map(it => it.outerHTML.slice(0, 200))"
    )
    parts = tab.locator(".bd-article :is(pre, img, svg, table)")
    assert parts.evaluate_all(wide) == []


def test_theme_switch_goes_to_the_dark_theme_and_stays(open_page):
    tab = open_page("index.html", theme="light")
    tab.get_by_role("button", name="Color mode").click()
    tab.get_by_role("button", name="Dark").click()
    assert tab.evaluate("document.documentElement.dataset.theme") == "dark"
    tab.reload()
    assert tab.evaluate("document.documentElement.dataset.theme") == "dark"


def links(page: str) -> list[str]:
    return re.findall(r'<a\b[^>]*?\bhref="([^"]+)"', (SITE / page).read_text())


@pytest.mark.parametrize("page", PAGES)
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


@pytest.mark.parametrize("name", lessons.names())
def test_buttons_lead_to_the_lesson(name):
    buttons = links(f"notebooks/{name}.html")
    file = f"notebooks/{name}.ipynb"
    assert (lessons.ROOT / file).is_file()
    for start in ("https://colab.research.google.com/github/", "https://github.com/"):
        ends = f"/blob/main/{file}", f"/blob/main/{file}?plain=1"
        assert [link for link in buttons if link.startswith(start) and link.endswith(ends)]
    assert f"../_sources/{file}" in buttons
    assert (SITE / "_sources" / file).read_bytes() == (lessons.ROOT / file).read_bytes()


def test_sitemap_lists_the_pages():
    listed = re.findall(r"<loc>(.*?)</loc>", (SITE / "sitemap.xml").read_text())
    paths = [urlsplit(url).path.removeprefix(PREFIX) for url in listed]
    assert sorted(paths) == [page for page in PAGES if page not in {"404.html", "search.html"}]


@pytest.mark.parametrize("page", PAGES)
def test_keyboard_reaches_everything(open_page, page):
    tab = open_page(page)
    wanted = tab.evaluate(
        """() => {
            const all = document.querySelectorAll("a[href], button, input, summary, select");
            const seen = [...all].filter(
                e => e.checkVisibility({visibilityProperty: true}) && !e.disabled
            );
            seen.forEach((e, i) => { e.dataset.number = i; });
            return seen.length;
        }"""
    )
    reached = set()
    for _ in range(3 * wanted):  # code that scrolls takes the focus as well
        tab.keyboard.press("Tab")
        reached.add(tab.evaluate("document.activeElement.dataset.number"))
        if len(reached - {None}) == wanted:
            break
    missed = [number for number in range(wanted) if str(number) not in reached]
    found = [
        tab.locator(f"[data-number='{number}']").evaluate("e => e.outerHTML.slice(0, 200)")
        for number in missed
    ]
    assert found == []


def test_keyboard_opens_the_list_of_lessons_on_a_phone(open_page):
    tab = open_page("pages/glossary.html", "phone")  # names no lesson beside the list
    lesson = tab.get_by_role("link", name="Feed JAX from Grain").first
    assert not lesson.is_visible()
    tab.get_by_role("button", name="Toggle primary sidebar").focus()
    tab.keyboard.press("Enter")
    lesson.wait_for(state="visible")
    for _ in range(20):
        tab.keyboard.press("Tab")
        if lesson.evaluate("link => link === document.activeElement"):
            break
    tab.keyboard.press("Enter")
    tab.wait_for_url("**/notebooks/grain.html")
