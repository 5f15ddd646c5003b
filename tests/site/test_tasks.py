"""What readers come to the site for: an answer in two clicks, code to copy, a way to the files."""

import re
from http import HTTPStatus
from urllib.parse import urljoin, urlsplit

import pytest
from built import FRONT, GRAIN, SEARCH, SITE, TORCH, WIDTHS, copied, is_on_screen, links, style

from tools.lesson import copies, lessons, modules

LOADERS, MEMORY = "notebooks/choose_a_loader.html", "notebooks/memory_that_grows.html"
RESUME, PHOTOGRAPHS = "resume-from-a-checkpoint", "read-a-folder-of-photographs"
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
    "search why memory grows": ("memory+grows", ["Memory that grows > .*"], MEMORY),
    "search a message": ("Disallowed+host-to-device+transfer", ["Troubleshooting > .*"], MESSAGES),
    "search a hang": ("DataLoader+timed+out", ["Troubleshooting > .*"], MESSAGES),
    "search a word": ("packing", ["Glossary > packing"], f"{WORDS}packing"),
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
    tab.get_by_role("button", name="Copy it with its imports").first.click()
    tab.get_by_role("button", name="Copied").first.wait_for()
    for _ in range(100):  # the button above says "Copied!" for a while, too
        block = tab.evaluate("navigator.clipboard.readText()")
        if block != cell.source:
            break
        tab.wait_for_timeout(50)
    assert block.strip() in copies.blocks(notebook).values()


def test_without_a_script_a_fold_has_the_code_with_its_imports(browser, address):
    context = browser.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto(urljoin(address, TORCH))
    fold = tab.locator("details.with-imports").first
    assert not fold.locator("pre").is_visible()
    fold.locator("summary").click()
    assert fold.locator("pre").is_visible()
    context.close()


def test_the_code_of_a_page_is_a_python_file(open_page):
    tab = open_page(TORCH)
    with tab.expect_download() as waiting:
        tab.get_by_role("link", name="Python file").click()
    assert waiting.value.suggested_filename == "feed_pytorch_dataloader.py"
    assert waiting.value.path().read_text() == modules.source("pytorch_dataloader")


def test_each_page_with_code_to_copy_links_to_its_file_and_no_other_does():
    linked = {
        name
        for name in lessons.names()
        if f"{modules.module_name(name)}.py" in links(f"notebooks/{name}.html")
    }
    assert linked == {*modules.pages()}


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
    tab.wait_for_url("**/tensorflow_datasets.html#resume-from-a-checkpoint")


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
