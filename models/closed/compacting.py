"""A closed system around a compaction: no row is lost or doubled, and no reader sees two trees.

The job commits a checkpoint with a row after the other, and goes back behind the newest ones and
writes them again, other rows. A compactor merges all but the newest checkpoints into the directory
of the first; it fails, hangs or dies between any two steps and is started again, and the exchange may
take effect before, or after it has hung. A reader lists one directory after the other and opens the files later; where
a directory is gone by then, it goes on, as some readers do, and where a file is gone, it fails::

    target      1: a   2: b   3: c         1: ab         3: c        1: ab        3: c   4: d
    compactor         merge a, b    | exchange |
    reader      list 1: a                  list 2: gone   list 3: c   open a: gone, it fails

`Compaction` is the machine that runs in production. That an exchange takes effect as a whole, and
only on the files that were planned, is a property of the target, and one step here.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import machines
from epochgate.fsm.closed import ClosedSystem, Step, always, leads_to, sometimes, terminal
from epochgate.models.closed.surroundings.compaction import (
    AS_DONE,
    AS_FAILED,
    FAILED,
    READ,
    UNREAD,
    Compactor,
    Process,
    Reader,
    Target,
)
from epochgate.models.compaction import DONE, GIVEN_UP, IDLE


class CompactingJob(ClosedSystem):
    """A compaction beside the job and a reader: each row is visible once, in one tree."""

    CONSTANTS: ClassVar[dict[str, int]] = {
        "K": 3,
        "kept": 0,
        "R": 2,
        "F": 1,
        "W": 2,
        "compaction_retries": 1,
    }
    DERIVED: ClassVar[dict[str, str]] = {"trees": "R + 0"}
    STEPS: ClassVar[tuple[Step, ...]] = (
        Step("target", "commit", is_fair=False),
        Step("target", "withdraw", is_fair=False),
        Step("process", "begin", is_fair=False),
        Step("process", "look"),
        Step("process", "write"),
        Step("process", "swap"),
        Step("process", "answer"),
        Step("process", "drop"),
        Step("process", "tidy"),
        Step("process", "fail", is_fair=False),
        Step("process", "hang", is_fair=False),
        Step("process", "arrive", is_fair=False),
        Step("process", "die", is_fair=False),
        Step("reader", "list_root", is_fair=False),
        Step("reader", "list_next"),
        Step("reader", "open_next"),
    )
    WIRING: ClassVar[dict[str, str]] = {"compaction.target": "process"}

    K: int
    kept: int
    R: int
    F: int
    W: int
    compaction_retries: int

    compaction: Compactor = machines(Compactor)
    target: Target = machines(Target)
    process: Process = machines(Process)
    reader: Reader = machines(Reader)

    @always("each committed row is visible once, and no other")
    def shows_each_row_once(self) -> bool:
        return all(
            (
                k >= self.target.committed
                and not self.target.is_small[k]
                and not self.target.is_merged[k]
            )
            or (k < self.target.committed and self.target.is_small[k] != self.target.is_merged[k])
            for k in range(self.K)
        )

    @always("the merged file that readers see is there", when="has_merged")
    def keeps_what_is_visible(self) -> bool:
        return self.process.is_whole

    def has_merged(self) -> bool:
        return self.target.is_merged[0]

    @always("a compaction is in a state of rest where it has said how it ended, and in no other")
    def rests_as_told(self) -> bool:
        return (self.compaction.state == DONE) == (self.process.ended == AS_DONE) and (
            self.compaction.state == GIVEN_UP
        ) == (self.process.ended == AS_FAILED)

    @sometimes("a job goes back behind what is staged, and the target is looked at again")
    def plans_again(self) -> bool:
        return self.compaction.tries > 0

    @sometimes("a compactor dies after an exchange that it does not know of, and is run again")
    def dies_unknowing(self) -> bool:
        return self.process.runs > 1 and self.target.tree == 1 and self.process.failures > 0

    @sometimes("a reader in whose midst the target is exchanged has all rows")
    def reads_beside(self) -> bool:
        return self.reader.state == READ and self.target.tree > 0 and self.reader.merged == 0

    @sometimes("a reader in whose midst the target is exchanged fails")
    def fails_beside(self) -> bool:
        return self.reader.state == FAILED and self.target.tree > 0

    @leads_to("a compaction that was begun ends", then="has_ended")
    def has_begun(self) -> bool:
        return not self.has_ended()

    def has_ended(self) -> bool:
        return self.compaction.state == IDLE or self.process.ended > 0

    @terminal("no compaction is under way, and no reader reads")
    def is_at_rest(self) -> bool:
        return self.has_ended() and (
            self.reader.state == UNREAD or self.reader.state == READ or self.reader.state == FAILED
        )
