"""A job in the shape of Flink's REST interface, for scripts that read that.

Each start of the job is a job of its own, with its run id, of 32 hexadecimal digits as Flink's.
Times are in milliseconds since 1970. What epochgate does not measure is 0: data that barriers
overtook, and data processed while a checkpoint is taken. A run whose driver was killed is FAILED.
All completed checkpoints but the newest count as discarded: how many are retained is not in the
history. tests/conformance/golden/rest.json has the shape of the answers of a Flink that runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from epochgate import __version__
from epochgate.jobs.seen import Job, Seen
from epochgate.pages.serving import NotThere

Plain = dict[str, Any]
STATES: Final[Mapping[str, str]] = {
    "starting": "INITIALIZING",
    "running": "RUNNING",
    "restarting": "RESTARTING",
    "finished": "FINISHED",
    "failed": "FAILED",
    "canceled": "CANCELED",
    "killed": "FAILED",
}
ALL_STATES: Final = (
    "INITIALIZING",
    "CREATED",
    "RUNNING",
    "FAILING",
    "FAILED",
    "CANCELLING",
    "CANCELED",
    "FINISHED",
    "RESTARTING",
    "SUSPENDED",
    "RECONCILING",
)
TASK_STATES: Final = (
    "CREATED",
    "SCHEDULED",
    "DEPLOYING",
    "INITIALIZING",
    "RUNNING",
    "FINISHED",
    "CANCELING",
    "CANCELED",
    "FAILED",
    "RECONCILING",
)
TASKS: Final = {"RESTARTING": "SCHEDULED", "INITIALIZING": "DEPLOYING"}
"""The state of the tasks of a job in these states; of others it is the job's."""
HISTORY_MAX: Final = 100
"""Checkpoints of an answer; `checkpoints/details/ID` has the older ones."""
OF_A_VERTEX: Final = (
    "id",
    "status",
    "latest_ack_timestamp",
    "checkpointed_size",
    "state_size",
    "end_to_end_duration",
    "alignment_buffered",
    "processed_data",
    "persisted_data",
    "num_subtasks",
    "num_acknowledged_subtasks",
)
"""The parts of a checkpoint that its tasks have as well."""
SCHEDULER: Final = "Default"
"""The one of Flink's schedulers whose failovers epochgate's lifecycle follows."""
QUANTILES: Final = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}


def answer(job: Job, path: str) -> Plain | None:
    """The answer to a path of the interface, with or without `/v1` in front; None for one that is
    none of these. Raises NotThere for an unknown run or checkpoint.
    """
    parts = path.removeprefix("/v1").strip("/").split("/")
    whole: dict[str, Callable[[list[Seen]], Plain]] = {
        "overview": _overview,
        "config": _config,
        "jobs": _jobs,
        "jobs/overview": _jobs_overview,
    }
    if (found := whole.get("/".join(parts))) is not None:
        return found(job.runs())
    if parts[0] != "jobs" or len(parts) < 2:
        return None
    of_run: dict[str, Callable[[Seen], Plain]] = {
        "": _job,
        "checkpoints": _checkpoints,
        "checkpoints/config": _checkpoint_config,
        "exceptions": _exceptions,
    }
    rest = "/".join(parts[2:])
    if (asked := of_run.get(rest)) is not None:
        return asked(job.run(parts[1]))
    if parts[2:4] == ["checkpoints", "details"] and len(parts) == 5:
        return _details(job.run(parts[1]), parts[4])
    return None


def _ms(seconds: float) -> int:
    return round(seconds * 1000)


def _overview(runs: list[Seen]) -> Plain:
    states = [STATES[one.state] for one in runs]
    ended = ("FINISHED", "CANCELED", "FAILED")
    live = [one for one in runs if one.is_live]
    return {
        "taskmanagers": sum(one.record.summary.parallelism for one in live),
        "slots-total": sum(one.record.summary.parallelism for one in live),
        "slots-available": 0,
        "jobs-running": sum(state not in ended for state in states),
        "jobs-finished": states.count("FINISHED"),
        "jobs-cancelled": states.count("CANCELED"),
        "jobs-failed": states.count("FAILED"),
        "flink-version": f"epochgate {__version__}",
        "flink-commit": "",
    }


def _config(runs: list[Seen]) -> Plain:
    return {
        "refresh-interval": 3000,
        "timezone-name": "UTC",
        "timezone-offset": 0,
        "flink-version": f"epochgate {__version__}",
        "flink-revision": "",
        "features": {
            "web-submit": False,
            "web-cancel": False,
            "web-rescale": False,
            "web-history": False,
        },
    }


def _jobs(runs: list[Seen]) -> Plain:
    return {
        "jobs": [{"id": one.record.summary.run_id, "status": STATES[one.state]} for one in runs]
    }


