"""The changes of a setting that clients have asked for, until a completed checkpoint holds them.

Decides when a client is told that its change has been made: when the checkpoint whose snapshot
holds it is completed, so that no failure after that can undo it. A change that a restore would undo
before that is applied again::

    client        set 1           set 2          1 made                  2 made
    coordinator   1    [snapshot N]  2      N completed   [snapshot N+1]  N+1 completed

    client        set 1                                                  1 made
    coordinator   1    [snapshot N]  failover: N-1 restored, 1 again     N+1 completed

A restore of the checkpoint that was asked for says that it is completed, and takes the place of the
notice.

Decides, too, with which value a start or a restore begins: that of the checkpoint, unless the
options of the job say another one than when that was stored.

Leaves to the shell what a value is, who is sent it, and who waits. Runs on the thread of the
event queue. Source: none; Apache Flink leaves it to a coordinator when it answers a client.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import (
    STAY,
    Channel,
    Fifo,
    Ignore,
    Int,
    Machine,
    Port,
    Row,
    System,
    Trigger,
    machines,
    output,
)

DURABLE, OWED = "durable", "owed"


class ChangePort(Port):
    """The handling of a change; changes have numbers from 1, in the order of the requests."""

    def apply(self, change: int) -> None:
        """Put its value into force, and send it to the subtasks that are ready."""

    def acknowledge(self, change: int) -> None:
        """Tell its client that it has been made."""

    def keep(self) -> None:
        """Put the value of the checkpoint that is restored into force."""

    def configure(self) -> None:
        """Put the value of the options into force."""


class SettingChange(Machine):
    """The changes of one setting, in one run of the driver."""

    STATES = (DURABLE, OWED)
    INITIAL = DURABLE

    system: SettingChanges
    setting: ChangePort = output(ChangePort)

    newest: int = Int("sets")
    """The newest change that was asked for."""
    asked: int = Int("checkpoints")
    """The checkpoint of the last snapshot that was taken while a change was owed."""
    covered: int = Int("sets")
    """The newest change in that snapshot."""
    pending: Fifo[int] = Channel("sets", "sets")
    """The changes that are not acknowledged, oldest first."""

    set: Trigger
    snapshot: Trigger
    completed: Trigger
    resume: Trigger
    restored: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("set",          (DURABLE, OWED), OWED,    None,
            "note_newest, apply",      "a client changes the value"),

        Row("snapshot",     OWED,            STAY,    None,
            "note_snapshot",           "the snapshot holds every change so far"),
        Ignore("snapshot",  DURABLE,                  None,
                                       "a checkpoint before it holds every change"),

        Row("completed",    OWED,            DURABLE, "is_asked and covers_all",
            "acknowledge_covered",     "the checkpoint holds every change"),
        Row("completed",    OWED,            STAY,    "is_asked and not covers_all",
            "acknowledge_covered",     "a change came after the snapshot"),
        Ignore("completed", OWED,                     "not is_asked",
                                       "a later snapshot holds what is owed, or none does"),
        Ignore("completed", DURABLE,                  None,
                                       "every change was acknowledged"),

        Row("resume",       (DURABLE, OWED), STAY,    "goes_on",
            "take_kept",               "the options say what they said when it was stored"),
        Row("resume",       (DURABLE, OWED), STAY,    "not goes_on",
            "take_configured",         "there is none, or who starts the job has said otherwise"),

        Row("restored",     OWED,            DURABLE, "is_asked and covers_all",
            "acknowledge_covered",     "the restored checkpoint holds every change"),
        Row("restored",     OWED,            STAY,    "is_asked and not covers_all",
            "acknowledge_covered, apply_pending",
                                       "a change came after the snapshot that is restored"),
        Row("restored",     OWED,            STAY,    "not is_asked",
            "apply_pending",           "the restored checkpoint lacks what is owed"),
        Ignore("restored",  DURABLE,                  None,
                                       "the restored checkpoint holds every change"),
    )
    # fmt: on

    def is_asked(self, checkpoint: int) -> bool:
        return checkpoint == self.asked

    def covers_all(self) -> bool:
        return self.covered == self.newest

    def note_newest(self, change: int) -> None:
        self.newest = change
        self.pending.push(change)

    def apply(self, change: int) -> None:
        self.setting.apply(change)

    def note_snapshot(self, checkpoint: int) -> None:
        self.asked = checkpoint
        self.covered = self.newest

    def acknowledge_covered(self) -> None:
        for change in self.pending.take_all():
            if change <= self.covered:
                self.setting.acknowledge(change)
            else:
                self.pending.push(change)

    def goes_on(self, is_kept: bool, is_configured_so: bool) -> bool:
        return is_kept and is_configured_so

    def take_kept(self) -> None:
        self.setting.keep()

    def take_configured(self) -> None:
        self.setting.configure()

    def apply_pending(self) -> None:
        for change in self.pending.take_all():
            self.pending.push(change)
            self.setting.apply(change)


class SettingChanges(System):
    """The changes of a setting, as its coordinator decides about them."""

    changes: SettingChange = machines(SettingChange)
