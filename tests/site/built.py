"""The built site, and the sizes at which readers see it."""

from tools.lesson import lessons

SITE = lessons.ROOT / "_build" / "html"
SCREENSHOTS = lessons.ROOT / "_build" / "screenshots"
PREFIX = "/feed-jax/"  # where Pages serves it, and the links of 404.html point
FILES = [path.relative_to(SITE) for path in SITE.rglob("*.html")]
PAGES = sorted(str(file) for file in FILES if file.parts[0] != "_static")
READ = [page for page in PAGES if page not in {"404.html", "search.html"}]
WIDTHS = {"phone": 390, "tablet": 1024, "desktop": 1440}
LAPTOP = {"width": 1280, "height": 800}  # a small one; the right sidebar shows from 1200 on
