"""The choices of a test run's command line for its simulations, and what they came to.

The pytest plugin and `epochgate fuzz` set it, and `@simulate` reads it; without either, each test
runs as it says.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from epochgate.runtime.testing.worlds.searching import Found


@dataclass
class Chosen:
    """One choice for all simulations of a process."""

    seed: int | None = None
    """Run this seed alone."""
    token: str | None = None
    """Run this schedule alone."""
    first_seed: int = 0
    """The seed of the first run: the same in each session, so that a result repeats."""
    effort: float = 1.0
    """How many runs for each that a test says."""
    is_whole: bool = False
    """Whether reports show the whole schedule."""
    found: dict[str, Found] = field(default_factory=dict)
    """What each test came to, by its name."""

    def note(self, name: str, found: Found) -> None:
        """Keep the outcome of a test."""
        self.found[name] = found


CHOSEN = Chosen()
