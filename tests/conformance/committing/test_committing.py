"""Our committer against recorded traces of Flink's global committer; no JDK is needed."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from epochgate.fsm import machines
from epochgate.models.committer import GlobalCommitter
from epochgate.models.job import Job
from epochgate.runtime.api.sink import Sink
from epochgate.runtime.api.sink_operator import SinkOperator
from tests.conformance.committing.account import NAMES, Account
from tests.conformance.committing.differences import DIFFERENCES
from tests.conformance.committing.schedules import CommonMaker
from tests.conformance.committing.shell import Shell
from tests.conformance.committing.traces import COUNTS, FOLDER, comparison, explained
from tests.conformance.comparison import Comparison
from tests.conformance.differences import Difference
from tests.conformance.traces import read

BYTES_MAX = 150_000
ALIKE_LEAST = 0.8
"""The share of wild schedules in which nothing differs."""


def traces(kind: str, shell: Callable[[], Shell] = Shell) -> Comparison:
    found = comparison()
    for _, commands, flink in read((FOLDER / f"{kind}.txt").read_text(encoding="utf-8")):
        found.add(commands, flink, shell().run(commands))
    return found


def test_an_orderly_job_is_committed_as_by_flink() -> None:
    found = traces("orderly")
    assert found.compared == found.same == COUNTS["orderly"]


def test_what_committers_differ_in_is_listed_and_each_entry_is_met() -> None:
    found = traces("wild")
    assert found.compared == COUNTS["wild"]
    assert not found.unexplained
    assert set(found.explained) == NAMES
    assert found.same >= found.compared * ALIKE_LEAST


@pytest.mark.parametrize("seed", range(300))
def test_a_schedule_of_what_both_show_meets_no_listed_difference(seed: int) -> None:
    commands = CommonMaker(random.Random(seed)).make()
    assert Account().run(commands) == Account(NAMES).run(commands)


def test_the_traces_of_committers_stay_small_enough_to_be_read() -> None:
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < BYTES_MAX


def test_the_list_of_committers_names_every_switch_once() -> None:
    assert sorted(entry.name for entry in DIFFERENCES) == sorted(NAMES)


def test_an_entry_breaks_the_invariant_of_commits_or_nothing() -> None:
    assert [entry.breaks.split(":")[0] for entry in DIFFERENCES] == ["I9"] * 3 + ["nothing"] * 3


def lines(text: str) -> list[str]:
    return text.split(" | ") if text else []


@pytest.mark.parametrize("entry", DIFFERENCES, ids=lambda entry: entry.name)
def test_an_entry_shows_what_both_committers_print(entry: Difference) -> None:
    commands = [command for command, _, _ in entry.transcript]
    flink = [lines(said) for _, said, _ in entry.transcript]
    ours = [lines(said if other is None else other) for _, said, other in entry.transcript]
    assert Shell().run(commands) == ours
    assert Account().run(commands) == flink
    assert explained(commands, flink, ours) == frozenset((entry.name,))


class Impatient(GlobalCommitter):
    """Gives up at the first failure."""

    def may_retry(self) -> bool:
        return False


class Endless(GlobalCommitter):
    """Tries again without a bound."""

    def may_retry(self) -> bool:
        return True


class Skipping(GlobalCommitter):
    """Asks for a commit that covers nothing."""

    def ask(self) -> None:
        self.covered.drain(self.waiting)
        for checkpoint in self.covered.take_all():
            self.covered.push(checkpoint)
            self.asked = checkpoint
        self.sink.commit(self.asked, self.tries)


class Forgetting(SinkOperator):
    """Does not hand over again what an aborted checkpoint had."""

    def prepare_commit(self, checkpoint_id: int) -> list[object]:
        handed_over = super().prepare_commit(checkpoint_id)
        self.notify_checkpoint_complete(checkpoint_id)
        return handed_over


class Repeating(SinkOperator):
    """Hands over again what a completed checkpoint had."""

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        pass


class WithImpatient(Job):
    committer: GlobalCommitter = machines(Impatient)


class WithEndless(Job):
    committer: GlobalCommitter = machines(Endless)


class WithSkipping(Job):
    committer: GlobalCommitter = machines(Skipping)


@pytest.mark.mutants
@pytest.mark.parametrize("system", [WithImpatient, WithEndless, WithSkipping])
def test_a_broken_committer_is_not_explained(system: type[Job]) -> None:
    assert traces("wild", lambda: Shell(system)).unexplained
    assert traces("orderly", lambda: Shell(system)).unexplained


@pytest.mark.mutants
@pytest.mark.parametrize("operator", [Forgetting, Repeating])
def test_a_broken_handing_over_is_not_explained(operator: Callable[[Sink], SinkOperator]) -> None:
    assert traces("wild", lambda: Shell(operator=operator)).unexplained
