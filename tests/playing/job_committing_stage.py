"""The table of the steps of the closed system of commits in several steps and the actions of the
production job, and what of both is compared beside machines: what is stored, what has taken effect,
and what is under way on the driver and in its tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

from epochgate.fsm import machines
from epochgate.models.closed.committing import CommittingInSteps
from epochgate.models.closed.job import ClosedJob
from epochgate.models.closed.surroundings import committing_parts as parts
from epochgate.models.committing_job import CommittingJob
from epochgate.models.job import Job
from epochgate.models.subtask_committer import COMMITTING, PAUSING
from epochgate.runtime.api.committer import RetryLater
from epochgate.runtime.api.committing import StepOutcome
from epochgate.runtime.shell.stages import Processed
from epochgate.runtime.shell.task_commits import Shares
from epochgate.runtime.store.places import BEFORE, BEHIND, GLOBAL, TASKS, places_of, states_of
from epochgate.runtime.testing.fuzzing.actors import Poison
from epochgate.runtime.testing.playing import (
    ACTIONS,
    NOT_BEHIND_ANY,
    Action,
    InterleavedStage,
    ProductionStage,
)
from epochgate.runtime.testing.playing.actions import die_silently, hear_zombie
from epochgate.runtime.testing.playing.outside import ends_badly, ends_well, never_ends
from epochgate.runtime.testing.playing.scripted import ScriptedJob
from tests.playing.job_committing import COMMIT, SteppedJob
from tests.playing.job_committing_halves import PartsInHalves
from tests.playing.job_committing_users import got_in
from tests.playing.job_heard import HeardStage

PLACES = {BEFORE: parts.BEFORE, TASKS: parts.TASKS, BEHIND: parts.BEHIND, GLOBAL: parts.LEDGER}


def _may_die(job: SteppedJob) -> bool:
    return job.is_launched and not job.master.is_over


def _die_unheard(job: SteppedJob) -> None:
    job.store_unheard()
    job.crash()


def _has_failed(job: SteppedJob) -> bool:
    return job.master.is_over and job.simulated.result.state == "failed"


def _has_part_next(job: SteppedJob, subtask: int) -> bool:
    message = job.next_message(subtask)
    return message is not None and message[0] == "commit" and bool(message[3])


def _put_off(job: SteppedJob, subtask: int) -> None:
    job.is_putting_off = True
    job.tell(subtask)
    job.is_putting_off = False


def _every_try(job: SteppedJob) -> Iterator[tuple[int, int]]:
    for checkpoint in range(1, job.constants["checkpoints"] + 1):
        for tries in range(job.constants["commit_retries"] + 1):
            yield checkpoint, tries


def _hear_zombie_of_steps(job: SteppedJob, subtask: int) -> None:
    hear_zombie(job, subtask)
    for told in _every_try(job):
        for message in (["committed", *told, [], 0, []], ["commit_later", *told, [], 0, [], ""]):
            job.say(subtask, job.identities[subtask][-2], message)


def _may_expire(job: SteppedJob, subtask: int) -> bool:
    is_committing = job.steps.subtask_committer[subtask].state == COMMITTING
    return is_committing and job.limit(subtask) is not None


def _repeat_in_tasks(job: SteppedJob, subtask: int) -> None:
    """Each answer and each end of a pause that is not waited for, and what has come before."""
    machine, identity = job.steps.subtask_committer[subtask], job.steps.attempt[subtask].identity
    post, collector = job.master.queue.post, job.steps.committable_collector
    for checkpoint, tries in _every_try(job):
        is_asked = not machine.is_done() and machine.is_asked(checkpoint, tries)
        nothing = StepOutcome([])
        if collector.received[subtask] >= checkpoint:
            post(collector.receive, subtask, checkpoint, nothing)
        if machine.state == COMMITTING and is_asked:
            post(machine.expire, checkpoint, tries, identity - 1, "late")
        else:
            told = [checkpoint, tries, [], 0, []]
            job.say(subtask, identity, ["committed", *told])
            job.say(subtask, identity, ["commit_later", *told, "late"])
            post(machine.committed, checkpoint, tries, nothing)
            post(machine.retry_later, checkpoint, tries, nothing, "late")
            post(machine.expire, checkpoint, tries, identity, "late")
        if machine.state != PAUSING or not is_asked:
            post(machine.pause_over, checkpoint, tries)


def _repeat_between(side: str) -> Callable[[SteppedJob], None]:
    def repeat(job: SteppedJob) -> None:
        stage, asked = job.stages[side], job.asked(side)[:2]
        for told in _every_try(job):
            if told != asked:
                job.master.queue.post(stage._done, *told, Processed({}, []), None)
                for error in (RetryLater("late"), Poison("late")):
                    job.master.queue.post(stage._done, *told, None, error)
                job.master.queue.post(stage._machine.expire, *told, "late")

    return repeat


def _ordered(side: str, order: str) -> Callable[[Any], None]:
    return lambda job: job.orders_between[side].append(order)


def _between(machine: str, side: str) -> dict[str, Any]:
    return {
        f"{machine}.finish": ends_well(side),
        f"{machine}.put_off": ends_badly(side, _ordered(side, "retry")),
        f"{machine}.refuse": ends_badly(side, _ordered(side, "refuse")),
        f"{machine}.hang": never_ends(side),
        f"{machine}.late": Action(
            _repeat_between(side), lambda job: True, "it can always happen, and changes nothing"
        ),
    }


def _launched(key: str) -> Action:
    """Return what happens where a driver has begun alone."""
    action = ACTIONS[key]
    bound = action.bound or (lambda job: True)
    return Action(
        action.do,
        lambda job: job.is_launched and action.is_there(job),
        action.else_,
        lambda job: bound(job),
    )


STEPS: dict[str, Action] = {
    **ACTIONS,
    "requester.want": _launched("requester.want"),
    "person.stop": _launched("person.stop"),
    "launch.end": Action(lambda job: job.crash(), _has_failed, "the job has not failed"),
    "launch.die": Action(
        lambda job: job.crash(), _may_die, "no driver runs a job that goes on", is_failure=True
    ),
    "launch.die_unheard": Action(
        _die_unheard,
        lambda job: _may_die(job) and job.is_under_way("store"),
        "nothing is being saved",
        is_failure=True,
    ),
    "process.die_silently": Action(
        die_silently, lambda job, s: job.living(s), "no process is there to die", is_failure=True
    ),
    "process.hear_zombie": Action(
        _hear_zombie_of_steps,
        lambda job, s: len(job.identities[s]) > 1,
        "no process of the subtask was ever replaced",
    ),
    "process.put_off": Action(
        _put_off,
        _has_part_next,
        "the next message on its way to the process asks for no commit, or for one of nothing",
        is_failure=True,
    ),
    "parts.end_pause": Action(
        lambda job, s: job.fire(job.pauses(s)), lambda job, s: job.pauses(s), "there is no pause"
    ),
    "parts.expire": Action(
        lambda job, s: job.expire(s),
        _may_expire,
        "no commit is under way within its limit",
        is_failure=True,
    ),
    "parts.late": Action(
        _repeat_in_tasks, lambda job, s: True, "it can always happen, and changes nothing"
    ),
    **_between("before_it", BEFORE),
    **_between("behind_it", BEHIND),
}
"""`machine.trigger` of the closed system -> what it is to the runtime."""


class PlainSteps(ProductionStage):
    """Plays commits in several steps."""

    actions: ClassVar[Mapping[str, Action]] = STEPS
    scripted: ClassVar[type[ScriptedJob]] = SteppedJob
    job: SteppedJob

    def machines_of(self, system: type[ClosedJob]) -> type[Job]:
        right = CommittingInSteps.MACHINES
        own = {
            name: machine
            for name, machine in system.MACHINES.items()
            if name in CommittingJob.MACHINES and machine is not right[name]
        }
        body = {"__module__": system.__module__, **{n: machines(m) for n, m in own.items()}}
        return type(f"{system.__name__}Machines", (CommittingJob,), body) if own else CommittingJob

    def differences(self) -> list[str]:
        """Also of what is stored, what has taken effect and what is under way."""
        assert isinstance(self.system, CommittingInSteps)
        found = super().differences()
        for what, told, really in facts(self.system, self.job):
            if told != really:
                found.append(f"{what} is {told!r} in the model, and really {really!r}")
        return found


class SteppedStage(PlainSteps, HeardStage):
    """Plays step by step, and looks at what shells do with what they hear."""


class InterleavedSteps(PlainSteps, InterleavedStage):
    """Plays event by event; steps in `ALONE` begin while none waits, and end at once."""

    def begin(self, step: str) -> None:
        if self._actions[step][0] in ALONE:
            ProductionStage.take(self, step)
        else:
            super().begin(step)

    def _may_wait(self, step: str) -> bool:
        return self._actions[step][0] not in ALONE and super()._may_wait(step)


ALONE: dict[str, str] = {
    "launch.launch": "no event waits where no driver runs",
    **dict.fromkeys(
        ("launch.die", "launch.die_unheard", "launch.end"),
        "a driver that has gone processes nothing of what waits",
    ),
    **dict.fromkeys(
        ("parts.late", "before_it.late", "behind_it.late"),
        "what is late is told by the state, which an event that waits may change",
    ),
    **NOT_BEHIND_ANY,
}
"""Steps that do not begin while events wait, and why."""


Fact = tuple[str, Any, Any]


def facts(model: CommittingInSteps, job: SteppedJob) -> Iterator[Fact]:
    """Return what is said of the outside: its name, its value in the model, and what really is."""
    yield "how many failures there were", model.budget.failures, job.failures
    yield "committed globally", _numbers(model.sink.is_visible), sorted(job.record.table)
    yield from _stored(model, job)
    yield from _in_tasks(model, job)
    yield from _on_driver(model, job)


def _stored(model: CommittingInSteps, job: SteppedJob) -> Iterator[Fact]:
    latest, way = job.latest(), model.way
    yield "the newest stored", way.completed, 0 if latest is None else latest.checkpoint_id
    if latest is None:
        return
    places = places_of(latest)
    yield (
        "where checkpoints are stored to be",
        {n: way.stored[n - 1] for n in _numbers(way.stored)},
        {n: PLACES[place.at] for n, place in places.items()},
    )
    yield "what is stored as not committed", _numbers(way.stored), sorted(latest.uncommitted)
    globally = [p.tries.get(-1, 0) for _, p in sorted(places.items()) if p.at == GLOBAL]
    yield "stored tries of the global commit", way.tries, max(globally, default=0)
    for side, between in ((BEFORE, model.before_it), (BEHIND, model.behind_it)):
        states = states_of(latest, side)
        got = got_in(states[0]) if states else set()
        yield f"stored state {side} the tasks", _numbers(between.stored_got), sorted(got)
    for s, part in enumerate(model.parts):
        kept = {n: p for n, p in places.items() if any(_is_kept(one, s) for one in p.shares)}
        yield f"stored parts of subtask {s}", _numbers(part.is_stored), sorted(kept)
        tries = {n: p.tries[s] for n, p in places.items() if p.tries.get(s)}
        told = {n: part.stored_tries[n - 1] for n in _numbers(part.stored_tries)}
        yield f"stored tries of subtask {s}", told, tries
        if isinstance(part, PartsInHalves):
            begun = {n for n, p in kept.items() if any(_is_begun(one, s) for one in p.shares)}
            yield f"half stored parts of subtask {s}", _numbers(part.stored_begun), sorted(begun)


def _is_kept(share: Any, subtask: int) -> bool:
    return bool(share.subtask == subtask and share.passed is None)


def _is_begun(share: Any, subtask: int) -> bool:
    return _is_kept(share, subtask) and bool(share.done)


def _begun(by_checkpoint: dict[int, Shares], subtask: int) -> list[int]:
    found = {n: shares.get(subtask) for n, shares in by_checkpoint.items()}
    return sorted(n for n, share in found.items() if share and _is_begun(share, subtask))


def _in_tasks(model: CommittingInSteps, job: SteppedJob) -> Iterator[Fact]:
    for s, part in enumerate(model.parts):
        rows = {n: job.record.expected(n, TASKS).get(s, []) for n in job.record.stored}
        done = [n for n, held in sorted(rows.items()) if held and job.in_target.issuperset(held)]
        yield f"effects of subtask {s}", _numbers(part.has_effect), done
        if model.task_committers and job.restored(s):
            yield f"state of subtask {s}", _numbers(part.has_seen), sorted(job.in_task[s].got)
        pauses = [timer.arguments for timer in job.pauses(s)]
        told = [(part.pausing, part.pausing_tries)] if part.pausing else []
        yield f"the pause of subtask {s}", told, pauses
        for timer in job.pauses(s):
            pause_s = job.master.configuration.commit_pause_s(max(part.pausing_tries, 1))
            left_s = timer.due_s - job.simulated.clock.now_s()
            yield f"the length of the pause of subtask {s}", pause_s, left_s
        yield f"the limit of subtask {s}", _has_limit(model, s), _may_expire(job, s)


def _has_limit(model: CommittingInSteps, subtask: int) -> bool:
    part = model.parts[subtask]
    return part.is_committing() and part.is_within()


def _on_driver(model: CommittingInSteps, job: SteppedJob) -> Iterator[Fact]:
    if not job.is_launched:
        return
    held = [n for n, place in enumerate(model.way.place, 1) if 0 < place < parts.DONE]
    yield "what the driver keeps", held, sorted(job.master.commits._held)
    sides = ((BEFORE, model.before_it), (BEHIND, model.behind_it))
    for side, between in sides:
        asked = job.asked(side)[:2]
        told = (between.asked, between.tries) if between.asked else (0, 0)
        yield f"asked {side} the tasks", told, asked
        states = job.stages[side]._states
        got = got_in(states[0]) if states else set()
        yield f"state {side} the tasks", _numbers(between.has_got), sorted(got)
        yield from _pause(job, side, between.tries)
    sink = model.sink
    commit = (sink.asked, sink.tries, _numbers(sink.is_covered)) if sink.asked else (0, 0, [])
    yield "asked globally", commit, job.asked(COMMIT)
    yield from _pause(job, COMMIT, sink.tries)
    for s, part in enumerate(model.parts):
        if isinstance(part, PartsInHalves):
            present = {n: found.current for n, found in job.tasks._in_tasks.items()}
            durable = {n: found.durable for n, found in job.tasks._in_tasks.items()}
            yield f"halves committed by subtask {s}", _numbers(part.is_begun), _begun(present, s)
            what = f"halves from which subtask {s} is restored"
            yield what, _numbers(part.durable_begun), _begun(durable, s)
    there = {n for one in model.subtask_committer for n in (*one.waiting, *one.passed, *one.sealed)}
    there.update(model.committable_collector.expected)
    yield "kept without need", [], sorted(job.tasks._in_tasks.keys() - there)


def _pause(job: SteppedJob, lane: str, tries: int) -> Iterator[Fact]:
    for timer in job._put_off(lane):
        pause_s = job.master.configuration.commit_pause_s(tries)
        left_s = timer.due_s - job.simulated.clock.now_s()
        yield f"the pause {lane} the next try", pause_s, left_s


def _numbers(values: list[Any]) -> list[int]:
    return [number for number, value in enumerate(values, 1) if value]
