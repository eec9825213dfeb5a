"""The documentation site: it builds without a warning, leaves nothing out, and asks nobody else."""

from __future__ import annotations

import subprocess
import sys
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

from docs.pages import PAGES, ROOT
from sphinx.util.inventory import InventoryFile

import fedplan
import fedplan.flower


class Addresses(HTMLParser):
    """What a page fetches by itself, where its links lead, and what can be linked to on it."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.fetched: set[str] = set()
        self.links: set[str] = set()
        self.anchors: set[str] = set()
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.anchors |= {values[key] for key in ("id", "name") if values.get(key)}
        for key in ("src", "srcset", "href", "data", "poster", "action"):
            if values.get(key):
                (self.links if tag == "a" else self.fetched).add(values[key])


def build(folder):
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-c", "docs"]
    # Without the list of names beside every page of the reference, which takes a third of the time.
    command += ["-D", "toc_object_entries=0", "."]
    run = subprocess.run([*command, folder], cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


# One test, for several would build the site several times, one a worker.
def test_the_site(tmp_path):
    build(tmp_path)
    addresses = {page: Addresses(page.read_text()) for page in tmp_path.rglob("*.html")}
    for page in PAGES:
        assert tmp_path / page.relative_to(ROOT).with_suffix(".html") in addresses
    for page, found in addresses.items():
        assert not {address for address in found.fetched if urlsplit(address).netloc}, page
        for link in map(urlsplit, found.links):
            if link.scheme or link.netloc:
                continue
            target = (page.parent / unquote(link.path)).resolve() if link.path else page
            assert target.exists(), f"{page}: {link.path}"
            # Pages of source link back by a module's first name alone, which may be another.
            if link.fragment and target.suffix == ".html" and "_modules" not in page.parts:
                assert unquote(link.fragment) in addresses[target].anchors, f"{page}: {link}"
    for sheet in tmp_path.rglob("*.css"):
        assert "//" not in sheet.read_text().replace("http://www.w3.org", ""), sheet
    check_that_public_names_are_documented(tmp_path / "objects.inv")
    reference = tmp_path / "docs" / "reference"
    assert "fedplan plan [OPTIONS]" in (reference / "cli.html").read_text()
    assert "python tools/prototype up [OPTIONS]" in (reference / "prototype.html").read_text()


def check_that_public_names_are_documented(inventory):
    objects = InventoryFile.loads(inventory.read_bytes(), uri="").data
    documented = {name for kind, names in objects.items() if "py:" in kind for name in names}
    public = {f"fedplan.{name}" for name in fedplan.__all__ if not name.startswith("_")}
    public |= {f"fedplan.flower.{name}" for name in fedplan.flower.__all__}
    assert public <= documented
