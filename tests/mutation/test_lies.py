"""What a machine tells the outside wrong is found by the checker, argument by argument."""

from __future__ import annotations

import pytest

from epochgate.models.catalogue import SYSTEMS
from tests.models.hearing import messages
from tests.models.unheard import REASONS
from tests.mutation.lies import UNFOUND, found, lies


def test_there_is_a_lie_about_each_argument_of_each_message() -> None:
    told = messages(SYSTEMS.values())
    assert lies().keys() == {f"{m.key}: {name}" for m in told for name in m.parameters}


@pytest.mark.mutants
@pytest.mark.timeout(600)
@pytest.mark.parametrize("argument", sorted(lies().keys() - REASONS.keys()))
def test_a_lie_is_found_by_a_claim_or_a_reason_says_why_not(argument: str) -> None:
    unfound = {mutant.name for mutant, finding in found(argument) if finding is None}
    assert unfound == {mutant.name for mutant in lies()[argument]} & UNFOUND.keys()
