"""The production job with concurrent attempts beside its closed system: processes come when the
schedule says so, under the identities of the closed system, and say what they have to say as late
as the schedule says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from epochgate.fsm import Machine, Timer, VirtualClock
from epochgate.fsm.inside import machines_behind
from epochgate.models.closed.concurrent import ConcurrentAttempts
from epochgate.models.closed.surroundings.starter import (
    AWAY,
    GONE,
    HERE,
    INITIALIZED,
    RESTORING,
)
from epochgate.models.concurrent_job import ConcurrentJob
from epochgate.runtime.api.configuration import JobConfiguration
from epochgate.runtime.api.restart_strategies import FixedDelay
from epochgate.runtime.shell.coordinator_context import BoundGateway
from epochgate.runtime.shell.job_master import JobMaster
from epochgate.runtime.store.memory import CheckpointShelf, InMemoryCheckpointStore
from epochgate.runtime.testing.fuzzing.record import operator_id
from epochgate.runtime.testing.scripted import Script, ScriptedProvider
from epochgate.runtime.testing.simulated_work import SimulatedWork
from tests.playing.gates import Heard, Lie, the_truth
from tests.playing.job_concurrent_users import Played, PlayedListener, PlayedTransport
from tests.playing.job_heard import VALUES
from tests.playing.job_lies import tell_lies
from tests.playing.stage import Act

NEVER = 10**9
KILLED = "it was killed"


class ConcurrentWorld:
    """One production job with the constants of a closed system with one coordinator."""

    def __init__(self, system: ConcurrentAttempts, lie: Lie = the_truth) -> None:
        assert system.coordinators == 1
        self.system, self._lie = system, lie
        self.acts: Mapping[str, Act] = ACTS
        self.transport = PlayedTransport(system.vertices, system.starts)
        self.wrong = self.transport.wrong
        self.told: list[tuple[str, tuple[Any, ...]]] = []
        self.failures = 0
        script = Script(is_completing=False)

        def make(*arguments: Any) -> PlayedListener:
            made = PlayedListener(*arguments)
            made.wrong = self.wrong
            return made

        clock = VirtualClock()
        self.master = JobMaster(
            JobConfiguration(
                "played",
                system.vertices,
                (ScriptedProvider(operator_id(0), script, make),),
                checkpoint_interval_s=None,
                concurrent_attempts_max=system.concurrent,
                tolerable_checkpoint_failures=system.tolerable_failures,
                restart_strategy=FixedDelay(NEVER, 1.0),
            ),
            transport=self.transport,
            store=InMemoryCheckpointStore(CheckpointShelf(), job_id="played", retained=NEVER),
            clock=clock,
            blocking=SimulatedWork,
            wall_clock=clock.now_s,
        )
        self.script = script
        self.listener.job = self.job
        self.transport.completed = lambda: self.job.checkpoint.completed
        tell_lies(machines_behind(self.master.job), self._hear)
        self.master.start()
        self.beginning = self.master.queue.abandon()

    def _hear(self, heard: Heard) -> tuple[Any, ...]:
        self.told.append((f"{heard.machine}.{heard.port}.{heard.message}", heard.arguments))
        return self._lie(heard)

    @property
    def job(self) -> ConcurrentJob:
        """The machines."""
        job = machines_behind(self.master.job)
        assert isinstance(job, ConcurrentJob)
        return job

    @property
    def listener(self) -> PlayedListener:
        """The user's coordinator."""
        coordinator = self.script.coordinator
        assert isinstance(coordinator, PlayedListener)
        return coordinator

    @property
    def blocking(self) -> SimulatedWork:
        """The work that waits to be run."""
        assert isinstance(self.master.blocking, SimulatedWork)
        return self.master.blocking

    def timers(self, owner: Any, name: str) -> list[Timer]:
        """The newest timer of a machine with this trigger; the ones before it are called off, since
        the closed system does not let them elapse.
        """
        timers = [
            timer
            for timer in self.master.queue.timers()
            if getattr(timer.trigger, "__self__", None) is owner and timer.trigger.__name__ == name
        ]
        timers.sort(key=lambda timer: timer.arguments)
        for timer in timers[:-1]:
            timer.cancel()
        return timers[-1:]

    def say(self, process: int, *message: Any) -> None:
        """Let the driver hear a message of a process."""
        vertex = self.transport.vertex(process)
        self.transport.inbox.received(vertex, process + 1, [list(message)])

    def process_event(self) -> bool:
        """Process one event, and a commit, which takes no time; False if none waited."""
        has_processed = self.master.queue.step()
        return self.blocking.run_next("commit") or has_processed

    def settle(self) -> None:
        """Let all that waits be processed."""
        while self.process_event():
            pass

    def close(self) -> None:
        """Release the job."""
        self.master.close()

    # what is compared

    def machines(self) -> Iterator[tuple[str, tuple[int, ...], Machine]]:
        for name in ConcurrentJob.MACHINES:
            for machine in self.job.instances(name):
                yield name, machine.index, machine

    def facts(self) -> Iterator[tuple[str, Any, Any]]:
        system = self.system
        yield "what processes and users cannot be told", [], self.wrong
        for number, real in enumerate(self.transport.processes):
            model = system.starter[number]
            for name in ("state", "attempt", "phase", "has_spoken", "received", "confirmed"):
                yield f"starter[{number}].{name}", getattr(model, name), getattr(real, name)
            for name in ("is_dismissed", "is_doomed"):
                yield f"starter[{number}].{name}", getattr(model, name), getattr(real, name)
            yield f"starter[{number}].has_barrier", model.has_barrier, real.barrier > 0
        user = system.user[0]
        ready = {place for place in range(system.subtasks) if user.is_ready[place]}
        yield "attempts that are ready", ready, set(self.listener.ready.values())
        yield "the snapshot that is asked for", user.asked_for, self.listener.asked_for
        on_wire = {g: len(futures) for g, futures in self.master.coordinators.on_wire.items()}
        sent = {g: gateway.in_flight() for g, gateway in self.job.gateway.items()}
        yield "events on the wire", sent, on_wire
        if parts := self.master.checkpoints._parts:
            kept = {v for v in range(system.vertices) if system.shore.has_part[v]}
            yield "the parts that are kept", kept, {*parts.subtasks}

    def unheeded(self) -> Iterator[str]:
        """Return what machines have said since this was asked last, and shells have not done."""
        calls = [*self.transport.calls, *self.script.record]
        newest = {message: told for message, told in self.told if message in REPORTED}
        for message, told in self.told:
            if message in CALLS and (call := CALLS[message](self.master, *told)) not in calls:
                yield f"{message}{told} leads to no {call}"
            is_lost = message == "gateway.sender.lost"
            if is_lost and not any(told[-1] in why for why in self.listener.losses()):
                yield f"no future says {told[-1]!r}"
        for message, told in newest.items():
            said, found = REPORTED[message](self.master, *told)
            if said != found:
                yield f"{message} has said {said!r}, and there is {found!r}"
        self.told.clear()
        self.transport.calls.clear()


