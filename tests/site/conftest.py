"""The built site, served as GitHub Pages does, and opened in a real Chromium."""

import functools
import http.server
import threading
from urllib.parse import urljoin

import pytest
from built import PAGES, PREFIX, SITE, WIDTHS


class Pages(http.server.SimpleHTTPRequestHandler):
    """Serves the site below PREFIX, and 404.html for what is not there, as GitHub Pages does."""

    def translate_path(self, path):
        inside = path.removeprefix(PREFIX) if path.startswith(PREFIX) else "not-there"
        return super().translate_path("/" + inside)

    def log_message(self, *_):
        pass


@pytest.fixture(scope="session")
def address():
    assert PAGES, "There is no site to test: build it with `tox run -e site`."
    Pages.error_message_format = (SITE / "404.html").read_text().replace("%", "%%")
    handler = functools.partial(Pages, directory=SITE)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://localhost:{server.server_port}{PREFIX}"
        server.shutdown()


@pytest.fixture
def open_page(browser, address):
    """A function that opens a page. In the end no error and no bad request may have been seen."""
    contexts, troubles, inside = [], [], (address, "data:", "blob:")

    def said(*words):
        troubles.append(" ".join(map(str, words)))

    def open_it(page, width="desktop", theme="light"):
        context = browser.new_context(
            viewport={"width": WIDTHS[width], "height": 900},
            color_scheme=theme,
            permissions=["clipboard-read", "clipboard-write"],
            reduced_motion="reduce",
        )
        contexts.append(context)
        tab = context.new_page()
        # Chromium writes to the console what the server refuses.
        tab.on("console", lambda m: m.type in {"error", "warning"} and said(m.text, m.location))
        tab.on("pageerror", said)
        tab.on("requestfailed", lambda request: said("failed", request.url))
        tab.on("request", lambda r: r.url.startswith(inside) or said("outside", r.url))
        tab.goto(urljoin(address, page), wait_until="networkidle")
        return tab

    yield open_it
    for context in contexts:
        context.close()
    assert not troubles
