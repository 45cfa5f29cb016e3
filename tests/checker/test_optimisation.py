"""A search begins in quickly compiled code, and goes over to optimised code once it is large."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from epochgate.fsm.checker import check
from epochgate.fsm.checker.checking import CannotCheck
from epochgate.fsm.checker.compiler import machine_code
from epochgate.models.studies.reference import Reference

pytest.importorskip("llvmlite")

STATES, TRANSITIONS = 12_256, 50_778
SYSTEM = Reference(N=2, C=2, K=1, E=1, F=1)


class Awaited(machine_code.Optimisation):
    """Is always done when it is asked."""

    @property
    def is_done(self) -> bool:
        self._process.wait(60)
        return True


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EPOCHGATE_CACHE", str(tmp_path))
    return tmp_path / "code"


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The levels of all code that is made in this process."""
    levels: list[int] = []
    object_code = machine_code.object_code

    def counted(text: str, level: int) -> bytes:
        levels.append(level)
        return object_code(text, level)

    monkeypatch.setattr(machine_code, "object_code", counted)
    return levels


def counts(**options: Any) -> tuple[int, int]:
    result = check(SYSTEM, engine="llvm", **options)
    return result.states, result.transitions


def test_a_small_search_stays_in_quickly_compiled_code(cache: Path, made: list[int]) -> None:
    assert counts() == counts() == (STATES, TRANSITIONS)
    assert made == [machine_code.QUICK]
    assert len(list(cache.iterdir())) == 1


@pytest.mark.parametrize("options", [{}, {"order": "depth"}, {"workers": 2}], ids=str)
def test_a_large_search_goes_over_to_optimised_code_which_is_kept(
    options: dict[str, Any], cache: Path, made: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine_code, "Optimisation", Awaited)
    monkeypatch.setattr("epochgate.fsm.checker.engines.compiled.DESCENT", 1 << 8)
    assert counts(optimise_from=1, **options) == (STATES, TRANSITIONS)
    assert len(list(cache.iterdir())) == 2
    assert counts(optimise_from=0, **options) == (STATES, TRANSITIONS)
    assert made == [machine_code.QUICK]


def test_a_search_that_ends_first_gives_the_optimised_code_up(cache: Path) -> None:
    assert counts(optimise_from=1) == (STATES, TRANSITIONS)
    started = [one.cmdline() for one in psutil.Process().children()]
    assert [line for line in started if machine_code.__name__ in line] == []
    assert len(list(cache.iterdir())) == 1


def test_an_interrupt_of_the_terminal_does_not_reach_the_compiler(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    groups = []

    class Observed(Awaited):
        def __init__(self, key: str, text: str) -> None:
            super().__init__(key, text)
            groups.append(os.getpgid(self._process.pid))

    monkeypatch.setattr(machine_code, "Optimisation", Observed)
    assert counts(optimise_from=1) == (STATES, TRANSITIONS)
    assert groups != []
    assert os.getpgrp() not in groups


def test_a_compiler_that_fails_is_told_and_the_search_goes_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(machine_code, "Optimisation", Awaited)
    monkeypatch.setattr(sys, "executable", "/bin/false")
    assert counts(optimise_from=1) == (STATES, TRANSITIONS)
    assert "ended with exit code 1" in caplog.text


def test_optimised_code_is_made_first_where_that_is_asked_for(made: list[int]) -> None:
    assert counts(optimise_from=0) == (STATES, TRANSITIONS)
    assert made == [machine_code.OPTIMISED]


def test_a_threshold_below_zero_is_refused() -> None:
    with pytest.raises(CannotCheck, match="optimise_from is a number of states, not -1"):
        counts(optimise_from=-1)
