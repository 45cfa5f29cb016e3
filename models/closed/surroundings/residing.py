"""The surroundings of one subtask's processes: Spark, which starts one task after the other, and
the driver, to which the newest identity speaks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from epochgate.fsm import STAY, Bool, Int, Opaque, Row, Trigger
from epochgate.fsm.closed import Environment
from epochgate.models.resident import Resident

if TYPE_CHECKING:
    from epochgate.models.closed.residing import ResidentTask

AWAY, HERE, REPLACED, GONE = "away", "here", "replaced", "gone"


class TaskResident(Resident):
    """The machine of each of Spark's tasks."""

    INDEX = ("task",)


class Process(Environment):
    """The process of one of Spark's tasks, with its threads, files and sockets.

    An attempt that fails is released in the same step: the driver does so in any case.
    """

    INDEX = ("task",)
    STATES = (AWAY, HERE, REPLACED, GONE)
    INITIAL = AWAY
    TERMINAL = (REPLACED, GONE)

    system: ResidentTask
    task: int

    identity: int = Int("identities")
    failures: int = Int("F")
    """Attempts that failed by themselves since a checkpoint was completed, or the process began."""
    is_clearing: bool = Bool()
    is_littered: bool = Bool()
    """Something of an attempt that is over is left."""
    has_begun_again: bool = Bool()

    launch: Trigger
    fail: Trigger
    take_back: Trigger
    complete: Trigger
    finish: Trigger
    tidy: Trigger
    litter: Trigger
    die: Trigger
    expire: Trigger
    left: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("launch",    AWAY, HERE, "is_next",
            "start",                          "Spark starts the task"),
        Row("fail",      HERE, STAY, "speaks and may_fail",
            "spend_failure, report_failure",  "an operator raises, and the driver releases the attempt"),
        Row("take_back", HERE, STAY, "speaks and may_fail",
            "spend_failure, hear_release",    "all subtasks are taken back"),
        Row("complete",  HERE, STAY, "speaks and has_failed",
            "hear_completion",                "a checkpoint is completed"),
        Row("finish",    HERE, GONE, "speaks",
            "hear_finish",                    "the job has what it needs"),
        Row("tidy",      HERE, STAY, "clears",
            "answer_clean",                   "the operators are closed, and nothing is left"),
        Row("litter",    HERE, STAY, "clears and may_fail",
            "spend_failure, answer_littered", "a thread that the attempt has started goes on"),
        Row("die",       HERE, GONE, "may_fail",
            "spend_failure, hang_up",         "killed, by Spark for instance"),
        Row("expire",    HERE, STAY, "clears and may_fail",
            "spend_failure, hear_the_end",    "the driver waits no longer, and closes the connection"),
        Row("left",      HERE, REPLACED, None,
            "hang_up",                        "the process is left to Spark"),
    )
    # fmt: on

    def is_next(self) -> bool:
        return self.task == self.system.driver.launched and self.system.driver.may_launch()

    def may_fail(self) -> bool:
        return self.system.driver.failures < self.system.F

    def speaks(self) -> bool:
        return not self.is_clearing and self.system.driver.speaking == self.identity

    def has_failed(self) -> bool:
        return self.failures > 0

    def clears(self) -> bool:
        return self.is_clearing

    def start(self) -> None:
        self.system.driver.launched += 1
        self.system.driver.running = self.task + 1
        self.system.resident[self.task].begin()

    def spend_failure(self) -> None:
        self.system.driver.failures += 1

    def report_failure(self) -> None:
        self.failures += 1
        self.system.resident[self.task].fail()
        self.hear_release()

    def hear_release(self) -> None:
        self.system.driver.speaking = 0
        self.system.resident[self.task].release()

    def hear_completion(self) -> None:
        self.failures = 0
        self.system.resident[self.task].checkpointed()

    def hear_finish(self) -> None:
        self.system.resident[self.task].finish()

    def answer_clean(self) -> None:
        self.is_clearing = False
        self.system.resident[self.task].cleared(True)

    def answer_littered(self) -> None:
        self.is_clearing = False
        self.is_littered = True
        self.system.resident[self.task].cleared(False)

    def hear_the_end(self) -> None:
        self.is_clearing = False
        self.system.resident[self.task].dismiss()

    def hang_up(self) -> None:
        self.is_clearing = False
        if self.system.driver.speaking == self.identity:
            self.system.driver.speaking = 0
        if self.system.driver.running == self.task + 1:
            self.system.driver.running = 0

    # The port of the machine.

    def begin(self, number: int) -> None:
        assert self.identity < self.task * self.system.attempts + number, "identities only grow"
        self.identity = self.task * self.system.attempts + number
        self.has_begun_again = number > 1
        self.system.driver.hear(self.task, self.identity)

    def clear(self) -> None:
        self.is_clearing = True

    def end(self) -> None:
        assert not self.system.driver.has_finished, "a task ends once"
        self.system.driver.has_finished = True

    def leave(self) -> None:
        self.left()

    def replace(self, reason: Opaque) -> None:
        self.system.driver.has_replaced = True
        self.left()


class Driver(Environment):
    """The driver, to which one identity speaks for the subtask; and Spark, which starts another
    task when one has ended, or when it takes one that lives for lost.
    """

    STATES = ("up",)
    INITIAL = "up"

    system: ResidentTask

    speaking: int = Int("identities")
    """The identity that speaks for the subtask; 0: none does."""
    newest: int = Int("identities")
    launched: int = Int("tasks")
    running: int = Int("tasks")
    """Spark's task that runs, as far as Spark knows, counted from 1."""
    failures: int = Int("F")
    has_finished: bool = Bool()
    has_replaced: bool = Bool()

    lose_sight: Trigger
    hear: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("lose_sight", "up", STAY, "may_lose_sight",
            "forget_task",     "an executor is cut off: Spark starts its task elsewhere"),
        Row("hear",       "up", STAY, "is_newer and is_spoken_to",
            "evict, listen",   "a newer process takes the place of the one that speaks"),
        Row("hear",       "up", STAY, "is_newer and not is_spoken_to",
            "listen",          "the subtask has a process"),
        Row("hear",       "up", STAY, "not is_newer",
            "refuse",          "a newer process is known"),
    )
    # fmt: on

    def may_launch(self) -> bool:
        return self.running == 0 and not self.has_finished

    def may_lose_sight(self) -> bool:
        return self.running > 0 and self.failures < self.system.F

    def is_newer(self, task: int, identity: int) -> bool:
        return identity > self.newest

    def is_spoken_to(self) -> bool:
        return self.speaking > 0

    def forget_task(self) -> None:
        self.failures += 1
        self.running = 0

    def evict(self, task: int, identity: int) -> None:
        for t in range(self.system.tasks):
            if self.system.process[t].identity == self.speaking:
                self.system.resident[t].dismiss()

    def listen(self, task: int, identity: int) -> None:
        self.newest = identity
        self.speaking = identity

    def refuse(self, task: int) -> None:
        self.system.resident[task].dismiss()
