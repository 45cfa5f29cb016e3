"""Our machines against recorded traces of Flink's holder; no JDK is needed."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from tests.conformance.account import (
    HALF_MARKED,
    LATE_SENDS,
    MIXED_CLOSE,
    NAMES,
    UNTOLD_NOTICE,
    Account,
)
from tests.conformance.comparison import Comparison, comparable, explanation, shrunk, transcript
from tests.conformance.differences import DIFFERENCES, Difference
from tests.conformance.shell import Shell
from tests.conformance.starving import LOOPS
from tests.conformance.traces import COUNTS, FOLDER, read

BYTES_MAX = 300_000


def traces(kind: str) -> Comparison:
    comparison = Comparison()
    for _, commands, flink in read((FOLDER / f"{kind}.txt").read_text(encoding="utf-8")):
        comparison.add(commands, flink, Shell().run(commands))
    return comparison


def test_an_orderly_job_is_coordinated_as_by_flink() -> None:
    found = traces("orderly")
    assert found.compared == found.same == COUNTS["orderly"]


def test_what_differs_in_disorder_is_listed_and_each_entry_is_met() -> None:
    found = traces("wild")
    assert found.compared == COUNTS["wild"]
    assert not found.unexplained
    assert set(found.explained) == NAMES
    assert found.same > found.compared * 0.6


def test_the_traces_stay_small_enough_to_be_read() -> None:
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < BYTES_MAX


def test_the_list_names_every_switch_once() -> None:
    assert sorted(entry.name for entry in DIFFERENCES) == sorted(NAMES)


def test_each_entry_breaks_an_invariant() -> None:
    silent = [entry.name for entry in DIFFERENCES if not re.match(r"I[1-6]\b", entry.breaks)]
    assert silent == []


def test_what_breaks_only_in_the_long_run_is_driven_so() -> None:
    looped = {loop.difference for loop in LOOPS}
    assert looped == {LATE_SENDS, UNTOLD_NOTICE, HALF_MARKED}


def lines(text: str) -> list[str]:
    return text.split(" | ") if text else []


@pytest.mark.parametrize("entry", DIFFERENCES, ids=lambda entry: entry.name)
def test_an_entry_shows_what_both_print(entry: Difference) -> None:
    commands = [command for command, _, _ in entry.transcript]
    flink = [lines(said) for _, said, _ in entry.transcript]
    ours = [lines(said if other is None else other) for _, said, other in entry.transcript]
    assert comparable(Shell().run(commands)) == ours
    assert Account().run(commands) == flink
    assert explanation(commands, flink, ours) == frozenset((entry.name,))


@pytest.mark.parametrize("entry", DIFFERENCES, ids=lambda entry: entry.name)
def test_no_command_of_an_entry_can_be_left_out(entry: Difference) -> None:
    commands = [command for command, _, _ in entry.transcript]

    def harm(commands: list[str]) -> tuple[list[str], list[str]]:
        return Account().run(commands)[-1], comparable(Shell().run(commands))[-1]

    for place in range(2, len(commands) - 1):
        assert harm(commands[:place] + commands[place + 1 :]) != harm(commands), commands[place]


def test_a_transcript_shows_where_two_answers_differ() -> None:
    flink, ours = [["coord start"], ["EXC one"]], [["coord start"], ["coord aborted 1"]]
    assert transcript(["start", "aborted 1"], flink, ours).split("\n") == [
        "start                coord start",
        "aborted 1            EXC one   <- Flink; epochgate -> coord aborted 1",
    ]


def test_a_schedule_shrinks_to_what_its_difference_needs() -> None:
    def sign(commands: Sequence[str]) -> object:
        if not commands[0].startswith("new"):
            return None
        return explanation(commands, Account().run(commands), Shell().run(commands))

    (entry,) = (entry for entry in DIFFERENCES if entry.name == MIXED_CLOSE)
    commands = [command for command, _, _ in entry.transcript][:-1]
    noisy = [*commands[:2], "running 0", "send 0 0 a", "abort", *commands[2:-1], "drain"]
    noisy += [commands[-1], "ckpt 7"]
    assert shrunk(noisy, sign) == commands
