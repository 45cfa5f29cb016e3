"""Lets saves and commits of one ingestion hang, as those to a store whose server is silent.

Decides nothing: `Chaos` says when. A call hangs before it does anything, or before it answers.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from epochgate.spark.ingest.plan import IngestPlan


class Hanging:
    """Saves and commits of `plan` hang from `begin` until `end`."""

    def __init__(self, plan: IngestPlan) -> None:
        self._is_free = threading.Event()
        self._is_free.set()
        # The objects stay what they are, for those who ask of what class they are.
        store: Any = plan.store
        store.save = self._around(store.save)
        committer: Any = plan.job_committer
        committer.commit = self._around(committer.commit)

    def begin(self) -> None:
        """Let each call hang that is made or under way."""
        self._is_free.clear()

    def end(self) -> None:
        """Let the calls go on."""
        self._is_free.set()

    def _around(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def hang(*arguments: Any) -> Any:
            self._is_free.wait()
            answer = call(*arguments)
            self._is_free.wait()
            return answer

        return hang
