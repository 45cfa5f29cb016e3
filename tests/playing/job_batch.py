"""The production job beside the closed system of snapshots without checkpoints: a coordinator whose
futures end as the schedule says, and one subtask, which is always there.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from typing import Any

import msgpack

from epochgate.fsm import Machine
from epochgate.fsm.inside import machines_behind
from epochgate.models.closed.asked import AskedJob
from epochgate.models.closed.batch import OPEN, BatchJob
from epochgate.runtime.api.send_future import EventLost, SendFuture
from epochgate.runtime.shell.batch_snapshots import BatchSnapshotFailed, BatchSnapshotRefused
from epochgate.runtime.shell.job_master import JobMaster
from epochgate.runtime.testing.fuzzing.record import operator_id
from epochgate.runtime.testing.playing import ScriptedJob
from tests.playing.gates import Lie, the_truth
from tests.playing.job_lies import tell_lies
from tests.playing.stage import Act

LOST = "an event sent before it was lost"


class BatchWorld:
    """One production job that takes no checkpoints; `seed` says in which way a future fails."""

    def __init__(self, system: BatchJob, lie: Lie = the_truth, seed: int = 0) -> None:
        self.system, self._lie, self._draw = system, lie, random.Random(seed)
        asked = AskedJob(subtasks=1, slow_starts=0, asks=system.R, events=system.E)
        self.job = ScriptedJob(asked, prepare=self._prepare)
        self.failures = 0
        self.is_waiting = False
        """What the schedule lets happen is not processed yet."""
        self.requests: list[Future[bytes]] = []
        self.futures: list[Future[bytes] | None] = []
        """Those of the snapshots, in order; None for one that was dropped."""
        self.why: list[str] = []
        """The reasons why a snapshot may fail in what waits."""
        self._over: list[Future[bytes]] = []
        self._wrong: list[str] = []
        self.acts: Mapping[str, Act] = ACTS
        for trigger, arguments in self.job.beginning:
            self.job.master.queue.post(trigger, *arguments)
        self.job.beginning.clear()
        self.recover()

    def _prepare(self, master: JobMaster) -> None:
        tell_lies(machines_behind(master.batch_snapshots._system), self._lie)

    def recover(self) -> None:
        """Let the subtask begin again, from nothing."""
        job = self.job
        attempt = job.job.attempt[0]
        job.settle()
        while not attempt.is_running() or job.words(0):
            if words := job.words(0):
                job.transport.step(*words)
            elif job.newcomer(0) and not job.living(0):
                job.connect(0)
            else:
                timers = job.timers(attempt, "restart")
                job.fire(timers or job.timers(job.job.lifecycle, "backed_off"))
            job.settle()

    def settle(self) -> None:
        """Let all that waits be processed, and look at what it came to."""
        if self.is_waiting:
            return
        self.job.settle()
        asked = self.job.batch_futures(0)
        self.futures += asked
        asked.clear()
        for request in self.requests:
            if request.done() and request not in self._over:
                self._over.append(request)
                self._judge(request)
        self.why.clear()

    def _judge(self, request: Future[bytes]) -> None:
        error = request.exception()
        if error is None:
            kept = len(msgpack.unpackb(request.result())[0][0])
            if kept != self.system.world[0].kept:
                self._wrong.append(f"a client has a state with {kept} events")
        elif isinstance(error, BatchSnapshotFailed) and not any(
            why in str(error) for why in self.why
        ):
            self._wrong.append(f"a client hears {str(error)!r}, and it was {self.why}")
        elif not isinstance(error, BatchSnapshotFailed | BatchSnapshotRefused):
            self._wrong.append(f"a client hears {error!r}")

    def end_badly(self, answer: int) -> None:
        """The future of a snapshot fails in one of the ways in which it can."""
        future: Any = self.futures[answer]
        way = self._draw.choice(["raise", "cancel", "drop", "expire"])
        if way == "raise":
            self.why.append("its future ended with OSError('no space')")
            future.set_exception(OSError("no space"))
        elif way == "cancel":
            self.why.append("its future ended with 'being cancelled'")
            future.cancel()
        else:
            timers = self.job.timers(self.job.master.batch_snapshots) if way == "expire" else []
            timers = [timer for timer in timers if timer.arguments[1] == answer + 1]
            self.why.append("was not completed within" if timers else "was dropped uncompleted")
            self.job.fire(timers)
        if way in ("drop", "expire"):
            self.futures[answer] = future = None

    def end_again(self) -> None:
        """Let the waits of an earlier snapshot, or those that are over, end once more."""
        shell: Any = self.job.master.batch_snapshots
        post = self.job.master.queue.post
        machine = self.system.batch_snapshot[0]
        well, badly = Future[bytes](), Future[bytes]()
        well.set_result(b"of the past")
        badly.set_exception(OSError("too late"))
        for number in range(1, len(self.futures) + 1):
            if number < machine.number or machine.state == "idle":
                for future in (well, badly):
                    post(shell._done, 0, number, future)
            if number < machine.number or machine.state != "asked":
                for late in (shell._dropped, shell._expire):
                    post(late, 0, number)
            if number < machine.number or machine.state != "confirming":
                for end in (None, EventLost("too late")):
                    sent = SendFuture("of the past")
                    sent.complete(end)
                    post(shell._settled, 0, number, sent)

    def close(self) -> None:
        """Nothing is left open."""

    # what is compared

    def machines(self) -> Iterator[tuple[str, tuple[int, ...], Machine]]:
        made = machines_behind(self.job.master.batch_snapshots._system)
        yield "batch_snapshot", (0,), made.batch_snapshot[0]

    def facts(self) -> Iterator[tuple[str, Any, Any]]:
        world = self.system.world[0]
        yield "what clients are told", [], self._wrong
        yield "events sent", world.sent, len(self.job.coordinator(0).sent[0])
        process: Any = self.job.living(0)
        speaker = process.worker.program.speakers[operator_id(0)]
        yield "events handled", world.handled, len(speaker.handled)
        yield "clients answered", world.answered, sum(r.done() for r in self.requests)
        is_open = [self.system.answer[n].state == OPEN for n in range(len(self.futures))]
        yield "open futures", is_open, [f is not None and not f.done() for f in self.futures]


def _act(
    do: Callable[..., Any],
    is_there: Callable[..., Any],
    else_: str,
    why: str = "",
    is_failure: bool = False,
) -> Act:
    def happen(world: BatchWorld, *index: int) -> None:
        world.failures += is_failure
        world.why += [why] if why else []
        do(world, *index)
        world.settle()

    def is_possible(world: BatchWorld, *index: int) -> bool:
        has_failures = not is_failure or world.failures < world.system.F
        return has_failures and bool(is_there(world, *index))

    return Act(happen, is_possible, else_)


def _request(world: BatchWorld, _: int) -> None:
    world.requests.append(world.job.master.request_batch_snapshot(operator_id(0)))


def _may_request(world: BatchWorld, _: int) -> bool:
    return len(world.requests) < world.system.R


def _may_send(world: BatchWorld, _: int) -> bool:
    return len(world.job.coordinator(0).sent[0]) < world.system.E


def _may_deliver(world: BatchWorld, _: int) -> bool:
    return world.job.next_message(0) is not None


def _lose(world: BatchWorld, _: int) -> None:
    world.job.transport.kill(world.job.identities[0][-1])
    world.recover()


def _go_back(world: BatchWorld, _: int) -> None:
    world.job.fail_job(0)
    world.recover()


def _spoil(world: BatchWorld, _: int) -> None:
    cancel = world.job.master.batch_snapshots.cancel
    world.job.master.queue.post(cancel, 0, "its state is wrong")


def _complete(world: BatchWorld, answer: int) -> None:
    future: Any = world.futures[answer]
    sent = world.job.coordinator(0).sent
    future.set_result(msgpack.packb([sent, [[]]]))


def _is_open(world: BatchWorld, answer: int) -> bool:
    future: Any = world.futures[answer] if answer < len(world.futures) else None
    return future is not None and not future.done()


def _is_under_way(world: BatchWorld, _: int) -> bool:
    return any(not request.done() for request in world.requests)


def _may_hear_late(world: BatchWorld, index: int) -> bool:
    may_go_on = (_may_request, _may_send, _may_deliver)
    return bool(world.futures) and any(may(world, index) for may in may_go_on)


ACTS = {
    "world.request": _act(_request, _may_request, "clients have asked for all", "is taken already"),
    "world.send": _act(
        lambda world, _: world.job.coordinator(0).send_next(0), _may_send, "all events are sent"
    ),
    "world.deliver": _act(
        lambda world, _: world.job.tell(0), _may_deliver, "no event is on its way"
    ),
    "world.lose": _act(_lose, lambda *_: True, "the subtask is always there", LOST, True),
    "world.go_back": _act(
        _go_back, lambda *_: True, "it can always fail the job", "it has failed the job", True
    ),
    "world.spoil": _act(
        _spoil, _is_under_way, "no client waits for a snapshot", "its state is wrong", True
    ),
    "world.hear_late": _act(
        lambda world, _: world.end_again(), _may_hear_late, "there is nothing that could be late"
    ),
    "answer.complete": _act(_complete, _is_open, "no such future is open"),
    "answer.fail": _act(
        lambda world, answer: world.end_badly(answer), _is_open, "no such future is open"
    ),
}
"""The steps of the closed system. A coordinator that finds its state wrong fails the job, which
cancels its snapshot before all goes back; here the former stands for itself.
"""
