"""A served explorer, and a browser, for what only a browser can tell of a page."""

from __future__ import annotations

import os
import re
import shutil

import pytest
from explorer_page import SIZES, settle
from served import end_server, start_server

from fedplan.web.shelf import Shelf


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """One for all tests: nothing they ask changes it for another."""
    folder = tmp_path_factory.mktemp("served")
    made = start_server(folder)
    yield made
    assert end_server(made) == 0
    assert list(folder.iterdir()) == []  # whatever was asked, nothing was written


@pytest.fixture
def shelf():
    return Shelf("sqlite:///fedplan.db")


@pytest.fixture(scope="session")
def browser():
    """Chromium without a window; without one these tests are skipped, but never in CI."""
    found = shutil.which("chromium")
    if not found:
        reason = "no chromium: pages were NOT looked at. apt-get install chromium"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield made
        made.close()


@pytest.fixture
def open_page(browser, server):
    """Open the page; afterwards nothing was wrong on the console, and nothing left this machine."""
    contexts, wrong, requests = [], [], []

    def open_(fragment="", size="desk", scheme="light", at=None):
        width, height = SIZES[size]
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme=scheme,
            permissions=["clipboard-read", "clipboard-write"],
            accept_downloads=True,
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.on("console", lambda message: note(message.type, message.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto((at or server).address + fragment)
        settle(page)
        return page

    def note(kind, text):
        # A state that is refused is a 422, which the browser itself puts on the console.
        if kind in ("error", "warning") and "422" not in text:
            wrong.append(text)

    yield open_
    for context in contexts:
        context.close()
    assert wrong == []
    hosts = {re.match(r"(\w+)://([^/]*)", url)[2].partition(":")[0] for url in requests}
    assert hosts <= {"127.0.0.1", ""}  # "" is of blobs that the page made itself
