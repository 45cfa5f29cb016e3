"""What became of a mutant, and whether that is what the reasons say."""

from __future__ import annotations

from dataclasses import dataclass

from epochgate.models import untaken
from tests.mutation.checking import Found, exercising, found_by_the_checker
from tests.mutation.mutants import Mutant
from tests.mutation.reasons import (
    EQUIVALENT,
    UNSEEN_BY_THE_CHECKER,
    UNSEEN_BY_THE_RUNTIME,
)
from tests.mutation.running import Seen, found_by_the_runtime

PRECONDITION = "it only allows what would be an error, and the right machine never comes to that"
LISTS = {
    (False, False): ("EQUIVALENT", EQUIVALENT),
    (False, True): ("UNSEEN_BY_THE_CHECKER", UNSEEN_BY_THE_CHECKER),
    (True, False): ("UNSEEN_BY_THE_RUNTIME", UNSEEN_BY_THE_RUNTIME),
}
"""By whom a mutant is found, checker and runtime -> the list in which the reason has to be."""


@dataclass(frozen=True)
class Outcome:
    """Who has found a mutant: its declaration, or checker and runtime."""

    mutant: Mutant
    refusal: str
    unreached: str
    """Why no closed system comes to where the mutant differs; empty if one does."""
    found: Found | None
    seen: Seen | None

    @property
    def surprise(self) -> str:
        """What the reasons do not say; empty if they are right."""
        name = self.mutant.name
        stands = [where for where, reasons in LISTS.values() if name in reasons]
        belongs = [LISTS[self.by_whom][0]] if self.by_whom in LISTS else []
        if stands == belongs:
            return ""
        return f"{name}: is in {stands} and belongs to {belongs}; {self.account}"

    @property
    def by_whom(self) -> tuple[bool, bool]:
        """Whether the checker and the runtime have found it, or need not."""
        if self.refusal:
            return True, True
        # Where no closed system gets, the runtime has to find it alone.
        is_found = self.found is not None or bool(self.unreached and self.seen)
        return is_found, self.seen is not None

    @property
    def account(self) -> str:
        """Who has found what, in a line."""
        if self.refusal:
            return f"declaration: {self.refusal}"
        checker = self.found or self.unreached or "survives"
        return f"checker: {checker}; runtime: {self.seen or 'survives'}"


def judge(mutant: Mutant) -> Outcome:
    """Break one thing, and look who finds it."""
    if refusal := mutant.refusal:
        return Outcome(mutant, refusal, "", None, None)
    unreached = "" if exercising(mutant) else why_unreached(mutant)
    found = found_by_the_checker(mutant)
    return Outcome(mutant, "", unreached, found, found_by_the_runtime(mutant, found))


def why_unreached(mutant: Mutant) -> str:
    """The reasons of the rows that no closed system takes. KeyError for a row without one."""
    if not mutant.affected:
        return PRECONDITION
    names = {f"{mutant.machine}.{row.trigger}: {row.because}" for row in mutant.affected}
    return "; ".join(sorted({untaken.NOWHERE[name] for name in names}))
