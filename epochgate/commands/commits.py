"""`epochgate commits`: a job's commits in doubt, listed, committed or given up by hand."""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from epochgate.commands.checkpoints import NoCheckpoint, checkpoints_of, stored_at
from epochgate.commands.status import aligned
from epochgate.console import say
from epochgate.errors import UsageError
from epochgate.exit_codes import codes_of
from epochgate.runtime.durations import clock

if TYPE_CHECKING:
    from epochgate.runtime import Committables, Committer, Sink, SinkStart
    from epochgate.runtime.store import CheckpointStore, CompletedCheckpoint

ACTIONS = ("list", "show", "commit", "give-up")

HELP = "list, commit or give up a job's commits in doubt"
DESCRIPTION = """\
List the commits of a job that are in doubt: those in its newest checkpoint that
are not known to be done. Each start of the job repeats them, which changes
nothing if they were done. If the job cannot start because its commits fail,
commit them here when the target accepts them, or give them up."""

EPILOG = f"""\
examples:
  epochgate commits list table                 of `epochgate ingest incoming table`
  epochgate commits show table 12              file by file
  epochgate commits commit table               as the next start would
  epochgate commits commit DIR --target delta:/data/events
  epochgate commits commit DIR --sink my_sink:make       a function that gives a Sink
  epochgate commits give-up table 12 13        the next start does not commit these:
                                               their rows are lost
  epochgate commits give-up table --all
  epochgate commits give-up table --after 7    the table was set back to checkpoint 7: the
                                               next start takes it so, its lost rows are given up

list and show may be used while the job runs. commit and give-up lock the checkpoints as a
driver does. In a directory they are refused while the job runs. An object store cannot
tell whether a job runs, so end the job first.
{codes_of("commits")}"""


class SinkUnknown(UsageError):
    """It was not said where to commit, or --sink names no sink."""


class NotSaidWhich(UsageError):
    """The commits to give up were not said."""


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument("action", choices=ACTIONS, metavar="ACTION", help=", ".join(ACTIONS))
    parser.add_argument(
        "place",
        metavar="DIR",
        help="a target of `epochgate ingest`, the working directory beside it, a directory of "
        "checkpoints, or the URL of a target or of checkpoints in an object store",
    )
    parser.add_argument("ids", type=int, nargs="*", metavar="ID", help="of checkpoints")
    parser.add_argument("--all", action="store_true", help="give up all commits in doubt")
    parser.add_argument(
        "--after",
        type=int,
        metavar="ID",
        help="give up the committed checkpoints after ID that the target lacks since it was set "
        "back; a start that refuses such a target names ID",
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--target",
        metavar="TARGET",
        help="the TARGET of `epochgate ingest` (default: DIR, if that is a target)",
    )
    where.add_argument("--sink", metavar="NAME", help="a sink of your own: module:function")
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")


def run(arguments: argparse.Namespace) -> int:
    """Do it."""
    from epochgate.runtime.store.checkpoint import in_doubt

    newest = _newest(arguments.place)
    held = in_doubt(newest)
    wanted = set(arguments.ids)
    if arguments.action in ("list", "show"):
        shown = {n: part for n, part in held.items() if not wanted or n in wanted}
        if arguments.json:
            print(json.dumps(_plain(newest, shown)))
        else:
            lines = listed(newest, shown) if arguments.action == "list" else told(shown)
            say(lines)
        return 0
    if arguments.after is not None and arguments.action == "give-up":
        return _give_up_missing(arguments, newest)
    if not held:
        say([f"checkpoint {newest.checkpoint_id} of job {newest.job_id}: nothing is in doubt"])
        return 0
    done = (_commit if arguments.action == "commit" else _give_up)(arguments, newest)
    if arguments.json:
        print(json.dumps(_plain(newest, done)))
        return 0
    if arguments.action == "commit":
        print(f"committed: {_named(done)}, {_sum(done)}")
    else:
        print(f"given up: {_named(done)}. Lost unless they were committed before: {_sum(done)}")
        print("the source is not read again for them; the next start of the job goes on behind")
    return 0