def _user(method: str) -> Any:
    return lambda master, c, *told: (f"{operator_id(c)}.{method}", told)


def _at_a_place(method: str) -> Any:
    def called(master: JobMaster, c: int, place: int, *told: Any) -> Any:
        return f"{operator_id(c)}.{method}", (master.subtask_of[place], *told)

    return called


def _told(tag: str) -> Any:
    return lambda master, place, *told: (tag, master.subtask_of[place], *told)


CALLS: dict[str, Any] = {
    "attempt.scheduler.deploy": _told("deploy"),
    "checkpoint.tasks.complete": _told("complete"),
    "checkpoint.tasks.aborted": _told("aborted"),
    "holder.user.completed": _user("notify_checkpoint_complete"),
    "holder.user.complete": _user("notify_checkpoint_complete"),
    "holder.user.failed": _at_a_place("execution_attempt_failed"),
    "holder.user.subtask_reset": _at_a_place("subtask_reset"),
}
"""Messages of machines, each with the call that has to follow."""


def _starting(master: JobMaster, place: int, attempt: int) -> tuple[Any, Any]:
    timers = [
        t for t in master.queue.timers() if getattr(t.trigger, "__name__", "") == "expire_start"
    ]
    owners = machines_behind(master.job).attempt
    of_place = [
        t.arguments[0] for t in timers if getattr(t.trigger, "__self__", None) is owners[place]
    ]
    return True, attempt in of_place


