"""Random schedules over the machines, the `transitions` library and every compiled target, side by
side and in both directions: a step that is possible here is possible there, and one that is not is
not.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from epochgate.models.studies.reference import Reference
from tests.checker.gymnasium import Gymnasium
from tests.checker.relay import Relay
from tests.checker.side_by_side import SideBySide
from tests.checker.small_systems import House

WALKS = 12
STEPS_MAX = 80
SYSTEMS = (Reference(), Reference(N=3, C=1, E=2), House(visitors=3), Gymnasium(), Relay())


@pytest.mark.parametrize("system", SYSTEMS, ids=lambda s: type(s).__name__)
def test_every_form_of_a_system_takes_the_same_steps(system: Any) -> None:
    forms = SideBySide(system)
    names = [*forms.program.properties]
    for seed in range(WALKS):
        draw, state = random.Random(seed), forms.program.initial
        for _ in range(STEPS_MAX):
            steps = forms.possible(state)
            for name in names:
                assert forms.python.holds(name, state) == forms.interpreted.holds(name, state)
            forms.refused(state, set(range(len(forms.program.steps))) - set(steps))
            if not steps:
                break
            state = forms.taken(state, draw.choice(steps))