def _jobs_overview(runs: list[Seen]) -> Plain:
    return {
        "jobs": [
            {
                **_named(one),
                "jobType": "STREAMING",
                "schedulerType": SCHEDULER,
                "pending-operators": 0,
                "last-modification": _ms(one.record.summary.last_at),
                "tasks": {"total": one.record.summary.parallelism, **_tasks(one, str.lower)},
            }
            for one in runs
        ]
    }


def _named(seen: Seen) -> Plain:
    run = seen.record.summary
    end = -1 if seen.is_live else _ms(seen.until)
    return {
        "jid": run.run_id,
        "name": run.job_id,
        "state": STATES[seen.state],
        "start-time": _ms(run.started_at),
        "end-time": end,
        "duration": _ms(seen.until - run.started_at),
    }


def _tasks(seen: Seen, named: Callable[[str], str]) -> dict[str, int]:
    state = STATES[seen.state]
    own = TASKS.get(state, state)
    count = seen.record.summary.parallelism
    return {named(one): count if one == own else 0 for one in TASK_STATES}


def _job(seen: Seen) -> Plain:
    run = seen.record.summary
    state = STATES[seen.state]
    own = TASKS.get(state, state)
    named = _named(seen)
    vertex: Plain = {
        "id": run.run_id,
        "slotSharingGroupId": run.run_id,
        "name": "subtasks",
        "maxParallelism": run.parallelism,
        "parallelism": run.parallelism,
        "status": own,
        "start-time": named["start-time"],
        "end-time": named["end-time"],
        "duration": named["duration"],
        "tasks": _tasks(seen, str),
        "metrics": {
            "read-bytes": 0,
            "read-bytes-complete": False,
            "write-bytes": 0,
            "write-bytes-complete": False,
            "read-records": int(run.figures.get("rows_read", 0)),
            "read-records-complete": True,
            "write-records": int(run.committed.get("rows_committed", 0)),
            "write-records-complete": True,
            "accumulated-backpressured-time": 0,
            "accumulated-idle-time": 0,
            "accumulated-busy-time": 0.0,
        },
    }
    return {
        **named,
        "application-id": run.run_id,
        "isStoppable": False,
        "job-type": "STREAMING",
        "schedulerType": SCHEDULER,
        "maxParallelism": run.parallelism,
        "now": _ms(seen.at),
        "timestamps": {**dict.fromkeys(ALL_STATES, 0), **_moments(seen)},
        "vertices": [vertex],
        "status-counts": {one: int(one == own) for one in TASK_STATES},
        "plan": {
            "jid": run.run_id,
            "name": run.job_id,
            "type": "STREAMING",
            "nodes": [
                {
                    "id": run.run_id,
                    "operator": "",
                    "parallelism": run.parallelism,
                    "operator_strategy": "",
                    "description": vertex["name"],
                    "optimizer_properties": {},
                }
            ],
        },
        "pending-operators": 0,
    }


def _moments(seen: Seen) -> dict[str, int]:
    """The moment at which the job came into each of its states, the last time."""
    run = seen.record.summary
    found = {"INITIALIZING": _ms(run.started_at), "CREATED": _ms(run.started_at)}
    for one in seen.record.failovers:
        if one["event"] == "SubtasksUp":
            found["RUNNING"] = _ms(one["at"])
        elif one["event"] == "JobRestarts":
            found["RESTARTING"] = _ms(one["at"])
    if not seen.is_live:
        found[STATES[seen.state]] = _ms(seen.until)
    return found


def _checkpoints(seen: Seen) -> Plain:
    run = seen.record.summary
    known = list(seen.record.checkpoints)
    paths = {one["checkpoint_id"]: one["path"] for one in seen.record.savepoints}
    completed = [one for one in known if one["outcome"] == "completed"]
    failed = [one for one in known if one["outcome"] != "completed"]
    saved = [one for one in completed if one["checkpoint_id"] in paths]
    restores = [
        (one["checkpoint_id"], one["at"])
        for one in seen.record.failovers
        if one["event"] in ("SubtasksUp", "SubtaskRestarted") and one["checkpoint_id"]
    ]
    if run.resumed_from and not restores:
        restores = [(run.resumed_from, run.started_at)]
    restored = None
    if restores:
        number, at = restores[-1]
        restored = {
            "id": number,
            "restore_timestamp": _ms(at),
            "is_savepoint": number in paths,
            "external_path": paths.get(number),
        }
    return {
        "counts": {
            "restored": int(bool(run.resumed_from)) + run.global_restarts,
            "total": run.checkpoints_completed + run.checkpoints_aborted,
            "in_progress": 0,
            "completed": run.checkpoints_completed,
            "failed": run.checkpoints_aborted,
        },
        "summary": _summary(completed),
        "latest": {
            "completed": _checkpoint(seen, completed[-1], paths) if completed else None,
            "savepoint": _checkpoint(seen, saved[-1], paths) if saved else None,
            "failed": _checkpoint(seen, failed[-1], paths) if failed else None,
            "restored": restored,
        },
        "history": [_checkpoint(seen, one, paths) for one in reversed(known[-HISTORY_MAX:])],
    }


