"""The Delta sink, tried by the certification at every fortieth of its schedules.

Left out is going on after newer checkpoints are lost: this sink refuses, and says so.
"""

from __future__ import annotations

import pytest

from epochgate.runtime.testing.certification import Guarantee, certify, report
from tests.spark.tables.certified import DeltaCase

pytest.importorskip("deltalake", reason="the extra `delta` is not installed")
CLAIMED = tuple(one for one in Guarantee if one is not Guarantee.RECOVERY)


@pytest.mark.deep
def test_the_delta_sink_keeps_every_guarantee_but_going_on_from_lost_checkpoints() -> None:
    found = certify(DeltaCase(), about=CLAIMED, stride=40)
    assert not found.failures, report(found)
