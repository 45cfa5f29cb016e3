"""The program that the guide shows runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from epochgate.runtime.collect import collect
from epochgate.runtime.testing.simulation import SimulatedJob

GUIDE = Path(__file__).parents[3] / "docs" / "collecting.md"


def test_the_rows_of_the_guide_are_collected() -> None:
    [block] = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    shown: dict[str, Any] = {}
    exec(compile(block, str(GUIDE), "exec"), shown)  # noqa: S102  # our own page
    job = SimulatedJob(lambda start: shown["configuration"], shown["Squares"])
    rows = collect(job.master)
    job.settle(lambda: job.is_over)
    assert sorted(rows) == [[subtask, n**2] for subtask in range(2) for n in range(1, 101)]
