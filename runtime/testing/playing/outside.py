"""The actions of what stands beside the job: its store, its sink, its timers, and the person who
ends it. `actions` has those of clients, coordinators and processes, and says what an action is.
"""

from __future__ import annotations

from epochgate.runtime.store import CheckpointOutcomeUnknown
from epochgate.runtime.testing.playing.action import Action
from epochgate.runtime.testing.playing.scripted import ScriptedJob


def _fail_save(job: ScriptedJob) -> None:
    job.simulated.store.fail_next_save()
    job.run("store")


def _refuse(job: ScriptedJob) -> None:
    job.orders.check.append("refuse")
    job.run("store")


def _save_in_doubt(is_stored: bool) -> Action:
    def do(job: ScriptedJob) -> None:
        error = CheckpointOutcomeUnknown("the schedule says that the outcome is unknown")
        job.simulated.store.fail_next_save(error, is_stored=is_stored)
        job.run("store")

    return Action(
        do, lambda job: job.is_waiting("store"), "nothing is being saved", is_failure=True
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
    "store.finish_save": Action(
        lambda job: job.run("store"), lambda job: job.is_waiting("store"), "nothing is being saved"
    ),
    "store.fail_save": Action(
        _fail_save, lambda job: job.is_waiting("store"), "nothing is being saved", is_failure=True
    ),
    "store.lose_save": _save_in_doubt(is_stored=False),
    "store.lose_answer": _save_in_doubt(is_stored=True),
    "store.refuse": Action(
        _refuse, lambda job: job.is_waiting("store"), "nothing is being saved", is_failure=True
    ),
    "store.expire_save": Action(
        lambda job: job.hang("store"),
        lambda job: job.is_waiting("store"),
        "nothing is being saved",
        is_failure=True,
    ),
    "store.answer_late": Action(
        lambda job: job.answer_late(), lambda job: job.hanging, "no save has exceeded its limit"
    ),
    "store.expire": Action(
        _expire,
        lambda job: job.timers(job.master.checkpoints) and not job.is_waiting("store"),
        "no checkpoint is under way, or it is being saved, and its timer changes nothing",
        bound=_may_expire,
    ),
    "sink.finish": Action(
        lambda job: job.end_commit(), lambda job: job.is_committing(), "nothing is being committed"
    ),
    "sink.put_off": Action(
        lambda job: job.end_commit("retry"),
        lambda job: job.is_committing(),
        "nothing is being committed",
        is_failure=True,
    ),
    "sink.refuse": Action(
        lambda job: job.end_commit("refuse"),
        lambda job: job.is_committing(),
        "nothing is being committed",
        is_failure=True,
    ),
    "sink.hang": Action(
        lambda job: job.hang("commit", job.master.commits),
        lambda job: job.is_committing(),
        "nothing is being committed",
        is_failure=True,
    ),
    "sink.hang_in_work": Action(
        lambda job: job.hang("after-commit", job.master.post_commits),
        lambda job: job.is_working(),
        "no work is under way",
        is_failure=True,
    ),
    "sink.finish_work": Action(
        lambda job: job.end_work(), lambda job: job.is_working(), "no work is under way"
    ),
    "sink.fail_work": Action(
        lambda job: job.end_work("by order of the test"),
        lambda job: job.is_working(),
        "no work is under way",
        is_failure=True,
    ),
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
