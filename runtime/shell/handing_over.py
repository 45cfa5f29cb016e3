"""What the operators of a subtask hand over at a barrier, looked at before it travels, and the
events that they have sent, looked at once they could not be packed.

Decides who is named when something cannot travel: the operator, its method, and the row. What is
handed over at a barrier is packed once more for that, which costs less than a millisecond for some
thousand rows. Pure; runs in the task.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgpack

from epochgate.runtime.api.operator import FatalTaskError, Operator
from epochgate.runtime.api.plain_values import insist_on_plain
from epochgate.runtime.api.state_versions import Versioned, with_version
from epochgate.runtime.api.transport import Message


def committables_of(operators: Mapping[str, Operator], checkpoint_id: int) -> list[Any]:
    """What all of them hand over to be committed. Raises ValueNotPlain, which names the row, and
    FatalTaskError for what is no list.
    """
    found: list[Any] = []
    for operator_id, operator in operators.items():
        rows: Any = operator.prepare_commit(checkpoint_id)
        if not isinstance(rows, Iterable):
            raise FatalTaskError(
                f"prepare_commit of operator {operator_id!r} returned {rows!r}, and must return a "
                "list of plain values, an empty one for nothing"
                + ("; is a `return` missing?" if rows is None else "")
            )
        rows = list(rows)
        _insist_on_plain_rows(operator_id, rows)
        found += rows
    return found


def _insist_on_plain_rows(operator_id: str, rows: list[Any]) -> None:
    try:
        msgpack.packb(rows)
    except (TypeError, ValueError, OverflowError, RecursionError):
        for number, row in enumerate(rows):
            insist_on_plain(f"row {number} of prepare_commit of operator {operator_id!r}", row)
        raise


def states_of(operators: Mapping[str, Operator], checkpoint_id: int) -> dict[str, Versioned]:
    """The snapshots by operator id, with their versions. Raises FatalTaskError for one that is no
    bytes.
    """
    states = {}
    for operator_id, operator in operators.items():
        state: Any = operator.snapshot(checkpoint_id)
        if not isinstance(state, bytes | bytearray):
            raise FatalTaskError(
                f"snapshot of operator {operator_id!r} returned {state!r}, a "
                f"{type(state).__name__}, and must return bytes: pack it with msgpack or json, or "
                'return b"" for no state'
            )
        states[operator_id] = with_version(operator.state_version, bytes(state))
    return states


def insist_on_plain_events(messages: Iterable[Message], coordinators: Sequence[str]) -> None:
    """Raise ValueNotPlain, which names the operator, for an event of user code that is not plain;
    `coordinators` are the operator ids in the job's order.
    """
    for tag, *arguments in messages:
        if tag in ("event", "registered_event"):
            operator_id = coordinators[arguments[0]]
            insist_on_plain(
                f"an event of operator {operator_id!r} to its coordinator", arguments[-1]
            )
