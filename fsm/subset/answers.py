"""Messages that can fail: each row sends at most one, as its last, and awaits each of its answers.

Decides that a machine tells the outside nothing behind a message that may fail, and that the state
in which the answer finds the machine has a row for each answer. `ports.fallible` declares which
messages these are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from epochgate.fsm.declaration import expand
from epochgate.fsm.errors import DeclarationError
from epochgate.fsm.ports import Answers, Port
from epochgate.fsm.rows import Row
from epochgate.fsm.subset import tree
from epochgate.fsm.subset.names import OutputPort

if TYPE_CHECKING:
    from epochgate.fsm.machine import Machine
    from epochgate.fsm.subset.checks import Subset

Sent = tuple[str, type[Port], str]
"""A message in the order in which a row sends it: port, its class, message."""


def check(machine: type[Machine], subset: Subset) -> None:
    """Raise DeclarationError for a row that sends on behind a fallible message, or whose state
    lacks a row for an answer.
    """
    if not any(_answers_of(field.port) for field in machine.PORTS.values()):
        return
    for row in machine.ROWS:
        sent = [s for name in row.actions for s in _sent(machine, name, subset)]
        for position, (port, kind, message) in enumerate(sent):
            answers = kind.answers(message)
            if answers is None:
                continue
            if position + 1 < len(sent):
                _refuse_followed(machine, row, sent[position], sent[position + 1])
            _insist_on_answers(machine, row, f"{port}.{message}", answers)


def _answers_of(port: type[Port]) -> list[Answers]:
    return [a for a in map(port.answers, port.messages()) if a is not None]


def _sent(machine: type[Machine], name: str, subset: Subset) -> Iterator[Sent]:
    """The messages that one method sends, with those of the methods that it calls; what stands in
    a loop twice, since it may be sent again.
    """
    yield from _in(machine, subset.tree(machine, name).body, subset)


def _in(
    machine: type[Machine], statements: Iterable[tree.Statement], subset: Subset
) -> Iterator[Sent]:
    for statement in statements:
        match statement:
            case tree.ForRange(body=body) | tree.ForItems(body=body):
                for _ in range(2):
                    yield from _in(machine, body, subset)
            case tree.If(then=then, otherwise=otherwise):
                branches = [[*_in(machine, branch, subset)] for branch in (then, otherwise)]
                yield from max(branches, key=_weight)
            case tree.Do(call=tree.Call() as call):
                yield from _of_call(machine, call, subset)


def _weight(sent: list[Sent]) -> tuple[int, int]:
    """Of two branches the one with more that may fail counts, then the longer one."""
    return sum(kind.answers(message) is not None for _, kind, message in sent), len(sent)


def _of_call(machine: type[Machine], call: tree.Call, subset: Subset) -> Iterator[Sent]:
    callee, owner = call.callee, call.owner
    if callee.sort == "message" and isinstance(owner.place, OutputPort):
        port = owner.name if isinstance(owner, tree.PortOf) else owner.text
        yield port, owner.place.port, callee.name
    elif callee.sort == "method" and callee.machine is machine:
        yield from _sent(machine, callee.name, subset)


def _refuse_followed(machine: type[Machine], row: Row, sent: Sent, following: Sent) -> None:
    (port, _, message), (next_port, _, next_message) = sent, following
    raise DeclarationError(
        f"{machine.__module__}.{machine.__name__}: row {row.trigger!r} from {row.source!r} sends "
        f"{next_port}.{next_message} behind {port}.{message}, which may fail; send it in the row "
        f"of an answer"
    )


def _insist_on_answers(machine: type[Machine], row: Row, message: str, answers: Answers) -> None:
    states = expand(machine.STATES, row) if row.dest is None else (row.dest,)
    for state in states:
        missing = [name for name in answers.all if name not in machine.accepted(state)]
        if missing:
            raise DeclarationError(
                f"{machine.__module__}.{machine.__name__}: row {row.trigger!r} from "
                f"{row.source!r} sends {message}, whose answers {', '.join(missing)} have no row "
                f"in {state!r}; add one for each, or an Ignore with its reason"
            )
