"""Inductive checks: what the solver says is what all typed states, one by one, say."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from epochgate.cli import main
from epochgate.fsm import STAY, Row, machines
from epochgate.fsm.checker import Result, Verdict, check, check_inductive
from epochgate.fsm.checker.compiler.ir import Program
from epochgate.fsm.checker.compiler.layout import FifoCells, Layout
from epochgate.fsm.checker.compiler.lowering import Lowering
from epochgate.fsm.checker.compiler.python_target import PythonTarget, StepFault
from epochgate.fsm.checker.induction import NoInvariant
from epochgate.fsm.checker.report import report
from epochgate.fsm.closed import ClosedSystem, always
from epochgate.models.closed.setting import ChangedSetting
from epochgate.models.studies.catalogue import PROOFS
from epochgate.models.studies.inductive import AnyResidents, AnyWindow
from epochgate.models.studies.inductive_gateway import AnyGateway, NarrowGateway
from tests.checker.arithmetic import Dividing
from tests.checker.choices import CheapMarket
from tests.checker.dice import FairThrow, Throw
from tests.checker.lighting import BadSwitch, Lighting
from tests.checker.random_systems import random_system
from tests.checker.test_each_member import Office

Words = tuple[int, ...]
SEEDS = [*range(3), *(pytest.param(seed, marks=pytest.mark.extended) for seed in range(3, 40))]
PAIRS = 3


def typed_states(layout: Layout) -> Iterator[Words]:
    """Every typed state, one after the other."""
    parts: list[list[dict[str, int]]] = []
    in_channels = set()
    for channel in layout.channels():
        in_channels |= {channel.length, channel.items}
        parts.append([*_contents(channel)])
    for name, cell in layout.cells.items():
        if name not in in_channels:
            parts.append([{name: bits} for bits in range(cell.span + 1)])
    for chosen in itertools.product(*parts):
        yield layout.pack({name: bits for part in chosen for name, bits in part.items()})


def _contents(channel: FifoCells) -> Iterator[dict[str, int]]:
    for length in range(channel.capacity + 1):
        for items in itertools.product(range(channel.item_maximum + 1), repeat=length):
            packed = sum(item << at * channel.item_bits for at, item in enumerate(items))
            yield {channel.length: length, channel.items: packed}


class Exhaustive:
    """The steps of a system from each of its typed states, in plain Python."""

    def __init__(self, program: Program, layout: Layout) -> None:
        self.program, self.target = program, PythonTarget(program)
        self.states = [*typed_states(layout)]
        self.count = layout.typed_states()
        self.steps: dict[Words, list[Words]] = {}
        self.faults: dict[Words, set[int]] = {}
        self.covers: dict[Words, set[int]] = {}
        for state in self.states:
            self._look(state)

    def _look(self, state: Words) -> None:
        self.steps[state], self.faults[state], self.covers[state] = [], set(), set()
        for number in range(len(self.program.steps)):
            self.target.covered.clear()
            try:
                if number in self.target.enabled(state):
                    for _, after in self.target.ways(state, number):
                        self.steps[state].append(after)
                        self.covers[state] |= self.target.covered
            except StepFault as fault:
                self.faults[state].add(fault.number)

    def holds(self, name: str, state: Words) -> bool:
        try:
            return self.target.holds(name, state)
        except StepFault:
            return False

    def is_inductive(self, claims: list[str], depth: int) -> bool:
        holding = [s for s in self.states if all(self.holds(c, s) for c in claims)]
        good = set(holding)
        level = {self.program.initial}
        for _ in range(depth):
            if not level <= good:
                return False
            level = {after for state in level for after in self.steps[state]}
        paths: list[tuple[Words, ...]] = [(state,) for state in holding]
        for _ in range(depth - 1):
            paths = [
                (*path, after)
                for path in paths
                for after in {*self.steps[path[-1]]}
                if after in good and after not in path
            ]
        return all(after in good for path in paths for after in self.steps[path[-1]])


def faults_told(result: Result, program: Program) -> set[int]:
    """The faults that a result names as not excluded."""
    told = [note.partition("may fail: ")[2] for note in result.notes]
    return {number for number, fault in enumerate(program.faults) if fault.message in told}


@pytest.mark.parametrize("seed", SEEDS)
def test_the_solver_says_what_all_typed_states_say(seed: int, tmp_path: Path) -> None:
    system = random_system(seed, tmp_path)
    lowering = Lowering(system())
    program = lowering.program()
    exhaustive = Exhaustive(program, lowering.layout)
    assert len({*exhaustive.states}) == exhaustive.count == 2 * 5 * 7 * 2 * 31
    draw = random.Random(seed)
    names = [*program.properties]
    reachable = {p.name for p in check(system, engine="python").properties}
    assert reachable == {*names}
    for _ in range(PAIRS):
        claims = draw.sample(names, draw.randint(1, 2))
        result = check_inductive(system, claims[:1], lemmas=claims[1:])
        is_shown = result.counterexample is None
        assert result.verdict is not Verdict.BOUNDED
        assert is_shown == exhaustive.is_inductive(claims, 1), claims
        good = [s for s in exhaustive.states if all(exhaustive.holds(c, s) for c in claims)]
        if program.initial in good:
            faults = set().union(*(exhaustive.faults[state] for state in good))
            messages = {program.faults[number].message for number in faults}
            told = {program.faults[number].message for number in faults_told(result, program)}
            assert told == messages
            covered = set().union(*(exhaustive.covers[state] for state in good))
            rows = {
                row.because + row.trigger + row.source for row in result.coverage if row.is_taken
            }
            places = {number: row for row in program.rows for _, number in row.places}
            taken = {places[number] for number in covered}
            assert rows == {row.because + row.trigger + row.source for row in taken}


class Sharing(Dividing):
    @always("a share is at most 2")
    def is_at_most_2(self) -> bool:
        return self.divider.share <= 2

    @always("a share is at most 1")
    def is_at_most_1(self) -> bool:
        return self.divider.share <= 1

    @always("a rest is not below")
    def is_not_below(self) -> bool:
        return self.divider.share % -3 + self.divider.share // -2 <= 0


@pytest.mark.parametrize(
    "system",
    [CheapMarket(room=1, paid_max=9), Sharing(), Office(workers=2)],
    ids=lambda s: type(s).__name__,
)
def test_it_says_so_of_choices_of_numbers_below_zero_and_of_members(system: ClosedSystem) -> None:
    lowering = Lowering(system)
    program = lowering.program()
    exhaustive = Exhaustive(program, lowering.layout)
    for claim in (p for p in system.properties() if p.kind == "always"):
        names = [p.name for p in system.claims() if p.name.partition("[")[0] == claim.name]
        result = check_inductive(system, claim.name)
        assert (result.counterexample is None) == exhaustive.is_inductive(names, 1), claim


@pytest.mark.parametrize("seed", SEEDS)
def test_with_a_depth_it_says_what_all_ways_through_typed_states_say(
    seed: int, tmp_path: Path
) -> None:
    system = random_system(seed, tmp_path)
    lowering = Lowering(system())
    program = lowering.program()
    exhaustive = Exhaustive(program, lowering.layout)
    for name in random.Random(seed).sample([*program.properties], 2):
        result = check_inductive(system, name, depth=2)
        assert (result.counterexample is None) == exhaustive.is_inductive([name], 2), name


def verdicts(result: Result) -> dict[str, Verdict]:
    return {p.name: p.verdict for p in result.properties}


def test_a_claim_that_every_step_preserves_is_shown() -> None:
    result = check_inductive(Lighting, ["is_alike", "is_even"])
    assert (result.verdict, result.exit_code) == (Verdict.PASS, 0)
    assert verdicts(result) == {"is_alike": Verdict.PASS, "is_even": Verdict.PASS}


def test_a_true_claim_that_steps_do_not_preserve_is_refused_with_its_state() -> None:
    result = check_inductive(Lighting, "is_not_5")
    found = result.counterexample
    assert (result.verdict, result.exit_code) == (Verdict.FAIL, 1)
    assert found is not None
    assert found.kind == "inductive"
    assert found.initial["lamps"]["number"] == 3
    assert [step.label for step in found.steps] == ["lamps.count"]
    text = report("lighting", result)
    assert "not preserved by lamps.count: the count is never 5" in text
    assert "this state need not be reachable" in text
    assert "         lamps.number: 3\n    1. lamps.count: by two" in text
    assert "left" not in text, "what is as at the start is not told"


def test_a_lemma_is_shown_with_the_claim_and_never_only_assumed() -> None:
    helped = check_inductive(Lighting, "is_not_5", lemmas=["is_even"])
    assert verdicts(helped) == {"is_not_5": Verdict.PASS, "is_even": Verdict.PASS}
    assert [p.kind for p in helped.properties] == ["inductive", "lemma"]
    untrue = check_inductive(Lighting, "is_not_5", lemmas=["is_low"])
    assert untrue.verdict is Verdict.FAIL
    assert verdicts(untrue)["is_low"] is Verdict.FAIL
    # Each of these two would follow from the other one, and neither from a state before.
    circular = check_inductive(Lighting, "is_not_5", lemmas=["is_not_1"])
    assert circular.verdict is Verdict.FAIL


def test_a_claim_that_no_typed_state_satisfies_is_told() -> None:
    result = check_inductive(Lighting, "is_nothing")
    assert result.verdict is Verdict.FAIL
    assert "no typed state at all satisfies the claims" in report("lighting", result)
    assert result.counterexample is not None
    assert (result.counterexample.kind, result.counterexample.steps) == ("always", ())


def test_a_claim_that_the_ranges_say_already_is_told() -> None:
    result = check_inductive(Lighting, "is_in_range")
    assert (result.verdict, result.exit_code) == (Verdict.VACUOUS, 3)
    assert "the ranges say it" in result.properties[0].detail


def test_a_claim_whose_premise_never_holds_is_told() -> None:
    alone = check_inductive(Lighting, "is_lit", lemmas=["is_even"])
    assert verdicts(alone)["is_lit"] is Verdict.VACUOUS
    assert "is_odd" in alone.properties[0].detail


def test_a_greater_depth_shows_more() -> None:
    assert check_inductive(Lighting, "is_not_5", depth=2).verdict is Verdict.FAIL
    # 5 comes after 3, that after 1, that after 7, and that after 5, which is excluded.
    result = check_inductive(Lighting, "is_not_5", depth=7)
    assert result.verdict is Verdict.PASS
    shown = check_inductive(Lighting, "is_not_5", depth=2).counterexample
    assert shown is not None
    assert len(shown.steps) == 2


def test_what_fails_at_the_start_is_found_there() -> None:
    result = check_inductive(Lighting, "is_low", depth=5)
    assert result.counterexample is not None
    assert [step.label for step in result.counterexample.steps] == ["lamps.count"] * 2
    assert result.counterexample.kind == "always"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("has_light", "claimed as sometimes"),
        ("is_more", "takes nothing"),
        ("most", "no claim 'most'"),
        ("unknown", "is_alike, is_even, is_not_5"),
    ],
)
def test_what_is_no_invariant_is_refused(name: str, told: str) -> None:
    with pytest.raises(NoInvariant, match=told):
        check_inductive(Lighting, name)


def test_a_step_that_fails_is_told_and_counts_if_that_is_asked_for() -> None:
    told = check_inductive(BadSwitch, "is_even")
    assert told.verdict is Verdict.PASS
    assert any("lamps.switch may fail: lamps: it is never bright" in note for note in told.notes)
    strict = check_inductive(BadSwitch, "is_even", without_faults=True)
    assert strict.verdict is Verdict.FAIL
    assert strict.counterexample is not None
    assert "not excluded: lamps: it is never bright" in strict.counterexample.message
    assert strict.counterexample.initial["lamps"]["number"] == 6
    helped = check_inductive(BadSwitch, "is_even", lemmas=["is_dark"], without_faults=True)
    assert (helped.verdict, helped.notes) == (Verdict.FAIL, [])


@pytest.mark.parametrize("depth", [1, 2])
def test_a_way_that_fails_hinders_no_other_that_breaks_a_claim(depth: int) -> None:
    result = check_inductive(Throw, "is_not_3", depth=depth)
    found = result.counterexample
    assert result.verdict is Verdict.FAIL
    assert found is not None
    assert found.kind == ("inductive" if depth == 1 else "always")
    assert [step.label for step in found.steps] == ["die.throw(3)"]


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize(
    ("system", "kind", "told", "taken"),
    [
        (Throw, "division", "`6 // self.shown` divides by 0", []),
        (FairThrow, "assertion", "1 is never thrown", ["die.throw(1)"]),
    ],
)
def test_a_fault_of_a_guard_or_a_step_counts_at_the_start_and_later(
    system: type[ClosedSystem], kind: str, told: str, taken: list[str], depth: int
) -> None:
    result = check_inductive(system, "is_small", depth=depth, without_faults=True)
    found = result.counterexample
    assert result.verdict is Verdict.FAIL
    assert found is not None
    assert told in found.message
    assert found.kind == ("inductive" if depth == 1 else kind)
    assert [step.label for step in found.steps] == taken


def test_a_budget_of_time_ends_the_check() -> None:
    result = check_inductive(AnyGateway, "all", max_seconds=0.01)
    assert (result.verdict, result.exit_code) == (Verdict.BOUNDED, 4)
    assert "budget" in result.stopped


SMALL_PROOFS: tuple[ClosedSystem, ...] = (
    AnyGateway(attempts=63, checkpoints=63, numbers=63, held_max=2),
    AnyWindow(event_bytes=63, unconfirmed_bytes_max=15, bytes=255),
    AnyResidents(attempts=63, F=63),
)


@pytest.mark.parametrize("system", SMALL_PROOFS, ids=lambda s: type(s).__name__)
def test_the_protocols_invariants_are_shown_with_what_they_need(system: ClosedSystem) -> None:
    result = check_inductive(system, "all", without_faults=True)
    assert result.verdict is Verdict.PASS, report("proof", result)
    assert len(result.properties) > 3


@pytest.mark.extended
@pytest.mark.parametrize("name", PROOFS)
def test_they_are_shown_for_a_million_of_everything(name: str) -> None:
    result = check_inductive(PROOFS[name], "all", without_faults=True)
    assert result.verdict is Verdict.PASS, report(name, result)


@pytest.mark.parametrize(
    "system",
    [
        AnyGateway(attempts=1, checkpoints=2, numbers=4, held_max=1),
        AnyWindow(event_bytes=3, unconfirmed_bytes_max=2, bytes=5),
        AnyResidents(attempts=2, F=3),
    ],
    ids=lambda s: type(s).__name__,
)
def test_what_is_shown_holds_in_a_search_of_few(system: ClosedSystem) -> None:
    result = check(system)
    assert result.verdict in (Verdict.PASS, Verdict.VACUOUS)
    assert {p.verdict for p in result.properties if p.kind == "always"} == {Verdict.PASS}


class LeakingGateway(NarrowGateway):
    """Puts events on the wire while it is closed."""

    ROWS = tuple(
        Row("send", row.source, STAY, "is_bound and reaches_attempt", "put_on_wire", "a leak")
        if row.actions == ("hold",)
        else row
        for row in NarrowGateway.ROWS
    )


class LeakingJob(AnyGateway):
    CONSTANTS: ClassVar[dict[str, int]] = {
        **AnyGateway.CONSTANTS,
        **dict.fromkeys(("attempts", "checkpoints", "numbers"), 63),
    }
    gateway: dict[tuple[int, int], LeakingGateway] = machines(LeakingGateway)  # type: ignore[assignment]


def test_a_gateway_that_leaks_is_not_shown_to_hold_back() -> None:
    result = check_inductive(LeakingJob, "all")
    assert verdicts(result)["holds_back"] is Verdict.FAIL
    assert result.counterexample is not None
    assert result.counterexample.steps[-1].label == "job[0][0].send"


def test_a_claim_of_the_protocol_that_needs_more_is_refused_with_its_state(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["check", "setting", "--inductive", "keeps_what_was_acknowledged"]) == 1
    shown = capsys.readouterr().out
    assert "not preserved by job.store: I12" in shown
    assert "client.acknowledged: 1" in shown
    assert check(ChangedSetting(E=2, F=1)).verdict is not Verdict.FAIL


def test_the_command_shows_claims_and_refuses_what_does_not_go_together(
    capsys: pytest.CaptureFixture[str],
) -> None:
    system = "tests.checker.lighting:Lighting"
    assert main(["check", system, "--inductive", "is_not_5", "--with", "is_even"]) == 0
    assert "PASS    lemma      the count is even" in capsys.readouterr().out
    assert main(["check", system, "--inductive", "is_not_5", "--depth", "7"]) == 0
    capsys.readouterr()
    for wrong in (["--with", "is_even"], ["--depth", "2"], ["--without-faults"]):
        assert main(["check", system, *wrong]) == 2
        assert wrong[0] in capsys.readouterr().err
    for wrong in (["--simulate", "9"], ["--workers", "2"], ["--max-states", "3"]):
        assert main(["check", system, "--inductive", "is_even", *wrong]) == 2
        assert wrong[0] in capsys.readouterr().err
    assert main(["check", system, "valve", "--inductive", "is_even"]) == 2
