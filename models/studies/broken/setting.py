"""Broken variants of the changes of a setting: what happens without one of the rules of section 13
in docs/protocol.md.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import Ignore, Row, machines
from epochgate.models.closed.setting import ChangedSetting
from epochgate.models.closed.surroundings.setting import DriversChanges
from epochgate.models.setting_change import DURABLE, OWED


class AcknowledgingAtOnce(DriversChanges):
    """Acknowledges a change when its value is in force."""

    def apply(self, change: int) -> None:
        self.setting.apply(change)
        self.setting.acknowledge(change)


class AcknowledgedAtOnce(ChangedSetting):
    """A change is acknowledged before a checkpoint holds it."""

    changes: DriversChanges = machines(AcknowledgingAtOnce)


class AcknowledgingAll(DriversChanges):
    """Acknowledges every change with the next checkpoint that is completed."""

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *(row for row in DriversChanges.ROWS if row.trigger != "completed"),
        Row("completed",    OWED,    DURABLE, None,
            "acknowledge_all",             "a checkpoint is durable"),
        Ignore("completed", DURABLE,          None,
                                           "every change was acknowledged"),
    )
    # fmt: on

    def acknowledge_all(self, checkpoint: int) -> None:
        for change in self.pending.take_all():
            self.setting.acknowledge(change)


class AcknowledgedTooEarly(ChangedSetting):
    """A change that came after the snapshot is acknowledged with the checkpoint."""

    changes: DriversChanges = machines(AcknowledgingAll)


class Forgetting(DriversChanges):
    """Leaves the restored value in force."""

    def apply_pending(self) -> None:
        pass


class Forgotten(ChangedSetting):
    """A change that the restored checkpoint lacks is not applied again."""

    changes: DriversChanges = machines(Forgetting)


class Remembering(DriversChanges):
    """Begins with the value of the checkpoint, whatever the options say."""

    def take_configured(self) -> None:
        self.setting.keep()


class OptionsUnheard(ChangedSetting):
    """A start with other options has the value of the ones before."""

    changes: DriversChanges = machines(Remembering)
