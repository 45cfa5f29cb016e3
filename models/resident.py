"""A task of Spark's, and the attempts of its subtask that run in its process one after the other.

Decides whether the process begins another attempt after the driver has released one. It does where
nothing of the attempt is left in it, where it has not had as many attempts as a process may have,
and unless an attempt failed that had begun after a failure, without a completed checkpoint between
them: what fails again may come from what the process remembers, so the third try has another::

    attempt 1  failed   attempt 2  checkpoint 7 completed  failed   attempt 3  failed
    process A --------------------------------------------------------------- is left to Spark

In every other case the process is left to Spark, which starts another: also where the driver ends
the connection without a word, because a newer process is known, or is gone.

Leaves to `Attempt` which process speaks for the subtask and which is released, to `Task` what an
attempt does, and to the shell to look what is left of one. Runs on the task's
only thread. Source: none; Apache Flink's task managers run one attempt after the other in one JVM,
and take a thread that does not end for the end of the process (`task.cancellation.timeout`).
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import (
    STAY,
    Bool,
    Int,
    Machine,
    Opaque,
    Port,
    Row,
    System,
    Trigger,
    fallible,
    machines,
    output,
)

CREATED, ATTEMPTING, CLEARING, FINISHED, LEFT = (
    "created",
    "attempting",
    "clearing",
    "finished",
    "left",
)


class ProcessPort(Port):
    """The process and its work."""

    @fallible("fail, dismiss", succeeds="release, finish")
    def begin(self, number: int) -> None:
        """Connect as the attempt of this number here, counted from 1."""

    @fallible("dismiss", succeeds="cleared")
    def clear(self) -> None:
        """Look what is left of the attempt, whose operators are closed."""

    def end(self) -> None:
        """End the task: Spark starts no other process."""

    def leave(self) -> None:
        """End, so that Spark starts another process."""

    def replace(self, reason: Opaque) -> None:
        """Tell the driver, and end, so that Spark starts another process at once."""


class Resident(Machine):
    """The attempts of one process."""

    STATES = (CREATED, ATTEMPTING, CLEARING, FINISHED, LEFT)
    INITIAL = CREATED
    TERMINAL = (FINISHED, LEFT)

    system: Residents
    process: ProcessPort = output(ProcessPort)

    number: int = Int("attempts")
    """How many attempts have begun here."""
    has_failed: bool = Bool()
    """The attempt has failed by itself; otherwise the driver takes it back."""
    is_doubted: bool = Bool()
    """Since an attempt here failed by itself, no checkpoint was completed."""

    begin: Trigger
    checkpointed: Trigger
    fail: Trigger
    release: Trigger
    cleared: Trigger
    finish: Trigger
    dismiss: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("begin",        CREATED,    ATTEMPTING, None,
            "begin_attempt",             "Spark has started the task"),

        Row("checkpointed", ATTEMPTING, STAY,       None,
            "trust",                     "the attempt has taken part in a checkpoint: it gets on"),

        Row("fail",         ATTEMPTING, STAY,       None,
            "note_failure",              "an operator or the program has raised an error"),

        Row("release",      ATTEMPTING, CLEARING,   None,
            "clear",                     "the driver has taken the attempt back"),

        Row("cleared",      CLEARING,   ATTEMPTING, "is_clean and has_room and not is_stuck",
            "begin_attempt",             "nothing is left of the attempt: the next one may begin here"),
        Row("cleared",      CLEARING,   LEFT,       "is_clean and has_room and is_stuck",
            "replace_stuck",             "attempts fail here one after the other: the process may be why"),
        Row("cleared",      CLEARING,   LEFT,       "is_clean and not has_room",
            "replace_worn",              "the process has had its attempts: what they leaked goes with it"),
        Row("cleared",      CLEARING,   LEFT,       "not is_clean",
            "replace_littered",          "threads, files, sockets or processes of the attempt are left"),

        Row("finish",       ATTEMPTING, FINISHED,   None,
            "end",                       "the job has what it needs"),
        Row("dismiss",      (ATTEMPTING, CLEARING), LEFT, None,
            "leave",                     "the connection has ended: a newer process is known, or no driver"),
    )
    # fmt: on

    def is_clean(self, is_clean: bool) -> bool:
        return is_clean

    def has_room(self) -> bool:
        return self.number < self.system.attempts

    def is_stuck(self) -> bool:
        return self.has_failed and self.is_doubted

    def begin_attempt(self) -> None:
        self.is_doubted = self.is_doubted or self.has_failed
        self.has_failed = False
        self.number += 1
        self.process.begin(self.number)

    def trust(self) -> None:
        self.is_doubted = False

    def note_failure(self) -> None:
        self.has_failed = True

    def clear(self) -> None:
        self.process.clear()

    def end(self) -> None:
        self.process.end()

    def leave(self) -> None:
        self.process.leave()

    def replace_stuck(self) -> None:
        self.process.replace("two attempts failed in it, and no checkpoint was completed since")

    def replace_worn(self) -> None:
        self.process.replace("it has had as many attempts as a process may have")

    def replace_littered(self) -> None:
        self.process.replace("something of the attempt is left in it")


class Residents(System):
    """The attempts of one process; `attempts`: how many it may have."""

    CONSTANTS: ClassVar[dict[str, int]] = {"attempts": 100}

    attempts: int

    resident: Resident = machines(Resident)
