"""An action: a step of the closed job as the production runtime takes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from epochgate.runtime.testing.playing.scripted import ScriptedJob


@dataclass(frozen=True)
class Action:
    """One step's counterpart; the callables take the job and the instance's index.

    `is_failure` steps spend one of the `F` failures that the closed job allows.
    """

    do: Callable[..., None]
    is_there: Callable[..., Any]
    else_: str
    bound: Callable[..., bool] | None = None
    is_failure: bool = False

    def is_possible(self, job: ScriptedJob, *index: int) -> bool:
        """Return whether it can happen now, and the closed job would let it."""
        if self.is_failure and job.failures >= job.constants["F"]:
            return False
        is_within = self.bound is None or self.bound(job, *index)
        return is_within and bool(self.is_there(job, *index))

    def begin(self, job: ScriptedJob, *index: int) -> None:
        """Let it happen; what follows from it waits in the job's queue."""
        job.failures += self.is_failure
        self.do(job, *index)
        job.note(partial(self.do, job, *index))

    def happen(self, job: ScriptedJob, *index: int) -> None:
        """Let it happen, and what follows from it at once."""
        self.begin(job, *index)
        job.settle()
