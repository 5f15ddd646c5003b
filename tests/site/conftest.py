"""The built site, served as GitHub Pages does, and opened in a real Chromium."""

import functools
import http.server
import threading
from http import HTTPStatus
from urllib.parse import urljoin

import pytest
from built import PAGES, PREFIX, SITE, WIDTHS


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
