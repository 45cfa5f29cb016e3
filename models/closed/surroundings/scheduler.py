"""What is around the placement of a job's tasks: Spark, its hosts, and the one task that is looked
at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from epochgate.fsm import STAY, Array, Bool, Int, Row, Trigger
from epochgate.fsm.closed import Environment

if TYPE_CHECKING:
    from epochgate.models.closed.placing import PlacedTask

PENDING, RUNNING, HERE, OVER = "pending", "running", "here", "over"


class Cluster(Environment):
    """The hosts: which of them the driver can be reached from, and which have a free slot."""

    INDEX = ("host",)
    STATES = ("up",)
    INITIAL = "up"

    system: PlacedTask
    host: int

    is_cut: bool = Bool()
    is_full: bool = Bool()

    cut: Trigger
    heal: Trigger
    fill: Trigger
    empty: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("cut",   "up", STAY, "may_cut",  "cut_off",     "the driver's port is closed to the host"),
        Row("heal",  "up", STAY, "was_cut",  "join_again",  "the host reaches the driver again"),
        Row("fill",  "up", STAY, "may_fill", "take_slot",   "another application takes the slot"),
        Row("empty", "up", STAY, "was_full", "free_slot",   "the other application is done"),
    )
    # fmt: on

    def may_cut(self) -> bool:
        return not self.is_cut and self.system.scheduler.may_change()

    def was_cut(self) -> bool:
        return self.is_cut

    def may_fill(self) -> bool:
        return (
            not self.is_full
            and not self.system.scheduler.holds(self.host)
            and self.system.scheduler.may_change()
        )

    def was_full(self) -> bool:
        return self.is_full

    def cut_off(self) -> None:
        self.is_cut = True
        self.system.scheduler.change()

    def join_again(self) -> None:
        self.is_cut = False

    def take_slot(self) -> None:
        self.is_full = True
        self.system.scheduler.change()

    def free_slot(self) -> None:
        self.is_full = False


class Scheduler(Environment):
    """Spark, which offers the task a slot of one host after the other; and the driver's look at
    where the task runs.
    """

    STATES = (PENDING, RUNNING, HERE, OVER)
    INITIAL = PENDING
    TERMINAL = (OVER,)

    system: PlacedTask

    at: int = Int("hosts")
    """Where the task runs, or ran last."""
    changes: int = Int("F")
    asked: int = Int("R")
    """How often the restart strategy was asked."""
    has_missed: list[bool] = Array(Bool(), "hosts")
    """The last task from there could not reach the driver."""
    has_come: bool = Bool()
    is_wronged: bool = Bool()
    """A task was turned away that should have had its try."""
    was_turned_away: bool = Bool()
    was_stranded: bool = Bool()

    offer: Trigger
    look: Trigger
    connect: Trigger
    miss: Trigger
    lose: Trigger
    repeat: Trigger
    expire: Trigger
    change: Trigger
    turn_away: Trigger
    ask_strategy: Trigger
    give_up: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("offer",   PENDING,            RUNNING, "has_free_slot",
            "take_next",                       "Spark has a free slot"),
        Row("look",    RUNNING,            STAY,    None,
            "tell_rooms, tell_landed",         "the driver looks where the task runs"),
        Row("connect", RUNNING,            HERE,    "is_reachable",
            "tell_reached",                    "the process speaks to the driver"),
        Row("miss",    RUNNING,            PENDING, "not is_reachable",
            "tell_missed",                     "the task cannot reach the driver, and fails"),
        Row("lose",    HERE,               PENDING, "not is_reachable",
            None,                              "the connection is lost"),
        Row("repeat",  PENDING,            STAY,    "has_failed",
            "tell_failing",                    "task after task has failed"),
        Row("expire",  (PENDING, RUNNING), STAY,    None,
            "tell_overdue",                    "the process has not come in time"),
        Row("change",  (PENDING, RUNNING, HERE, OVER), STAY, None,
            "count_change",                    "one of the changes that may happen"),

        Row("turn_away",    RUNNING,            PENDING, None,
            "judge",                           "the attempt is killed"),
        Row("ask_strategy", (PENDING, RUNNING), STAY,    "may_ask",
            "count_question",                  "the restart strategy lets the job go on"),
        Row("ask_strategy", (PENDING, RUNNING), OVER,    "not may_ask",
            None,                              "the restart strategy ends the job"),
        Row("give_up",      (PENDING, RUNNING), OVER,    None,
            None,                              "the job is ended"),
    )
    # fmt: on

    def may_change(self) -> bool:
        return self.changes < self.system.F

    def count_change(self) -> None:
        self.changes += 1

    def holds(self, host: int) -> bool:
        return (self.state == RUNNING or self.state == HERE) and self.at == host

    def has_free_slot(self) -> bool:
        return any(not self.system.cluster[h].is_full for h in range(self.system.hosts))

    def is_reachable(self) -> bool:
        return not self.system.cluster[self.at].is_cut

    def take_next(self) -> None:
        chosen = self.at
        for h in range(self.system.hosts):
            if h <= self.at and not self.system.cluster[self.at - h].is_full and h > 0:
                chosen = self.at - h
        for h in range(self.system.hosts):
            other = self.system.hosts - 1 - h
            if other > self.at and not self.system.cluster[other].is_full:
                chosen = other
        self.at = chosen

    def tell_rooms(self) -> None:
        for h in range(self.system.hosts):
            if h != self.at and not self.system.cluster[h].is_full:
                self.system.placement.room(h, True)
            else:
                self.system.placement.room(h, False)

    def tell_landed(self) -> None:
        self.system.placement.landed(self.at, 0)

    def tell_reached(self) -> None:
        self.has_come = True
        self.has_missed[self.at] = False
        self.system.placement.reached(self.at)

    def tell_missed(self) -> None:
        self.has_missed[self.at] = True
        self.system.placement.missed(self.at)

    def has_failed(self) -> bool:
        return self.has_missed[self.at]

    def tell_failing(self) -> None:
        self.system.placement.failing(0, 0)

    def tell_overdue(self) -> None:
        self.system.placement.overdue(0, 0, self.has_come)

    # The port of the machine.

    def may_ask(self) -> bool:
        return self.asked < self.system.R

    def count_question(self) -> None:
        self.asked += 1

    def judge(self, host: int) -> None:
        self.is_wronged = not self.has_missed[host] or not any(
            h != host and not self.system.cluster[h].is_full and not self.has_missed[h]
            for h in range(self.system.hosts)
        )
        self.was_turned_away = True

    def avoid(self, host: int) -> None:
        """The driver's log tells it."""

    def trust(self, host: int) -> None:
        """The driver's log tells it."""

    def strand(self, host: int) -> None:
        self.was_stranded = True
