"""A run on an axis of time: attempts and failovers as bars, and figures as lines.

Decides where everything stands, in per cent of the axis. How it looks is in `epochgate/pages`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from epochgate.jobs.seen import Seen
from epochgate.pages import seconds
from epochgate.runtime.api.reports import one_line, size
from epochgate.runtime.durations import clock

Drawn = dict[str, Any]
LANES_MAX: Final = 24
"""Subtasks that are drawn, those that failed last."""
MARKS_MAX: Final = 400
"""Marks of a lane, and points of a line, of which the others are left out evenly."""
HEIGHT: Final = 40
NARROWEST: Final = 0.25
"""Per cent of the axis, so that a moment is seen."""


@dataclass(frozen=True)
class Axis:
    """From the start of a run to its end."""

    begin: float
    end: float
    now: float

    def at(self, moment: float) -> float:
        """The place of a moment, in per cent."""
        length = max(self.end - self.begin, 1e-9)
        return round(min(max((moment - self.begin) / length, 0.0), 1.0) * 100, 3)

    def bar(self, begin: float, end: float, kind: str, told: str) -> Drawn:
        """The bar for something that lasted from `begin` to `end`."""
        left = min(self.at(begin), 100 - NARROWEST)
        return {
            "left": left,
            "width": max(round(self.at(end) - left, 3), NARROWEST),
            "kind": kind,
            "told": told,
        }

    def ticks(self) -> list[Drawn]:
        """Both ends, and the middle."""
        places = ((self.begin, 0), ((self.begin + self.end) / 2, 50), (self.end, 100))
        return [{"left": left, "told": clock(at, self.now)} for at, left in places]


def axis_of(seen: Seen) -> Axis:
    """The axis of a run."""
    run = seen.record.summary
    return Axis(run.started_at, max(seen.until, run.started_at + 1e-3), seen.at)


def lanes(seen: Seen) -> list[Drawn]:
    """Checkpoints, commits, the job, and each subtask that failed, as bars on the axis."""
    axis = axis_of(seen)
    found = [
        _lane("checkpoints", _checkpoints(seen, axis)),
        _lane("commits", _commits(seen, axis)),
        _lane("all subtasks", _whole(seen, axis)),
    ]
    failed = dict.fromkeys(
        one["subtask"] for one in reversed(seen.record.failovers) if "subtask" in one
    )
    found += [
        _lane(f"subtask {subtask}", _attempts(seen, axis, subtask))
        for subtask in sorted([*failed][:LANES_MAX])
    ]
    return [lane for lane in found if lane["bars"]]


def _lane(name: str, bars: Iterable[Drawn]) -> Drawn:
    shown = _thinned(list(bars))
    bad = sum(bar["kind"] == "bad" for bar in shown)
    about = f"{name}: {len(shown)} bars" + (f", {bad} of failures" if bad else "")
    return {"name": name, "bars": shown, "about": about}


def _thinned(found: Sequence[Any]) -> list[Any]:
    if len(found) <= MARKS_MAX:
        return [*found]
    return [found[n * len(found) // MARKS_MAX] for n in range(MARKS_MAX - 1)] + [found[-1]]


def _checkpoints(seen: Seen, axis: Axis) -> Iterator[Drawn]:
    for one in seen.record.checkpoints:
        is_good = one["outcome"] == "completed"
        held = size(one["stored_bytes"]) if is_good else one_line(one["reason"])
        told = f"checkpoint {one['checkpoint_id']} {one['outcome']} after "
        told += f"{seconds(one['duration_s'])}: {held}"
        yield axis.bar(one["at"] - one["duration_s"], one["at"], "good" if is_good else "bad", told)


def _commits(seen: Seen, axis: Axis) -> Iterator[Drawn]:
    for one in seen.record.commits:
        numbers = ", ".join(map(str, one["checkpoint_ids"]))
        is_good = one["event"] == "Committed"
        outcome = "took" if is_good else "failed after"
        told = f"commit of {numbers} {outcome} {seconds(one['duration_s'])}"
        yield axis.bar(one["at"] - one["duration_s"], one["at"], "good" if is_good else "bad", told)


def _whole(seen: Seen, axis: Axis) -> Iterator[Drawn]:
    """The times in which all subtasks were up, and those of restarts of the whole job."""
    since, is_up = axis.begin, False
    for one in seen.record.failovers:
        if one["event"] == "SubtasksUp":
            yield axis.bar(since, one["at"], "wait", f"up after {seconds(one['after_s'])}")
            since, is_up = one["at"], True
        elif one["event"] == "JobRestarts":
            if is_up:
                yield axis.bar(since, one["at"], "good", f"until {one_line(one['reason'])}")
            since, is_up = one["at"], False
    told = "all subtasks run" if is_up else "not all subtasks run"
    yield axis.bar(since, axis.end, "good" if is_up else "bad", told)


def _attempts(seen: Seen, axis: Axis, subtask: int) -> Iterator[Drawn]:
    """The attempts of a subtask, and the time between them."""
    since, attempt, is_up, why = axis.begin, 0, True, ""
    for one in seen.record.failovers:
        kind, is_own = one["event"], one.get("subtask") == subtask
        if kind == "SubtaskFailed" and is_own:
            why = one_line(one["reason"])
            yield axis.bar(since, one["at"], "good", f"attempt {one['attempt']}, until {why}")
            since, is_up = one["at"], False
        elif kind == "SubtaskRestarted" and is_own:
            told = f"down for {seconds(one['down_s'])}: {why}"
            yield axis.bar(since, one["at"], "bad", told)
            since, attempt, is_up = one["at"], one["attempt"], True
        elif kind == "JobRestarts" and is_up:
            yield axis.bar(since, one["at"], "good", f"attempt {attempt}, until the job restarted")
            since, is_up, why = one["at"], False, "the whole job restarts"
        elif kind == "SubtasksUp" and not is_up:
            yield axis.bar(since, one["at"], "bad", f"down: {why}")
            since, is_up = one["at"], True
    told = f"attempt {attempt}" if is_up else f"down: {why}"
    yield axis.bar(since, axis.end, "good" if is_up else "bad", told)


Points = list[tuple[float, float]]


def charts(seen: Seen) -> list[Drawn]:
    """The figures of a run over time, those that it has."""
    axis = axis_of(seen)
    completed = [one for one in seen.record.checkpoints if one["outcome"] == "completed"]
    read = [(one["at"], one["figures"].get("rows_read")) for one in completed]
    backlog = [(one["at"], _backlog(one)) for one in completed]
    commits = [one for one in seen.record.commits if one["event"] == "Committed"]
    figures = [(one["at"], one.get("figures", {})) for one in commits]
    rejected = [(at, held.get("rows_rejected")) for at, held in figures]
    committed = [(at, held.get("rows_committed")) for at, held in figures]
    found = [
        _chart("rows read a second", _rates(axis.begin, _known(read)), axis, _count),
        _chart("rows committed a second", _rates(axis.begin, _known(committed)), axis, _count),
        _chart("backlog", _known(backlog), axis, _bytes),
        _chart("rows rejected", _known(rejected), axis, _count),
        _chart(
            "checkpoint duration",
            [(one["at"], one["duration_s"]) for one in completed],
            axis,
            seconds,
        ),
        _chart(
            "checkpoint size", [(one["at"], one["stored_bytes"]) for one in completed], axis, _bytes
        ),
    ]
    return [one for one in found if one is not None]


def _backlog(one: Drawn) -> float | None:
    source = one["coordinators"].get("source", {})
    if "bytes_waiting" not in source:
        return None
    return float(source["bytes_waiting"] + one["figures"].get("bytes_open", 0))


def _known(points: Iterable[tuple[float, Any]]) -> Points:
    return [(at, float(value)) for at, value in points if isinstance(value, int | float)]


def _rates(begin: float, sums: Points) -> Points:
    """The growth of a sum for each second between its points."""
    found, last, before = [], begin, 0.0
    for at, value in sums:
        if at > last:
            found.append((at, max(0.0, value - before) / (at - last)))
            last, before = at, value
    return found


def _count(value: float) -> str:
    return f"{value:,.0f}"


def _bytes(value: float) -> str:
    return size(int(value))


def _chart(name: str, points: Points, axis: Axis, told: Any) -> Drawn | None:
    if len(points) < 2:
        return None
    top = max(value for _, value in points)
    shown = _thinned(points)
    line = " ".join(
        f"{axis.at(at):g},{HEIGHT - (HEIGHT - 2) * value / (top or 1.0):.2f}" for at, value in shown
    )
    last = points[-1][1]
    return {
        "name": name,
        "line": line,
        "top": told(top),
        "last": told(last),
        "about": f"{name}: {told(last)} at last, {told(top)} at most, {len(points)} points",
        "rows": [(clock(at, axis.now), told(value)) for at, value in reversed(points[-30:])],
    }
