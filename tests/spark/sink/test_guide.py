"""The sink in docs/sinks.md shows every row once, whatever fails, and says what it promises to."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from epochgate.runtime import SinkOperator, SinkStart
from epochgate.runtime.testing.simulation import SimulatedJob
from tests.runtime.counting import (
    DISTURBANCES,
    CountingProgram,
    assert_disturbed,
    configuration,
    disturbed,
    run_to_the_end,
)

GUIDE = Path(__file__).parents[3] / "docs" / "sinks.md"


def example() -> tuple[str, dict[str, Any]]:
    (code,) = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    names: dict[str, Any] = {"__name__": __name__}
    exec(compile(code, GUIDE.name, "exec", dont_inherit=True), names)  # noqa: S102  # the page's own code
    return code, names


def shown(target: Path) -> list[int]:
    files = sorted(target.glob("*.jsonl"))
    return [json.loads(line)["x"] for file in files for line in file.read_text().splitlines()]


@pytest.mark.parametrize("disturb", DISTURBANCES)
def test_every_row_arrives_once(tmp_path: Path, disturb: str) -> None:
    sink = example()[1]["JsonLines"](str(tmp_path))
    starts = iter(range(100))
    job = SimulatedJob(
        lambda start: configuration(),
        lambda subtask: CountingProgram(
            sink=SinkOperator(sink), record=lambda x: pa.RecordBatch.from_pydict({"x": [x]})
        ),
        committer=lambda: sink.create_committer(SinkStart("job", f"run-{next(starts)}")),
    )
    disturbed(job, disturb)
    run_to_the_end(job)
    assert job.result.state == "finished", job.result.reason
    assert shown(tmp_path) == list(range(20))
    assert_disturbed(job, disturb)


def test_a_commit_that_comes_again_changes_nothing(tmp_path: Path) -> None:
    committer = example()[1]["JsonLines"](str(tmp_path)).create_committer(SinkStart("job", "run"))
    (tmp_path / ".staged" / "part").write_text('{"x": 1}\n')
    for _ in range(2):
        committer.commit(7, {0: ["part"]})
    committer.commit(8, {0: []})
    assert shown(tmp_path) == [1]


def test_it_has_about_sixty_lines() -> None:
    assert 40 < len(example()[0].splitlines()) < 75
