"""The benchmark of steering runs two queries that differ in the control alone."""

import pytest

from epochgate.benchmarks import steering


@pytest.mark.spark
@pytest.mark.deep
def test_a_query_with_a_control_is_measured_beside_a_plain_one() -> None:
    table = steering.measure(pairs=1, batches=5)
    assert table.header == ("", "plain", "with a control")
    assert [row[0] for row in table.rows] == [
        "whole batch, ms",
        "its function (`addBatch`), ms",
        "longer batches, ms, of the medians",
        "a decision alone, ms",
    ]