REPORTED: dict[str, Any] = {
    **{
        message: VALUES[message]
        for message in (
            *("lifecycle.driver.decided", "lifecycle.driver.restart_all"),
            *("checkpoint.driver.aborted", "request.requester.chosen"),
        )
    },
    "lifecycle.driver.restart_one": lambda master, place, attempt, reason: (
        (master.subtask_of[place], attempt, reason),
        master.report.failures[-1][1:],
    ),
    "vertex.record.outlived": lambda master, vertex, _, attempt, reason: (
        True,
        (vertex, attempt, reason) in [failure[1:] for failure in master.report.failures],
    ),
    "attempt.scheduler.starting": _starting,
}
"""Messages of machines, each with what has to be reported then, and what is."""


def _act(do: Any, is_there: Any, else_: str, is_failure: bool = False) -> Act:
    def happen(world: ConcurrentWorld, *index: int) -> None:
        world.failures += is_failure
        do(world, *index)

    def is_possible(world: ConcurrentWorld, *index: int) -> bool:
        has_failures = not is_failure or world.failures < world.system.F
        return has_failures and bool(is_there(world, *index))

    return Act(happen, is_possible, else_)


def _launch(world: ConcurrentWorld) -> None:
    for trigger, arguments in world.beginning:
        world.master.queue.post(trigger, *arguments)
    world.beginning.clear()


def _arrive(world: ConcurrentWorld, process: int) -> None:
    world.transport.processes[process].state = HERE
    world.transport.inbox.connected(world.transport.vertex(process), process + 1)


def _may_arrive(world: ConcurrentWorld, process: int) -> bool:
    transport, played = world.transport, world.transport.processes
    before = [p for p in range(process) if transport.vertex(p) == transport.vertex(process)]
    is_next = world.system.overtaking > 0 or all(played[p].state != AWAY for p in before)
    return played[process].state == AWAY and is_next


def _said(phase: int, *message: Any) -> Any:
    def do(world: ConcurrentWorld, process: int) -> None:
        world.transport.processes[process].phase = phase
        world.say(process, *message)

    return do


def _is_at(phase: int) -> Any:
    def is_there(world: ConcurrentWorld, process: int) -> bool:
        played = world.transport.processes[process]
        return played.state == HERE and played.phase == phase

    return is_there


def _speak(world: ConcurrentWorld, process: int) -> None:
    played = world.transport.processes[process]
    played.has_spoken = True
    world.say(process, "event", 0, played.attempt)


def _may_speak(world: ConcurrentWorld, process: int) -> bool:
    played = world.transport.processes[process]
    is_able = played.state == HERE and played.phase >= INITIALIZED
    return is_able and not played.has_spoken and world.system.said > 0


def _confirm(world: ConcurrentWorld, process: int) -> None:
    played = world.transport.processes[process]
    played.confirmed = played.received
    world.say(process, "confirm", 0, played.received)


def _may_confirm(world: ConcurrentWorld, process: int) -> bool:
    played = world.transport.processes[process]
    return played.state == HERE and played.received > played.confirmed


def _acknowledge(world: ConcurrentWorld, process: int) -> None:
    played = world.transport.processes[process]
    world.say(process, "acknowledge", played.barrier, True, {operator_id(0): b""}, [])
    played.barrier = 0


def _is_asked(world: ConcurrentWorld, process: int) -> bool:
    played = world.transport.processes[process]
    return played.state == HERE and played.barrier > 0


def _go(world: ConcurrentWorld, process: int) -> None:
    world.transport.processes[process] = Played(state=GONE)
    world.transport.inbox.lost(world.transport.vertex(process), process + 1, KILLED)


def _finish(world: ConcurrentWorld, process: int) -> None:
    world.say(process, "finished")
    _go(world, process)


