"""A trace becomes a scenario, which says what the machines say."""

from __future__ import annotations

from pathlib import Path

import pytest

from epochgate.fsm.traces.lines import opened, sealed
from tests.scenarios.of_trace import NoScenario, scenario_of_trace
from tests.scenarios.test_scenarios import replayed
from tests.traces.stories import SECRET, told


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return told(tmp_path_factory.mktemp("story"), events=2)


def test_the_scenario_of_a_whole_trace_tells_the_story_to_its_end(story: Path) -> None:
    text = scenario_of_trace([str(story / "driver.000001.jsonl")], 10_000)
    assert replayed(text) == text
    assert "refused in" not in text
    assert SECRET not in text
    blocks = text.split("\n\n")
    assert blocks[0] == "The first events of story, as driver has them."
    assert blocks[1].startswith("machines subtasks=2 coordinators=1 ")
    assert "gateway[0,1].send 0 event\n----\nopen -> open\nwire 1: event (op0 #1)" in blocks
    assert "\njob: finished, its last checkpoint is 4\nop0: close\njob: over\n\n" in text


def test_as_many_events_as_are_wanted_are_taken(story: Path) -> None:
    text = scenario_of_trace([str(story / "driver.000001.jsonl")], 5)
    assert text.count("----") == 5


def test_what_the_machines_refuse_is_said_in_the_scenario(story: Path, tmp_path: Path) -> None:
    lines = (story / "driver.000001.jsonl").read_bytes().splitlines(keepends=True)
    bare = {
        name: value for name, value in opened(lines[20]).items() if name not in ("crc", "times")
    }
    lines[20] = sealed({**bare, "do": "checkpoint.stored", "with": [99], "out": []})
    path = tmp_path / "driver.000001.jsonl"
    path.write_bytes(b"".join(lines))
    refused = "checkpoint.stored 99\n----\nrefused in 'triggering': stored"
    assert refused in scenario_of_trace([str(path)]).split("\n\n")


def test_what_is_no_drivers_trace_or_lacks_its_beginning_is_refused(
    story: Path, tmp_path: Path
) -> None:
    with pytest.raises(NoScenario, match="is not of a driver's job"):
        scenario_of_trace([str(story / "task-0-1.000001.jsonl")])
    long = told(tmp_path, events=300, segment_bytes=2_000, segments_max=2)
    with pytest.raises(NoScenario, match="its first segment is gone"):
        scenario_of_trace([str(path) for path in long.glob("driver.*")])
