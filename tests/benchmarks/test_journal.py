"""The benchmark of the journal runs a job whose traces are accepted."""

import pytest

from epochgate.benchmarks import events, journal


@pytest.mark.programs
def test_the_job_with_a_journal_is_measured_beside_the_one_without() -> None:
    table = journal.measure(runs=1, events=8 * events.EVENTS_PER_PORTION)
    assert table.header == ("", "without", "with a journal")
    assert [row[0] for row in table.rows] == [
        "events/s",
        "driver's processor time per event, µs",
        "tasks' processor time per event, µs",
        "fewer events/s, %, median of pairs",
        "bytes written per event of a machine",
        "events/s that `epochgate validate` checks",
    ]
