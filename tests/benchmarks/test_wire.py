"""The benchmark of the private wire measures both kinds of wire."""

import pytest

from epochgate.benchmarks import events, wire


@pytest.mark.programs
def test_a_private_wire_is_measured_beside_a_plain_one() -> None:
    table = wire.measure(runs=1, events=8 * events.EVENTS_PER_PORTION, round_trips=10)
    assert table.header == ("", "plain", "private")
    assert [row[0] for row in table.rows if "" in row] == ["fewer events/s, %, median of pairs"]
