"""The pages of a job, the JSON in Flink's shape, and the controls of streaming queries."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from epochgate.jobs.drawing import axis_of, charts, lanes
from epochgate.jobs.flink import answer
from epochgate.jobs.seen import Job, Seen
from epochgate.jobs.totals import totals
from epochgate.pages import SERVED_POLICY, page, seconds
from epochgate.pages.serving import JSON, Answer, NotThere, Request
from epochgate.runtime.api.reports import one_line, size
from epochgate.runtime.durations import clock, span

CHECKPOINTS_SHOWN: Final = 50
EVENTS_SHOWN: Final = 30
EARLIER_SHOWN: Final = 50
DECISIONS_SHOWN: Final = 20
BADGES: Final = {
    "finished": "pass",
    "running": "pass",
    "starting": "bounded",
    "restarting": "vacuous",
    "not begun": "bounded",
}
Table = list[tuple[str, ...]]


class JobSite:
    """Answers for one job; `controls` is the store of the controls beside it, or empty."""

    def __init__(self, job: Job, controls: str = "") -> None:
        self._job, self._controls = job, controls

    def answer(self, request: Request) -> Answer:
        """Answer a request; raises NotThere, and what a status raises."""
        if request.path == "/":
            runs = self._job.runs()
            is_new = self._job.status().record is None
            return self._page(None if is_new else runs[0], request)
        if request.path == "/status.json":
            return _json(self._job.status().to_json())
        if request.path.startswith("/run/"):
            return self._page(self._job.run(request.path.removeprefix("/run/")), request)
        try:
            found = answer(self._job, request.path)
        except NotThere as error:
            return _json({"errors": [str(error)]}, HTTPStatus.NOT_FOUND)
        if found is None:
            raise NotThere(f"there is no page {request.path[:80]}")
        return _json(found)

    def _page(self, seen: Seen | None, request: Request) -> Answer:
        status = self._job.status()
        values: dict[str, Any] = {
            "directory": status.directory,
            "name": Path(status.directory).name if seen is None else seen.record.summary.job_id,
            "state": status.state if seen is None else seen.state,
            "seen": seen,
            "earlier": _earlier(self._job.runs(), seen),
            "controls": _controls(self._controls) if self._controls else [],
            "is_live": seen is None or seen.is_live,
        }
        values["kind"] = BADGES.get(values["state"], "fail")
        if seen is not None:
            values |= _of_run(seen, request.number("before", 0))
        return Answer(page("job.html", policy=SERVED_POLICY, **values))


def _json(value: Any, status: int = HTTPStatus.OK) -> Answer:
    return Answer(json.dumps(value), JSON, status)


def _of_run(seen: Seen, before: int) -> dict[str, Any]:
    run = seen.record.summary
    known = [one for one in seen.record.checkpoints if not before or one["checkpoint_id"] < before]
    shown = known[-CHECKPOINTS_SHOWN:]
    whence = f"checkpoint {run.resumed_from}" if run.resumed_from else "the beginning"
    return {
        "reason": one_line(run.reason) if run.reason else "",
        "began": f"started {clock(run.started_at, seen.at)} from {whence}, {run.parallelism} "
        f"subtasks, driver {run.pid} on {run.host}; {span(seen.until - run.started_at)}",
        "figures": _figures(seen),
        "ticks": axis_of(seen).ticks(),
        "lanes": lanes(seen),
        "charts": charts(seen),
        "checkpoints": [_checkpoint(one, seen.at) for one in reversed(shown)],
        "older": shown[0]["checkpoint_id"] if len(known) > len(shown) else 0,
        "before": before,
        "events": _events(seen),
        "warnings": list(run.warnings),
        "counts": sorted(run.figures.items()),
    }


def _figures(seen: Seen) -> list[tuple[str, str]]:
    """The totals of a status, those of one name together."""
    found: dict[str, str] = {}
    last = ""
    for name, told in totals(seen.record.summary, seen.at):
        last = name or last
        if name != "warnings" and last != "warnings":
            found[last] = f"{found[last]}; {told}" if last in found else told
    return list(found.items())


def _checkpoint(one: dict[str, Any], now: float) -> tuple[str, ...]:
    slowest = max(one.get("subtasks_s", {}).items(), key=lambda held: held[1], default=None)
    is_good = one["outcome"] == "completed"
    return (
        str(one["checkpoint_id"]),
        clock(one["at"], now),
        seconds(one["duration_s"]),
        size(one["stored_bytes"]) if is_good else "-",
        seconds(one.get("coordinators_s", 0.0)),
        "" if slowest is None else f"subtask {slowest[0]}: {seconds(slowest[1])}",
        seconds(one.get("store_s", 0.0)),
        one["outcome"] if is_good else f"{one['outcome']}: {one_line(one['reason'])}",
    )


def _events(seen: Seen) -> Table:
    """Failures and restarts, the newest first, and savepoints."""
    return [
        (clock(one["at"], seen.at), *_event(one))
        for one in reversed([*seen.record.failovers][-EVENTS_SHOWN:])
    ]


def _event(one: dict[str, Any]) -> tuple[str, str]:
    who = f"subtask {one['subtask']}" if "subtask" in one else "all subtasks"
    if "attempt" in one:
        who += f", attempt {one['attempt']}"
    match one["event"]:
        case "SubtasksUp":
            return who, f"up after {seconds(one['after_s'])}"
        case "SubtaskRestarted":
            where = "" if one.get("pid") is None else f", process {one['pid']} on {one['host']}"
            return who, f"restarted after {seconds(one['down_s'])}{where}"
        case "AttemptOutlived":
            return who, f"ended, and another attempt continues: {one_line(one['reason'])}"
        case _:
            return who, f"failed: {one_line(one['reason'])}"


def _earlier(runs: Sequence[Seen], shown: Seen | None) -> list[tuple[str, str, str, str]]:
    """The other starts: their link, when they began, their state, and what they came to."""
    return [
        (
            f"/run/{run.run_id}",
            clock(run.started_at, one.at),
            one.state,
            f"{span(one.until - run.started_at)}, {run.checkpoints_completed:,} checkpoints, "
            f"{run.committed.get('rows_committed', 0):,} rows committed",
        )
        for one in runs[:EARLIER_SHOWN]
        for run in (one.record.summary,)
        if shown is None or run.run_id != shown.record.summary.run_id
    ]


def _controls(place: str) -> list[dict[str, Any]]:
    """Each control with its updates, and which batch of which query saw what."""
    from epochgate.errors import EpochgateError
    from epochgate.runtime.entries.stores import open_entries
    from epochgate.runtime.steering import decisions, updates
    from epochgate.runtime.steering.layout import controls_in, queries_of

    entries = open_entries(place)
    now = 0.0  # with the date: a control may be older than the job
    try:
        return [
            {
                "name": control,
                "updates": [
                    (str(u.version), clock(u.updated_at, now), json.dumps(u.changes), u.updated_by)
                    for u in reversed(updates(entries, control)[-DECISIONS_SHOWN:])
                ],
                "queries": [
                    (query, list(_decisions(decisions(entries, control, query))))
                    for query in queries_of(entries, control)
                ],
            }
            for control in controls_in(entries)
        ]
    except (OSError, ValueError) as error:
        raise EpochgateError(f"{place} cannot be read: {error}") from error


def _decisions(found: Sequence[Any]) -> Iterator[tuple[str, ...]]:
    for one in reversed(found[-DECISIONS_SHOWN:]):
        yield (
            str(one.batch),
            str(one.version),
            str(one.since),
            clock(one.decided_at, 0.0),
            json.dumps(one.value, default=repr),
            one.decided_by,
        )
