"""The page of a check in a real browser: it can be read, stepped through and printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from epochgate.fsm.checker import check
from epochgate.reports import html_page
from tests.browser.chromium import Browser
from tests.browser.looking import looks_right, overlaps
from tests.checker import small_systems as small
from tests.checker.broken import NoValve
from tests.checker.relay import Confused

pytestmark = pytest.mark.extended
SYSTEMS = (NoValve, small.UnfairHouse, small.Overflowing, Confused)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    results = {one.__name__: check(one(), engine="python") for one in SYSTEMS}
    path = tmp_path_factory.mktemp("page") / "check.html"
    path.write_text(html_page(results, Path(__file__).parents[2]), encoding="utf-8")
    return path.as_uri()


def test_the_page_is_whole_and_accessible_in_each_look(
    browser: Browser, axe: str, url: str
) -> None:
    looks_right(browser, url, axe, "check")


def test_keys_step_through_the_counterexample_that_was_touched_last(
    browser: Browser, url: str
) -> None:
    browser.look(1280)
    browser.open(f"{url}#step-1-4")
    told = "document.querySelector('.counterexample output').textContent"
    assert browser.run(told) == "4 / 10"
    browser.press("ArrowLeft")
    assert browser.run(told) == "3 / 10"
    assert "gateway[0][0].send" in browser.run(
        "document.querySelector('.machines .step').textContent"
    )
    browser.press("End")
    assert browser.run(told) == "10 / 10"
    browser.press("Home")
    assert browser.run(told) == "0 / 10"


def test_lanes_and_what_is_written_at_them_do_not_overlap(browser: Browser, url: str) -> None:
    for width in (1280, 390):
        browser.look(width)
        browser.open(url)
        count = browser.run("document.querySelectorAll('.counterexample').length")
        for number in range(1, count + 1):
            one = f"[data-number='{number}']"
            assert overlaps(browser, f"{one} rect.head") == 0
            assert overlaps(browser, f"{one} text.state, {one} text.start") == 0


def test_the_acting_machine_is_in_sight_at_each_step_of_a_narrow_page(
    browser: Browser, url: str
) -> None:
    browser.look(390)
    browser.open(f"{url}#step-1-1")
    seen = """(() => { const box = document.querySelector('.diagram').getBoundingClientRect(),
        dot = document.querySelector('.dot.now').getBoundingClientRect();
        return box.left <= dot.left && dot.right <= box.right; })()"""
    for _ in range(10):
        assert browser.run(seen)
        browser.press("ArrowRight")


def test_on_paper_each_step_is_written_down(browser: Browser, url: str) -> None:
    browser.look(1280)
    browser.open(url)
    assert browser.pdf().startswith(b"%PDF")
    assert browser.run("[...document.querySelectorAll('details.differences')].every(e => e.open)")
    assert "received[0]: 0 → 1" in browser.run(
        "document.querySelector('table.differences').textContent"
    )
