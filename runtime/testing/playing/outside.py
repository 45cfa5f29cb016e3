"""The actions of what stands beside the job: its store, its sink, its timers, and the person who
ends it. `actions` has those of clients, coordinators and processes, and says what an action is.
"""

from __future__ import annotations

from collections.abc import Callable

from epochgate.runtime.store import CheckpointOutcomeUnknown
from epochgate.runtime.testing.playing.action import Action
from epochgate.runtime.testing.playing.scripted import ScriptedJob

NOTHING: dict[str, str] = {
    "store": "nothing is being saved",
    "commit": "nothing is being committed",
}
"""What it means that nothing of a lane is under way."""


def _nothing(lane: str) -> str:
    return NOTHING.get(lane, "no work is under way")


def ends_well(lane: str) -> Action:
    """The oldest work of a lane ends as it should."""
    return Action(lambda job: job.run(lane), lambda job: job.is_under_way(lane), _nothing(lane))


def ends_badly(lane: str, order: Callable[[ScriptedJob], None]) -> Action:
    """It ends otherwise."""

    def do(job: ScriptedJob) -> None:
        order(job)
        job.run(lane)

    return Action(do, lambda job: job.is_under_way(lane), _nothing(lane), is_failure=True)


def never_ends(lane: str) -> Action:
    """It exceeds its limit."""
    return Action(
        lambda job: job.hang(lane),
        lambda job: job.is_under_way(lane),
        _nothing(lane),
        is_failure=True,
    )


def _save_in_doubt(is_stored: bool) -> Action:
    error = CheckpointOutcomeUnknown("the schedule says that the outcome is unknown")
    return ends_badly(
        "store", lambda job: job.simulated.store.fail_next_save(error, is_stored=is_stored)
    )


def _expire(job: ScriptedJob) -> None:
    job.failures += job.constants["timeouts_cost"]
    job.fire(job.timers(job.master.checkpoints))


def _may_expire(job: ScriptedJob) -> bool:
    return job.failures + job.constants["timeouts_cost"] <= job.constants["F"]


def _end(how: str) -> Action:
    def do(job: ScriptedJob) -> None:
        job.is_person_done = True
        getattr(job.master, how)(*(["the schedule gives it up"] if how == "fail" else []))

    return Action(do, lambda job: not job.is_person_done, "the user ends the job once")


OUTSIDE: dict[str, Action] = {
    "store.finish_save": ends_well("store"),
    "store.fail_save": ends_badly("store", lambda job: job.simulated.store.fail_next_save()),
    "store.lose_save": _save_in_doubt(is_stored=False),
    "store.lose_answer": _save_in_doubt(is_stored=True),
    "store.refuse": ends_badly("store", lambda job: job.orders.check.append("refuse")),
    "store.expire_save": never_ends("store"),
    "store.answer_late": Action(
        lambda job: job.answer_late(), lambda job: job.hanging, "no save has exceeded its limit"
    ),
    "store.expire": Action(
        _expire,
        lambda job: job.timers(job.master.checkpoints) and not job.is_under_way("store"),
        "no checkpoint is under way, or it is being saved, and its timer changes nothing",
        bound=_may_expire,
    ),
    "sink.finish": ends_well("commit"),
    "sink.put_off": ends_badly("commit", lambda job: job.orders.commit.append("retry")),
    "sink.refuse": ends_badly("commit", lambda job: job.orders.commit.append("refuse")),
    "sink.hang": never_ends("commit"),
    "sink.finish_work": ends_well("after-commit"),
    "sink.fail_work": ends_badly("after-commit", lambda job: job.orders.work.append("by order")),
    "sink.hang_in_work": never_ends("after-commit"),
    "restarter.back_off": Action(
        lambda job: job.fire(job.timers(job.job.lifecycle, "backed_off")),
        lambda job: job.timers(job.job.lifecycle, "backed_off"),
        "no timer runs for the job as a whole",
    ),
    "restarter.expire_end": Action(
        lambda job: job.fire(job.timers(job.job.lifecycle, "expire_end")),
        lambda job: not job.master.is_over and job.timers(job.job.lifecycle, "expire_end"),
        "the job does not go down",
    ),
    "person.stop": _end("stop"),
    "person.cancel": _end("cancel"),
    "person.give_up": _end("fail"),
}
