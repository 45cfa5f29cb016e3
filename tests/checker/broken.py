"""The reference model with one fault each, as machines of their own."""

from __future__ import annotations

from epochgate.fsm import machines
from epochgate.models.studies.reference import IDLE, Checkpoint, Coordinator, Reference, Subtask


class CarelessSubtask(Subtask):
    """Reopens its gateways for the acknowledgement of any checkpoint."""

    system: LateAcknowledgement

    def take_acknowledgement(self) -> None:
        checkpoint = self.acknowledgements.pop()
        if self.system.checkpoint.is_pending():
            for c in range(self.system.C):
                self.system.gateway[c, self.subtask].reopen()
        if self.system.checkpoint.is_injected(checkpoint):
            self.has_acknowledged = True
            self.system.checkpoint.complete_if_all_acknowledged()


class PendingCheckpoint(Checkpoint):
    """Tells whether it is under way, whichever it is."""

    def is_pending(self) -> bool:
        return self.state != IDLE


class LateAcknowledgement(Reference):
    """A late acknowledgement ignores its checkpoint's number."""

    subtask = machines(CarelessSubtask)
    checkpoint: PendingCheckpoint = machines(PendingCheckpoint)


class OpenCoordinator(Coordinator):
    """Takes its snapshot and closes nothing."""

    def snapshot_and_close(self) -> None:
        for s in range(self.system.N):
            gateway = self.system.gateway[self.coordinator, s].sent
            self.system.gateway[self.coordinator, s].snapshot = gateway


class NoValve(Reference):
    """Events pass while a checkpoint is under way."""

    coordinator = machines(OpenCoordinator)
