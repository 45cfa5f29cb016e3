"""The messages of object stores, and the paths that they name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from epochgate.jobs.totals import totals
from epochgate.runtime.observing.run_summary import RunSummary
from epochgate.spark.files.access import FileAccess
from epochgate.spark.ingest.hints.events import objects_in
from epochgate.spark.ingest.hints.notify import (
    ListingUnusable,
    NotFollowed,
    NotifyUnusable,
    expect_notify,
)
from epochgate.spark.ingest.options import IngestOptions


def event(key: str, name: str = "ObjectCreated:Put", bucket: str = "in") -> dict[str, Any]:
    return {
        "eventVersion": "2.1",
        "eventSource": "aws:s3",
        "eventName": name,
        "s3": {"bucket": {"name": bucket}, "object": {"key": key, "size": 3}},
    }


def keys(body: Any) -> list[str]:
    return [key for _, key in objects_in(body if isinstance(body, str) else json.dumps(body))]


def test_the_forms_of_s3_sns_and_eventbridge_name_the_same_object() -> None:
    records = {"Records": [event("dt%3D2026/a+b.csv"), event("c.csv")]}
    assert objects_in(json.dumps(records)) == [
        ("in", "dt=2026/a b.csv"),
        ("in", "dt%3D2026/a+b.csv"),
        ("in", "c.csv"),
    ]
    assert keys({"Type": "Notification", "Message": json.dumps(records)}) == keys(records)
    detail = {"bucket": {"name": "in"}, "object": {"key": "dt=2026/a+b.csv"}}
    bridge = {"detail-type": "Object Created", "source": "aws.s3", "detail": detail}
    assert "dt=2026/a+b.csv" in keys(bridge)


@pytest.mark.parametrize(
    "body",
    [
        "",
        "no JSON",
        "[1]",
        "[" * 100_000,
        {"Service": "Amazon S3", "Event": "s3:TestEvent", "Bucket": "in"},
        {"Type": "Notification", "Message": "no JSON"},
        {"Records": "none"},
        {"Records": [7, {"s3": 7}, {"s3": {"bucket": 7, "object": {"key": "a"}}}]},
        {"Records": [{"s3": {"bucket": {"name": "in"}, "object": {"key": 7}}}]},
        {"Records": [event("a.csv", "ObjectRemoved:Delete")]},
        {"detail-type": "Object Deleted", "detail": {"bucket": {"name": "in"}}},
        {"detail": []},
    ],
)
def test_what_is_no_event_of_an_object_that_came_names_nothing(body: Any) -> None:
    assert keys(body) == []


@pytest.mark.parametrize(
    ("source", "path", "is_of"),
    [
        ("s3://in/a", "s3://in/a/b.csv", True),
        ("s3://in/a", "s3://in/a/b/c.csv", True),
        ("s3://in/a", "s3://in/ab.csv", False),
        ("s3://in/a", "s3://other/a/b.csv", False),
        ("s3://in/a", "s3://in/a/_b/c.csv", False),
        ("s3://in/a", "s3://in/a/c.csv.tmp", False),
        ("s3://in/a/*.csv", "s3://in/a/c.csv", True),
        ("s3://in/a/*.csv", "s3://in/a/b/c.csv", False),
        ("s3://in/a/**/*.csv", "s3://in/a/b/d/c.csv", True),
        ("s3://in/a/b.csv", "s3://in/a/b.csv", True),
        ("s3://in", "s3://in/b.csv", True),
    ],
)
def test_an_object_is_of_a_source_by_its_name(source: str, path: str, is_of: bool) -> None:
    assert list(FileAccess().named(source, {path: None})) == [path] * is_of


def test_a_local_file_is_of_a_source_where_a_listing_has_it(tmp_path: Path) -> None:
    names = ["a.csv", "_a.csv", "b/c.csv", "b/.d/e.csv", "b/c.csv.tmp", "x=1/f.csv", "g[1].csv"]
    for name in names:
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / name).write_text("x\n1\n")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "h.csv").write_text("x\n1\n")
    (tmp_path / "in" / "linked").symlink_to(tmp_path / "other")
    (tmp_path / "in" / "h.csv").symlink_to(tmp_path / "other" / "h.csv")
    every = [*(f"in/{name}" for name in [*names, "h.csv", "linked/h.csv", "b"]), "other/h.csv"]
    access = FileAccess()
    for pattern in ("in", "in/*.csv", "in/*/*.csv", "in/**/*.csv", "in/a.csv", "in/**"):
        source = str(tmp_path / pattern)
        listed = access.find(source, may_be_none=True).files.keys()
        named = access.named(source, dict.fromkeys(str(tmp_path / one) for one in every)).keys()
        assert named - {str(tmp_path / "in/linked/h.csv")} == set(listed) - {
            str(tmp_path / "in/linked/h.csv")
        }, pattern


@pytest.mark.parametrize(
    ("notify", "source", "says"),
    [
        ("sqs", "s3://in", "it is sqs:QUEUE_URL, inotify or names"),
        ("sqs:queue", "s3://in", "the URL of the queue"),
        ("sqs:https://sqs.eu-west-1.amazonaws.com/1/q", "/in", "events of S3 tell nothing"),
        ("inotify", "s3://in", "local files alone"),
        ("names", "/in", "cannot be listed behind a name"),
    ],
)
def test_a_queue_that_is_none_for_the_source_is_refused(
    notify: str, source: str, says: str
) -> None:
    with pytest.raises(NotifyUnusable, match=says):
        expect_notify(notify, None, source, is_followed=True)


def test_options_of_a_followed_source_are_refused_without_follow() -> None:
    with pytest.raises(NotFollowed, match=r"--notify \(notify in Python\)"):
        IngestOptions("s3://in", "out", notify="names")
    with pytest.raises(NotFollowed, match="--list-every"):
        IngestOptions("in", "out", list_every_s=5.0)
    with pytest.raises(ListingUnusable, match="above 0"):
        IngestOptions("in", "out", follow=True, list_every_s=0.0)
    assert IngestOptions("in", "out").follow_every_s is None
    assert IngestOptions("in", "out", follow=True).follow_every_s == 1.0
    named = IngestOptions("s3://in", "out", follow=True, notify="names")
    assert named.follow_every_s == 300.0


def test_the_status_of_a_job_tells_how_it_hears_of_files() -> None:
    source = {
        "files_found": 9,
        "hints_up": 0,
        "hints_heard": 1200,
        "hints_failed": 3,
        "files_hinted": 7,
        "files_unhinted": 2,
    }
    told = dict(totals(RunSummary(coordinators={"source": source}), 0.0))
    assert told["notified"] == (
        "1,200 times, 7 new files, 2 more by listings, 3 requests failed; the queue does not "
        "answer, files are listed"
    )
    up = {**source, "hints_up": 1, "hints_failed": 0}
    told = dict(totals(RunSummary(coordinators={"source": up}), 0.0))
    assert told["notified"] == "1,200 times, 7 new files, 2 more by listings"
