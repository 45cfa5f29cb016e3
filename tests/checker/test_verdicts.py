"""A verdict says what was shown, and each has an exit code of its own."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from epochgate.fsm.checker import Verdict, budget, check
from epochgate.fsm.checker.asserting import assert_passes
from epochgate.fsm.checker.checking import CannotCheck
from epochgate.fsm.checker.engines.choice import EngineUnavailable
from epochgate.fsm.closed import ConstantRefused
from epochgate.models.studies.reference import Reference
from tests.checker import small_systems as small


def test_a_claim_that_holds_and_is_exercised_passes() -> None:
    result = assert_passes(small.House)
    assert (result.exit_code, [p.verdict for p in result.properties]) == (0, [Verdict.PASS] * 2)
    assert not result.untaken


@pytest.mark.parametrize("system", [small.NeverThere, small.Unpremised])
def test_a_claim_about_what_never_happens_is_vacuous(system: type[small.Counting]) -> None:
    result = check(system)
    assert (result.verdict, result.exit_code) == (Verdict.VACUOUS, 3)


def test_a_row_that_no_step_takes_makes_a_check_vacuous() -> None:
    result = check(type("Jam", (small.Deadlocked,), {"may_end": None, "has_stopped": None}))
    assert result.verdict is Verdict.VACUOUS
    assert [row.trigger for row in result.untaken] == ["stop"]


def test_a_row_may_be_excused_by_the_system() -> None:
    members = {"may_end": None, "has_stopped": None, "UNTAKEN": {"counter.stop": "it is jammed"}}
    assert check(type("Excused", (small.Deadlocked,), members)).verdict is Verdict.PASS


def test_states_without_steps_are_reported_apart() -> None:
    assert check(small.Counting).terminal_states == 1
    assert check(small.House).terminal_states == 0


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"max_states": 5_000}, "states"),
        ({"max_memory": 2 << 20}, "memory"),
        ({"max_seconds": 0.0}, "seconds"),
        ({"max_depth": 6}, "depth"),
    ],
)
@pytest.mark.parametrize("engine", ["llvm", "python"])
def test_a_search_stops_cleanly_when_a_budget_is_used_up(
    engine: str, options: dict[str, Any], reason: str
) -> None:
    result = check(Reference(), engine=engine, **options)
    assert (result.verdict, result.exit_code) == (Verdict.BOUNDED, 4)
    assert reason in result.stopped
    assert 0 < result.states < 120_524


def test_a_table_that_cannot_grow_is_filled_before_the_search_stops() -> None:
    result = check(Reference(), max_memory=2_000_000)
    assert result.verdict is Verdict.BOUNDED
    assert 80_000 < result.states < 120_524


def test_within_a_bounded_depth_there_are_the_states_of_that_depth() -> None:
    assert check(Reference(), max_depth=6).depth == 6


def test_progress_is_reported() -> None:
    reports: list[Any] = []
    check(Reference(N=1, C=2, K=2, E=1, F=1), engine="interpreted", progress=reports.append)
    assert all(report.states > 0 and report.memory_bytes > 0 for report in reports)


def test_progress_tells_how_far_the_memory_reaches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "REPORT_EVERY_S", 0.0)
    reports: list[Any] = []
    check(Reference(), max_memory=1 << 30, progress=reports.append)
    last = reports[-1]
    assert last.bytes_per_state == last.memory_bytes / last.states
    assert last.room_for == pytest.approx((1 << 30) / last.bytes_per_state, abs=1)
    assert last.growth < 1 < max(report.growth for report in reports)


@pytest.mark.parametrize(
    ("constants", "message"),
    [
        ({"wire": 9}, "follows from the others"),
        ({"M": 1}, "has no constant 'M'"),
        ({"N": 0}, "at least one subtask"),
        ({"K": -1}, "at least 0"),
    ],
)
def test_a_constant_that_cannot_be_set_is_refused(constants: dict[str, int], message: str) -> None:
    with pytest.raises(ConstantRefused, match=message):
        Reference(**constants)


@pytest.mark.parametrize(
    ("system", "options", "message"),
    [
        (small.PoliteHouse, {"workers": 2}, "one worker"),
        (small.House, {"order": "depth", "workers": 2}, "has no levels"),
        (small.House, {"order": "best"}, "breadth or depth"),
        (small.House, {"workers": 0}, "at least one"),
    ],
)
def test_what_would_be_unsound_or_means_nothing_is_refused(
    system: type[small.House], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(CannotCheck, match=message):
        check(system, **options)


def test_without_llvmlite_the_next_engine_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(
        "epochgate.fsm.checker.engines.choice.find_spec",
        lambda name: None if name == "llvmlite" else found(name),
    )
    assert check(small.House).engine == "python"
    with pytest.raises(EngineUnavailable, match=r"needs llvmlite.*--engine python"):
        check(small.House, engine="llvm")


def test_an_engine_that_does_not_exist_is_refused() -> None:
    with pytest.raises(EngineUnavailable, match="there is no engine 'spin'"):
        check(small.House, engine="spin")
    with pytest.raises(EngineUnavailable, match="works alone"):
        check(small.House, engine="python", workers=2)


def test_compiled_code_is_kept_and_damaged_code_is_compiled_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EPOCHGATE_CACHE", str(tmp_path))
    assert check(small.House).states == 8
    (kept,) = (tmp_path / "code").iterdir()
    code = kept.read_bytes()
    kept.write_bytes(code[:-1] + b"?")
    assert check(small.House).states == 8
    assert kept.read_bytes() == code