def _checkpoint(seen: Seen, one: Plain, paths: Mapping[int, str]) -> Plain:
    parallelism = seen.record.summary.parallelism
    is_completed = one["outcome"] == "completed"
    is_saved = one["checkpoint_id"] in paths
    acknowledged = parallelism - len(one.get("missing", ()))
    newest = _newest_completed(seen)
    found: Plain = {
        "className": "completed" if is_completed else "failed",
        "id": one["checkpoint_id"],
        "status": "COMPLETED" if is_completed else "FAILED",
        "is_savepoint": is_saved,
        "savepointFormat": "CANONICAL" if is_saved else None,
        "trigger_timestamp": _ms(one["at"] - one["duration_s"]),
        "latest_ack_timestamp": _ms(one["at"] - one.get("store_s", 0.0)),
        "checkpointed_size": one["stored_bytes"],
        "state_size": one["stored_bytes"],
        "end_to_end_duration": _ms(one["duration_s"]),
        "alignment_buffered": 0,
        "processed_data": 0,
        "persisted_data": 0,
        "num_subtasks": parallelism,
        "num_acknowledged_subtasks": parallelism if is_completed else acknowledged,
        "checkpoint_type": "SAVEPOINT" if is_saved else "CHECKPOINT",
        "tasks": {},
    }
    if is_completed:
        found |= {
            "external_path": paths.get(one["checkpoint_id"]),
            "discarded": one["checkpoint_id"] != newest and not is_saved,
        }
    else:
        found |= {"failure_timestamp": _ms(one["at"]), "failure_message": one["reason"]}
    return found


def _newest_completed(seen: Seen) -> int | None:
    newest_first = reversed(seen.record.checkpoints)
    return next(
        (one["checkpoint_id"] for one in newest_first if one["outcome"] == "completed"), None
    )


def _details(seen: Seen, checkpoint_id: str) -> Plain:
    paths = {one["checkpoint_id"]: one["path"] for one in seen.record.savepoints}
    for one in seen.record.checkpoints:
        if str(one["checkpoint_id"]) == checkpoint_id:
            found = _checkpoint(seen, one, paths)
            vertex = {name: found[name] for name in OF_A_VERTEX}
            return {**found, "tasks": {seen.record.summary.run_id: vertex}}
    raise NotThere(f"the history holds no checkpoint {checkpoint_id[:20]!r} of this run")


def _summary(completed: Sequence[Plain]) -> Plain:
    sizes = _statistics(one["stored_bytes"] for one in completed)
    nothing = _statistics(0 for _ in completed)
    return {
        "checkpointed_size": sizes,
        "state_size": sizes,
        "end_to_end_duration": _statistics(_ms(one["duration_s"]) for one in completed),
        "alignment_buffered": nothing,
        "processed_data": nothing,
        "persisted_data": nothing,
    }


def _statistics(values: Iterable[int]) -> Plain:
    """Least, greatest, mean and quantiles (the nearest rank); 0 of nothing."""
    known = sorted(values) or [0]
    last = len(known) - 1
    return {
        "min": known[0],
        "max": known[-1],
        "avg": sum(known) // len(known),
        **{name: float(known[min(last, int(q * len(known)))]) for name, q in QUANTILES.items()},
    }


def _checkpoint_config(seen: Seen) -> Plain:
    """The mode; the interval is not in the history."""
    return {
        "mode": "exactly_once",
        "externalization": {"enabled": True, "delete_on_cancellation": False},
    }


def _exceptions(seen: Seen) -> Plain:
    entries = [
        {
            "exceptionName": str(one["reason"]).partition(":")[0].partition("\n")[0],
            "stacktrace": one["reason"],
            "timestamp": _ms(one["at"]),
            "taskName": f"subtask {one['subtask']}" if "subtask" in one else None,
            "endpoint": None,
            "taskManagerId": None,
            "failureLabels": {},
            "concurrentExceptions": [],
        }
        for one in seen.record.failovers
        if "reason" in one
    ][::-1]
    return {
        "root-exception": entries[0]["stacktrace"] if entries else None,
        "timestamp": entries[0]["timestamp"] if entries else None,
        "all-exceptions": [],
        "truncated": False,
        "exceptionHistory": {
            "entries": entries[:HISTORY_MAX],
            "truncated": len(entries) > HISTORY_MAX,
        },
    }
