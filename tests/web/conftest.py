"""A browser, for what only a browser can tell of a page."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

CHROMIUM = Path("/usr/bin/chromium")


@pytest.fixture(scope="session")
def browser():
    """Chromium without a window; where it is missing, tests are skipped, or fail under CI."""
    try:
        from playwright.sync_api import sync_playwright

        missing = None if CHROMIUM.exists() else f"{CHROMIUM} is not here: apt install chromium"
    except ImportError:
        missing = "playwright is not here: pip install playwright"
    if missing is not None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"no page is looked at: {missing}")
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        yield found
        found.close()
