"""The tables of the page: speed beside the others', and what kills have left."""

from __future__ import annotations

import statistics

from epochgate.benchmarks.figures import Table, number, spread
from epochgate.benchmarks.peers.loaders import OURS, Loader
from epochgate.benchmarks.peers.measuring import KILLS_PER_LOAD, Effort, Samples

QUESTIONS = ("speed", "kills")
"""The tables in the order of the page."""
Results = dict[Loader, Samples]
REASON_SHOWN = 160


def _reason(said: str) -> str:
    """The last line of what a loader said, as a cell of a table."""
    lines = [line for line in said.splitlines() if line.strip()]
    return (lines[-1] if lines else "no word")[:REASON_SHOWN].replace("|", "/")


def _ours(results: Results, beside: Loader) -> Samples | None:
    """Our run from the same files into the same kind of table."""
    for one, samples in results.items():
        if (one.name, one.into, one.kind) == (OURS, beside.into, beside.kind):
            return samples
    return None


def speed(results: Results, effort: Effort) -> Table:
    """Rows a second of whole commands, their processor time, and how ours compare."""
    rows = list[tuple[str, ...]]()
    total = effort.files * effort.rows_per_file
    for one, samples in results.items():
        if samples.failure or not samples.whole:
            rows.append((one.title, *["–"] * 5, _reason(samples.failure)))
            continue
        ours = None if one.name == OURS else _ours(results, one)
        rows.append(
            (
                one.title,
                spread([total / taken.seconds for taken in samples.whole]),
                number(statistics.median(taken.seconds for taken in samples.idle)),
                number(statistics.median(taken.processor_s for taken in samples.whole)),
                *(
                    "" if ours is None or not ours.whole else number(by(samples) / by(ours))
                    for by in (_whole_s, _net_s, _processor_s)
                ),
            )
        )
    return Table(
        question=QUESTIONS[0],
        title=f"The same {total:,} rows in {effort.files} files",
        header=(
            "",
            "rows/s of the whole command, median (least to greatest)",
            "a file of one row, s",
            "processor time, s",
            "epochgate against it",
            "without what one row takes",
            "by processor time",
        ),
        rows=tuple(rows),
        notes=(
            f"Rounds: {effort.rounds}, in turn, every second one in reverse; each loads into an "
            "empty place, and what is there is counted. A command that loads a file of one row "
            "takes what starting takes, of epochgate that of a JVM and of Spark. Above 1, "
            "epochgate takes less. The server's processor time is not counted."
        ),
    )


def _whole_s(samples: Samples) -> float:
    return statistics.median(taken.seconds for taken in samples.whole)


def _net_s(samples: Samples) -> float:
    return max(0.01, _whole_s(samples) - statistics.median(one.seconds for one in samples.idle))


def _processor_s(samples: Samples) -> float:
    return statistics.median(taken.processor_s for taken in samples.whole)


def kills(results: Results, effort: Effort) -> Table:
    """Lost and doubled rows."""
    rows = list[tuple[str, ...]]()
    for one, samples in results.items():
        torn, why = samples.killed, samples.failure or "".join(samples.killed.failures[:1])
        if not torn.loads:
            rows.append((one.title, "–", "–", "–", "–", _reason(why)))
            continue
        told = f"{len(torn.failures)}: {_reason(why)}" if torn.failures else "0"
        rows.append(
            (
                one.title,
                *(f"{count:,}" for count in (torn.loads, torn.kills, torn.lost, torn.doubled)),
                told,
            )
        )
    total = effort.killed_files * effort.killed_rows_per_file
    return Table(
        question=QUESTIONS[1],
        title=f"Killed at random moments, {total:,} rows in {effort.killed_files} files a load",
        header=("", "loads", "kills", "rows lost", "rows doubled", "starts that failed after"),
        rows=tuple(rows),
        notes=(
            f"In each load the command and all that it has started are killed (SIGKILL) "
            f"{KILLS_PER_LOAD} times, at moments drawn between the end of its start and the time "
            "of a whole load, unless it is done by then; then it runs to its end, and once more. "
            "DuckDB and PostgreSQL count the rows, and the numbers that they have."
        ),
    )
