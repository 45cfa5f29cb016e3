"""The surroundings of the placement of a job's tasks: Spark, and the one task that is looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from epochgate.fsm import ANY, STAY, Array, Bool, Int, Row, Trigger
from epochgate.fsm.closed import Environment

if TYPE_CHECKING:
    from epochgate.models.closed.placing import PlacedTask

PENDING, RUNNING, HERE, SILENT, OVER = "pending", "running", "here", "silent", "over"
SUBTASK, REASON = 1, 2
"""What stands for them in what the driver is told."""


class Scheduler(Environment):
    """Spark, which offers the task a slot of one host after the other; and the driver's look at
    where the task runs.
    """

    STATES = (PENDING, RUNNING, HERE, SILENT, OVER)
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
    """A process of the job has spoken to the driver."""
    has_run: bool = Bool()
    """One of this task has."""
    is_wronged: bool = Bool()
    """A task was turned away that should have had its try."""
    was_turned_away: bool = Bool()
    may_try: bool = Bool()
    """The attempt was to be turned away, which Spark did not carry out."""
    is_killed: bool = Bool()
    """The process that is silent is to be ended."""
    was_removed: bool = Bool()
    """An executor was given up before Spark noticed by itself."""
    is_hasty: bool = Bool()
    """An executor was given up although a process there could be heard."""
    was_stranded: bool = Bool()
    is_stranded: bool = Bool()
    """As the driver was told, until the task is turned away, tries elsewhere or speaks."""
    is_avoided: list[bool] = Array(Bool(), "hosts")
    """As the driver was told."""
    is_repeated: bool = Bool()
    """The driver was told of a host what it knew."""
    is_deaf: bool = Bool()
    """Spark will not carry out the next request."""
    has_been_deaf: bool = Bool()
    is_hopeless: bool = Bool()
    """Task after task has failed, and no process has ever come."""
    is_given_up: bool = Bool()
    """The job was ended without asking the restart strategy."""

    offer: Trigger
    look: Trigger
    connect: Trigger
    miss: Trigger
    lose: Trigger
    silence: Trigger
    answer: Trigger
    wait: Trigger
    notice: Trigger
    remove_executor: Trigger
    repeat: Trigger
    expire: Trigger
    change: Trigger
    deafen: Trigger
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
        Row("silence", HERE,               SILENT,  "not is_reachable",
            "tell_silenced",                   "the process is not heard any more; Spark holds its task"),
        Row("answer",  SILENT,             PENDING, "was_killed and not is_lost",
            "forget_kill",                     "the executor has ended the task"),
        Row("wait",    SILENT,             STAY,    "was_killed",
            "tell_unanswered",                 "the executor takes its time, or is lost"),
        Row("notice",  RUNNING,            PENDING, "is_lost",
            "give_host_up, tell_missed",       "Spark's own time limit has passed, and the task has failed"),
        Row("notice",  (HERE, SILENT),     PENDING, "is_lost",
            "forget_kill, give_host_up",       "Spark's own time limit has passed"),
        Row("repeat",  PENDING,            STAY,    "has_failed",
            "tell_failing",                    "task after task has failed"),
        Row("expire",  (PENDING, RUNNING, SILENT), STAY, None,
            "tell_overdue",                    "the process has not come in time"),
        Row("change",  (PENDING, RUNNING, HERE, SILENT, OVER), STAY, None,
            "count_change",                    "one of the changes that may happen"),

        Row("deafen",  (RUNNING, SILENT),  STAY,    "may_deafen",
            "stop_hearing",                    "the JVM of the driver does not do what it is asked next"),

        Row("turn_away",    RUNNING,            PENDING, "is_own and hears",
            "check, judge",                    "the attempt is killed"),
        Row("turn_away",    RUNNING,            STAY,    "is_own and not hears",
            "check, judge, let_try, refuse",   "the attempt goes on, and is not ended later"),
        Row("turn_away",    SILENT,             STAY,    "is_own and hears",
            "check, order_end",                "the executor is told to end the task"),
        Row("turn_away",    SILENT,             STAY,    "is_own and not hears",
            "check, order_end, refuse",        "its connection is closed, which ends the task too"),
        Row("turn_away",    ANY,                STAY,    "not is_own and hears",
            "check_other",                     "the executor is told to end the other task"),
        Row("turn_away",    ANY,                STAY,    "not is_own and not hears",
            "check_other, refuse",             "its connection is closed, which ends the other task too"),
        Row("remove_executor", SILENT,          STAY,    "is_own and not hears",
            "check, refuse",                   "Spark goes on to wait for the executor"),
        Row("remove_executor", SILENT,          PENDING, "is_own and hears",
            "check, forget_kill, give_up_early, give_host_up", "Spark starts the task again elsewhere"),
        Row("remove_executor", ANY,             STAY,    "not is_own and not hears",
            "check_silent, refuse",            "Spark goes on to wait for the other task's executor"),
        Row("remove_executor", ANY,             STAY,    "not is_own and hears",
            "check_silent, give_other_up",     "Spark starts the other task again elsewhere"),
        Row("ask_strategy", (PENDING, RUNNING, SILENT), STAY,    "may_ask",
            "check_question, count_question",  "the restart strategy lets the job go on"),
        Row("ask_strategy", (PENDING, RUNNING, SILENT), OVER,    "not may_ask",
            "check_question",                  "the restart strategy ends the job"),
        Row("give_up",      (PENDING, RUNNING), OVER,    None,
            "check_reason, note_given_up",     "the job is ended"),
    )
    # fmt: on

    def may_change(self) -> bool:
        return self.changes < self.system.F

    def count_change(self) -> None:
        self.changes += 1

    def hears(self) -> bool:
        return not self.is_deaf

    def may_deafen(self) -> bool:
        return not self.has_been_deaf

    def stop_hearing(self) -> None:
        self.is_deaf = True
        self.has_been_deaf = True

    def refuse(self) -> None:
        self.is_deaf = False
        self.system.placement.refused()

    def holds(self, host: int) -> bool:
        return (
            self.state == RUNNING or self.state == HERE or self.state == SILENT
        ) and self.at == host

    def has_free_slot(self) -> bool:
        return any(self.system.cluster[h].is_open() for h in range(self.system.hosts))

    def is_reachable(self) -> bool:
        return not self.system.cluster[self.at].is_cut and not self.is_lost()

    def is_lost(self) -> bool:
        return self.system.cluster[self.at].is_gone

    def take_next(self) -> None:
        chosen = self.at
        for h in range(self.system.hosts):
            if h <= self.at and self.system.cluster[self.at - h].is_open() and h > 0:
                chosen = self.at - h
        for h in range(self.system.hosts):
            other = self.system.hosts - 1 - h
            if other > self.at and self.system.cluster[other].is_open():
                chosen = other
        self.at = chosen

    def tell_rooms(self) -> None:
        for h in range(self.system.hosts):
            if h != self.at and self.system.cluster[h].is_open():
                self.system.placement.room(h, True)
            else:
                self.system.placement.room(h, False)

    def tell_landed(self) -> None:
        if not self.may_try:
            if not self.has_missed[self.at]:
                self.is_stranded = False
            self.system.placement.landed(self.at, self.attempt())

    def let_try(self) -> None:
        self.may_try = True

    def tell_reached(self) -> None:
        self.has_run = True
        self.may_try = False
        self.note_reached(self.at)
        self.system.placement.reached(self.at)

    def note_reached(self, host: int) -> None:
        self.has_come = True
        self.has_missed[host] = False
        self.is_stranded = False

    def tell_missed(self) -> None:
        self.may_try = False
        self.has_missed[self.at] = True
        self.system.placement.missed(self.at)

    def was_killed(self) -> bool:
        return self.is_killed

    def tell_silenced(self) -> None:
        self.has_missed[self.at] = True
        self.system.placement.silenced(self.at, self.attempt())

    def tell_unanswered(self) -> None:
        # Where the driver's port is closed to a host, none of its processes is heard.
        self.system.placement.unanswered(self.at, self.attempt(), self.is_reachable())

    def forget_kill(self) -> None:
        self.is_killed = False

    def give_host_up(self) -> None:
        self.system.cluster[self.at].lose_executor()

    def attempt(self) -> int:
        """Return what stands for the attempt that the driver looks at."""
        return self.at + 1

    def is_own(self, host: int, attempt: int) -> bool:
        """Return whether this is an attempt of the task that is looked at."""
        return attempt <= self.system.hosts

    def check_other(self, host: int, attempt: int) -> None:
        self.check_silent(host, attempt)
        assert self.has_missed[host], "what is ended is where processes are not heard"

    def check_silent(self, host: int, attempt: int) -> None:
        assert attempt == self.system.cluster[host].other(), "what is ended is the other attempt"

    def give_other_up(self, host: int) -> None:
        self.is_hasty = not self.system.cluster[host].is_unreachable()
        self.system.cluster[host].lose_executor()

    def check(self, host: int, attempt: int) -> None:
        assert host == self.at, "what is ended is where the task runs"
        assert attempt == self.attempt(), "what is ended is the attempt that the driver looks at"

    def check_question(self, subtask: int, reason: int) -> None:
        assert subtask == SUBTASK, "the restart strategy is asked about the subtask"
        self.check_reason(reason)

    def check_reason(self, reason: int) -> None:
        assert reason == REASON, "the reason is the one that the driver has given"

    def order_end(self, host: int) -> None:
        self.is_killed = True

    def give_up_early(self, host: int) -> None:
        self.is_hasty = self.is_reachable()
        self.was_removed = True

    def has_failed(self) -> bool:
        return self.has_missed[self.at]

    def tell_failing(self) -> None:
        self.is_hopeless = not self.has_come
        self.system.placement.failing(SUBTASK, REASON)

    def tell_overdue(self) -> None:
        self.system.placement.overdue(SUBTASK, REASON, self.has_run)

    # The port of the machine.

    def may_ask(self) -> bool:
        return self.asked < self.system.R

    def note_given_up(self) -> None:
        self.is_given_up = True

    def count_question(self) -> None:
        self.asked += 1

    def judge(self, host: int) -> None:
        self.is_wronged = not self.has_missed[host] or not any(
            h != host and self.system.cluster[h].is_open() and not self.has_missed[h]
            for h in range(self.system.hosts)
        )
        self.was_turned_away = True
        self.is_stranded = False

    def avoid(self, host: int) -> None:
        self.is_repeated = self.is_avoided[host]
        self.is_avoided[host] = True

    def trust(self, host: int) -> None:
        self.is_repeated = not self.is_avoided[host]
        self.is_avoided[host] = False

    def strand(self, host: int) -> None:
        assert host == self.at, "the driver is told where the task tries again"
        assert not self.is_stranded, "the driver is told once that every free slot is suspect"
        self.was_stranded = True
        self.is_stranded = True
