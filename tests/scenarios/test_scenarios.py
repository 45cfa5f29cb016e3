"""Runs the scenario files: commands, a line of dashes, and the output expected of them.

A file is prose and blocks. A block is one or more command lines, a line `----`, and output up to
the next empty line. The first word of the first command makes the world: `machines`, `job`,
`holder` or one of ALONE, with its constants. With EPOCHGATE_REFRESH_SCENARIOS=1 the expected output
is written again, for a person to review; where CI is set, that is refused.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from epochgate.models.job import Job
from tests.scenarios.alone_world import ALONE
from tests.scenarios.holder_world import HolderWorld
from tests.scenarios.job_world import JobWorld
from tests.scenarios.machines_world import DEFAULTS, PHRASES, MachinesWorld, value

FOLDER = Path(__file__).parent
FILES = sorted(FOLDER.glob("*/*.txt"))
DASHES = "----"
World = MachinesWorld | JobWorld | HolderWorld
WORLDS: dict[str, Callable[[dict[str, int]], World]] = {
    "machines": MachinesWorld,
    "job": JobWorld,
    "holder": HolderWorld,
    **ALONE,
}
IS_REFRESHED = os.environ.get("EPOCHGATE_REFRESH_SCENARIOS") == "1"


@cache
def _words(command: str) -> tuple[str, ...]:
    return tuple(shlex.split(command))


def run(world: World | None, command: str) -> tuple[World, list[str]]:
    """Run one command line; the world, and the lines that it printed."""
    first, *words = _words(command)
    if first in WORLDS:
        constants = {n: int(v) for n, _, v in (word.partition("=") for word in words)}
        return WORLDS[first](constants), []
    if world is None:
        raise ValueError(f"{command!r} comes before the line that makes a world: {[*WORLDS]}")
    method = getattr(world, f"do_{first.replace('-', '_')}", None)
    if method is not None:
        method(*map(value, words))
    elif isinstance(world, HolderWorld):
        world.say(command)
    elif isinstance(world, MachinesWorld):
        world.do_fire(first, *map(value, words))
    else:
        raise ValueError(f"a {type(world).__name__} has no command {first!r}")
    lines = list(world.lines)
    world.lines.clear()
    return world, lines


def replayed(text: str) -> str:
    """The file as it would be if all of its output were what really comes."""
    return "\n\n".join(paragraphs_of(text)) + "\n"


def paragraphs_of(text: str) -> Iterator[str]:
    """The paragraphs of a file, each replayed when it is asked for."""
    world: World | None = None
    for paragraph in text.rstrip("\n").split("\n\n"):
        lines = paragraph.split("\n")
        if DASHES in lines:
            commands = lines[: lines.index(DASHES)]
            printed: list[str] = []
            for command in commands:
                world, more = run(world, command)
                printed += more
            lines = [*commands, DASHES, *printed]
        yield "\n".join(lines)


def world_of(text: str) -> Callable[[dict[str, int]], World]:
    """Return what makes the world of a file."""
    first = re.search(rf"^(\w+)[^\n]*\n(?:[^\n]+\n)*{DASHES}$", text, re.MULTILINE)
    assert first, "a file has a block"
    return WORLDS[first[1]]


def test_there_are_scenarios_and_ci_does_not_rewrite_them() -> None:
    assert len(FILES) >= 20
    assert not (IS_REFRESHED and os.environ.get("CI")), "expected output is refreshed by people"


def test_the_table_of_flinks_tests_names_scenarios_that_exist() -> None:
    table = (FOLDER / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(\w+/\w+\.txt)`", table))
    assert len(named) >= 40
    assert [name for name in sorted(named) if not (FOLDER / name).is_file()] == []
    elsewhere = set(re.findall(r"`(tests/\w+/\w+\.py)`", table))
    root = FOLDER.parents[1]
    assert [name for name in sorted(elsewhere) if not (root / name).is_file()] == []


def test_each_effect_of_a_job_has_a_phrase_and_no_other_has() -> None:
    assert set(PHRASES) == {
        f"{name}.{port}.{message}"
        for name, machine in Job.MACHINES.items()
        for port, kinds in machine.EFFECTS.items()
        for message in kinds
    }


def test_each_reason_can_be_left_out_of_a_command() -> None:
    assert set(DEFAULTS) == {"is_fatal"} | {
        f"{name}.{trigger}"
        for name, machine in Job.MACHINES.items()
        for trigger in machine.triggers()
        if "reason" in machine.trigger_parameters(trigger)
    }


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_scenario(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    really = replayed(text)
    if IS_REFRESHED and not os.environ.get("CI"):
        path.write_text(really, encoding="utf-8")
        return
    assert really == text