def _newest(place: str) -> CompletedCheckpoint:
    where = checkpoints_of(place)
    whole = [one for one in stored_at(where) if not one.is_aside]
    if not whole:
        raise NoCheckpoint(f"{where} holds no checkpoint that can be read back to")
    return whole[-1].load()


def _store(place: str, newest: CompletedCheckpoint) -> CheckpointStore:
    from epochgate.runtime.store.opening import open_checkpoints

    return open_checkpoints(checkpoints_of(place), newest.job_id)


def _commit(arguments: argparse.Namespace, newest: CompletedCheckpoint) -> dict[int, Committables]:
    from epochgate.runtime.in_doubt import commit_in_doubt

    if arguments.ids or arguments.all or arguments.after is not None:
        raise UsageError("commit takes no IDs: checkpoints are committed in order, and all of them")
    create = _creator(arguments, newest)
    store = _store(arguments.place, newest)
    try:
        return commit_in_doubt(store, create, time.time)
    finally:
        store.close()


def _give_up(arguments: argparse.Namespace, newest: CompletedCheckpoint) -> dict[int, Committables]:
    from epochgate.runtime.in_doubt import give_up

    if bool(arguments.ids) == arguments.all:
        raise NotSaidWhich(
            "say which checkpoints to give up, by their IDs or --all: their rows are lost, unless "
            "they were committed before. `epochgate commits list` names those in doubt"
        )
    store = _store(arguments.place, newest)
    try:
        return give_up(store, arguments.ids or None, time.time())
    finally:
        store.close()


def _give_up_missing(arguments: argparse.Namespace, newest: CompletedCheckpoint) -> int:
    from epochgate.runtime.in_doubt import give_up_missing

    after: int = arguments.after
    if arguments.ids or arguments.all:
        raise UsageError(
            "--after ID gives up what was committed and is missing from the target; give up "
            "commits in doubt, by their IDs or --all, in a command of its own"
        )
    store = _store(arguments.place, newest)
    try:
        upto = give_up_missing(store, after, time.time())
    finally:
        store.close()
    if arguments.json:
        given_up = {"after": after, "upto": upto}
        print(json.dumps({"job_id": newest.job_id, "missing": given_up}))
        return 0
    print(f"given up: what the target lacks of the checkpoints after {after}, up to {upto}")
    print("the source is not read again for them; the next start of the job goes on behind")
    return 0


def _creator(
    arguments: argparse.Namespace, newest: CompletedCheckpoint
) -> Callable[[SinkStart], Committer]:
    """Return the maker of the committer of the sink."""
    from epochgate.commands.named_class import named_class
    from epochgate.runtime import Sink

    place, sink, target = arguments.place, arguments.sink, arguments.target
    if sink is not None:
        _, name, make = named_class(sink, SinkUnknown)
        made: Sink | Any = make() if callable(make) else make
        if not isinstance(made, Sink):
            raise SinkUnknown(f"--sink {sink}: {name} gives {made!r}, expected a Sink")
        return made.create_committer
    if target is None and not _is_target(place):
        raise SinkUnknown(
            f"{place} holds checkpoints, and does not say where their job commits: give --target, "
            "or --sink with module:function"
        )
    return _of_ingest(place if target is None else target, newest)


def _is_target(place: str) -> bool:
    """Return whether the checkpoints lie beside `place`, as they do for a target."""
    from epochgate.runtime.objects.client import is_url
    from epochgate.spark.parquet_sink import working_directory_of

    if is_url(place):
        return checkpoints_of(place) != place
    beside = os.path.join(working_directory_of(os.path.abspath(place)), "checkpoints")
    return checkpoints_of(place) == beside


def _of_ingest(target: str, newest: CompletedCheckpoint) -> Callable[[SinkStart], Committer]:
    """The committer of an ingestion into `target`, with its table of rejected rows, if any."""
    from epochgate.runtime.objects.client import open_url
    from epochgate.runtime.store.checkpoint import in_doubt
    from epochgate.spark.ingest.after_commit import readable
    from epochgate.spark.ingest.options import IngestOptions
    from epochgate.spark.ingest.rejects import REJECTS, claim_both, reject_sink
    from epochgate.spark.ingest.targets import sink_of

    values = [v for part in in_doubt(newest).values() for held in part.values() for v in held]
    found = [one for one in map(readable, values) if one is not None]
    names = {_partition(name) for one in found if one.label != REJECTS for name in one.files}
    options = IngestOptions(
        ".",
        target,
        partition_by=next(iter(names), ()),
        on_bad_row="reject" if any(one.label == REJECTS for one in found) else "fail",
    )
    sink = sink_of(options, None, open_url)
    rejects = reject_sink(options, None, open_url)
    return lambda start: claim_both(sink, rejects, start)


