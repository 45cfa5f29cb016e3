"""`epochgate control`: what steers streaming queries, which batch saw what, and a change of it."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from epochgate.commands.assignments import AssignmentRefused, assigned
from epochgate.commands.status import aligned
from epochgate.console import say
from epochgate.exit_codes import codes_of

if TYPE_CHECKING:
    from epochgate.runtime.entries.stores import Entries
    from epochgate.runtime.steering.deciding import Decision
    from epochgate.runtime.steering.history import Update

ACTIONS = ("list", "show", "set")
SHOWN = 10

HELP = "show and change the controls of streaming queries"
DESCRIPTION = """\
Show the controls in a store: their values, their updates, and the values of each
batch of each query. `set` changes values like `Control.update`: running queries
see them from the next planned batch on."""

EPILOG = f"""\
examples:
  epochgate control list controls            every control in the directory
  epochgate control show controls pricing    its updates, and the newest batches
  epochgate control set s3://jobs/controls pricing limit=700 mode='"strict"'
                                             values are JSON

{codes_of("control")}"""


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument("action", choices=ACTIONS, metavar="ACTION", help=", ".join(ACTIONS))
    parser.add_argument("store", metavar="STORE", help="the directory or URL of the controls")
    parser.add_argument("control", nargs="?", metavar="CONTROL", help="of show and set")
    parser.add_argument("values", nargs="*", metavar="NAME=JSON", help="of set")
    parser.add_argument(
        "--query", metavar="ID", help="of show: this query alone (default: all of them)"
    )
    parser.add_argument("--all", action="store_true", help=f"all that is kept, not {SHOWN} of each")
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")


def run(arguments: argparse.Namespace) -> int:
    """Do it. Raises ControlMissing, AssignmentRefused, and what the store raises."""
    from epochgate.errors import EpochgateError
    from epochgate.runtime.entries.stores import open_entries

    entries = open_entries(arguments.store)
    try:
        return _ACTIONS[arguments.action](entries, arguments)
    except (OSError, ValueError) as error:
        raise EpochgateError(f"{arguments.store} cannot be read: {error}") from error


def _list(entries: Entries, arguments: argparse.Namespace) -> int:
    from epochgate.runtime.steering import Versions
    from epochgate.runtime.steering.layout import controls_in, queries_of

    found: list[dict[str, Any]] = []
    for control in controls_in(entries):
        version, value = Versions(entries, control).newest()
        queries = queries_of(entries, control)
        found.append({"control": control, "version": version, "value": value, "queries": queries})
    if arguments.json:
        print(json.dumps(found, default=repr))
    elif not found:
        print(f"{arguments.store} has no controls")
    else:
        rows = [
            [one["control"], str(one["version"]), _told(one["value"]), str(len(one["queries"]))]
            for one in found
        ]
        say(aligned([["control", "version", "updated values", "queries"], *rows]))
    return 0


def _show(entries: Entries, arguments: argparse.Namespace) -> int:
    from dataclasses import asdict

    from epochgate.runtime.steering import QueryUnknown, decisions, updates
    from epochgate.runtime.steering.layout import foreign_in, queries_of

    control = _existing(entries, arguments)
    ignored = foreign_in(entries, control)
    found = updates(entries, control)
    queries = queries_of(entries, control)
    if arguments.query and arguments.query not in queries:
        raise QueryUnknown(
            f"no batch of query {arguments.query!r} was decided by {control}; it has the queries "
            f"{', '.join(queries) or '(none so far)'}"
        )
    wanted = [arguments.query] if arguments.query else queries
    seen = {query: decisions(entries, control, query) for query in wanted}
    if arguments.json:
        shown = {
            "control": control,
            "updates": [asdict(one) for one in found],
            "queries": {query: list(map(_decided, of)) for query, of in seen.items()},
            "ignored": ignored,
        }
        print(json.dumps(shown, default=repr))
        return 0
    shown_max = None if arguments.all else SHOWN
    lines = [f"control {control} in {arguments.store}", "", *_updates(found, shown_max)]
    for query, of in seen.items():
        lines += ["", f"query {query}", *_batches(of, shown_max)]
    if ignored:
        lines += ["", "ignored, of others than epochgate:", *ignored]
    say(lines)
    return 0


def _set(entries: Entries, arguments: argparse.Namespace) -> int:
    from epochgate.runtime.steering import Updating
    from epochgate.runtime.steering.accepting import author, in_force, insist_on_fit
    from epochgate.runtime.steering.values import checked

    control = _existing(entries, arguments)
    changes = checked(control, dict(map(assigned, arguments.values)))
    known = in_force(entries, arguments.store, control)
    if not changes or not changes.keys() <= known.keys():
        wrong = sorted(changes.keys() - known.keys())
        raise AssignmentRefused(
            f"{f'{control} has no value {wrong[0]!r}' if wrong else 'nothing is to be set'}; give "
            f"NAME=JSON, with a name of {', '.join(sorted(known))}"
        )

    def accept(newest: dict[str, Any], changes: dict[str, Any]) -> None:
        insist_on_fit(control, {**known, **newest}, changes)

    updating = Updating(entries, arguments.store, control, author(), accept=accept)
    version = updating.update(changes)
    if arguments.json:
        print(json.dumps({"control": control, "version": version, "changes": changes}))
    else:
        print(f"update {version} of {control}: {_told(changes)}, from the next batch on")
    return 0


_ACTIONS: dict[str, Callable[[Entries, argparse.Namespace], int]] = {
    "list": _list,
    "show": _show,
    "set": _set,
}


def _existing(entries: Entries, arguments: argparse.Namespace) -> str:
    from epochgate.runtime.steering.errors import ControlMissing
    from epochgate.runtime.steering.layout import controls_in

    there = controls_in(entries)
    if arguments.control not in there:
        raise ControlMissing(arguments.store, arguments.control or "", there)
    return str(arguments.control)


def _updates(found: Sequence[Update], shown_max: int | None) -> list[str]:
    if not found:
        return ["no updates: every batch runs with the initial value"]
    rows = [
        [str(one.version), _clock(one.updated_at), _told(one.changes), one.updated_by]
        for one in _last(found, shown_max)
    ]
    return [*aligned([["update", "at", "changes", "by"], *rows]), *_more(found, shown_max)]


def _batches(found: Sequence[Decision], shown_max: int | None) -> list[str]:
    shown = _last(found, shown_max)
    rows = [
        [str(one.batch), str(one.version), str(one.since), _clock(one.decided_at), _told(one.value)]
        for one in shown
    ]
    header = ["batch", "update", "since batch", "decided at", "ran with"]
    if any(one.state for one in shown):
        header.append("chosen by")
        for row, one in zip(rows, shown, strict=True):
            row.append(_state(one))
    return [*aligned([header, *rows]), *_more(found, shown_max)]


def _state(one: Decision) -> str:
    from epochgate.runtime.api.reports import size

    state = one.state
    return "" if state is None else f"{state.operator_id} (state: {size(len(state.data))})"


def _decided(one: Decision) -> dict[str, Any]:
    """As JSON has it: of a coordinator's state its size."""
    from dataclasses import asdict

    shown = asdict(one)
    if one.state is not None:
        shown["state"] |= {"data": len(one.state.data)}
    return shown


def _last(found: Sequence[Any], shown_max: int | None) -> Sequence[Any]:
    return found if shown_max is None else found[-shown_max:]


def _more(found: Sequence[Any], shown_max: int | None) -> list[str]:
    if shown_max is None or len(found) <= shown_max:
        return []
    return [f"({len(found) - shown_max} older ones: --all)"]


def _clock(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))


def _told(value: dict[str, Any]) -> str:
    told = json.dumps(value, default=repr)
    return told if len(told) <= 60 else f"{told[:57]}..."
