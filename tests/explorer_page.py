"""The explorer's page in a browser: what it shows, and moving what is on it."""

from __future__ import annotations

import re
import time

SIZES = {"phone": (360, 740), "desk": (1440, 900)}


def until(page, expression, arg=None):
    """Wait for something to be true; asked from here, for the page's policy forbids eval."""
    end = time.monotonic() + 120  # an end, where it never comes true
    while not page.evaluate(expression, arg):
        assert time.monotonic() < end, expression
        page.wait_for_timeout(50)


def settle(page):
    """Wait until the page shows the state that its controls have, and has drawn it."""
    until(
        page,
        """async () => {
          if (document.getElementById("answer").getAttribute("aria-busy") === "true") return false;
          await new Promise(requestAnimationFrame);
          return !!window.Plotly;
        }""",
    )


def shown(page):
    """K and E of the headline."""
    settle(page)
    found = re.findall(r"[KE] = ([\d,]+)", page.inner_text("#headline"))
    return tuple(int(number.replace(",", "")) for number in found)


def figure(page, name):
    """The traces of a figure, as plotly has them."""
    settle(page)
    until(page, "(name) => !!document.querySelector(`#${name} .plot`).data", name)
    traces = page.evaluate(
        """(name) => document.querySelector(`#${name} .plot`).data.map((trace) =>
             ({name: trace.name, x: Array.from(trace.x ?? []), y: Array.from(trace.y ?? [])}))""",
        name,
    )
    return {trace["name"]: trace for trace in traces}


def slide(page, key, value):
    """Move a slider as a pointer does: events of input, and the number beside it follows."""
    page.evaluate(
        """([id, value]) => {
          const slider = document.getElementById(id);
          slider.value = value;
          slider.dispatchEvent(new Event("input", {bubbles: true}));
        }""",
        [f"{key}-slider", value],
    )
