"""A closed system around the changes of a setting: what a client was told is made stays made.

A client asks for one value after the other while the job takes checkpoints. Checkpoints are
aborted; the coordinator hears late that one is completed, or not at all; the job fails before and
after the store has a checkpoint, and goes back to the last one that is stored, whether or not the
coordinator was told; the driver dies, with every change that was not acknowledged; the job is
started with other options, whose value counts from then on::

    client        set 1            set 2
    checkpoint         [snapshot N]       stored   | failover, no notice |   [snapshot N+1]
    restored                                         N: 1 is made, 2 again   2 is made

`SettingChange` is the machine that runs in production. That all tasks of a checkpoint have the
coordinator's value follows from the gateways (I1 and I2), and is left out here.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import machines
from epochgate.fsm.closed import ClosedSystem, Step, always, leads_to, sometimes, terminal
from epochgate.models.closed.surroundings.setting import (
    RUNNING,
    DriversChanges,
    SettingClient,
    SettingJob,
)
from epochgate.models.setting_change import DURABLE, OWED


class ChangedSetting(ClosedSystem):
    """A setting whose job fails: what was acknowledged survives."""

    CONSTANTS: ClassVar[dict[str, int]] = {"E": 3, "K": 1, "F": 3, "R": 1}
    DERIVED: ClassVar[dict[str, str]] = {"sets": "E + 0", "checkpoints": "E + F + K"}
    STEPS: ClassVar[tuple[Step, ...]] = (
        Step("client", "ask", is_fair=False),
        Step("job", "begin"),
        Step("job", "abort", is_fair=False),
        Step("job", "store"),
        Step("job", "tell"),
        Step("job", "fail", is_fair=False),
        Step("job", "restore"),
        Step("job", "crash", is_fair=False),
        Step("job", "reconfigure", is_fair=False),
    )
    WIRING: ClassVar[dict[str, str]] = {"changes.setting": "job"}

    E: int
    K: int
    F: int
    R: int

    changes: DriversChanges = machines(DriversChanges)
    client: SettingClient = machines(SettingClient)
    job: SettingJob = machines(SettingJob)

    @always("I12: what was acknowledged is in the stored checkpoint")
    def keeps_what_was_acknowledged(self) -> bool:
        return self.client.acknowledged <= self.job.stored

    @always("the value in force is the newest that was asked for")
    def is_newest_in_force(self) -> bool:
        return self.job.in_force == self.job.wanted

    @always("a change is owed exactly while one is not acknowledged")
    def owes_what_is_pending(self) -> bool:
        return (self.changes.state == OWED) != self.changes.pending.empty()

    @sometimes("a pending change is applied again after a restore")
    def applies_again(self) -> bool:
        return self.job.state == RUNNING and self.job.has_lacked

    @sometimes("a checkpoint of other options is gone back to")
    def keeps_the_options(self) -> bool:
        return (
            self.job.state == RUNNING
            and self.job.stored > 0
            and self.job.stored_options != self.job.options
        )

    @sometimes("a change is acknowledged while a later one is owed")
    def acknowledges_a_part(self) -> bool:
        return self.changes.state == OWED and self.client.acknowledged > 0

    @leads_to("a change that was asked for is acknowledged once failures stop", then="is_made")
    def is_owed(self) -> bool:
        return self.changes.state == OWED

    def is_made(self) -> bool:
        return self.changes.state == DURABLE

    @terminal("the job runs on, and nothing is owed")
    def is_at_rest(self) -> bool:
        return self.job.state == RUNNING and self.changes.state == DURABLE
