"""The placement of a task: the driver of `PlacedTask` has a `Placing`, which looks at Spark.

Spark is played. How many failures and how much time are enough is for the schedule to say. What is
not played is that a process speaks, or falls silent, in the midst of a look.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final
from unittest import mock

from epochgate.fsm.machine import Machine
from epochgate.models.closed.placing import PlacedTask
from epochgate.models.closed.surroundings.scheduler import HERE, OVER, PENDING, RUNNING, SILENT
from epochgate.spark import placing
from epochgate.spark.placing import Placing
from epochgate.spark.slots import Executor
from tests.playing.gates import Lie, Process, gated, the_truth
from tests.playing.hosts import FAILING, SILENCED, SPEAKING, Host, Hosts
from tests.playing.stage import Act

TIMEOUT_S: Final = 60.0
LOOKS: Final = 4
"""Until it is told that an executor does not answer."""
MANY: Final = 1000


class Driver(Process):
    """The thread of the driver that asks Spark."""

    at_once: ClassVar[frozenset[str]] = frozenset(("turn_away", "remove_executor"))


class Tasks(Hosts):
    """The world of `PlacedTask`; the task that is looked at is subtask 0."""

    def __init__(self, system: PlacedTask, lie: Lie = the_truth) -> None:
        super().__init__(system.hosts)
        self.system, self.changes, self.asked = system, 0, 0
        self.has_been_deaf = False
        self.has_come = self.is_given_up = self.is_stranded = False
        self.missed: set[int] = set()
        """Hosts from where the last task could not reach the driver."""
        self.avoided: set[int] = set()
        """Hosts, as was said."""
        self.now_s = 0.0
        process = self.process = Driver()
        with mock.patch.object(placing, "Handles", gated(process, lie, hosts=system.hosts)):
            self.shell = Placing(
                self,
                driver="driver:7000",
                process_timeout_s=TIMEOUT_S,
                speaking=self.speaking,
                why_missing=lambda missing: f"no process has come for {missing}",
                on_warning=self.warn,
                on_overdue=self.be_overdue,
                on_given_up=self.be_given_up,
            )

    def machines(self) -> Iterator[tuple[str, tuple[int, ...], Machine]]:
        yield "placement", (), self.process.system.placement

    def facts(self) -> Iterator[tuple[str, Any, Any]]:
        model, hosts = self.system.scheduler, range(self.system.hosts)
        yield "the task", (model.state, model.at), (self.state, self.at)
        yield "whether the task is to be ended", model.is_killed, self.is_killed
        yield "whether Spark hears", model.is_deaf, self.is_deaf
        yield "whether the job is given up", model.is_given_up, self.is_given_up
        yield "how often the strategy was asked", model.asked, self.asked
        yield "the hosts that are avoided", {h for h in hosts if model.is_avoided[h]}, self.avoided
        if self.state != OVER:
            silent = self.state == SILENT or any(host.silent is not None for host in self.hosts)
            is_urgent = self.shell.is_urgent(are_missing=True)
            yield "whether looks are urgent", bool(self.avoided) or silent, is_urgent
        yield "whether no other host has room", model.was_stranded, self.is_stranded
        for host in self.hosts:
            told = self.system.cluster[host.number]
            yield host.name, told.is_given_up, host.is_given_up

    def close(self) -> None:
        """Nothing is under way."""

    # What the driver is told.

    def warn(self, text: str) -> None:
        if text.startswith("the only free slots"):
            self.is_stranded = True
            return
        host = next(host for host in self.hosts if f" on {host.name} " in text)
        if "is given up" in text:
            assert host.is_given_up, "what is said to be given up is"
        else:
            self.avoided.add(host.number)

    def be_overdue(self, subtask: int, reason: str) -> None:
        assert subtask == 0, "the task that has not come is subtask 0"
        assert reason.startswith("no process has come for [0]"), "it is said why"
        if self.asked < self.system.R:
            self.asked += 1
        else:
            self.state = OVER

    def be_given_up(self, reason: str) -> None:
        assert reason.startswith(("no process has come for [0]", "the tasks fail")), "it is said"
        self.state, self.is_given_up = OVER, True

    def look(self, wanted: Mapping[int, float] | None = None, failures: int = MANY) -> None:
        """Let the driver look; `failures` in a row are told."""
        with mock.patch.object(placing, "FAILURES_BEFORE_HELLO_MAX", failures):
            self.shell.look(self.now_s, wanted or {})

    def may_change(self) -> bool:
        """Return whether the closed system allows another change of a host."""
        return self.changes < self.system.F

    def has_other(self, host: Host) -> bool:
        """Return whether another task of the job may have a process there."""
        is_free = not self.holds(host) and not host.is_given_up
        return self.has_come and self.state != OVER and is_free

    def offer(self) -> None:
        around = [*self.hosts[self.at + 1 :], *self.hosts[: self.at + 1]]
        host = next(host for host in around if host.is_open)
        self.at, self.state, self.attempt = host.number, RUNNING, self.begin(0, host)

    def look_at_task(self) -> None:
        # Of the executors that are lost, Spark tells no more.
        self.told = {
            host.executor: Executor(host.name, host.is_open and not self.holds(host))
            for host in self.hosts
            if not host.is_given_up
        }
        self.look({0: self.now_s})

    def connect(self) -> None:
        self.state = HERE
        self.speak(self.attempt, self.at)

    def greet(self, number: int) -> None:
        host = self.hosts[number]
        self.speak(self.begin(self.subtask(SPEAKING, host), host), number)

    def speak(self, attempt: int, number: int) -> None:
        """The process of an attempt speaks to the driver."""
        self.has_come = True
        self.missed.discard(number)
        self.avoided.discard(number)
        self.shell.note_hello(attempt)
        self.look()

    def miss(self) -> None:
        self.missed.add(self.at)
        self.end("FAILED")
        self.look()

    def lose(self) -> None:
        self.end("FAILED")
        self.look()

    def silence(self) -> None:
        self.state = SILENT
        self.missed.add(self.at)
        self.shell.note_silence(0, self.attempt)
        self.look()

    def answer(self) -> None:
        self.end("KILLED")
        self.look()

    def wait(self) -> None:
        self.wait_for(self.attempt)

    def wait_for(self, attempt: int) -> None:
        """Let time pass until it is told once that the executor of an attempt does not answer."""
        self.asked_for = attempt
        for _ in range(LOOKS):
            self.now_s += placing.LOOK_S_MAX
            self.look()
        self.asked_for = None
        self.look()

    def notice(self) -> None:
        if self.state == RUNNING:
            self.missed.add(self.at)
        self.end("FAILED")
        self.lose_executor(self.hosts[self.at])
        self.look()

    def repeat(self) -> None:
        failed = {run.subtask for run in self.attempts if run.status == "FAILED"}
        self.look(dict.fromkeys(failed, self.now_s), failures=1)

    def expire(self) -> None:
        self.now_s += TIMEOUT_S + 1
        self.shown = self.attempt if self.state == RUNNING else None
        self.look({0: 0.0})
        self.shown = None

    def deafen(self) -> None:
        self.is_deaf = self.has_been_deaf = True

    def cut(self, number: int) -> None:
        self.changes += 1
        self.hosts[number].is_cut = True

    def heal(self, number: int) -> None:
        self.hosts[number].is_cut = False

    def vanish(self, number: int) -> None:
        host = self.hosts[number]
        self.changes += 1
        host.is_gone, host.is_cut, host.is_full = True, False, False

    def launch(self, number: int) -> None:
        host = self.hosts[number]
        host.is_given_up, host.executor = False, f"next {host.executor}"
        self.register(host)

    def fill(self, number: int) -> None:
        self.changes += 1
        self.hosts[number].is_full = True

    def empty(self, number: int) -> None:
        self.hosts[number].is_full = False

    def doubt(self, number: int) -> None:
        host = self.hosts[number]
        self.missed.add(number)
        self.begin(self.subtask(FAILING, host), host, "FAILED", "it cannot connect")
        self.look()

    def hush(self, number: int) -> None:
        host = self.hosts[number]
        self.missed.add(number)
        if host.silent is not None:
            self.becomes(host.silent, "KILLED")
        subtask = self.subtask(SILENCED, host)
        host.silent = self.begin(subtask, host)
        self.shell.note_silence(subtask, host.silent)
        self.look()

    def wait_for_other(self, number: int) -> None:
        silent = self.hosts[number].silent
        assert silent is not None, "a process there is silent"
        self.wait_for(silent)

    acts: ClassVar[Mapping[str, Act]] = {
        "scheduler.offer": Act(
            offer,
            lambda world: world.state == PENDING and any(h.is_open for h in world.hosts),
            "the task runs, or no slot is free",
        ),
        "scheduler.look": Act(
            look_at_task, lambda world: world.state == RUNNING, "the task does not try"
        ),
        "scheduler.connect": Act(
            connect,
            lambda world: world.state == RUNNING and world.is_reachable(),
            "the task does not try, or not from where the driver is reached",
        ),
        "scheduler.miss": Act(
            miss,
            lambda world: world.state == RUNNING and not world.is_reachable(),
            "the task does not try, or reaches the driver",
        ),
        "scheduler.lose": Act(
            lose,
            lambda world: world.state == HERE and not world.is_reachable(),
            "there is no process, or it reaches the driver",
        ),
        "scheduler.silence": Act(
            silence,
            lambda world: world.state == HERE and not world.is_reachable(),
            "there is no process, or it is heard",
        ),
        "scheduler.answer": Act(
            answer,
            lambda world: (
                world.state == SILENT and world.is_killed and not world.hosts[world.at].is_gone
            ),
            "no process is to be ended, or its executor is lost",
        ),
        "scheduler.wait": Act(
            wait,
            lambda world: world.state == SILENT and world.is_killed,
            "no process is to be ended",
        ),
        "scheduler.notice": Act(
            notice,
            lambda world: world.state in (RUNNING, HERE, SILENT) and world.hosts[world.at].is_gone,
            "the task runs nowhere, or its host lives",
        ),
        "scheduler.repeat": Act(
            repeat,
            lambda world: world.state == PENDING and world.at in world.missed,
            "the task has not failed",
        ),
        "scheduler.expire": Act(
            expire, lambda world: world.state in (PENDING, RUNNING, SILENT), "the process is there"
        ),
        "scheduler.deafen": Act(
            deafen,
            lambda world: world.state in (RUNNING, SILENT) and not world.has_been_deaf,
            "Spark was deaf",
        ),
        "cluster.cut": Act(
            cut,
            lambda world, n: world.hosts[n].is_reachable and world.may_change(),
            "the host is cut off, or lost",
        ),
        "cluster.heal": Act(heal, lambda world, n: world.hosts[n].is_cut, "it is not cut off"),
        "cluster.vanish": Act(
            vanish,
            lambda world, n: not world.hosts[n].is_gone and world.may_change(),
            "the host is lost",
        ),
        "cluster.launch": Act(
            launch,
            lambda world, n: world.hosts[n].is_given_up and not world.hosts[n].is_gone,
            "there is an executor, or no host",
        ),
        "cluster.fill": Act(
            fill,
            lambda world, n: (
                not world.hosts[n].is_full
                and not world.hosts[n].is_gone
                and not world.holds(world.hosts[n])
                and world.may_change()
            ),
            "the slot is taken",
        ),
        "cluster.empty": Act(empty, lambda world, n: world.hosts[n].is_full, "the slot is free"),
        "cluster.doubt": Act(
            doubt,
            lambda world, n: not world.hosts[n].is_reachable and world.state != OVER,
            "the driver is reached from there",
        ),
        "cluster.greet": Act(
            greet,
            lambda world, n: (
                world.hosts[n].is_reachable
                and not world.hosts[n].is_given_up
                and world.state != OVER
            ),
            "the driver is not reached from there",
        ),
        "cluster.hush": Act(
            hush,
            lambda world, n: not world.hosts[n].is_reachable and world.has_other(world.hosts[n]),
            "no other process is there, or it is heard",
        ),
        "cluster.wait": Act(
            wait_for_other,
            lambda world, n: world.hosts[n].silent is not None and world.has_other(world.hosts[n]),
            "no other process there is silent",
        ),
    }
