"""The store around the global committer: what the next driver finds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from epochgate.fsm import Array, Bool, Int
from epochgate.fsm.closed import Environment

if TYPE_CHECKING:
    from epochgate.models.closed.commits import CommitJob


class Store(Environment):
    """The newest stored checkpoint, and the one before it."""

    system: CommitJob

    completed: int = Int("checkpoints")
    ledger: list[bool] = Array(Bool(), "checkpoints")
    """The earlier checkpoints whose committables it carries."""
    tries: int = Int("commit_retries")
    """How often the oldest of these was tried in vain, as it says."""
    debts: list[bool] = Array(Bool(), "checkpoints")
    """The earlier checkpoints whose work it says is owed."""
    newest: int = Int("checkpoints")
    """The greatest id that it ever held."""
    is_stored: list[bool] = Array(Bool(), "checkpoints")
    """It has held this checkpoint, and has not lost it."""
    is_forgone: list[bool] = Array(Bool(), "checkpoints")
    """A person has given up the commit of this checkpoint."""
    forgone: int = Int("checkpoints")
    """The one that the next checkpoint leaves out; 0 for none."""
    has_earlier: bool = Bool()
    earlier: int = Int("checkpoints")
    earlier_tries: int = Int("commit_retries")
    earlier_ledger: list[bool] = Array(Bool(), "checkpoints")
    earlier_debts: list[bool] = Array(Bool(), "checkpoints")

    def save(self, checkpoint: int) -> None:
        self.has_earlier = True
        self.earlier = self.completed
        self.completed = checkpoint
        self.newest = checkpoint
        self.is_stored[checkpoint - 1] = True
        self.earlier_tries = self.tries
        self.tries = self.system.checkpoint.tries
        for k in range(self.system.checkpoints):
            self.earlier_ledger[k] = self.ledger[k]
            self.earlier_debts[k] = self.debts[k]
            self.ledger[k] = self.system.checkpoint.carried[k]
            self.debts[k] = self.system.checkpoint.owing[k]

    def succeed(self, checkpoint: int) -> None:
        """Store a copy of the newest checkpoint under the next id, without one commit."""
        self.save(checkpoint)
        for k in range(self.system.checkpoints):
            self.debts[k] = self.earlier_debts[k]
        if self.forgone > 0:
            self.is_forgone[self.forgone - 1] = True
        self.forgone = 0

    def lose_newest(self) -> None:
        self.is_stored[self.completed - 1] = False
        self.completed = self.earlier
        self.has_earlier = False
        self.earlier = 0
        self.tries = self.earlier_tries
        self.earlier_tries = 0
        for k in range(self.system.checkpoints):
            self.ledger[k] = self.earlier_ledger[k]
            self.debts[k] = self.earlier_debts[k]
            self.earlier_ledger[k] = False
            self.earlier_debts[k] = False
            if self.ledger[k] or self.completed == k + 1:
                self.is_forgone[k] = False
