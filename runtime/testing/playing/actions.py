"""The table of the closed job's steps and the production runtime's actions.

An action is what really happens outside the machines: a message arrives, a process dies, a save
ends, a timer fires, a user's future completes. `is_there` looks whether there is something for it
to happen to, in the runtime's own objects and not in the model, so a step that the model excludes
must be one that the runtime has nothing for; `else_` says what that means for each. Some steps the
model rules out although they could happen, to stay finite: `bound` holds these, by what the runtime
has done so far.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any

import msgpack

from epochgate.runtime.api.operator import FatalTaskError
from epochgate.runtime.api.transport import Message
from epochgate.runtime.store import CompletedCheckpoint
from epochgate.runtime.testing.fuzzing.record import operator_id
from epochgate.runtime.testing.playing.action import Action
from epochgate.runtime.testing.playing.actors import MEMORY
from epochgate.runtime.testing.playing.outside import OUTSIDE
from epochgate.runtime.testing.playing.scripted import ScriptedJob


def _launch(job: ScriptedJob, is_given: bool = False) -> None:
    for trigger, arguments in job.beginning:
        if is_given and trigger == job.master.job.lifecycle.start:
            _adopt(job)
        job.master.queue.post(trigger, *arguments)
    job.beginning.clear()


def _adopt(job: ScriptedJob) -> None:
    for number, holder in enumerate(job.job.holder):
        job.master.batch_states[operator_id(number)] = _nothing(job)
        job.master.queue.post(holder.adopt_batch_snapshot)


def _nothing(job: ScriptedJob) -> bytes:
    """The state of a coordinator that has sent and heard nothing."""
    return bytes(msgpack.packb([[[] for _ in range(job.subtasks)]] * 2))


def _resume(is_told: bool = True, is_given: bool = False) -> Action:
    """There is a checkpoint of an earlier run, in which nothing has happened."""

    def do(job: ScriptedJob) -> None:
        names = [operator_id(c) for c in range(job.coordinators)]
        states = {name: msgpack.packb([]) for name in names} | {MEMORY: msgpack.packb({})}
        job.find(
            CompletedCheckpoint(
                checkpoint_id=1,
                job_id=job.master.configuration.job_id,
                run_id="the run before",
                created_at=0.0,
                parallelism=job.subtasks,
                coordinators=dict.fromkeys(names, _nothing(job)),
                subtasks={s: dict(states) for s in range(job.subtasks)},
                committables={},
                uncommitted={},
                properties={},
                epoch=job.simulated.store.epoch,
            )
        )
        if is_told:
            heard = [f"coordinator {c}" for c in range(job.coordinators)]
            heard += [f"subtask {s}" for s in range(job.subtasks)]
            job.record.told_completed.update(dict.fromkeys(heard, 1))
        _launch(job, is_given)

    return Action(do, lambda job: job.beginning, "the job master begins once")


def _break_restore(error: Callable[[str], Exception]) -> Action:
    return Action(
        lambda job, c: job.scripts[c].break_restore(error("the schedule says so")),
        lambda job, c: not job.scripts[c].restore_errors,
        "the next restore of the coordinator is to raise already",
        bound=lambda job, c: job.scripts[c].broken < job.constants["broken_restores"],
    )


def _ask_coordinator(job: ScriptedJob, coordinator: int) -> None:
    job.questions[coordinator].append(job.master.request(operator_id(coordinator), "how"))


def _want_snapshot(job: ScriptedJob, coordinator: int) -> None:
    wanted = job.master.request_batch_snapshot(operator_id(coordinator))
    job.snapshots[coordinator].append(wanted)


def _are_over(job: ScriptedJob, futures: Sequence[Future[Any]]) -> bool:
    return len(futures) < job.constants["asks"] and all(future.done() for future in futures)


def _may_send(job: ScriptedJob, coordinator: int, subtask: int) -> bool:
    sent = job.coordinator(coordinator).sent[subtask]
    return len(sent) < job.renaming.events(coordinator, subtask)


def _blame(job: ScriptedJob, coordinator: int, subtask: int) -> None:
    malformed = job.job.holder[coordinator].event_malformed
    job.master.queue.post(malformed, subtask, job.job.attempt[subtask].number, "it is malformed")


def _hear(job: ScriptedJob, subtask: int) -> None:
    step = job.words(subtask)
    assert step is not None
    job.transport.step(*step)


def _die(job: ScriptedJob, subtask: int) -> None:
    job.transport.kill(job.identities[subtask][-1])


def _is_restoring(job: ScriptedJob, subtask: int) -> bool:
    """Return whether the driver has yet to hear that it runs."""
    process = job.living(subtask)
    said = process.to_driver[0][0] if process is not None and process.to_driver else ""
    return said in ("initialize", "run")


def _take_back(job: ScriptedJob, subtask: int) -> list[Message]:
    """Take back what the process said when it restored, which hides that it did; returns that."""
    process = job.living(subtask)
    assert process is not None
    said = list(process.to_driver)
    process.to_driver.clear()
    return said


def die_silently(job: ScriptedJob, subtask: int) -> None:
    """The process dies, and with it what it has said and the driver has not heard."""
    _take_back(job, subtask)
    _die(job, subtask)


def _fail_to_restore(job: ScriptedJob, subtask: int) -> None:
    """Fail to restore, after which what its operators have said while they were opened may stay."""
    process: Any = job.living(subtask)
    first, *others = _take_back(job, subtask)
    process.to_driver.extend([first] if first[0] == "initialize" else others)
    job.fail(subtask)


def _speak(job: ScriptedJob, subtask: int) -> None:
    process: Any = job.restored(subtask)
    process.worker.program.is_to_speak = True
    job.transport.step("work", process.identity)


def _may_speak(job: ScriptedJob, subtask: int) -> bool:
    process: Any = job.restored(subtask)
    return process is not None and bool(process.worker.program.may_speak())


def _is_next(job: ScriptedJob, subtask: int, *tags: str) -> bool:
    message = job.next_message(subtask)
    return message is not None and message[0] in tags


def _decline(job: ScriptedJob, subtask: int) -> None:
    process: Any = job.restored(subtask)
    _, checkpoint = job.take_notices(subtask)
    process.to_task.popleft()
    process.to_driver.append(["decline", checkpoint, "the schedule says so"])


def _lose_event(job: ScriptedJob, subtask: int) -> None:
    process: Any = job.restored(subtask)
    _, coordinator, number, _ = job.take_notices(subtask)
    process.to_task.popleft()
    gateway = job.job.gateway[coordinator, subtask]
    job.master.queue.post(gateway.lose, job.job.attempt[subtask].number, number, "it was lost")


def _end_start(job: ScriptedJob, coordinator: int, end: str) -> None:
    job.starting.remove(coordinator)
    told = () if end == "started" else ("the schedule says so", end == "start_failed for good")
    # In other words than the coordinator's, so that it is not held until the schedule says so.
    trigger = partial(getattr(job.job.holder[coordinator], end.partition(" ")[0]))
    job.master.queue.post(trigger, *told)


def _usurp(job: ScriptedJob, subtask: int) -> None:
    _die(job, subtask)
    job.connect(subtask)


def _hear_again(job: ScriptedJob, subtask: int) -> None:
    checkpoint, identity = job.job.checkpoint, max(job.identities[subtask], default=0)
    newest = checkpoint.number
    job.say(subtask, identity, ["metrics", {"said": newest}])
    for number in range(1, newest + 1):
        if number < newest:
            job.say(subtask, identity, ["decline", number, "it says so again"])
        if number < newest or checkpoint.has_acknowledged[subtask]:
            job.say(subtask, identity, job.acknowledgement(subtask, number))


def hear_zombie(job: ScriptedJob, subtask: int) -> None:
    """Everything that a process can say, of the one before the last; it connects once more."""
    identity, ids = job.identities[subtask][-2], range(1, job.constants["checkpoints"] + 1)
    said: list[Message] = [[tag] for tag in ("initialize", "run", "lost", "ended", "finished")]
    said += [["failed", "it cannot go on", False], ["metrics", {"outdated": 1}]]
    said += [job.acknowledgement(subtask, n, is_final) for is_final in (False, True) for n in ids]
    said += [["decline", number, "it has no snapshot"] for number in ids]
    for coordinator in range(job.coordinators):
        said += [["event", coordinator, n + 1] for n in range(job.constants["said"])]
        said += [["confirm", coordinator, n + 1] for n in range(job.constants["numbers"])]
    job.transport.inbox.connected(subtask, identity)
    for message in said:
        job.say(subtask, identity, message)


def _may_end_input(job: ScriptedJob, subtask: int) -> bool:
    process: Any = job.restored(subtask)
    return process is not None and not process.worker.program.has_ended


def _end_input(job: ScriptedJob, subtask: int) -> None:
    process: Any = job.living(subtask)
    process.worker.program.has_ended = True
    job.transport.step("work", process.identity)


def _want(job: ScriptedJob) -> None:
    if timers := job.timers(job.master):
        job.fire(timers)
    else:  # the first interval has not begun, the last is over, or there is no timer
        job.master.queue.post(job.job.request.submit_periodic)


def _ask(job: ScriptedJob) -> None:
    job.master.request_checkpoint()


def _may_want(job: ScriptedJob) -> bool:
    return bool(job.job.checkpoint.number < job.constants["wanted"])


def _answer(job: ScriptedJob, coordinator: int, how: str = "succeed") -> None:
    user = job.coordinator(coordinator)
    user.answer(user.newest, how)


ACTIONS: dict[str, Action] = {
    "launch.launch": Action(_launch, lambda job: job.beginning, "the job master begins once"),
    "launch.adopt": Action(
        lambda job: _launch(job, is_given=True),
        lambda job: job.beginning,
        "the job master begins once",
    ),
    "launch.resume": _resume(),
    "launch.resume_in_doubt": _resume(is_told=False),
    "launch.resume_given": _resume(is_given=True),
    "client.ask": Action(
        _ask_coordinator,
        lambda job, c: True,
        "a client can always ask",
        bound=lambda job, c: _are_over(job, job.questions[c]),
    ),
    "client.want": Action(
        _want_snapshot,
        lambda job, c: True,
        "a client can always want a snapshot",
        bound=lambda job, c: _are_over(job, job.snapshots[c]),
    ),
    "sender.send": Action(
        lambda job, c, s: job.coordinator(c).send_next(s),
        lambda job, c, s: job.coordinator(c).may_send(s),
        "the coordinator has no gateway to an attempt of the subtask, or waits for room",
        bound=_may_send,
    ),
    "sender.refuse_event": Action(
        _blame,
        lambda job, c, s: job.constants["said"] > 0,
        "operators say nothing to their coordinators",
        is_failure=True,
    ),
    "process.arrive": Action(
        lambda job, s: job.connect(s),
        lambda job, s: job.newcomer(s) and not job.living(s),
        "no process was asked for since the last one came, or that one lives",
    ),
    "process.come_back": Action(
        lambda job, s: job.come_back(s),
        lambda job, s: job.may_come_back(s),
        "the last process was not released, or another was asked for since, or the driver has not "
        "heard everything that it said",
    ),
    "process.tell": Action(
        lambda job, s: job.tell(s),
        lambda job, s: job.may_be_told(s),
        "no message is on its way to the process, not counting notices, or it is an event and the "
        "driver has not heard everything that the process said",
    ),
    "process.hear": Action(
        _hear,
        lambda job, s: job.words(s),
        "everything that the process has said was heard, its end included",
    ),
    "process.hear_again": Action(
        _hear_again,
        lambda job, s: job.job.checkpoint.number > 0,
        "there was no checkpoint that could have been acknowledged",
        bound=lambda job, s: job.constants["repeats"] > 0 and not job.renaming.has_forgotten_all(),
    ),
    "process.hear_zombie": Action(
        hear_zombie,
        lambda job, s: len(job.identities[s]) > 1,
        "no process of the subtask was ever replaced",
    ),
    "stale.arrive": Action(
        lambda job: job.late.arrive(), lambda job: True, "it can always happen, and changes nothing"
    ),
    "process.die": Action(
        _die, lambda job, s: job.living(s), "no process is there to die", is_failure=True
    ),
    "process.die_silently": Action(
        die_silently,
        _is_restoring,
        "no process is there, or the driver has heard that it runs",
        is_failure=True,
    ),
    "process.fail_to_restore": Action(
        _fail_to_restore,
        lambda job, s: job.restored(s) and _is_restoring(job, s),
        "no process is there, or it has failed, or the driver has heard that it runs",
        is_failure=True,
    ),
    "process.fail": Action(
        lambda job, s: job.fail(s),
        lambda job, s: job.restored(s),
        "no process is there, or it has said so before",
        is_failure=True,
    ),
    "process.fail_fatally": Action(
        lambda job, s: job.fail(s, is_fatal=True),
        lambda job, s: job.restored(s),
        "no process is there, or it has said so before",
        is_failure=True,
    ),
    "process.expire_start": Action(
        lambda job, s: job.fire(job.start_timers(s)),
        lambda job, s: job.start_timers(s),
        "no process restores, and a timer of one that did changes nothing",
        is_failure=True,
    ),
    "process.speak": Action(
        _speak, _may_speak, "no restored process is there, or its operators have said everything"
    ),
    "process.decline": Action(
        _decline,
        lambda job, s: _is_next(job, s, "barrier"),
        "the next message on its way to the process is no barrier",
        is_failure=True,
    ),
    "process.lose_event": Action(
        _lose_event,
        lambda job, s: _is_next(job, s, "event", "receipt"),
        "the next message on its way to the process is no event",
        is_failure=True,
    ),
    "process.usurp": Action(
        _usurp, lambda job, s: job.living(s), "no process is there to be replaced", is_failure=True
    ),
    "process.end_input": Action(
        _end_input, _may_end_input, "no restored process is there, or its input has ended before"
    ),
    "requester.want": Action(
        _want,
        lambda job: job.job.request.state == "idle",
        "a request is under way, and another by the timer changes nothing",
        bound=_may_want,
    ),
    "requester.ask": Action(
        _ask, lambda job: True, "it can always happen, and is served sooner or later", _may_want
    ),
    "user.get_ready": Action(
        lambda job, c: _end_start(job, c, "started"),
        lambda job, c: c in job.starting,
        "the coordinator is not starting",
    ),
    "user.fail_to_start": Action(
        lambda job, c: _end_start(job, c, "start_failed"),
        lambda job, c: c in job.starting,
        "the coordinator is not starting",
        is_failure=True,
    ),
    "user.fail_to_start_for_good": Action(
        lambda job, c: _end_start(job, c, "start_failed for good"),
        lambda job, c: c in job.starting,
        "the coordinator is not starting",
        is_failure=True,
    ),
    "user.fail_for_good": Action(
        lambda job, c: job.fail_job(c, is_fatal=True),
        lambda job, c: True,
        "it can always happen",
        is_failure=True,
    ),
    "user.break_restore": _break_restore(RuntimeError),
    "user.break_restore_for_good": _break_restore(FatalTaskError),
    "user.take_snapshot": Action(
        _answer, lambda job, c: job.coordinator(c).is_asked(), "no future waits to be completed"
    ),
    "user.complete_future": Action(
        lambda job, c: job.batch_futures(c).pop().set_result(b"state"),
        lambda job, c: job.batch_futures(c),
        "no future of a snapshot without a checkpoint waits to be completed",
    ),
    "user.fail_snapshot": Action(
        lambda job, c: _answer(job, c, "fail"),
        lambda job, c: job.coordinator(c).is_asked(),
        "no future waits to be completed",
        is_failure=True,
    ),
    "user.fail_everything": Action(
        lambda job, c: job.fail_job(c),
        lambda job, c: True,
        "it can always happen",
        is_failure=True,
    ),
    "backoff.elapse": Action(
        lambda job, s: job.fire(job.timers(job.job.attempt[s], "restart")),
        lambda job, s: job.timers(job.job.attempt[s], "restart"),
        "no timer runs for the subtask since a process was asked for",
    ),
    "names.wrap": Action(
        lambda job: job.renaming.wrap(),
        lambda job: job.renaming.is_calm(),
        "a checkpoint or a message is under way",
        bound=lambda job: job.renaming.is_used_up(),
    ),
    **OUTSIDE,
}
"""`machine.trigger` of the closed job -> what it is to the runtime."""