def _partition(file: str) -> tuple[str, ...]:
    """The columns by which a file is partitioned.

    >>> _partition("country=DE/day=1/part-0.parquet")
    ('country', 'day')
    """
    return tuple(part.partition("=")[0] for part in file.split("/")[:-1])


def listed(newest: CompletedCheckpoint, held: dict[int, Committables]) -> Iterator[str]:
    """The text of `list`, line by line."""
    from epochgate.runtime.in_doubt import given_up_in
    from epochgate.runtime.store.checkpoint import debts_of, missing_of

    now = time.time()
    taken = clock(newest.created_at, now)
    yield f"checkpoint {newest.checkpoint_id} of job {newest.job_id}, taken {taken}"
    if not held:
        yield "nothing is in doubt"
    else:
        rows = [("in doubt", "sink", "committables", "rows")]
        for number, part in held.items():
            for label, values in _by_sink(part).items():
                rows.append((str(number), label, f"{len(values):,}", _rows(values)))
        yield from aligned(rows)
        yield "each start commits these again; what is committed is not changed by that"
    if debts := sorted(debts_of(newest)):
        yield f"work after the commit is owed for: {', '.join(map(str, debts))}"
    for after, upto, at_s in missing_of(newest):
        yield f"given up {clock(at_s, now)}: what the target lacks after {after}, up to {upto}"
    for number, flat, at_s in given_up_in(newest):
        yield f"given up {clock(at_s, now)}: {number}, {_sum({number: dict(flat)})}"


def told(held: dict[int, Committables]) -> Iterator[str]:
    """The text of `show`, line by line."""
    if not held:
        yield "nothing is in doubt"
    rows = [("in doubt", "subtask", "rows", "")]
    for number, part in held.items():
        for subtask in sorted(part):
            for value in part[subtask]:
                count, what = _readable(value)
                rows.append((str(number), str(subtask), count, what))
    if len(rows) > 1:
        yield from aligned(rows)


def _readable(value: Any) -> tuple[str, str]:
    from epochgate.commands.checkpoints import plain
    from epochgate.spark.ingest.after_commit import readable

    one = readable(value)
    if one is None:
        return "-", json.dumps(plain(value))
    return f"{one.rows:,}", one.what if one.label == "rows" else f"{one.what} ({one.label})"


def _by_sink(part: Committables) -> dict[str, list[Any]]:
    from epochgate.runtime.api.sinks_of_one_job import label_of

    found: dict[str, list[Any]] = {}
    for values in part.values():
        for value in values:
            found.setdefault(label_of(value, "-")[0], []).append(value)
    return found


def _rows(values: list[Any]) -> str:
    """Tell how many rows they have; "-" where that is not known of all."""
    from epochgate.spark.ingest.after_commit import readable

    found = [readable(value) for value in values]
    return "-" if None in found else f"{sum(one.rows for one in found if one):,}"


def _named(held: dict[int, Committables]) -> str:
    numbers = ", ".join(map(str, held))
    return f"checkpoint {numbers}" if len(held) == 1 else f"checkpoints {numbers}"


def _sum(held: dict[int, Committables]) -> str:
    values = [value for part in held.values() for some in part.values() for value in some]
    rows = _rows(values)
    return f"{len(values):,} committables" + ("" if rows == "-" else f" with {rows} rows")


def _plain(newest: CompletedCheckpoint, held: dict[int, Committables]) -> dict[str, Any]:
    from epochgate.commands.checkpoints import plain

    return {
        "job_id": newest.job_id,
        "checkpoint_id": newest.checkpoint_id,
        "checkpoints": {str(number): plain(part) for number, part in held.items()},
    }
