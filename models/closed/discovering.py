"""A closed system around the looks for new files: each file is found, and taken once.

Files come while the queue of hints loses, doubles and delays what it was told, names files of
others, fails, and gives hints out again that were not done with. Checkpoints hold what the
enumerator knows; it goes back to one, whatever the queue was told meanwhile::

    file a comes   [hint]   heard, looked at, known, done with | failover to a checkpoint without a
    file b comes   no hint                                     | listed: a and b

`Discovery` is the machine that runs in production. That a known file is not taken again is the
enumeration's to decide (`spark.files.enumeration`), and is part of the surroundings here. The end
of a listing is told as it was when the listing began: files that come meanwhile are missed.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import machines
from epochgate.fsm.closed import ClosedSystem, Step, always, leads_to, sometimes
from epochgate.models.closed.surroundings.discovering import (
    HintedFile,
    HintedSource,
    RenewedDiscovery,
)
from epochgate.models.discovery import LISTING, RESTING


class FoundFiles(ClosedSystem):
    """A source with a queue of hints: each file is found, and taken once."""

    INDEX_SETS: ClassVar[dict[str, str]] = {"file": "files"}
    CONSTANTS: ClassVar[dict[str, int]] = {
        "files": 2,
        "losses": 1,
        "doubles": 1,
        "F": 1,
        "slowest": 2,
    }
    STEPS: ClassVar[tuple[Step, ...]] = (
        Step("source", "begin"),
        Step("file", "arrive", is_fair=False),
        Step("file", "arrive_unsaid", is_fair=False),
        Step("file", "repeat", is_fair=False),
        Step("source", "give_out"),
        Step("source", "name_others", is_fair=False),
        Step("source", "be_silent"),
        Step("source", "unsettle", is_fair=False),
        Step("source", "refuse", is_fair=False),
        Step("source", "lose_answer", is_fair=False),
        Step("source", "return_hints", is_fair=False),
        Step("source", "end_look"),
        Step("source", "end_listing"),
        Step("source", "forget_hints"),
        Step("source", "end_wait"),
        Step("source", "end_rest"),
        Step("source", "store", is_fair=False),
        Step("source", "go_back", is_fair=False),
    )
    WIRING: ClassVar[dict[str, str]] = {"discovery.source": "source"}

    files: int
    losses: int
    doubles: int
    F: int
    slowest: int

    discovery: RenewedDiscovery = machines(RenewedDiscovery)
    source: HintedSource = machines(HintedSource)
    file: list[HintedFile] = machines(HintedFile)

    @always("T1: a file is taken once at most")
    def is_taken_once(self) -> bool:
        return all(self.file[f].taken <= 1 for f in range(self.files))

    @always("T2: while nothing is under way, timers run to the next listing and the next question")
    def is_timed(self) -> bool:
        return self.discovery.state != RESTING or (
            self.source.is_waiting and self.source.is_resting
        )

    @sometimes("a file is found by its hint")
    def is_found_by_hint(self) -> bool:
        return self.source.has_hinted

    @sometimes("a file without a hint is found while the queue is left alone")
    def is_found_without(self) -> bool:
        return self.discovery.state == LISTING and self.discovery.is_alone

    @leads_to("T3: each file is found", then="knows_all")
    def misses_some(self) -> bool:
        return any(self.file[f].is_there and not self.file[f].is_known for f in range(self.files))

    def knows_all(self) -> bool:
        return not self.misses_some()
