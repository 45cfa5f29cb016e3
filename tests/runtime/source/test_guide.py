"""The source that the guide shows runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from epochgate.runtime import JobConfiguration
from epochgate.runtime.testing.simulation import SimulatedJob

GUIDE = Path(__file__).parents[3] / "docs" / "sources.md"


def test_the_source_of_the_guide_reads_everything_once() -> None:
    [block] = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    shown: dict[str, Any] = {}
    exec(compile(block, str(GUIDE), "exec"), shown)  # noqa: S102  # our own page
    programs: list[Any] = []
    read: list[int] = []

    def program(subtask: int) -> Any:
        programs.append(shown["Numbers"]())
        programs[-1].write = read.extend
        return programs[-1]

    job = SimulatedJob(lambda start: JobConfiguration("numbers", 3, (shown["provider"],)), program)
    job.settle(lambda: job.is_over)
    assert job.result.state == "finished"
    assert sorted(read) == list(range(1000))
    assert all(program.source.records_read > 0 for program in programs), "they share the work"