def _is_here(is_doomed: bool, is_dismissed: bool = False) -> Any:
    def is_there(world: ConcurrentWorld, process: int) -> bool:
        played = world.transport.processes[process]
        is_left = played.is_dismissed or not is_dismissed
        return played.state == HERE and played.is_doomed == is_doomed and is_left

    return is_there


def _may_send(world: ConcurrentWorld, _: int, place: int) -> bool:
    return world.listener.sends < world.system.events and place in world.listener.at


def _send(world: ConcurrentWorld, _: int, place: int) -> None:
    world.listener.sends += 1
    gateway = world.listener.at[place]
    world.listener.futures.append(gateway.send_event(gateway.attempt))


def _send_late(world: ConcurrentWorld, _: int, place: int) -> None:
    world.listener.sends += 1
    BoundGateway(world.master, 0, place, 0).send_event(0)


def _may_send_late(world: ConcurrentWorld, coordinator: int, place: int) -> bool:
    is_reused = place % world.system.concurrent == 0 and _may_send(world, coordinator, place)
    return is_reused and world.listener.at[place].attempt > 0


def _answer(world: ConcurrentWorld, _: int) -> None:
    asked_for, world.listener.asked_for = world.listener.asked_for, 0
    world.listener.complete(asked_for)


def _may_fail(world: ConcurrentWorld, _: int) -> bool:
    return bool(world.job.lifecycle.state == "running")


def _elapse(owner: Any, name: str) -> tuple[Any, Any]:
    def do(world: ConcurrentWorld, *index: int) -> None:
        for timer in world.timers(owner(world, *index), name):
            world.master.queue.hasten(timer)

    def is_there(world: ConcurrentWorld, *index: int) -> bool:
        return bool(world.timers(owner(world, *index), name))

    return do, is_there


ACTS: dict[str, Act] = {
    "launch.launch": _act(_launch, lambda world: world.beginning, "the job master begins once"),
    "starter.arrive": _act(_arrive, _may_arrive, "it has come, or is not the next to come"),
    "starter.initialize": _act(
        _said(INITIALIZED, "initialize"), _is_at(RESTORING), "it does not restore"
    ),
    "starter.run": _act(_said(3, "run"), _is_at(INITIALIZED), "it has not said that it restores"),
    "starter.speak": _act(_speak, _may_speak, "it does not restore, or has spoken"),
    "starter.confirm": _act(_confirm, _may_confirm, "it has confirmed all that it was sent"),
    "starter.end": _act(_said(4, "ended"), _is_at(3), "it does not run"),
    "starter.acknowledge": _act(_acknowledge, _is_asked, "it has no barrier"),
    "starter.finish": _act(
        _finish, _is_here(is_doomed=False, is_dismissed=True), "it was not told to leave"
    ),
    "starter.die": _act(_go, _is_here(is_doomed=False), "it is not there", is_failure=True),
    "starter.vanish": _act(_go, _is_here(is_doomed=True), "the driver has not ended it"),
    "sends.send": _act(_send, _may_send, "no attempt was ready there, or all is sent"),
    "sends.send_late": _act(_send_late, _may_send_late, "no second attempt was ready there"),
    "user.take_snapshot": _act(
        _answer, lambda world, _: world.listener.asked_for, "no future waits to be completed"
    ),
    "user.fail_everything": _act(
        lambda world, _: world.listener.context.fail_job("its state is wrong"),
        _may_fail,
        "the job does not run",
        is_failure=True,
    ),
    "shore.finish_save": _act(
        lambda world: world.blocking.run_next("store"),
        lambda world: "store" in world.blocking.lanes(),
        "nothing is being saved",
    ),
    "delay.elapse": _act(
        *_elapse(lambda world, place: world.job.attempt[place], "restart"),
        "no timer runs for the place",
    ),
    "delays.back_off": _act(
        *_elapse(lambda world: world.job.lifecycle, "backed_off"), "no timer runs for the job"
    ),
}
"""The steps of the closed system. It lets a coordinator send to the first attempt of a place also
where that was never ready: the gateway which the coordinator does not have then is made for it.
"""
