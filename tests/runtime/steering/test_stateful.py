"""Drivers, zombies and updaters in any order, held against a record that knows no machine."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from epochgate.errors import EpochgateError
from epochgate.runtime.entries.stores import DirectoryEntries
from epochgate.runtime.filesystem import LocalFileSystem
from epochgate.runtime.steering import BatchOvertaken, Deciding, effective_from
from epochgate.runtime.testing.faulty_filesystem import Fault, FaultyFileSystem, SimulatedCrash
from tests.runtime.steering.steered import CONTROL, QUERY, Watched, driver, entries_in, update

pytestmark = pytest.mark.fuzz


class SteeredQuery(RuleBasedStateMachine):
    """Spark's part is two numbers: the batch that is planned, and whether it is committed."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.batch, self.is_committed = 0, False
        self.limit, self.updates = 900, 0
        self.seen: dict[int, int] = {}
        self.due: dict[int, int] = {0: 0}
        self.versions: dict[int, int] = {}
        self.told: dict[int, int] = {}
        self.driver: Deciding | None = None

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    def _run(self, batch: int, decide: Any) -> None:
        try:
            decision = decide()
        except BatchOvertaken:
            assert batch < self.batch
            return
        limit = decision.value["limit"]
        assert self.seen.setdefault(batch, limit) == limit
        assert decision.version >= self.due[batch]
        self.versions[batch] = decision.version

    @rule()
    def run_batch(self) -> None:
        """Spark runs the batch that is planned, in the process that lives or in a new one."""
        if self.driver is None:
            self.driver = driver(entries_in(self.folder))
        one = self.driver
        self._run(self.batch, lambda: one.decide(self.batch))

    @precondition(lambda self: self.batch in self.seen)
    @rule()
    def plan_next(self) -> None:
        self.batch += 1
        self.due[self.batch] = self.updates

    @rule()
    def restart(self) -> None:
        self.driver = None

    @rule(at=st.integers(0, 8), when=st.sampled_from(["before", "during", "after"]))
    def crash_in_batch(self, at: int, when: Any) -> None:
        files = FaultyFileSystem(LocalFileSystem(), Fault(at, "crash", when))
        dying = driver(DirectoryEntries(str(self.folder), files))
        with contextlib.suppress(SimulatedCrash):
            self._run(self.batch, lambda: dying.decide(self.batch))
        self.driver = None

    @rule(at=st.integers(0, 8), when=st.sampled_from(["before", "after"]))
    def meet_an_error(self, at: int, when: Any) -> None:
        files = FaultyFileSystem(LocalFileSystem(), Fault(at, "error", when))
        one = driver(DirectoryEntries(str(self.folder), files))
        with contextlib.suppress(EpochgateError):
            self._run(self.batch, lambda: one.decide(self.batch))

    @rule(back=st.integers(0, 3), kind=st.sampled_from(["list", "create", "get"]))
    def zombie_runs_late(self, back: int, kind: str) -> None:
        """A driver is suspended in a batch of before, at some request, and goes on now."""
        batch = max(0, self.batch - back)
        store = Watched(entries_in(self.folder))
        store.before = lambda request, key: None if request != kind else self._update_beside()
        self._run(batch, lambda: driver(store).decide(batch))

    def _update_beside(self) -> None:
        if self.updates < 60:
            self.change(self.updates)

    @rule(limit=st.integers(0, 5))
    def change(self, limit: int) -> None:
        self.updates = update(entries_in(self.folder), limit=limit)
        self.limit = limit

    @rule()
    def ask_since_when(self) -> None:
        for version in range(1, self.updates + 1):
            since = effective_from(entries_in(self.folder), CONTROL, QUERY, version)
            if since is not None:
                assert self.told.setdefault(version, since) == since

    @invariant()
    def what_was_told_is_true(self) -> None:
        for version, since in self.told.items():
            assert all((batch >= since) == (ran >= version) for batch, ran in self.versions.items())


SteeredQuery.TestCase.settings = settings(max_examples=25, stateful_step_count=30, derandomize=True)
TestSteeredQuery = SteeredQuery.TestCase
