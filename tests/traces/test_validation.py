"""A trace is accepted by the machines that made it, or its first wrong line is named with what was
possible instead.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from epochgate.fsm.traces.lines import opened, sealed
from epochgate.runtime.tracing.segments import NoTraces
from epochgate.runtime.tracing.validation import Validation, Verdict, validated
from tests.traces.stories import told

Lines = list[bytes]


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return told(tmp_path_factory.mktemp("story"))


@pytest.fixture
def copied(story: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(story, tmp_path / "run"))


def altered(run: Path, name: str, alter: Callable[[Lines], object]) -> Validation:
    path = run / f"{name}.000001.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    alter(lines)
    path.write_bytes(b"".join(lines))
    return validated([run])


def with_values(line: int, **values: Any) -> Callable[[Lines], object]:
    """Alters a line and seals it again, as a process that went wrong would have written it."""

    def alter(lines: Lines) -> None:
        lines[line - 1] = sealed({**_bare(lines[line - 1]), **values})

    return alter


def _bare(line: bytes) -> dict[str, Any]:
    return {name: value for name, value in opened(line).items() if name != "crc"}


def refused(validation: Validation) -> Verdict:
    (verdict,) = [one for one in validation.verdicts if not one.is_accepted()]
    return verdict


def line_of(run: Path, name: str, wanted: Callable[[dict[str, Any]], bool]) -> int:
    lines = (run / f"{name}.000001.jsonl").read_bytes().splitlines(keepends=True)
    return next(number for number, line in enumerate(lines, 1) if wanted(opened(line)))


def test_the_traces_of_a_job_are_accepted_and_agree(story: Path) -> None:
    validation = validated([story])
    assert validation.is_accepted(), validation.to_json()
    assert [one.role for one in validation.verdicts] == [
        "driver",
        "task 0 (identity 1)",
        "task 0 (identity 3)",
        "task 1 (identity 2)",
    ]
    assert all(one.is_closed for one in validation.verdicts)
    assert validation.joined == 3
    assert validation.messages > 400


def test_a_single_file_is_checked_alone(story: Path) -> None:
    validation = validated([story / "task-1-2.000001.jsonl"])
    assert validation.is_accepted()
    assert validation.joined == 0


def test_an_event_that_no_row_takes_is_named_with_the_guard_and_what_was_possible(
    copied: Path,
) -> None:
    mark = {"do": "gateway[0][0].mark", "with": [0], "out": []}
    verdict = refused(altered(copied, "driver", with_values(5, **mark)))
    assert (verdict.path, verdict.line) == (str(copied / "driver.000001.jsonl"), 5)
    assert verdict.refusal is not None
    assert verdict.refusal.kind == "illegal"
    assert verdict.refusal.number == 4
    assert verdict.refusal.text == "gateway[0][0].mark(0) is not possible"
    assert verdict.refusal.details == (
        "gateway[0][0] is open attempt=0 latest=0 sent=0 confirmed=0 awaited=0 held=[]",
        "row mark when is_newer (a checkpoint was triggered): is_newer fails",
        "possible in open: send, mark, reopen, confirm, lose, disconnect, stop_waiting, renew",
    )


def test_an_event_in_a_state_without_a_row_for_it_is_told_where_there_is_one(copied: Path) -> None:
    close = {"do": "gateway[0][0].close", "with": [1], "out": []}
    verdict = refused(altered(copied, "driver", with_values(5, **close)))
    assert verdict.refusal is not None
    assert "no row takes close in open; rows take it in marked" in verdict.refusal.details


def test_other_effects_are_shown_beside_those_of_the_rows(copied: Path) -> None:
    effects = [["gateway[0][0].wire.event", 1, [2, 41], None]]
    line = line_of(copied, "driver", lambda values: values.get("times", 1) == 40)
    verdict = refused(altered(copied, "driver", with_values(line, out=effects)))
    assert verdict.line == line
    assert verdict.refusal is not None
    assert verdict.refusal.kind == "effects"
    assert verdict.refusal.details == (
        "its rows give    gateway[0][0].wire.event(1, 1, …)",
        "the trace has    gateway[0][0].wire.event(1, 2, …)",
    )


def test_a_state_that_the_events_do_not_lead_to_is_refused(copied: Path) -> None:
    state = {"task": {"state": "running", "received": [7]}}
    verdict = refused(altered(copied, "task-0-1", with_values(6, end=43, state=state)))
    assert verdict.refusal is not None
    assert verdict.refusal.kind == "state"
    assert "received=[40], and the trace says running received=[7]" in verdict.refusal.text


def test_a_message_that_the_driver_never_said_is_named(copied: Path) -> None:
    told_of = {"with": [9], "out": [["task.operators.complete", 9]]}
    verdict = refused(altered(copied, "task-0-1", with_values(5, **told_of)))
    assert (verdict.role, verdict.line) == ("task 0 (identity 1)", 5)
    assert verdict.refusal is not None
    assert verdict.refusal.kind == "unsaid"
    assert "heard complete(9): the driver never said it" in verdict.refusal.text


def test_messages_in_another_order_than_the_driver_said_them_are_refused(copied: Path) -> None:
    def swap(lines: Lines) -> None:
        barrier, complete = _bare(lines[3]), _bare(lines[4])
        lines[3] = sealed({**complete, "n": barrier["n"]})
        lines[4] = sealed({**barrier, "n": complete["n"]})

    verdict = refused(altered(copied, "task-0-1", swap))
    assert verdict.line == 5
    assert verdict.refusal is not None
    assert "heard barrier(1): task 0 (identity 1) has heard it out of order" in verdict.refusal.text


def test_an_acknowledgement_that_the_task_never_gave_is_refused_in_the_drivers_trace(
    copied: Path,
) -> None:
    def forget(lines: Lines) -> None:
        last = _bare(lines[-1])
        del lines[3:]
        state = {"task": {**last["state"]["task"], "state": "running", "received": [40]}}
        lines.append(sealed({"end": 41, "state": state}))

    verdict = refused(altered(copied, "task-0-1", forget))
    assert verdict.role == "driver"
    assert verdict.refusal is not None
    assert "acknowledge(1, False): it never said it" in verdict.refusal.text


def test_a_task_that_was_killed_may_have_said_more_than_its_trace_has(copied: Path) -> None:
    validation = altered(copied, "task-0-1", lambda lines: lines.__delitem__(slice(3, None)))
    assert validation.is_accepted(), validation.to_json()
    (cut,) = [one for one in validation.verdicts if not one.is_closed]
    assert cut.note == "cut off after event 41: its process was killed, or goes on"


def test_a_driver_that_was_killed_may_have_said_more_than_its_trace_has(copied: Path) -> None:
    validation = altered(copied, "driver", lambda lines: lines.__delitem__(slice(60, None)))
    assert validation.is_accepted(), validation.to_json()


def test_a_torn_last_line_is_what_a_kill_leaves_and_is_accepted_unless_all_must_be_whole(
    copied: Path,
) -> None:
    def tear(lines: Lines) -> None:
        lines[-1] = lines[-1][:20]

    validation = altered(copied, "task-1-2", tear)
    assert validation.is_accepted()
    (cut,) = [one for one in validation.verdicts if not one.is_closed]
    assert cut.note.startswith("cut off within a line, after event 130: its process was killed")
    verdict = refused(validated([copied], is_whole=True))
    assert verdict.refusal is not None
    assert verdict.refusal.kind == "cut"


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"digest": "0" * 16}, r"other rows, guards or actions of epochgate.models.job:Job"),
        ({"trace": 2}, r"the trace has format 2, and this epochgate reads format 1"),
        ({"system": "os:System"}, r"the system os:System is not one of this epochgate"),
    ],
)
def test_a_foreign_trace_is_refused_at_its_head(
    copied: Path, values: dict[str, Any], told: str
) -> None:
    verdict = refused(altered(copied, "driver", with_values(1, **values)))
    assert verdict.line == 1
    assert verdict.refusal is not None
    assert verdict.refusal.kind == "foreign"
    assert told in verdict.refusal.text


def test_where_there_is_no_trace_the_way_to_one_is_told(tmp_path: Path) -> None:
    with pytest.raises(NoTraces, match="epochgate ingest --journal DIR"):
        validated([tmp_path])
    with pytest.raises(NoTraces, match="no file or directory"):
        validated([tmp_path / "gone"])
