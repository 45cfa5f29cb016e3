"""The store of decisions for batches as one process sees it: its listing, and its late requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from epochgate.fsm import Int, Row
from epochgate.models.closed.surroundings import entries
from epochgate.models.closed.surroundings.entries import CLIENT_ROWS, READ, WRITE

if TYPE_CHECKING:
    from epochgate.models.closed.steering import SteeredQuery
    from epochgate.models.closed.surroundings.steering import Decider, Driver, Query


class Client(entries.Client):
    """A driver's connection to the store: port `store` of its machine."""

    system: SteeredQuery
    served: Decider
    entries: Query
    drives: Driver
    PEERS: ClassVar[dict[str, str]] = {
        "served": "batch_decision",
        "entries": "query",
        "drives": "driver",
    }
    ROWS: ClassVar[tuple[Row, ...]] = CLIENT_ROWS

    since: int = Int("batches")
    late_since: int = Int("batches")

    def tell_found(self) -> None:
        self.entries.has_kept = True
        self.served.found(self.behind(), self.entries.decided[self.batch])

    def tell_newest(self) -> None:
        newest = self.entries.newest
        self.served.newest(
            self.system.user.version, self.entries.decided[newest], self.entries.since[newest]
        )

    def answer_more(self) -> None:
        """Give the further answers to a client with a coordinator."""

    def create(self) -> bool:
        is_new = self.entries.create(self.batch, self.version, self.since)
        if not is_new:
            self.entries.clashes = 1
        return is_new

    def write_late(self) -> None:
        if not self.entries.is_there[self.late]:
            self.create_late()
        self.late = 0
        self.late_version = 0
        self.late_since = 0

    def create_late(self) -> None:
        self.entries.create(self.late, self.late_version, self.late_since)

    def send_late(self) -> None:
        self.late = self.batch
        self.late_version = self.version
        self.late_since = self.since

    def remove(self) -> None:
        if self.batch + self.system.retained >= self.entries.newest:
            self.entries.has_kept = False
        self.entries.remove(self.batch)

    def note_kept(self) -> None:
        self.entries.has_kept = True

    def end(self) -> None:
        self.asked = 0
        self.batch = 0
        self.version = 0
        self.since = 0

    def forget_all(self) -> None:
        """Forget what the memory of a coordinator's process held."""

    # port `store` of the machine

    def restore(self, batch: int) -> None:
        """There is nothing to restore, at once."""
        self.served.restored()

    def complete(self, batch: int) -> None:
        assert batch <= self.entries.committed, "a batch that is told to have run is over"

    def choose(self, batch: int) -> None:
        """Let what was updated hold, at once."""
        self.served.chosen()

    def read(self, batch: int) -> None:
        self.ask(READ, batch)

    def write(self, batch: int, version: int, since: int) -> None:
        self.ask(WRITE, batch)
        self.version = version
        self.since = since

    def run(self, batch: int, version: int) -> None:
        assert batch == self.drives.wanted(), "a driver runs the batch that it asks for"
        self.drives.run(version)

    def miss(self, batch: int, version: int, earlier: int) -> None:
        assert version < earlier, "a version is missed where a newer one was decided"
        assert version == self.system.user.version, "what is there is told"
        assert earlier == self.entries.decided[self.entries.newest], "what is missed is told"
        self.fail(batch)
