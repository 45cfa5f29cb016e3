"""The pages of a job in a real browser: whole, accessible, and kept up while the job runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from epochgate.jobs.seen import Job
from epochgate.jobs.site import JobSite
from epochgate.runtime.observing.history import History
from epochgate.runtime.store import DirectoryCheckpointStore
from tests.browser.chromium import Browser
from tests.browser.jobs import empty, events, job
from tests.browser.looking import looks_right
from tests.browser.serving import served

pytestmark = pytest.mark.extended


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    place = str(job(tmp_path_factory.mktemp("job")))
    with served(JobSite(Job(place)).answer) as url:
        yield url


def test_pages_are_whole_and_accessible_in_each_look(
    browser: Browser, axe: str, url: str, tmp_path: Path
) -> None:
    looks_right(browser, url, axe, "job")
    looks_right(browser, f"{url}run/{'b' * 32}", axe, "job-killed")
    with served(JobSite(Job(str(empty(tmp_path)))).answer) as nothing:
        looks_right(browser, nothing, axe, "job-empty")


def test_attempts_stand_on_the_axis_and_nothing_of_a_job_is_run(browser: Browser, url: str) -> None:
    browser.look(1280)
    browser.open(url)
    told = browser.run("[...document.querySelectorAll('.track i')].map(one => one.title)")
    assert "attempt 0, until ValueError: <script>alert(1)</script>" in told
    assert any(one.startswith("down for 2.0 s: ValueError") for one in told)
    assert browser.run("document.querySelectorAll('script').length") == 0
    names = browser.run("[...document.querySelectorAll('figcaption b')].map(e => e.textContent)")
    assert names[:4] == [
        "rows read a second",
        "rows committed a second",
        "backlog",
        "rows rejected",
    ]
    browser.run("[...document.querySelectorAll('main a')].find(e => /older/.test(e.text)).click()")
    browser.until("location.search === '?before=71' && document.readyState === 'complete'")
    assert browser.run("document.querySelector('[aria-label=checkpoints] td').textContent") == "70"


def test_a_running_job_is_kept_up_unless_a_person_stops_it(
    browser: Browser, tmp_path: Path
) -> None:
    with DirectoryCheckpointStore(str(tmp_path), job_id="orders") as store:
        history = History(str(tmp_path / "history"), epoch=store.epoch)
        all_events = events()
        for event in all_events[:3]:
            history.on_event(event)
        with served(JobSite(Job(str(tmp_path))).answer) as url:
            browser.look(1280)
            browser.open(url)
            shown = "document.querySelector('main').textContent.includes('117 completed')"
            assert not browser.run(shown)
            for event in all_events[3:]:
                history.on_event(event)
            browser.until(shown)
            assert browser.errors == []
            browser.run("document.querySelector('header button').click()")
            assert browser.run("document.querySelector('header button').textContent") == (
                "go on with updates"
            )
        history.close()
