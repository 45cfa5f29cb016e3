"""The table of the steps of the closed systems of commits and the actions of the production job,
and what of both is compared: each field of the machines that run, what is about to be stored,
committed and worked off, and what store and target hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from epochgate.fsm import Fifo, Ignore, Machine, Row
from epochgate.fsm.closed import ClosedSystem
from epochgate.models.closed.commits import CommitJob
from epochgate.models.closed.surroundings.zombie import REPLACED
from epochgate.models.post_commit import PUT_OFF
from epochgate.runtime.in_doubt import given_up_in
from epochgate.runtime.store.checkpoint import debts_of, in_doubt
from epochgate.runtime.store.places import places_of
from tests.playing.gates import Lie, the_truth
from tests.playing.job_commits import AFTER, COMMIT, CommitsBeside
from tests.playing.job_commits_users import rows_of
from tests.playing.job_paused import ABANDON, inside
from tests.playing.stage import Act


def _act(
    do: Callable[..., Any],
    is_there: Callable[..., Any],
    else_: str,
    bound: Callable[..., bool] = lambda *_: True,
    is_failure: bool = False,
) -> Act:
    """An act within the bounds of the closed system; a failure spends one of the `F`."""

    def happen(job: CommitsBeside, *index: int) -> None:
        job.failures += is_failure
        do(job, *index)
        job.settle()

    def is_possible(job: CommitsBeside, *index: int) -> bool:
        has_failures = not is_failure or job.failures < job.constants["F"]
        return has_failures and bound(job, *index) and bool(is_there(job, *index))

    return Act(happen, is_possible, else_)


def _write(job: CommitsBeside, subtask: int, item: int) -> None:
    job.programs[subtask].writer.produced.append(item)


def _may_write(job: CommitsBeside, subtask: int, item: int) -> bool:
    written = job.written(subtask)
    return job.is_working and item not in written and set(range(item)) <= written


def _is_before_the_end(job: CommitsBeside, *_: int) -> bool:
    return job.simulated.machines.checkpoint.number < job.constants["wanted"]


def _may_begin(job: CommitsBeside) -> bool:
    return job.is_working and not job.has_save() and job.saved is None


def _fail(job: CommitsBeside) -> None:
    job.simulated.store.fail_next_save()
    job.save()
    job.hear()


def _hang_work(job: CommitsBeside) -> None:
    job.failures += job.constants["hangs"] == 0
    if job.late is not None:
        job.late.tell(ABANDON)
    job.late = job.hang(AFTER)


def _may_hang(job: CommitsBeside) -> bool:
    return job.constants["hangs"] > 0 or job.failures < job.constants["F"]


def _repeat_work(job: CommitsBeside) -> None:
    answered = job.answered.get(AFTER)
    is_the_same = (
        answered is not None
        and job.lane(AFTER)
        and job.owed()[0] == inside(answered[0].then)["of"][0]
    )
    if answered is not None and not is_the_same:
        job.repeat(AFTER)


def _is_settled(job: CommitsBeside) -> bool:
    return not job.has_save() and job.saved is None


def _is_done(job: CommitsBeside) -> bool:
    return job.is_working and _is_settled(job) and not job.lane(COMMIT) and not job.lane(AFTER)


def _finish(job: CommitsBeside) -> None:
    job.is_finished = True


def _end(job: CommitsBeside) -> None:
    job.simulated.flow(held=("blocking",))
    assert job.master.is_over, "the job has gone down with its processes"
    job.stop()


def _go_back(job: CommitsBeside) -> None:
    job.lose_newest()
    job.target.withdraw(job.ids()[-1])
    job.begin_driver()


def _is_free(job: CommitsBeside) -> bool:
    return not job.is_up and job.giving_up is None


def _apply_behind(job: CommitsBeside) -> None:
    assert job.zombie is not None
    job.zombie.tell("apply")


def _may_apply_behind(job: CommitsBeside) -> bool:
    return job.zombie is not None and bool(job.rest(job.zombie)) and not job.is_finished


def _may_forgo(job: CommitsBeside, doubt: int) -> bool:
    latest = job.latest()
    return not job.is_up and latest is not None and doubt + 1 in in_doubt(latest)


def _is_giving_up(job: CommitsBeside, doubt: int) -> bool:
    return job.giving_up is not None and job.doubt == doubt


def _may_apply(job: CommitsBeside) -> bool:
    return job.lane(COMMIT) and bool(job.batch()[2]) and not _is_left_out(job)


def _is_left_out(job: CommitsBeside) -> bool:
    return job.batch()[2][0] in job.target.left_out


def _may_leave_out(job: CommitsBeside) -> bool:
    if not (job.lane(COMMIT) and job.batch()[2]):
        return False
    is_new = job.batch()[2][0] > job.target.last and job.failures < job.constants["F"]
    return _is_left_out(job) or is_new


def _leave_out(job: CommitsBeside) -> None:
    job.failures += not _is_left_out(job)
    if len(job.batch()[2]) == 1:
        job.end(COMMIT, "leave_out")
    else:
        job.begun(COMMIT).tell("leave_out")


def _is_late(job: CommitsBeside) -> bool:
    return job.late is not None and not job.lane(AFTER)


ACTS: dict[str, Act] = {
    "committable.write": _act(
        _write, _may_write, "no process can produce it now", _is_before_the_end
    ),
    "checkpoint.begin": _act(
        lambda job: job.master.request_checkpoint(),
        _may_begin,
        "the job takes no checkpoint now",
        lambda job: (job.ids() or [0])[-1] < job.constants["wanted"],
    ),
    "checkpoint.persist": _act(CommitsBeside.save, CommitsBeside.has_save, "no save waits"),
    "checkpoint.fail": _act(_fail, CommitsBeside.has_save, "no save waits", is_failure=True),
    "checkpoint.hear": _act(
        CommitsBeside.hear, lambda job: job.saved is not None, "no save has ended"
    ),
    "sink.apply": _act(
        lambda job: job.begun(COMMIT).tell("apply"),
        _may_apply,
        "nothing is left to commit that the target takes",
    ),
    "sink.leave_out": _act(_leave_out, _may_leave_out, "nothing may be left out"),
    "sink.answer": _act(
        lambda job: job.end(COMMIT, "answer"),
        lambda job: job.lane(COMMIT) and not job.batch()[2],
        "no commit is through",
    ),
    **{
        f"sink.{order}": _act(
            lambda job, order=order: job.end(COMMIT, order),
            lambda job: job.lane(COMMIT),
            "no commit is under way",
            is_failure=True,
        )
        for order in ("put_off", "refuse", "rule_out")
    },
    "sink.hang": _act(
        lambda job: job.inherit(job.hang(COMMIT)),
        lambda job: job.lane(COMMIT),
        "no commit is under way",
        is_failure=True,
    ),
    "sink.answer_again": _act(
        lambda job: job.repeat(COMMIT),
        lambda job: job.is_up and not job.is_finished and COMMIT in job.answered,
        "no commit was answered",
    ),
    "worker.act": _act(
        lambda job: job.begun(AFTER).tell("act"),
        lambda job: job.lane(AFTER) and not job.has_acted(),
        "no work is due",
    ),
    "worker.answer": _act(
        lambda job: job.end(AFTER, "answer"), CommitsBeside.has_acted, "no work has had its effect"
    ),
    "worker.fail": _act(
        lambda job: job.end(AFTER, "fail"),
        lambda job: job.lane(AFTER),
        "no work is under way",
        is_failure=True,
    ),
    "worker.hang": _act(_hang_work, lambda job: job.lane(AFTER), "no work is under way", _may_hang),
    "worker.answer_late": _act(CommitsBeside.answer_late, _is_late, "no work has hung"),
    "worker.answer_again": _act(
        _repeat_work, lambda job: job.is_up and not job.is_finished, "no driver runs"
    ),
    "driver.end": _act(
        _end,
        lambda job: job.is_up and job.is_failing and _is_settled(job),
        "the job does not go down",
    ),
    "driver.die": _act(
        CommitsBeside.stop,
        lambda job: job.is_up and not job.is_finished,
        "no driver runs",
        is_failure=True,
    ),
    "driver.start": _act(CommitsBeside.begin_driver, _is_free, "the store is in use"),
    "driver.go_back": _act(
        _go_back,
        lambda job: _is_free(job) and len(job.ids()) > 1,
        "there is no checkpoint to go back to",
        lambda job: job.has_earlier,
        is_failure=True,
    ),
    "driver.finish": _act(
        _finish,
        _is_done,
        "something is not settled",
        lambda job: (job.ids() or [0])[-1] >= job.constants["wanted"],
    ),
    "zombie.apply": _act(_apply_behind, _may_apply_behind, "no commit was left behind"),
    "doubt.forgo": _act(
        CommitsBeside.forgo,
        _may_forgo,
        "no such commit is in doubt",
        lambda job, _: job.given_up < job.constants["given_up"],
    ),
    "doubt.store": _act(
        lambda job, _: job.end_giving_up(is_saved=True), _is_giving_up, "no command is at work"
    ),
    "doubt.leave": _act(
        lambda job, _: job.end_giving_up(is_saved=False),
        _is_giving_up,
        "no command is at work",
        is_failure=True,
    ),
}

REFUSED = {
    "driver.go_back": "a store whose only checkpoint is lost refuses the start, "
    "in the closed system the next driver begins without one"
}
"""Steps of the closed systems that are left out where the runtime refuses them, and why."""


class CommitsWorld(CommitsBeside):
    """The production job beside a closed system of commits, and what of both has to be the same."""

    acts: Mapping[str, Act] = ACTS

    def __init__(self, system: ClosedSystem, lie: Lie = the_truth) -> None:
        assert isinstance(system, CommitJob)
        self.model = system
        super().__init__(system, lie)
        self._known: int | None = 0
        """The newest commit that the driver knows of, as the model has it; none behind one that
        was left out.
        """
        self._stalled: list[int] = []
        """Whose work people were told is put off, as the model has it."""
        system.observer = self._note

    def machines(self) -> Iterator[tuple[str, tuple[int, ...], Machine]]:
        if self.is_up:
            job = self.simulated.machines
            yield from (("committer", (), job.committer), ("post_commit", (), job.post_commit))

    def facts(self) -> Iterator[tuple[str, Any, Any]]:
        """Return what driver, target and store hold, and what people are told."""
        model = self.model
        yield "how many failures there were", model.budget.failures, self.failures
        yield from self._target()
        yield from self._store()
        if self.is_up:
            yield from self._driver()

    def _note(
        self, machine: Machine, source: str, row: Row | Ignore, told: tuple[Any, ...]
    ) -> None:
        """Note of a row that the model takes what no field of it keeps."""
        if isinstance(row, Ignore):
            return
        model = self.model
        if machine is model.driver and row.trigger in ("start", "go_back"):
            self._known, self._stalled = 0, []
        if machine is model.committer and row.trigger in ("committed", "already_committed"):
            self._known = told[0]
        if machine is model.committer and row.trigger == "left_out":
            self._known = None
        if machine is model.post_commit and row.dest == PUT_OFF:
            self._stalled.append(told[0])

    def _target(self) -> Iterator[tuple[str, Any, Any]]:
        model, target = self.model, self.target
        effects = target.effects()
        for (s, i), committable in model.committable.items():
            yield f"effects of {s, i}", committable.effects, effects[s, i]
        yield "target", model.sink.last, target.last
        yield "shown", _numbers(model.sink.is_visible), [n for n, _ in target.shown]
        yield "works", _numbers(model.worker.is_done), sorted(target.works)
        zombie = self.zombie
        yield "zombie", _held(model.zombie.batch), [] if zombie is None else self.rest(zombie)
        if zombie is not None and model.zombie.state == REPLACED:
            yield "zombie's claim", True, target.epoch == self.simulated_starts

    def _store(self) -> Iterator[tuple[str, Any, Any]]:
        store, latest = self.model.store, self.latest()
        if latest is None:
            yield "store", store.completed, 0
            return
        yield "store", store.completed, latest.checkpoint_id
        yield "ledger", _numbers(store.ledger), sorted(latest.uncommitted)
        yield "debts", _numbers(store.debts), sorted(debts_of(latest))
        tries = [place.tries.get(-1, 0) for place in places_of(latest).values()]
        yield "stored tries", store.tries, max(tries, default=0)
        given_up = [number for number, *_ in given_up_in(latest)]
        yield "given up", _numbers(store.is_forgone), given_up
        stored = self.stored()
        kept = {**latest.uncommitted, **debts_of(latest)}
        for number, held in kept.items():
            if number in stored:
                yield f"kept of {number}", stored[number].committables, dict(held)
        found = {row: n for n, whole in stored.items() for row in rows_of(whole.committables)}
        for row, committable in self.model.committable.items():
            if committable.is_completed():
                yield f"checkpoint of {row}", committable.checkpoint, found.get(row)

    def _driver(self) -> Iterator[tuple[str, Any, Any]]:
        model, job = self.model, self
        sink, worker = model.sink, model.worker
        yield "held", _numbers(sink.is_held), sorted(job.held())
        is_committing = sink.state == "committing"
        yield "committing", is_committing, job.lane(COMMIT)
        if is_committing:
            yield "commit", (sink.asked, sink.tries, _held(sink.batch)), job.batch()
        is_working = worker.state == "busy"
        yield "working", is_working, job.lane(AFTER)
        if is_working:
            yield "work", (worker.number, worker.tries), job.owed()
            yield "acted", worker.has_acted, job.has_acted()
        for lane, tries in ((COMMIT, sink.tries), (AFTER, worker.tries)):
            for timer in job.timers(lane):
                pause_s = job.master.configuration.commit_pause_s(tries)
                yield f"pause before {lane}", pause_s, timer.due_s - job.simulated.clock.now_s()
        if model.checkpoint.state == "saving":
            whole = job.to_be_saved()
            yield "number", model.checkpoint.number, whole.checkpoint_id
            yield "carried", _numbers(model.checkpoint.carried), sorted(whole.uncommitted)
            yield "owing", _numbers(model.checkpoint.owing), sorted(debts_of(whole))
        if self._known is not None:
            yield "known as committed", self._known, job.master.report.committed_upto
        yield "told of stalled work", len(self._stalled), len(job.stalls)
        for number, text in zip(self._stalled, job.stalls, strict=True):
            yield "whose work is stalled", True, f"the commit of checkpoint {number} is" in text
        for text in (*job.stalls, *filter(None, [job.master.cause])):
            yield "the reason that is told", True, any(reason in text for reason in REASONS)


REASONS = ("by order of the schedule", "has not ended within")


def _numbers(flags: list[bool]) -> list[int]:
    return [number for number, flag in enumerate(flags, 1) if flag]


def _held(channel: Fifo[int]) -> list[int]:
    return list(channel)
