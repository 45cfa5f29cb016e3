"""The hosts of a job's tasks: what befalls them, and the other tasks of the job there."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from epochgate.fsm import STAY, Bool, Row, Trigger
from epochgate.fsm.closed import Environment
from epochgate.models.closed.surroundings.scheduler import OVER

if TYPE_CHECKING:
    from epochgate.models.closed.placing import PlacedTask


class Cluster(Environment):
    """The hosts: which of them the driver can be reached from, and which have a free slot."""

    INDEX = ("host",)
    STATES = ("up",)
    INITIAL = "up"

    system: PlacedTask
    host: int

    is_cut: bool = Bool()
    """The driver's port is closed to it; Spark's are not."""
    is_gone: bool = Bool()
    """It answers neither driver nor Spark, which may not know yet."""
    is_given_up: bool = Bool()
    """Spark has no executor there."""
    is_full: bool = Bool()
    is_hushed: bool = Bool()
    """A process of another task there is silent, and Spark is to end it."""

    cut: Trigger
    heal: Trigger
    vanish: Trigger
    launch: Trigger
    fill: Trigger
    empty: Trigger
    doubt: Trigger
    greet: Trigger
    hush: Trigger
    wait: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("cut",   "up", STAY, "may_cut",  "cut_off",     "the driver's port is closed to the host"),
        Row("heal",  "up", STAY, "was_cut",  "join_again",  "the host reaches the driver again"),
        Row("vanish", "up", STAY, "may_vanish", "vanish_now", "the host is lost, with all that runs there"),
        Row("launch", "up", STAY, "may_launch", "have_executor", "Spark starts another executor on a host that lives"),
        Row("fill",  "up", STAY, "may_fill", "take_slot",   "another application takes the slot"),
        Row("empty", "up", STAY, "was_full", "free_slot",   "the other application is done"),
        Row("doubt", "up", STAY, "may_doubt", "tell_missed", "another task of the job there fails to reach the driver"),
        Row("greet", "up", STAY, "may_greet", "tell_reached", "a process of another task there speaks to the driver"),
        Row("hush",  "up", STAY, "may_hush", "tell_silenced", "a process of another task there is not heard any more"),
        Row("wait",  "up", STAY, "may_wait", "tell_unanswered", "its executor takes its time, or is lost"),
    )
    # fmt: on

    def may_cut(self) -> bool:
        return not self.is_cut and not self.is_gone and self.system.scheduler.may_change()

    def may_vanish(self) -> bool:
        return not self.is_gone and self.system.scheduler.may_change()

    def vanish_now(self) -> None:
        self.is_gone = True
        self.is_cut = False
        self.is_full = False
        self.system.scheduler.change()

    def may_launch(self) -> bool:
        return self.is_given_up and not self.is_gone

    def have_executor(self) -> None:
        self.is_given_up = False

    def is_open(self) -> bool:
        """Return whether Spark has a free slot there, as far as it knows."""
        return not self.is_full and not self.is_given_up

    def is_good(self) -> bool:
        """Return whether a task that Spark starts there reaches the driver."""
        return not self.is_cut and not self.is_gone and not self.is_full

    def was_cut(self) -> bool:
        return self.is_cut

    def may_fill(self) -> bool:
        return (
            not self.is_full
            and not self.is_gone
            and not self.system.scheduler.holds(self.host)
            and self.system.scheduler.may_change()
        )

    def is_unreachable(self) -> bool:
        return self.is_cut or self.is_gone

    def may_doubt(self) -> bool:
        return self.is_unreachable() and self.system.scheduler.state != OVER

    def may_greet(self) -> bool:
        return (
            not self.is_unreachable()
            and not self.is_given_up
            and self.system.scheduler.state != OVER
        )

    def may_hush(self) -> bool:
        return self.may_doubt() and self.has_other()

    def may_wait(self) -> bool:
        return self.is_hushed and self.has_other()

    def has_other(self) -> bool:
        """Return whether another task of the job may have a process there."""
        return (
            self.system.scheduler.has_come
            and self.system.scheduler.state != OVER
            and not self.system.scheduler.holds(self.host)
            and not self.is_given_up
        )

    def other(self) -> int:
        """Return what stands for the other task's attempt."""
        return self.system.hosts + self.host + 1

    def tell_missed(self) -> None:
        self.system.scheduler.has_missed[self.host] = True
        self.system.placement.missed(self.host)

    def tell_reached(self) -> None:
        self.system.scheduler.note_reached(self.host)
        self.system.placement.reached(self.host)

    def tell_silenced(self) -> None:
        self.is_hushed = True
        self.system.scheduler.has_missed[self.host] = True
        self.system.placement.silenced(self.host, self.other())

    def lose_executor(self) -> None:
        """Spark has none there, and none of its tasks."""
        self.is_given_up = True
        self.is_hushed = False

    def tell_unanswered(self) -> None:
        self.system.placement.unanswered(self.host, self.other(), not self.is_unreachable())

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
