"""The built site, the sizes at which readers see it, and what a test asks of a page."""

import re

import pytest

from tools.lesson import lessons

SITE = lessons.ROOT / "_build" / "html"
SCREENSHOTS = lessons.ROOT / "_build" / "screenshots"
PREFIX = "/feed-jax/"  # where Pages serves it, and the links of 404.html point
FILES = [path.relative_to(SITE) for path in SITE.rglob("*.html")]
PAGES = sorted(str(file) for file in FILES if file.parts[0] != "_static")
READ = [page for page in PAGES if page not in {"404.html", "search.html"}]
WIDTHS = {"phone": 390, "tablet": 1024, "desktop": 1440}
LAPTOP = {"width": 1280, "height": 800}  # a small one; the right sidebar shows from 1200 on
FRONT, SEARCH = "index.html", "search.html?q="
GRAIN, TORCH = "notebooks/grain.html", "notebooks/pytorch_dataloader.html"
IN_DEPTH = "notebooks/pytorch_dataloader_in_depth.html"

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
