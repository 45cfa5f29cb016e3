"""The pages of an exploration in a real browser: steps, keys, searches, and what refuses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from epochgate.exploring.links import View
from epochgate.exploring.site import Site
from epochgate.exploring.traces import TraceSite
from epochgate.fsm.checker.exploring import Explorer
from epochgate.models.closed.catalogue import SYSTEMS
from epochgate.runtime.tracing.stepping import steppers
from tests.browser.chromium import Browser
from tests.browser.looking import looks_right
from tests.browser.serving import served
from tests.checker import small_systems as small
from tests.traces.stories import told

pytestmark = pytest.mark.extended
TITLE = "document.querySelector('main h2')?.textContent"


@pytest.fixture(scope="module")
def house() -> Iterator[str]:
    with served(Site("UnfairHouse", Explorer(small.UnfairHouse()), 10.0, View()).answer) as url:
        yield url


@pytest.fixture(scope="module")
def large() -> Iterator[str]:
    with served(Site("live", Explorer(SYSTEMS["live"]()), 10.0, View()).answer) as url:
        yield url


def test_pages_are_whole_and_accessible_in_each_look(
    browser: Browser, axe: str, house: str, large: str
) -> None:
    looks_right(browser, house, axe, "explore-start")
    looks_right(
        browser, f"{house}?run=visitor[0].ask~visitor[0].enter&at=1", axe, "explore-between"
    )
    looks_right(browser, large, axe, "explore-large")


def test_pages_of_a_trace_are_whole_and_accessible_in_each_look(
    browser: Browser, axe: str, tmp_path: Path
) -> None:
    with served(TraceSite(steppers([str(told(tmp_path))])).answer) as url:
        looks_right(browser, f"{url}?trace=0&at=20", axe, "trace")
        browser.press("ArrowRight")
        browser.until("/at=21/.test(location.search) && document.readyState === 'complete'")
        assert "21 / " in browser.run("document.querySelector('output').textContent")


def test_keys_take_steps_and_go_back_and_forward(browser: Browser, house: str) -> None:
    browser.look(1280)
    browser.open(house)
    for key, title in [
        ("1", "1. visitor[0].ask"),
        ("2", "2. visitor[0].enter"),
        ("ArrowLeft", "1. visitor[0].ask"),
        ("Home", "initial state"),
        ("End", "2. visitor[0].enter"),
    ]:
        browser.press(key)
        browser.until(f"document.readyState === 'complete' && {TITLE} === {title!r}")
    browser.press("/")
    assert browser.run("document.activeElement.id") == "condition"
    assert browser.errors == []


def test_a_search_leads_to_the_state_and_a_claim_to_its_counterexample(
    browser: Browser, house: str
) -> None:
    browser.look(390)
    browser.open(f"{house}search?condition={quote('visitor[1].is_inside()')}")
    assert browser.run(TITLE) == "2. visitor[1].enter"
    found = browser.run("document.querySelector('.found').textContent")
    assert found.startswith(
        "a state in which visitor[1].is_inside(): 2 steps from an initial state"
    )
    assert browser.run("document.querySelector('#condition').value") == "visitor[1].is_inside()"
    browser.open(f"{house}claim?name=first_wants")
    assert browser.run("document.querySelectorAll('.path .repeats').length") > 0


def test_without_scripts_every_place_is_reached_by_links_and_forms(
    browser: Browser, house: str
) -> None:
    browser.send("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(house)
        browser.run("document.querySelector('.possible a').click()")
        browser.until(f"{TITLE} === '1. visitor[0].ask'")
        browser.run("document.querySelector('#condition').value = 'door.is_locked'")
        browser.run("document.querySelector('form').requestSubmit()")
        browser.until(f"{TITLE} === '2. visitor[0].enter'")
    finally:
        browser.send("Emulation.setScriptExecutionDisabled", value=False)
