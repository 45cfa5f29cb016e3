"""Counts a published model, and compares."""

from __future__ import annotations

from typing import Any

from epochgate.fsm.checker import Verdict, check
from epochgate.fsm.checker.result import Result
from epochgate.fsm.claims import WITHOUT_END
from tests.published.catalogue import Model


def has_liveness(model: Model) -> bool:
    """True if a claim is about runs without end, which one worker checks, without symmetry."""
    return any(one.kind in WITHOUT_END for one in model.make().properties())


def counted(model: Model, **options: Any) -> Result:
    """Search, and hold the figures to the published ones. Raises AssertionError."""
    result = check(model.system(), **options)
    assert result.verdict is Verdict.PASS, (model.name, result.verdict, result.properties)
    assert result.states == model.states, (model.name, result.states, model.states)
    if model.transitions is not None:
        assert result.transitions == model.transitions, (model.name, result.transitions)
    return result
