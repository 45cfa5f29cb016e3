"""The demands on each page, in each width and scheme."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from tests.browser.chromium import Browser

LOOKS: Final = [(1280, False), (1280, True), (390, False), (390, True)]
"""Widths in pixels, and whether the scheme is dark."""
VIOLATIONS: Final = """axe.run().then(found => found.violations.map(one =>
    one.id + ": " + one.nodes.map(node => node.html.slice(0, 120)).join(" | ")))"""
OVERLAPS: Final = """[...document.querySelectorAll(NAMED)].map(e => e.getBoundingClientRect())
    .filter((one, n, all) => all.some((other, m) => m > n && one.width && other.width
        && one.left < other.right - 1 && other.left < one.right - 1
        && one.top < other.bottom - 1 && other.top < one.bottom - 1)).length"""


def looks_right(browser: Browser, url: str, axe: str, name: str) -> None:
    """Open a page in each look, and insist that it is whole, by itself, and accessible."""
    for width, is_dark in LOOKS:
        browser.look(width, is_dark=is_dark)
        browser.open(url)
        look = f"{name}-{width}-{'dark' if is_dark else 'light'}"
        picture(browser, look)
        assert browser.errors == [], look
        strangers = [one for one in browser.requests if not one.startswith((url, "data:"))]
        assert strangers == [], look
        assert browser.run("document.documentElement.scrollWidth") <= width, look
        browser.run(f"{axe}; 1")
        assert browser.run(VIOLATIONS) == [], look


def overlaps(browser: Browser, selector: str) -> int:
    """Count the elements that lie over another of them."""
    return int(browser.run(OVERLAPS.replace("NAMED", repr(selector))))


def picture(browser: Browser, name: str) -> None:
    """Keep a picture, where EPOCHGATE_PICTURES names a folder for them."""
    if folder := os.environ.get("EPOCHGATE_PICTURES"):
        browser.picture(Path(folder) / f"{name}.png")
