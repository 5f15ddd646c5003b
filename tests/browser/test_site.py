"""The built site in a real Chromium, as readers see it: three widths, two themes.

`tox run -e browser` builds the site and runs this. `tox run -e test` does not.
"""

import functools
import http.server
import re
import threading
from http import HTTPStatus
from urllib.parse import unquote, urljoin, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe

from tools import lessons

BUILT = lessons.ROOT / "_build"
SITE = BUILT / "html"
SCREENSHOTS = BUILT / "screenshots"
PREFIX = "/feed-jax/"  # where Pages serves it, and the links of 404.html point
FILES = [path.relative_to(SITE) for path in SITE.rglob("*.html")]
PAGES = sorted(str(file) for file in FILES if file.parts[0] != "_static")
WIDTHS = {"phone": 390, "tablet": 820, "desktop": 1440}
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
    too_wide = "all => all.filter(it => it.scrollWidth > it.clientWidth).map(it => it.innerText)"
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
    source = lessons.code_cells(lessons.read_notebook("pytorch_dataloader"))[0].source
    cell = tab.locator(".cell_input .highlight").first
    cell.hover()
    cell.locator("button.copybtn").click()
    tab.wait_for_selector("button.copybtn.success")
    assert tab.evaluate("navigator.clipboard.readText()").strip() == source.strip()


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
    assert drawing.is_visible()
    assert not any(fold.locator(".cell_input").is_visible() for fold in proofs(tab).all())


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
