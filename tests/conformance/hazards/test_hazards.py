"""The hazards of Flink's mechanism: ours has none of them, and the real classes have all of them.

What needs Flink carries the mark `conformance`; what ours does is looked at in every run.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from epochgate.pipeline import FunctionSource, Pipeline, RateLimit
from epochgate.runtime.testing.simulation import SimulatedJob
from tests.conformance.hazards.replay import (
    FLINK,
    OURS,
    SHELL,
    HazardUnreadable,
    answers,
    blocks,
    cluster_block,
    main,
    missing_of,
    replayed,
)
from tests.conformance.oracle.cluster import cluster_lines
from tests.conformance.oracle.oracle import command


def name(path: Path) -> str:
    """The hazard's name, such as D1."""
    return path.stem.partition("_")[0]


FILES = sorted(Path(__file__).parent.glob("D*.txt"), key=lambda path: int(name(path)[1:]))
TEXTS = [path.read_text(encoding="utf-8") for path in FILES]
IN_A_CLUSTER = {
    path.stem: block
    for path, text in zip(FILES, TEXTS, strict=True)
    if (block := cluster_block(text))
}
PAGE = Path(__file__).parents[3] / "docs" / "flink-hazards.md"


def three_numbers(_: int, position: int | None) -> Iterator[tuple[list[int], int]]:
    for number in range(position or 0, 3):
        yield [number], number + 1


def test_there_is_a_schedule_for_each_hazard_and_the_page_names_it() -> None:
    assert [name(path) for path in FILES] == [f"D{number}" for number in range(1, 13)]
    page = PAGE.read_text(encoding="utf-8")
    assert [path.name for path in FILES if path.name not in page] == []
    assert set(re.findall(r"D\d+_\w+\.txt", page)) == {path.name for path in FILES}


@pytest.mark.parametrize("path", FILES, ids=name)
def test_the_page_quotes_what_the_schedule_holds(path: Path) -> None:
    page = PAGE.read_text(encoding="utf-8")
    section = page.partition(f"\n## {name(path)}:")[2].partition("\n## ")[0]
    tables = "".join(line for line in section.splitlines() if line.startswith("|"))
    quoted = re.findall(r"`([^`]+)`", tables)
    quoted += [
        line
        for fence in re.findall(r"```text\n(.*?)```", section, re.DOTALL)
        for line in fence.splitlines()
    ]
    held = [line.rpartition(": ")[2] for line in path.read_text(encoding="utf-8").splitlines()]
    assert len(quoted) > 3
    assert [line for line in quoted if line not in held] == []


def test_ours_answers_each_schedule_as_the_file_says() -> None:
    assert replayed(SHELL, TEXTS, OURS) == [blocks(text, OURS) for text in TEXTS]


def test_a_program_that_does_not_answer_is_named() -> None:
    with pytest.raises(HazardUnreadable, match=r"true answered 0 of 1 commands"):
        answers(["true"], ["new 1"])


def test_a_hazard_without_a_holder_is_replayed_in_a_cluster_alone() -> None:
    with pytest.raises(HazardUnreadable, match=r"D10_\w+\.txt has no commands for the holder"):
        main([str(FILES[9])])


def test_ours_commits_what_comes_between_the_last_checkpoint_and_the_end() -> None:
    committed: dict[int, list[int]] = {}
    pipeline = Pipeline(
        source=FunctionSource(lambda: [0], three_numbers),
        sink=committed.__setitem__,
        coordinators=[RateLimit(2)],
    )
    job = SimulatedJob.of(pipeline, parallelism=1, checkpoint_interval_s=None)
    job.settle()
    job.wait(0.6)
    job.master.request_checkpoint()
    job.flow()
    assert committed == {1: [0, 1]}
    job.settle(until=lambda: job.is_over)
    assert job.result.state == "finished"
    assert committed == {1: [0, 1], 2: [2]}


@pytest.mark.conformance
def test_the_real_holder_answers_each_schedule_as_the_file_says() -> None:
    assert replayed(command(), TEXTS, FLINK) == [blocks(text, FLINK) for text in TEXTS]


@pytest.mark.conformance
def test_the_process_of_the_real_holder_ends_where_gateways_close_in_part() -> None:
    schedule = next(text for text in TEXTS if text.startswith("D3"))
    lines = [line for block in blocks(schedule, FLINK) for line in block.commands]
    ended = subprocess.run(
        command(exits=True),
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 239


@pytest.mark.conformance
@pytest.mark.parametrize("name", IN_A_CLUSTER)
def test_a_whole_flink_has_the_hazard(name: str) -> None:
    block = IN_A_CLUSTER[name]
    printed = cluster_lines(block.commands[0])
    missing = missing_of(block.expected, printed)
    assert not missing, "\n".join(["did not come in this order:", *missing, "printed:", *printed])
