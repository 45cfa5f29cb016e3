"""The surroundings of a setting's changes: a client that asks for them, and the job that takes
checkpoints, fails, goes back, and is started again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from epochgate.fsm import ANY, STAY, Bool, Int, Row, Trigger
from epochgate.fsm.closed import Environment
from epochgate.models.setting_change import DURABLE, OWED, SettingChange

if TYPE_CHECKING:
    from epochgate.models.closed.setting import ChangedSetting

RUNNING, TAKING, DOWN = "running", "taking", "down"


class DriversChanges(SettingChange):
    """The machine of each driver, renewed with it; the numbers of changes go on."""

    replaced: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *SettingChange.ROWS,
        Row("replaced", ANY, DURABLE, None,
            "forget",   "what the driver had in memory is gone with it"),
    )
    # fmt: on

    def forget(self) -> None:
        self.newest = 0
        self.asked = 0
        self.covered = 0
        self.pending.clear()


class SettingClient(Environment):
    """A client that changes the setting, whatever the job does; a value is the change's number."""

    STATES = ("up",)
    INITIAL = "up"

    system: ChangedSetting

    asked: int = Int("sets")
    """The newest change that was asked for."""
    acknowledged: int = Int("sets")
    """The newest change that was acknowledged."""

    ask: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("ask", "up", STAY, "may_ask",
            "ask_next", "the client wants another value"),
    )
    # fmt: on

    def may_ask(self) -> bool:
        return self.asked < self.system.E

    def ask_next(self) -> None:
        self.asked += 1
        self.system.job.wanted = self.asked
        self.system.changes.set(self.asked)


class SettingJob(Environment):
    """The job, one checkpoint at a time, with the coordinator's value: port `setting`.

    The coordinator's snapshot is taken in the step that begins a checkpoint. It is told of a
    checkpoint that is completed at any time after the store has it, also during the next one.
    """

    STATES = (RUNNING, TAKING, DOWN)
    INITIAL = RUNNING

    system: ChangedSetting

    failures: int = Int("F")
    idle: int = Int("K")
    """The checkpoints that were taken while no change needed one."""
    number: int = Int("checkpoints")
    """The newest checkpoint."""
    in_force: int = Int("sets")
    wanted: int = Int("sets")
    """The newest value that a client of this driver has asked for, or that its start restored."""
    saved: int = Int("sets")
    """The value in the snapshot of the newest checkpoint."""
    stored: int = Int("sets")
    """The value in the newest checkpoint of the store."""
    stored_number: int = Int("checkpoints")
    untold: int = Int("checkpoints")
    """The completed checkpoint of which the coordinator is still to be told; 0 for none."""
    options: int = Int("R")
    """How often the options of the job were changed; the value that they say is 0 each time."""
    saved_options: int = Int("R")
    stored_options: int = Int("R")
    has_lacked: bool = Bool()
    """The checkpoint that was restored last lacked a change."""

    begin: Trigger
    abort: Trigger
    store: Trigger
    tell: Trigger
    fail: Trigger
    restore: Trigger
    crash: Trigger
    reconfigure: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("begin",   RUNNING, TAKING,  "may_begin",
            "take_snapshot",                 "the interval is over, or a client wants a checkpoint"),
        Row("abort",   TAKING,  RUNNING, "may_fail",
            "spend_failure",                 "a subtask declines, or the checkpoint expires"),
        Row("store",   TAKING,  RUNNING, None,
            "keep_snapshot",                 "the store has it"),
        Row("tell",    (RUNNING, TAKING), STAY, "has_untold",
            "notify",                        "the coordinator is told that it is completed"),
        Row("fail",    (RUNNING, TAKING), DOWN, "may_fail",
            "spend_failure",                 "everything goes back, whatever the coordinator knows"),
        Row("restore", DOWN,    RUNNING, None,
            "go_back",                       "all attempts are down"),
        Row("crash",   ANY,     RUNNING, "may_fail",
            "spend_failure, start_again",    "the driver dies, and another one starts"),
        Row("reconfigure", ANY, RUNNING, "may_reconfigure",
            "change_options, start_again",   "the job is started with other options"),
    )
    # fmt: on

    def may_begin(self) -> bool:
        return self.is_needed() or self.idle < self.system.K

    def is_needed(self) -> bool:
        return self.system.changes.state == OWED and self.untold == 0

    def has_untold(self) -> bool:
        return self.untold > 0

    def may_fail(self) -> bool:
        return self.failures < self.system.F

    def may_reconfigure(self) -> bool:
        return self.options < self.system.R

    def take_snapshot(self) -> None:
        if not self.is_needed():
            self.idle += 1
        self.number += 1
        self.saved = self.in_force
        self.saved_options = self.options
        self.system.changes.snapshot(self.number)

    def keep_snapshot(self) -> None:
        self.stored = self.saved
        self.stored_options = self.saved_options
        self.stored_number = self.number
        self.untold = self.number

    def notify(self) -> None:
        self.system.changes.completed(self.untold)
        self.untold = 0

    def spend_failure(self) -> None:
        self.failures += 1

    def go_back(self) -> None:
        self.has_lacked = self.kept() < self.wanted
        self.untold = 0
        self.system.changes.resume(self.stored_number > 0, self.stored_options == self.options)
        self.system.changes.restored(self.stored_number)

    def kept(self) -> int:
        """The value that the stored checkpoint has for the options of the job."""
        return self.stored if self.stored_options == self.options else 0

    def change_options(self) -> None:
        self.options += 1
        self.system.client.acknowledged = 0

    def start_again(self) -> None:
        self.system.changes.replaced()
        self.wanted = self.kept()
        self.go_back()

    # The port of the machine.

    def apply(self, change: int) -> None:
        self.in_force = change

    def keep(self) -> None:
        self.in_force = self.stored

    def configure(self) -> None:
        self.in_force = 0

    def acknowledge(self, change: int) -> None:
        assert self.system.client.acknowledged < change, "a change is acknowledged once, in order"
        self.system.client.acknowledged = change
