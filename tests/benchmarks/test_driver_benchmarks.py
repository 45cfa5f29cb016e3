from __future__ import annotations

import pytest

from epochgate.benchmarks import known_files, known_objects, listeners
from epochgate.benchmarks.object_server import ServerMissing


def figure(text: str) -> float:
    return float(text.replace(",", ""))


def test_what_an_ingestion_costs_is_measured_for_every_number_of_known_files() -> None:
    table = known_files.measure(sizes=(300, 600), checkpoints=2)
    assert [row[0] for row in table.rows] == ["300", "600"]
    assert all(figure(cost) > 0 for row in table.rows for cost in row[1:])


def test_a_checkpoint_does_not_hold_what_was_done_long_ago() -> None:
    few, many = (known_files.cost_of(files, checkpoints=1) for files in (512, 5_120))
    assert many.checkpoint_bytes < 1.2 * few.checkpoint_bytes
    assert many.log_entries <= 4


def test_telling_is_measured_until_the_log_and_the_history_have_heard() -> None:
    table = listeners.measure(sizes=(2, 3), runs=1)
    assert [row[0] for row in table.rows] == ["2", "3"]
    assert all(figure(cost) > 0 for row in table.rows for cost in row[1:])


def test_what_finding_new_objects_costs_is_measured_in_turn() -> None:
    try:
        with known_objects.serving():
            cost = known_objects.cost_of(40, looks=1)
    except ServerMissing as error:
        pytest.skip(str(error))
    assert cost.objects == 40
    assert min(cost.listing_wall_s, cost.listing_s, cost.behind_wall_s, cost.behind_s) > 0
