"""A hundred corrupted traces, made from one that is accepted: each is refused at the right line.

Some are damage, which the checksum shows; the others are sealed again, as a process would have
written them that had gone wrong, and it is the machines that refuse them.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from epochgate.fsm.traces.lines import opened, sealed
from epochgate.models.job import Job
from epochgate.runtime.tracing.validation import validated
from tests.traces.stories import told

PER_KIND = 9


@dataclass
class Chain:
    """The segments of a driver's trace, as lines."""

    paths: list[Path]
    lines: list[list[bytes]]
    chance: random.Random

    @classmethod
    def of(cls, run: Path, chance: random.Random) -> Chain:
        paths = sorted(run.glob("driver.*"))
        return cls(paths, [path.read_bytes().splitlines(keepends=True) for path in paths], chance)

    def write(self) -> None:
        for path, lines in zip(self.paths, self.lines, strict=True):
            path.write_bytes(b"".join(lines))

    def place(self, segment: int, line: int) -> tuple[str, int]:
        """As a verdict has it, for an index from 0; past the end, the head of the next segment."""
        if line == len(self.lines[segment]):
            segment, line = segment + 1, 0
        return str(self.paths[segment]), line + 1

    def values(self, segment: int, line: int) -> dict[str, Any]:
        return {n: v for n, v in opened(self.lines[segment][line]).items() if n != "crc"}

    def put(self, segment: int, line: int, values: dict[str, Any]) -> None:
        self.lines[segment][line] = sealed(values)

    def event(
        self, fits: Callable[[dict[str, Any]], bool] = lambda values: True
    ) -> tuple[int, int]:
        """The place of some line of an event that fits."""
        found = [
            (segment, line)
            for segment, lines in enumerate(self.lines)
            for line in range(1, len(lines))
            if "do" in (values := self.values(segment, line)) and fits(values)
        ]
        return self.chance.choice(found)


def deleted_line(chain: Chain) -> tuple[str, int, str]:
    segment, line = chain.event()
    del chain.lines[segment][line]
    return *chain.place(segment, line), "missing"


def swapped_lines(chain: Chain) -> tuple[str, int, str]:
    segment, line = chain.event()
    while line + 1 == len(chain.lines[segment]) or "do" not in chain.values(segment, line + 1):
        segment, line = chain.event()
    lines = chain.lines[segment]
    lines[line], lines[line + 1] = lines[line + 1], lines[line]
    return *chain.place(segment, line), "missing"


def repeated_line(chain: Chain) -> tuple[str, int, str]:
    segment, line = chain.event()
    chain.lines[segment].insert(line, chain.lines[segment][line])
    return *chain.place(segment, line + 1), "repeated"


def changed_byte(chain: Chain) -> tuple[str, int, str]:
    segment, line = chain.event()
    old = bytearray(chain.lines[segment][line])
    at = chain.chance.randrange(len(old) - 1)
    old[at] ^= 1
    chain.lines[segment][line] = bytes(old)
    return *chain.place(segment, line), "damaged"


def line_cut_short(chain: Chain) -> tuple[str, int, str]:
    segment, line = chain.event()
    old = chain.lines[segment][line]
    chain.lines[segment][line] = old[: chain.chance.randrange(1, len(old) - 1)] + b"\n"
    return *chain.place(segment, line), "damaged"


def segment_torn_in_the_middle_of_the_chain(chain: Chain) -> tuple[str, int, str]:
    segment = chain.chance.randrange(len(chain.lines) - 1)
    line = len(chain.lines[segment]) - 1
    old = chain.lines[segment][line]
    chain.lines[segment][line] = old[: chain.chance.randrange(1, len(old) - 1)]
    return *chain.place(segment, line), "damaged"


def changed_trigger(chain: Chain) -> tuple[str, int, str]:
    segment, line = chain.event(lambda values: bool(values.get("out") and _others(values)))
    values = chain.values(segment, line)
    machine = values["do"].rpartition(".")[0]
    chain.put(segment, line, {**values, "do": f"{machine}.{chain.chance.choice(_others(values))}"})
    return *chain.place(segment, line), "illegal or effects"


def _others(values: dict[str, Any]) -> list[str]:
    """The machine's other triggers with as many arguments."""
    name, _, trigger = values["do"].rpartition(".")
    machine = Job.MACHINES[name.partition("[")[0]]
    size = len(values.get("with", []))
    return [
        other
        for other in machine.triggers()
        if other != trigger and len(machine.trigger_parameters(other)) == size
    ]


