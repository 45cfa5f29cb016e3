"""The judge of the lab finds each kind of wrong history, and has nothing against a right one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.nemesis.history import History, Line, Pages, Reader, read_pages
from tests.nemesis.judge import NotExactlyOnce, judge, table_problems

STUCK_AFTER_S = 30.0


def page(first: int, to: int, *heard: tuple[int, int], mark: str = "m") -> list[Any]:
    return [{"rows": [first, to], "heard": [[number, mark, row] for number, row in heard]}]


def driver(t: float, event: str, run: str = "a", **what: Any) -> Line:
    return {"t": t, "event": event, "run": run, **what}


def task(t: float, event: str, subtask: int, attempt: int, run: str = "a", **what: Any) -> Line:
    return {"t": t, "event": event, "run": run, "subtask": subtask, "attempt": attempt, **what}


def checkpoint(t: float, number: int, sent: int, run: str = "a", attempt: int = 0) -> list[Line]:
    """Of both jobs, told and committed; sent: updates before it; attempt: of subtask 0."""
    lines = [driver(t, "triggered", run, checkpoint=number, number=sent)]
    for job in ("ingest", "updates"):
        told = {"job": job, "checkpoint_id": number, "outcome": "completed", "duration_s": 0.2}
        lines.append(driver(t + 0.2, "job:CheckpointEnded", run, **told))
        done = {"job": job, "checkpoint_ids": [number], "committables": 1}
        lines.append(driver(t + 0.3, "job:Committed", run, **done))
    lines.append(driver(t + 0.2, "completed", run, checkpoint=number))
    lines.append(task(t + 0.2, "completed", 0, attempt, run, checkpoint=number))
    return [*lines, task(t + 0.2, "completed", 1, 0, run, checkpoint=number)]


def right() -> History:
    """Two subtasks, four checkpoints, a fault; a task is killed, and then the driver."""
    lines = [
        driver(0.0, "began"),
        driver(0.1, "restored", checkpoint=0, held=0, number=0),
        *(task(0.5, "restored", s, 0, checkpoint=0, row=0, number=0) for s in (0, 1)),
        *checkpoint(1.0, 1, sent=2),
        driver(2.0, "fault", name="kill"),
        driver(2.1, "triggered", checkpoint=2, number=3),
        driver(2.2, "aborted", checkpoint=2),
        task(2.2, "aborted", 1, 0, checkpoint=2),
        task(2.5, "restored", 0, 1, checkpoint=1, row=10, number=2),
        driver(3.0, "healed", name="kill"),
        *checkpoint(4.0, 3, sent=4, attempt=1),
        driver(5.0, "began", "b"),
        driver(5.1, "restored", "b", checkpoint=3, held=3, number=4),
        task(5.5, "restored", 0, 0, "b", checkpoint=3, row=20, number=4),
        task(5.5, "restored", 1, 0, "b", checkpoint=3, row=21, number=4),
        *checkpoint(6.0, 4, sent=5, run="b"),
        driver(7.0, "ended", "b", job="updates", state="finished", reason=None),
    ]
    pages = {
        1: {0: page(1, 10, (1, 0), (2, 10)), 1: page(1, 9, (1, 3), (2, 9))},
        3: {0: page(11, 20, (3, 10), (4, 15)), 1: page(10, 21, (3, 12), (4, 20))},
        4: {0: page(21, 25, (5, 20)), 1: page(22, 22, (5, 22))},
    }
    return History(sorted(lines, key=lambda line: line["t"]), pages)


def found(history: History, **settings: Any) -> str:
    with pytest.raises(NotExactlyOnce) as caught:
        judge(history, stuck_after_s=STUCK_AFTER_S, **settings)
    return str(caught.value)


def add(history: History, *lines: Line) -> None:
    history.lines.extend(lines)
    history.lines.sort(key=lambda line: line["t"])


def test_a_right_history_has_no_problem() -> None:
    history = right()
    judge(history, stuck_after_s=STUCK_AFTER_S)
    assert len(history.commits("updates")) == 3
    assert history.first_commit("ingest", since=2.0) == pytest.approx(4.3)


def lose_an_update(history: History) -> None:
    del history.pages[3][0][0]["heard"][0]


def double_an_update(history: History) -> None:
    history.pages[3][0][0]["heard"].insert(0, [2, "m", 11])


def swap_updates(history: History) -> None:
    heard = history.pages[3][1][0]["heard"]
    heard[0][0], heard[1][0] = heard[1][0], heard[0][0]


def lose_rows(history: History) -> None:
    history.pages[3][1] = page(12, 21, (3, 12), (4, 20))


def double_rows(history: History) -> None:
    history.pages[3][1] = page(9, 21, (3, 12), (4, 20))


def lose_a_page(history: History) -> None:
    del history.pages[3]


def keep_an_update_of_another_life(history: History) -> None:
    history.pages[3][0][0]["heard"][0][1] = "x"


def hear_an_update_before_the_page(history: History) -> None:
    history.pages[4][0][0]["heard"][0][2] = 3


def hear_an_update_an_epoch_late(history: History) -> None:
    late = history.pages[3][0][0]["heard"].pop()
    history.pages[4][0][0]["heard"].insert(0, [*late[:2], 20])


def tell_both(history: History) -> None:
    add(history, task(4.5, "aborted", 1, 0, checkpoint=3))


def restore_an_aborted_one(history: History) -> None:
    add(history, task(2.6, "restored", 1, 1, checkpoint=2, row=12, number=3))


def restore_what_no_driver_took(history: History) -> None:
    add(history, task(2.6, "restored", 1, 1, checkpoint=7, row=12, number=3))


def restore_an_older_one(history: History) -> None:
    add(history, task(6.5, "restored", 0, 1, "b", checkpoint=1, row=10, number=2))


def begin_with_an_older_one(history: History) -> None:
    add(history, driver(5.2, "restored", "b", checkpoint=1, held=1, number=2))


def restore_another_state(history: History) -> None:
    add(history, task(2.6, "restored", 1, 1, checkpoint=1, row=9, number=1))


def commit_another_content(history: History) -> None:
    add(history, driver(5.3, "conflict", "b", checkpoint=3))


def fail(history: History) -> None:
    add(history, driver(8.0, "ended", "b", job="ingest", state="failed", reason="no slots"))


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lose_an_update, "subtask 0, checkpoint 3: update 4 came after update 2"),
        (double_an_update, "subtask 0, checkpoint 3: update 2 came after update 2"),
        (swap_updates, "subtask 1, checkpoint 3: update 4 came after update 2"),
        (lose_rows, "subtask 1, checkpoint 3: row 12 came after row 9"),
        (double_rows, "subtask 1, checkpoint 3: row 9 came after row 9"),
        (lose_a_page, "subtask 0, checkpoint 4: row 21 came after row 10"),
        (keep_an_update_of_another_life, "update 3 is of a life that was taken back"),
        (hear_an_update_before_the_page, "update 5 came at row 3, not of 21 to 25"),
        (hear_an_update_an_epoch_late, "has heard 3 updates at checkpoint 3"),
        (tell_both, "checkpoint 3 of run a was told both completed and aborted"),
        (restore_an_aborted_one, "checkpoint 2, which was told aborted"),
        (restore_what_no_driver_took, "checkpoint 7, which no driver took"),
        (restore_an_older_one, "from checkpoint 1, after checkpoint 4 was told completed"),
        (begin_with_an_older_one, "coordinator of run b was restored from checkpoint 1, after"),
        (restore_another_state, "was restored from checkpoint 1 to (9, 2)"),
        (commit_another_content, "checkpoint 3 was committed again with other content"),
        (fail, "ingest has failed: no slots"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_each_kind_of_wrong_history_is_found(spoil: Callable[[History], None], said: str) -> None:
    history = right()
    spoil(history)
    assert said in found(history)


def test_a_job_that_commits_nothing_after_the_healing_is_stuck() -> None:
    history = right()
    add(history, task(3.0 + STUCK_AFTER_S + 10, "heard", 0, 1, number=9))
    judge(history, stuck_after_s=STUCK_AFTER_S)
    late = [line for line in history.lines if line["t"] < 3.5 or line["event"] == "heard"]
    assert "ingest was stuck: no commit in 40.0 s" in found(History(late, {}))


def test_a_job_is_not_stuck_while_a_fault_is_active_or_after_it_was_stopped() -> None:
    lines = [driver(0.0, "began"), *checkpoint(1.0, 1, 0)]
    faults = [driver(2.0, "fault"), driver(3.0, "fault"), driver(4.0, "healed")]
    judge(History([*lines, *faults, driver(99.0, "sent")], {}), stuck_after_s=STUCK_AFTER_S)
    healed = [driver(5.0, "healed"), driver(6.0, "stopping"), driver(99.0, "sent")]
    judge(History([*lines, *faults, *healed], {}), stuck_after_s=STUCK_AFTER_S)


def test_an_end_that_is_expected_is_no_problem() -> None:
    history = right()
    fail(history)
    judge(history, stuck_after_s=STUCK_AFTER_S, failures=["no slots"])


def test_an_ingestion_fails_with_the_way_on_only_until_its_lost_rows_are_given_up() -> None:
    reason = "it is gone. Give it up: `epochgate commits give-up /disk/checkpoints 7`"
    for event, job, is_expected in (
        ("set_back", "ingest", True),
        ("set_back", "updates", False),
        ("given_up", "ingest", False),
    ):
        history = right()
        add(history, driver(7.5, event))
        add(history, driver(8.0, "ended", "b", job=job, state="failed", reason=reason))
        if is_expected:
            judge(history, stuck_after_s=STUCK_AFTER_S)
        else:
            assert f"{job} has failed: it is gone" in found(history)


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        ([1, 4], []),
        ([1, 2, 4], ["table: 1 rows that were given up are there"]),
        ([1], ["table: 1 of 2 rows are lost"]),
        ([1, 4, 4], ["table: 1 rows are doubled"]),
    ],
)
def test_the_rows_that_were_given_up_are_lost_and_no_others(
    ids: list[int], said: list[str], tmp_path: Path
) -> None:
    given_up = tmp_path / "set-back"
    source, table = tmp_path / "source", tmp_path / "table"
    for folder, rows in ((source, [1, 2, 3, 4]), (table, ids), (given_up / "checkpoint=2", [2, 3])):
        folder.mkdir(parents=True)
        values = pa.table({"id": rows, "value": [10 * row for row in rows]})
        pq.write_table(values, folder / "1.parquet")
    assert table_problems(source, table, given_up) == said


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        ([1, 2, 3, 4], []),
        ([1, 2, 4], ["table: 1 of 4 rows are lost"]),
        ([1, 2, 2, 3, 4], ["table: 1 rows are doubled"]),
        ([1, 2, 4, 4], ["table: 1 of 4 rows are lost", "table: 1 rows are doubled"]),
        ([1, 2, 3, 5], ["table: sum 110 of 4 rows, fed 100 of 4"]),
        ([], ["table: 4 of 4 rows are lost"]),
    ],
)
def test_rows_are_counted_by_another_reader(
    ids: list[int], said: list[str], tmp_path: Path
) -> None:
    source, table = tmp_path / "source", tmp_path / "table" / "checkpoint=1"
    for folder, rows in ((source, [1, 2, 3, 4]), (table, ids)):
        folder.mkdir(parents=True)
        if rows:
            values = pa.table({"id": rows, "value": [10 * row for row in rows]})
            pq.write_table(values, folder / "1.parquet")
    assert table_problems(source, tmp_path / "table") == said


def test_a_line_is_read_once_and_when_it_has_its_end(tmp_path: Path) -> None:
    notes, pages = tmp_path / "history", tmp_path / "pages"
    for folder in (notes, pages):
        folder.mkdir()
    lines = [json.dumps(driver(t, "sent", number=int(t))) for t in (3.0, 1.0)]
    (notes / "a.jsonl").write_text("".join(f"{line}\n" for line in lines) + '{"t": 2.0, "ev')
    (pages / "000000007.json").write_text(json.dumps({"1": page(1, 2, (1, 1))}))
    reader = Reader(notes, pages)
    assert [line["number"] for line in reader.read().of("sent")] == [1, 3]
    with (notes / "a.jsonl").open("a") as file:
        file.write('ent": "sent", "number": 2}\n')
    history = reader.read()
    assert [line["number"] for line in history.of("sent")] == [1, 2, 3]
    assert history.pages == {7: {1: page(1, 2, (1, 1))}}


def test_what_is_committed_while_the_history_is_read_is_no_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history, folder, pages = right(), tmp_path / "history", tmp_path / "pages"
    folder.mkdir()
    pages.mkdir()
    last = max(history.pages)

    def commit_and_read(place: Path) -> Pages:
        """The job completes its last checkpoint while the pages are read."""
        lines = "".join(json.dumps(line) + "\n" for line in history.lines)
        (folder / "all.jsonl").write_text(lines)
        (pages / f"{last}.json").write_text(json.dumps(history.pages[last]))
        return read_pages(place)

    before = [line for line in history.lines if line["t"] < 6.0]
    (folder / "all.jsonl").write_text("".join(json.dumps(line) + "\n" for line in before))
    for number in history.pages.keys() - {last}:
        (pages / f"{number}.json").write_text(json.dumps(history.pages[number]))
    monkeypatch.setattr("tests.nemesis.history.read_pages", commit_and_read)
    judge(Reader(folder, pages).read(), stuck_after_s=STUCK_AFTER_S)
