"""An independent judge of a history, in the manner of Jepsen: what is lost, doubled or stuck.

It knows what the lab's jobs mean and nothing of how they are run: no machine, no store and no
program of epochgate is asked. Each function returns problems as sentences, none for a right
history. Blind spots: what no process wrote down, and orders within one commit of the ingestion.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tests.nemesis.history import History, Line, Pages

PROBLEMS_SHOWN_MAX = 20
WAY_ON = "`epochgate commits give-up "
"""In the reason of a job that cannot commit what was taken out of its table."""


class NotExactlyOnce(AssertionError):
    """The findings of the judge."""


def judge(history: History, *, stuck_after_s: float, failures: Iterable[str] = ()) -> None:
    """Raise NotExactlyOnce if the history is wrong. failures: texts that the reason of a job which
    has failed may have in it.
    """
    problems = [
        *updates_problems(history.pages),
        *epoch_problems(history),
        *told_problems(history),
        *restore_problems(history),
        *stuck_problems(history, stuck_after_s),
        *end_problems(history, tuple(failures)),
    ]
    if problems:
        shown = "\n".join(problems[:PROBLEMS_SHOWN_MAX])
        raise NotExactlyOnce(f"{len(problems)} problems:\n{shown}")


def table_problems(source: Path, table: Path, given_up: Path | None = None) -> list[str]:
    """Compare the rows of the source's files with those of the table, both read by DuckDB: how
    many, how many different ids, and the sum of a column. given_up: holds the files that were taken
    out of the table; their rows are the ones that it lacks.
    """
    import duckdb

    figures = "count(*), count(distinct id), coalesce(sum(value), 0)::hugeint"
    with duckdb.connect() as database:
        for name, place in (("source", source), ("found", table), ("lost", given_up)):
            files = [] if place is None else [str(path) for path in place.glob("**/*.parquet")]
            rows = "read_parquet($files)" if files else "(select 0 as id, 0 as value limit 0)"
            asked = f"create temp table {name} as select id, value from {rows}"
            database.execute(asked, {"files": files} if files else {})
        database.execute("create temp table fed as from source anti join lost using (id)")
        told = [
            database.execute(f"select {figures} from {name}").fetchall()[0]
            for name in ("fed", "found")
        ]
        [(back,)] = database.execute(
            "select count(*) from found semi join lost using (id)"
        ).fetchall()
    (fed, ids, total), (found, found_ids, found_total) = told
    problems = []
    if back:
        problems.append(f"table: {back:,} rows that were given up are there")
    if found_ids < ids:
        problems.append(f"table: {ids - found_ids:,} of {fed:,} rows are lost")
    if found > found_ids:
        problems.append(f"table: {found - found_ids:,} rows are doubled")
    if not problems and (found, found_total) != (fed, total):
        problems.append(f"table: sum {found_total} of {found:,} rows, fed {total} of {fed:,}")
    return problems


def updates_problems(pages: Pages) -> Iterator[str]:
    """Each subtask's rows and updates are there once and in order, and all subtasks have heard the
    same.
    """
    rows: dict[int, int] = {}
    last: dict[int, int] = {}
    marks: dict[int, str] = {}
    for checkpoint in sorted(pages):
        for subtask, held in sorted(pages[checkpoint].items()):
            where = f"subtask {subtask}, checkpoint {checkpoint}"
            for part in held:
                first, to = part["rows"]
                expected = rows.get(subtask, 0) + 1
                if first != expected:
                    yield f"{where}: row {first} came after row {expected - 1}"
                rows[subtask] = to
                for number, mark, row in part["heard"]:
                    before = last.get(subtask, 0)
                    if number != before + 1:
                        yield f"{where}: update {number} came after update {before}"
                    if not first - 1 <= row <= to:
                        yield f"{where}: update {number} came at row {row}, not of {first} to {to}"
                    if marks.setdefault(number, mark) != mark:
                        yield f"{where}: update {number} is of a life that was taken back"
                    last[subtask] = number


def epoch_problems(history: History) -> Iterator[str]:
    """At each checkpoint every subtask has heard what the coordinator had sent before it, and no
    more.
    """
    given_up = {(line["run"], line["checkpoint"]) for line in history.of("aborted")}
    for checkpoint, numbers in sorted(_ends(history.pages).items()):
        sent = {
            line["number"]
            for line in history.of("triggered", checkpoint=checkpoint)
            if (line["run"], checkpoint) not in given_up
        }
        for subtask, (_, number) in numbers.items():
            if number not in sent:
                yield (
                    f"subtask {subtask} has heard {number} updates at checkpoint {checkpoint}, and "
                    f"its coordinator had sent {sorted(sent)}"
                )


def told_problems(history: History) -> Iterator[str]:
    """No checkpoint was told both completed and aborted, and none committed with two contents."""
    told: dict[tuple[str, int], set[str]] = {}
    for line in history.of("completed", "aborted"):
        told.setdefault((line["run"], line["checkpoint"]), set()).add(line["event"])
    for (run, checkpoint), events in told.items():
        if len(events) > 1:
            yield f"checkpoint {checkpoint} of run {run} was told both completed and aborted"
    for line in history.of("conflict"):
        yield f"checkpoint {line['checkpoint']} was committed again with other content"


def restore_problems(history: History) -> Iterator[str]:
    """Restores are from checkpoints that were not told aborted, never behind one that was told
    completed, and have the state of what was committed.
    """
    order = {run: number for number, run in enumerate(history.runs())}
    aborted = {(line["run"], line["checkpoint"]) for line in history.of("aborted")}
    makers: dict[int, list[str]] = {}
    for line in history.of("triggered"):
        makers.setdefault(line["checkpoint"], []).append(line["run"])
    ends = _ends(history.pages)
    for line in history.of("restored"):
        checkpoint = line["checkpoint"]
        if checkpoint == 0:
            continue
        who = _who(line)
        made = [run for run in makers.get(checkpoint, ()) if order[run] <= order[line["run"]]]
        if not made:
            yield f"{who} was restored from checkpoint {checkpoint}, which no driver took"
        elif (max(made, key=order.__getitem__), checkpoint) in aborted:
            yield f"{who} was restored from checkpoint {checkpoint}, which was told aborted"
        end = ends.get(checkpoint, {}).get(line.get("subtask", -1))
        if end is not None and end != (line["row"], line["number"]):
            yield f"{who} was restored from checkpoint {checkpoint} to {end}, but has {line}"
    yield from _behind(history, order)


def _behind(history: History, order: dict[str, int]) -> Iterator[str]:
    told: dict[int | None, list[tuple[tuple[int, float], int]]] = {}
    for line in history.of("completed"):
        told.setdefault(line.get("subtask"), []).append((_life(line, order), line["checkpoint"]))
    for line in history.of("restored"):
        before = [n for at, n in told.get(line.get("subtask"), ()) if at < _life(line, order)]
        if max(before, default=0) > line["checkpoint"]:
            yield (
                f"{_who(line)} was restored from checkpoint {line['checkpoint']}, after "
                f"checkpoint {max(before)} was told completed"
            )


def _life(line: Line, order: dict[str, int]) -> tuple[int, float]:
    """Of a subtask by driver and attempt, since a process that was replaced may open late; of a
    coordinator by driver and time.
    """
    return order[line["run"]], line["attempt"] if "subtask" in line else line["t"]


def stuck_problems(history: History, stuck_after_s: float) -> Iterator[str]:
    """Whenever all faults are healed, both jobs commit within the bound."""
    for began, ended in quiet_times(history):
        if ended - began <= stuck_after_s:
            continue
        for job in sorted({line["job"] for line in history.of("job:Committed")}):
            commits = [c.t for c in history.commits(job) if c.begun > began]
            if not commits or commits[0] > began + stuck_after_s:
                waited = (min([*commits, ended])) - began
                yield f"{job} was stuck: no commit in {waited:.1f} s after all was healed"


def quiet_times(history: History) -> Iterator[tuple[float, float]]:
    """From the healing of all faults to the next fault, or to the end of the history; what follows
    a stop of the jobs is not looked at.
    """
    active, began = 0, None
    for line in history.of("fault", "healed", "stopping"):
        if line["event"] == "healed":
            active -= 1
            began = line["t"] if active == 0 else None
            continue
        if began is not None:
            yield began, line["t"]
        began = None
        active += line["event"] == "fault"
    if began is not None and history.lines:
        yield began, history.lines[-1]["t"]


def end_problems(history: History, failures: tuple[str, ...]) -> Iterator[str]:
    """Jobs end when they are asked to, and with success; an ingestion whose table was set back
    fails until what it cannot commit any more is given up.
    """
    is_set_back = False
    for line in history.of("ended", "set_back", "given_up"):
        if line["event"] != "ended":
            is_set_back = line["event"] == "set_back"
            continue
        expected = [*failures, *([WAY_ON] if is_set_back and line["job"] == "ingest" else [])]
        reason = str(line["reason"])
        if line["state"] != "finished" and not any(text in reason for text in expected):
            yield f"{line['job']} has {line['state']}: {reason}"


def _ends(pages: Pages) -> dict[int, dict[int, tuple[int, int]]]:
    """Checkpoint -> subtask -> the last row and the last update up to it."""
    row: dict[int, int] = {}
    last: dict[int, int] = {}
    ends: dict[int, dict[int, tuple[int, int]]] = {}
    for checkpoint in sorted(pages):
        for subtask, held in pages[checkpoint].items():
            for part in held:
                row[subtask] = part["rows"][1]
                if part["heard"]:
                    last[subtask] = part["heard"][-1][0]
        ends[checkpoint] = {s: (row[s], last.get(s, 0)) for s in row if s in pages[checkpoint]}
    return ends


def _who(line: Line) -> str:
    values: dict[str, Any] = line
    if "subtask" not in values:
        return f"the coordinator of run {values['run']}"
    return f"attempt {values['attempt']} of subtask {values['subtask']}, run {values['run']}"
