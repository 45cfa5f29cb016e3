"""Our committers against recorded traces of Flink's; no JDK is needed."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from epochgate.fsm import machines
from epochgate.models.committable_collector import CommittableCollector
from epochgate.models.committer import GlobalCommitter
from epochgate.models.committing_job import CommittingJob
from epochgate.models.job import Job
from epochgate.models.subtask_committer import SubtaskCommitter
from epochgate.runtime.api.sink import Sink
from epochgate.runtime.api.sink_operator import SinkOperator
from tests.conformance.committing import upstream
from tests.conformance.committing.account import NAMES, Account
from tests.conformance.committing.differences import ALL, DIRECT, UPSTREAM
from tests.conformance.committing.schedules import CommonMaker, Topology, Upstream
from tests.conformance.committing.shell import Shell
from tests.conformance.committing.traces import (
    COUNTS,
    FOLDER,
    NAMES_OF,
    comparison,
    explained,
    file_of,
)
from tests.conformance.committing.upstream import UpstreamAccount
from tests.conformance.comparison import Comparison
from tests.conformance.differences import Difference
from tests.conformance.traces import read

BYTES_MAX = 200_000
ALIKE_LEAST = 0.8
"""The share of wild schedules in which nothing differs."""
TOPOLOGIES: dict[str, Callable[..., Account | UpstreamAccount]] = {
    "direct": Account,
    "upstream": UpstreamAccount,
}


def traces(kind: str, shell: Callable[[], Shell] = Shell) -> Comparison:
    found = comparison()
    for _, commands, flink in read(file_of(kind).read_text(encoding="utf-8")):
        found.add(commands, flink, shell().run(commands))
    return found


@pytest.mark.parametrize("kind", [kind for kind in COUNTS if kind not in NAMES_OF])
def test_an_orderly_job_is_committed_as_by_flink(kind: str) -> None:
    found = traces(kind)
    assert found.compared == found.same == COUNTS[kind]


@pytest.mark.parametrize("kind", NAMES_OF)
def test_what_committers_differ_in_is_listed_and_each_entry_is_met(kind: str) -> None:
    found = traces(kind)
    assert found.compared == COUNTS[kind]
    assert not found.unexplained
    assert set(found.explained) == NAMES_OF[kind]
    assert found.same >= found.compared * ALIKE_LEAST


@pytest.mark.parametrize("kind", COUNTS)
def test_the_accounts_print_what_flink_printed(kind: str) -> None:
    account = UpstreamAccount if kind.startswith("upstream") else Account
    for _, commands, flink in read(file_of(kind).read_text(encoding="utf-8")):
        assert account().run(commands) == flink


@pytest.mark.parametrize("seed", range(150))
@pytest.mark.parametrize("name", TOPOLOGIES)
def test_a_schedule_of_what_both_show_meets_no_listed_difference(name: str, seed: int) -> None:
    of_upstream = name == "upstream"
    chance = random.Random(seed)
    commands = CommonMaker(chance, Upstream if of_upstream else Topology).make()
    ours = UpstreamAccount(upstream.NAMES) if of_upstream else Account(NAMES)
    assert TOPOLOGIES[name]().run(commands) == ours.run(commands)


def test_the_traces_of_committers_stay_small_enough_to_be_read() -> None:
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < BYTES_MAX


def test_the_lists_of_committers_name_every_switch_once() -> None:
    assert sorted(entry.name for entry in DIRECT) == sorted(NAMES)
    assert sorted(entry.name for entry in UPSTREAM) == sorted(upstream.NAMES)


def test_an_entry_is_a_hazard_that_breaks_the_invariant_of_commits_or_breaks_nothing() -> None:
    for _, entry in ALL:
        assert entry.breaks.split(":")[0] == ("nothing" if entry.hazard == "none" else "I9")


def lines(text: str) -> list[str]:
    return text.split(" | ") if text else []


@pytest.mark.parametrize(("name", "entry"), ALL, ids=lambda it: getattr(it, "name", it))
def test_an_entry_shows_what_both_committers_print(name: str, entry: Difference) -> None:
    commands = [command for command, _, _ in entry.transcript]
    flink = [lines(said) for _, said, _ in entry.transcript]
    ours = [lines(said if other is None else other) for _, said, other in entry.transcript]
    assert Shell().run(commands) == ours
    assert TOPOLOGIES[name]().run(commands) == flink
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


class Losing(GlobalCommitter):
    """Does not store what waits for the commit under way."""

    def carry_ledger(self, checkpoint: int) -> None:
        for earlier in self.covered.take_all():
            self.covered.push(earlier)
            self.sink.carry(checkpoint, earlier, self.tries)


class ImpatientInTasks(SubtaskCommitter):
    """Gives up at the first failure."""

    def may_retry(self) -> bool:
        return False


class EndlessInTasks(SubtaskCommitter):
    """Tries again without a bound."""

    def may_retry(self) -> bool:
        return True


class Hasty(CommittableCollector):
    """Hands a checkpoint on with the first part of it."""

    def makes_whole(self, subtask: int, checkpoint: int) -> bool:
        return True


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


class WithLosing(Job):
    committer: GlobalCommitter = machines(Losing)


class WithImpatientInTasks(CommittingJob):
    subtask_committer: list[SubtaskCommitter] = machines(ImpatientInTasks)


class WithEndlessInTasks(CommittingJob):
    subtask_committer: list[SubtaskCommitter] = machines(EndlessInTasks)


class WithHasty(CommittingJob):
    committable_collector: CommittableCollector = machines(Hasty)


@pytest.mark.mutants
@pytest.mark.parametrize("system", [WithImpatient, WithEndless, WithSkipping])
def test_a_broken_committer_is_not_explained(system: type[Job]) -> None:
    assert traces("wild", lambda: Shell(system)).unexplained
    assert traces("orderly", lambda: Shell(system)).unexplained


@pytest.mark.mutants
def test_a_committer_that_forgets_what_waits_is_not_explained() -> None:
    assert traces("wild", lambda: Shell(WithLosing)).unexplained


@pytest.mark.mutants
@pytest.mark.parametrize("system", [WithImpatientInTasks, WithEndlessInTasks, WithHasty])
def test_a_broken_committer_in_the_tasks_is_not_explained(system: type[Job]) -> None:
    assert traces("upstream wild", lambda: Shell(system)).unexplained
    assert traces("upstream orderly", lambda: Shell(system)).unexplained


@pytest.mark.mutants
@pytest.mark.parametrize("kind", NAMES_OF)
@pytest.mark.parametrize("operator", [Forgetting, Repeating])
def test_a_broken_handing_over_is_not_explained(
    operator: Callable[[Sink], SinkOperator], kind: str
) -> None:
    assert traces(kind, lambda: Shell(operator=operator)).unexplained