def changed_argument(chain: Chain) -> tuple[str, int, str]:
    def fits(values: dict[str, Any]) -> bool:
        return bool(values.get("out")) and type((values.get("with") or [None])[0]) is int

    segment, line = chain.event(fits)
    values = chain.values(segment, line)
    first, *rest = values["with"]
    chain.put(segment, line, {**values, "with": [first + chain.chance.randrange(5, 900), *rest]})
    return *chain.place(segment, line), "illegal or effects"


def changed_effect(chain: Chain) -> tuple[str, int, str]:
    segment, line = chain.event(lambda values: bool(values.get("out")))
    values = chain.values(segment, line)
    effects = values["out"]
    at = chain.chance.randrange(len(effects))
    if chain.chance.random() < 0.5 or len(effects[at]) == 1 or type(effects[at][1]) is not int:
        del effects[at]
    else:
        effects[at][1] += 1
    chain.put(segment, line, values)
    return *chain.place(segment, line), "effects"


def added_effect(chain: Chain) -> tuple[str, int, str]:
    segment, line = chain.event()
    values = chain.values(segment, line)
    effects = [*values.get("out", []), ["checkpoint.driver.completed", 1]]
    chain.put(segment, line, {**values, "out": effects})
    return *chain.place(segment, line), "effects"


def other_rows(chain: Chain) -> tuple[str, int, str]:
    digest = f"{chain.chance.getrandbits(64):016x}"
    for segment in range(len(chain.lines)):
        chain.put(segment, 0, {**chain.values(segment, 0), "digest": digest})
    return *chain.place(0, 0), "foreign"


def head_of_another_trace(chain: Chain) -> tuple[str, int, str]:
    segment = chain.chance.randrange(1, len(chain.lines))
    chain.put(segment, 0, {**chain.values(segment, 0), "run_id": f"{chain.chance.random()}"})
    return *chain.place(segment, 0), "foreign"


def other_state(chain: Chain) -> tuple[str, int, str]:
    segment = chain.chance.randrange(1, len(chain.lines))
    values = chain.values(segment, 0)
    values["state"]["attempt[0]"]["newest"] += 1
    chain.put(segment, 0, values)
    return *chain.place(segment, 0), "state"


KINDS = (
    deleted_line,
    swapped_lines,
    repeated_line,
    changed_byte,
    line_cut_short,
    segment_torn_in_the_middle_of_the_chain,
    changed_trigger,
    changed_argument,
    changed_effect,
    added_effect,
    other_rows,
    head_of_another_trace,
    other_state,
)


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return told(tmp_path_factory.mktemp("story"), segment_bytes=1)


@pytest.mark.parametrize("number", range(PER_KIND))
@pytest.mark.parametrize("corrupt", KINDS, ids=lambda kind: kind.__name__)
def test_a_corrupted_trace_is_refused_at_the_right_line(
    story: Path,
    tmp_path: Path,
    corrupt: Callable[[Chain], tuple[str, int, str]],
    number: int,
) -> None:
    run = Path(shutil.copytree(story, tmp_path / "run"))
    chain = Chain.of(run, random.Random(f"{corrupt.__name__} {number}"))
    path, line, kinds = corrupt(chain)
    chain.write()
    (verdict, *_) = validated(chain.paths).verdicts
    assert verdict.refusal is not None
    assert (verdict.path, verdict.line) == (path, line), verdict.refusal.text
    assert verdict.refusal.kind in kinds.split(" or ")


def test_there_are_a_hundred_of_them() -> None:
    assert len(KINDS) * PER_KIND >= 100


def test_the_trace_that_they_are_made_from_is_accepted(story: Path) -> None:
    validation = validated([story])
    assert validation.is_accepted()
    assert len(validation.verdicts[0].files) > 3


def test_a_missing_segment_is_told(story: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(story, tmp_path / "run"))
    paths = sorted(run.glob("driver.*"))
    paths[1].unlink()
    (verdict, *_) = validated([run]).verdicts
    assert verdict.refusal is not None
    assert (verdict.path, verdict.line) == (str(paths[2]), 1)
    assert verdict.refusal.text == "a segment is missing: segment 3 follows segment 1"


def test_two_traces_in_one_file_are_told(story: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(story, tmp_path / "run"))
    first, second, *_ = sorted(run.glob("driver.*"))
    both = first.read_bytes() + second.read_bytes()
    joined = tmp_path / "joined.jsonl"
    joined.write_bytes(both)
    (verdict,) = validated([joined]).verdicts
    assert verdict.refusal is not None
    assert verdict.line == len(first.read_bytes().splitlines()) + 1
    assert "a second head" in verdict.refusal.text
