"""Settings of a job that runs are seen and changed by another process."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pytest

from epochgate.runtime.pipeline.setting import RateLimit, Setting
from epochgate.runtime.pipeline.setting_requests import KIND, requested


class Job:
    """Knows the requests that it was sent, and completes them when it is told to."""

    def __init__(self) -> None:
        self.asked = list[tuple[str, Any, Future[Any]]]()

    def request(self, operator_id: str, request: Any) -> Future[Any]:
        self.asked.append((operator_id, request, Future()))
        return self.asked[-1][2]


PROVIDERS = (object(), Setting("limit", 500, operator_id="of-old"), RateLimit(None, name="rate"))


def test_several_changes_are_answered_once_all_are_made() -> None:
    job = Job()
    answer = requested(PROVIDERS, job)({"kind": KIND, "values": {"limit": 7, "rate": 2.5}})
    assert [(name, request) for name, request, _ in job.asked] == [
        ("of-old", ["set", 7]),
        ("rate", ["set", 2.5]),
    ]
    job.asked[1][2].set_result(2.5)
    assert not answer.done()
    job.asked[0][2].set_result(7)
    assert answer.result(0) == {"values": {"limit": 7, "rate": 2.5}}


def test_without_changes_the_values_are_shown() -> None:
    job = Job()
    answer = requested(PROVIDERS, job)({"kind": KIND, "values": {}})
    for (_, request, future), value in zip(job.asked, (1, None), strict=True):
        assert request == ["get"]
        future.set_result(value)
    assert answer.result(0) == {"values": {"limit": 1, "rate": None}}
    assert requested((), Job())({"values": {}}).result(0) == {"values": {}}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"limt": 1}, "no setting 'limt'; it has limit, rate"),
        ({"limit": "x"}, "limit"),
        ({"limit": 7, "rate": -1}, "no rate"),
    ],
)
def test_what_no_setting_takes_is_refused_and_nothing_is_changed(
    values: dict[str, Any], message: str
) -> None:
    job = Job()
    answer = requested(PROVIDERS, job)({"kind": KIND, "values": values})
    with pytest.raises(Exception, match=message):
        answer.result(0)
    assert job.asked == []


def test_a_change_that_is_not_durable_fails_the_answer() -> None:
    job = Job()
    answer = requested(PROVIDERS, job)({"kind": KIND, "values": {"limit": 7}})
    job.asked[0][2].set_exception(RuntimeError("the job is over"))
    with pytest.raises(RuntimeError, match="is over"):
        answer.result(0)


def test_what_is_no_request_is_said_to_be_none() -> None:
    with pytest.raises(ValueError, match="no object of names"):
        requested(PROVIDERS, Job())({"values": [1]})
