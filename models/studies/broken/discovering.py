"""Broken variants of the looks for new files: what happens without one of the rules of section 16
in docs/protocol.md.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import STAY, Row, machines
from epochgate.models.closed.discovering import FoundFiles
from epochgate.models.closed.surroundings.discovering import HintedSource, RenewedDiscovery
from epochgate.models.discovery import CONFIRMING, HEARING, LISTING, LOOKING, RESTING


class Trusting(RenewedDiscovery):
    """Puts the listing off for as long as the queue is heard."""

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *(row for row in RenewedDiscovery.ROWS if row.trigger != "due"),
        Row("due", RESTING, LISTING, None,
            "ask_list",              "the queue is left alone"),
        Row("due", (HEARING, LOOKING, CONFIRMING), STAY, None,
            "ask_wait",              "the queue tells of each file"),
    )
    # fmt: on


class Unlisted(FoundFiles):
    """Hints take the place of the listing: a file whose hint is lost is never found."""

    discovery: RenewedDiscovery = machines(Trusting)


class Hasty(RenewedDiscovery):
    """Tells the queue that hints are done with as soon as they are heard."""

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *(row for row in RenewedDiscovery.ROWS if row.trigger not in ("heard", "looked")),
        Row("heard",  HEARING, CONFIRMING, None,
            "note_answer, ask_confirm", "the hints are here"),
        Row("looked", LOOKING, HEARING,    None,
            "take_found, ask_hear",     "the enumerator has the files"),
    )
    # fmt: on


class ConfirmedUnseen(FoundFiles):
    """A hint is done with before its file is known: a failure between finds it late."""

    discovery: RenewedDiscovery = machines(Hasty)


class TakingEach(HintedSource):
    """Takes what a look sees, known or not."""

    def take_found(self) -> None:
        for f in range(self.system.files):
            if self.system.file[f].is_seen:
                self.take(f)
            self.system.file[f].is_seen = False


class TakenAgain(FoundFiles):
    """A hint is taken for a file: one that comes twice doubles its rows."""

    source: HintedSource = machines(TakingEach)


class Waiting(RenewedDiscovery):
    """Waits for the queue before it lists, also when that fails."""

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *(row for row in RenewedDiscovery.ROWS if row.trigger != "failed"),
        Row("failed", (HEARING, CONFIRMING), RESTING, None,
            "leave_alone", "the queue may be there again later"),
    )
    # fmt: on


class WaitsForQueue(FoundFiles):
    """The listing that is due waits until a queue that fails is there again."""

    discovery: RenewedDiscovery = machines(Waiting)
