"""Checkpoints that never complete again in Flink's holder all do in ours."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.conformance.account import HALF_MARKED, Account
from tests.conformance.oracle.oracle import FlinkOracle
from tests.conformance.shell import Shell
from tests.conformance.starving import COMPLETED, LOOPS, Loop

ROUNDS = 20

in_each_loop = pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.difference)


class Retold:
    """The account of Flink's holder; `corrected` names what it does as our machines do."""

    def __init__(self, *corrected: str) -> None:
        self._account = Account(corrected)

    def run(self, lines: Sequence[str]) -> list[list[str]]:
        return self._account.run(lines)


@in_each_loop
def test_each_checkpoint_completes_and_nothing_fails(loop: Loop) -> None:
    assert loop.play(Shell(), ROUNDS) == ([COMPLETED] * ROUNDS, [])


@in_each_loop
def test_the_difference_alone_keeps_each_checkpoint_from_completing(loop: Loop) -> None:
    assert loop.play(Retold(), ROUNDS)[0] == [loop.flink] * ROUNDS
    assert loop.play(Retold(loop.difference), ROUNDS) == ([COMPLETED] * ROUNDS, [])


@pytest.mark.conformance
@in_each_loop
def test_in_the_real_holder_no_checkpoint_completes(loop: Loop) -> None:
    with FlinkOracle() as flink:
        outcomes, faults = loop.play(flink, ROUNDS)
    assert outcomes == [loop.flink] * ROUNDS
    refusals = [fault for fault in faults if fault.startswith("GLOBAL")]
    assert len(refusals) == (ROUNDS if loop.difference == HALF_MARKED else 0)
