"""The claims of a test on a job, in three words, and what a broken claim is.

`always` is looked at after every step, `eventually` once the faults have ended, `sometimes` over
all runs of a test: a claim that was never tried, and something that never happened, make a test
vacuous. An error that user code raises breaks a claim that every test makes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Literal

from epochgate.errors import EpochgateError
from epochgate.runtime.testing.worlds.differences import Sides, sides_of_claim

Kind = Literal["always", "eventually", "assertion", "error", "rest", "escape", "end"]

HEADINGS: dict[str, str] = {
    "always": "a claim of `always` does not hold",
    "eventually": "a claim of `eventually` does not come true",
    "assertion": "an assertion of the test failed",
    "error": "user code raised an error",
    "rest": "the job does not come to rest after the last fault",
    "escape": "user code left the simulation",
    "end": "the job failed permanently",
}


@dataclass(frozen=True)
class Place:
    """A line of the user's."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.shown}:{self.line}"

    @property
    def shown(self) -> Path:
        """The file, from the folder in which this runs if it is below."""
        path = Path(self.file)
        return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


class ClaimBroken(EpochgateError):
    """A run has shown that a claim does not hold; `kind` and `claim` tell failures apart."""

    def __init__(
        self, kind: Kind, claim: str, detail: str = "", place: Place | None = None
    ) -> None:
        super().__init__(f"{HEADINGS[kind]}: {claim}" + (f"\n{detail}" if detail else ""))
        self.kind, self.claim, self.detail, self.place = kind, claim, detail, place
        self.sides: Sides | None = None
        """The sides of the comparison that it comes to."""

    @property
    def is_like(self) -> tuple[str, str]:
        """Equal for two failures that show the same."""
        return self.kind, str(self.place) if self.kind == "assertion" else self.claim


@dataclass(frozen=True)
class Claim:
    """A sentence, what decides it, and where it was made; `shows` makes what a report adds."""

    text: str
    holds: Callable[[], Any]
    place: Place
    within_s: float = 0.0
    shows: Callable[[], Any] | None = None

    def broken(self, kind: Kind, detail: str = "") -> ClaimBroken:
        """The error that says so, with the values behind it."""
        shown = "" if self.shows is None else _shown(self.shows)
        told = "\n".join(text for text in (detail, shown) if text)
        broken = ClaimBroken(kind, self.text, told, self.place)
        broken.sides = None if shown else sides_of_claim(self.holds)
        return broken


def _shown(shows: Callable[[], Any]) -> str:
    try:
        return str(shows())
    except Exception as error:  # noqa: BLE001  # the claim that is broken is the news
        return f"(`shows` raised {error!r})"


def caller() -> Place:
    """The user's line that is being run."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").startswith("epochgate."):
        frame = frame.f_back
    assert frame is not None
    return Place(frame.f_code.co_filename, frame.f_lineno)


class Claims:
    """The claims of one run, and which of them were tried."""

    def __init__(self) -> None:
        self.always: dict[str, Claim] = {}
        self.eventually: dict[str, Claim] = {}
        self.sometimes: dict[str, Claim | None] = {}
        self.reached: set[str] = set()
        """The sentences of `sometimes` that came true."""

    def check(self) -> None:
        """After a step; raises ClaimBroken."""
        self.look()
        for claim in self.always.values():
            if not claim.holds():
                raise claim.broken("always")

    def look(self) -> None:
        """See which sentences of `sometimes` are true now."""
        for text, claim in self.sometimes.items():
            if claim is not None and text not in self.reached and claim.holds():
                self.reached.add(text)
