"""One compaction of a target: what is planned, staged, exchanged and cleaned, in this order.

Decides that nothing is exchanged before it is staged, that nothing is removed which readers may
still need, and what happens where the target has changed meanwhile: the staged files are thrown
away and the target is looked at again, a bounded number of times. An error before the exchange
throws away what was staged. One in the exchange does not, because it may have taken effect, and
what was staged would be the target: what is not needed is found by the next compaction.

Leaves to the shell what a step is in a directory and in an object store, and to the target that an
exchange takes effect as a whole, and only if the target is as it was planned.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import (
    Int,
    Machine,
    Port,
    Row,
    System,
    Trigger,
    fallible,
    machines,
    output,
)

IDLE, PLANNING, STAGING, EXCHANGING = "idle", "planning", "staging", "exchanging"
RETRYING, RETREATING = "retrying", "retreating"
CLEANING, DONE, GIVEN_UP = "cleaning", "done", "given_up"


class CompactionPort(Port):
    """The steps of a compaction, and its end. `expire`: the step is still under way."""

    @fallible("broken, expire", succeeds="planned", within="commit_timeout_s")
    def plan(self) -> None:
        """Look at the target."""

    @fallible("broken", succeeds="staged, overtaken")
    def stage(self) -> None:
        """Write what takes the place of the merged files, where no reader finds it; `overtaken` if
        some are gone, since the target has changed. It takes as long as there are rows.
        """

    @fallible("broken, expire", succeeds="exchanged, overtaken", within="commit_timeout_s")
    def exchange(self) -> None:
        """Let it take their place; `overtaken` if the target has changed."""

    @fallible("broken, expire", succeeds="discarded", within="commit_timeout_s")
    def discard(self) -> None:
        """Remove what was staged and is not in the target."""

    @fallible("broken, expire", succeeds="cleaned", within="commit_timeout_s")
    def clean(self) -> None:
        """Remove what earlier steps have replaced or left, and no reader needs."""

    def done(self) -> None:
        """It has done what there was to do."""

    def failed(self) -> None:
        """It is given up; readers see all of it or nothing."""


class Compaction(Machine):
    """One run of the command, from its look at the target to its end."""

    STATES = (
        IDLE,
        PLANNING,
        STAGING,
        EXCHANGING,
        RETRYING,
        RETREATING,
        CLEANING,
        DONE,
        GIVEN_UP,
    )
    INITIAL = IDLE
    TERMINAL = (DONE, GIVEN_UP)

    system: Compactions
    target: CompactionPort = output(CompactionPort)

    tries: int = Int("compaction_retries")
    """How often the target had changed."""

    start: Trigger
    planned: Trigger
    staged: Trigger
    exchanged: Trigger
    overtaken: Trigger
    discarded: Trigger
    cleaned: Trigger
    broken: Trigger
    expire: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("start",     IDLE,       PLANNING,   None,
            "ask_plan",                         "the target is not being compacted otherwise"),

        Row("planned",   PLANNING,   STAGING,    "has_work",
            "ask_stage",                        "some partition has several small files"),
        Row("planned",   PLANNING,   CLEANING,   "not has_work",
            "ask_clean",                        "earlier compactions may have left something"),

        Row("staged",    STAGING,    EXCHANGING, None,
            "ask_exchange",                     "what is to be shown is durable"),

        Row("exchanged", EXCHANGING, CLEANING,   None,
            "ask_clean",                        "readers see the merged files, durably"),

        Row("overtaken", (STAGING, EXCHANGING), RETRYING,   "may_retry",
            "count_retry, discard",             "the files that were merged are not the target's"),
        Row("overtaken", (STAGING, EXCHANGING), RETREATING, "not may_retry",
            "discard",                          "the target has changed in each try"),

        Row("discarded", RETRYING,   PLANNING,   None,
            "ask_plan",                         "nothing of the last try is left"),
        Row("discarded", RETREATING, GIVEN_UP,   None,
            "report_failed",                    "nothing of the compaction is left"),

        Row("cleaned",   CLEANING,   DONE,       None,
            "report_done",                      "nothing is left to do"),

        Row("broken",    PLANNING,   GIVEN_UP,   None,
            "report_failed",                    "nothing was written"),
        Row("broken",    STAGING,    RETREATING, None,
            "discard",                          "readers have seen nothing of it"),
        Row("broken",    EXCHANGING, GIVEN_UP,   None,
            "report_failed",                    "what was staged may be the target by now"),
        Row("broken",    RETRYING,   PLANNING,   None,
            "ask_plan",                         "the end of this compaction removes what is left"),
        Row("broken",    (RETREATING, CLEANING), GIVEN_UP, None,
            "report_failed",                    "the next compaction removes what is left"),
        Row("expire",    (PLANNING, EXCHANGING, RETRYING, RETREATING, CLEANING), GIVEN_UP, None,
            "report_failed",                    "nothing runs beside a step that is under way"),
    )
    # fmt: on

    def has_work(self, merges: int) -> bool:
        return merges > 0

    def may_retry(self) -> bool:
        return self.tries < self.system.compaction_retries

    def ask_plan(self) -> None:
        self.target.plan()

    def ask_stage(self) -> None:
        self.target.stage()

    def ask_exchange(self) -> None:
        self.target.exchange()

    def count_retry(self) -> None:
        self.tries += 1

    def discard(self) -> None:
        self.target.discard()

    def ask_clean(self) -> None:
        self.target.clean()

    def report_done(self) -> None:
        self.target.done()

    def report_failed(self) -> None:
        self.target.failed()


class Compactions(System):
    """The one compaction of a run of the command."""

    CONSTANTS: ClassVar[dict[str, int]] = {"compaction_retries": 3}

    compaction_retries: int

    compaction: Compaction = machines(Compaction)
