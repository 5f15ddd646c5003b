"""What stands where on the built site, what is folded, and what needs no script."""

import itertools
import re
from urllib.parse import urljoin, urlsplit

import pytest
from built import (
    FRONT,
    GRAIN,
    IN_DEPTH,
    LAPTOP,
    PREFIX,
    READ,
    SCREENSHOTS,
    SITE,
    TORCH,
    WIDTHS,
    copied,
    each_theme,
    each_width,
    is_on_screen,
    links,
    style,
)

from tools.lesson import lessons
from tools.site import front_page, navigation


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
    code, answers = ".cell.tag_short-answer .cell_input pre", ":is(ol > li, tbody tr)"
    answer = tab.locator(f"{code}, #the-short-answer {answers}").first
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


@pytest.mark.parametrize("name", ["start_here", "four_loaders"])
def test_a_picture_that_was_drawn_for_a_phone_fits(open_page, name):
    tab = open_page(f"notebooks/{name}.html", "phone")
    figure = tab.locator(".cell_output figure").first
    shown, whole = figure.evaluate("f => [f.clientWidth, f.scrollWidth]")
    assert shown == whole and figure.locator("img").bounding_box()["width"] > 0.8 * shown


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
