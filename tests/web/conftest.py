"""A served explorer, and a browser, for what only a browser can tell of a page."""

from __future__ import annotations

import os
import shutil

import pytest
from served import end_server, start_server

from fedplan.web.basis import Shelf, example_basis


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
    return Shelf(example_basis("sqlite:///fedplan.db"))


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
