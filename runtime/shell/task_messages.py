"""The messages that a process of a task may send: one table of every message, its arguments, and
the trigger of the attempt that it becomes.

Decides the form of messages and nothing of their meaning: types, lengths and ranges. The sender of
a message is authenticated, its code may be broken; what does not have the declared form must not
get as far as the machines, where it would break the whole job. Runs on the transport's thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from epochgate.runtime.api.committing import Share, StepOutcome
from epochgate.runtime.api.receipts import RegisteredEvent
from epochgate.runtime.api.reports import shortened
from epochgate.runtime.api.state_versions import Versioned
from epochgate.runtime.store.checkpoint import CHECKPOINT_ID_MAX, problem_of_values

Check: TypeAlias = Callable[[list[Any]], bool]

INT_MAX = 2**64 - 1
"""The greatest number that msgpack carries."""
VERSION_MAX = 2**31 - 1
SHOWN_MAX = 80


@dataclass(frozen=True)
class Argument:
    """The type of one argument of a message.

    name: what it is, for errors.
    types: its exact type is one of these, so that no bool passes for an int; none: any plain value.
    least, most: the range of an int.
    values: of a map: keys are str, and the exact types of its values are these.
    is_versioned: a value of a map may be [version, bytes] instead.
    """

    name: str
    types: tuple[type, ...] = ()
    least: int = 0
    most: int = INT_MAX
    values: tuple[type, ...] = ()
    is_versioned: bool = False

    def check_at(self, position: int) -> Check | None:
        """The fastest way to tell whether the value at this position of a message fits; None when
        every value does.
        """
        if self.types == (int,):
            least, most = self.least, self.most
            return lambda message: (
                type(message[position]) is int and least <= message[position] <= most
            )
        if not self.types:
            return None
        types, problem_with = self.types, self.problem_with
        if not self.values:
            return lambda message: type(message[position]) in types
        # What is empty holds nothing wrong.
        return lambda message: (
            type(message[position]) in types
            and (not message[position] or problem_with(message[position]) is None)
        )

    def problem_with(self, value: Any) -> str | None:
        """Return why `value` does not fit, or None."""
        if self.types and type(value) not in self.types:
            return f"{_described(value)} as {self.name}, expected {_named(self.types)}"
        if self.types == (int,) and not self.least <= value <= self.most:
            return f"{value} as {self.name}, expected {self.least} to {self.most}"
        if self.values:
            for key, held in value.items():
                is_right = type(held) in self.values or (self.is_versioned and _is_versioned(held))
                if type(key) is not str or not is_right:
                    return (
                        f"{_described(key)} with {_described(held)} in {self.name}, expected a str "
                        f"with {_named(self.values)}"
                    )
        return None


@dataclass(frozen=True)
class Form:
    """One message: its arguments, the trigger of the attempt that it becomes, and how its arguments
    become the trigger's, given the subtask that sent them; None: as they are.
    """

    trigger: str
    arguments: tuple[Argument, ...] = ()
    becomes: Callable[..., tuple[Any, ...]] | None = None


NUMBER = Argument("its number", (int,), least=1)
CHECKPOINT = Argument("a checkpoint", (int,), least=1, most=CHECKPOINT_ID_MAX)
EVENT = Argument("an event")
REASON = Argument("a reason", (str,))
STATES = Argument("the operators' states", (dict,), values=(bytes,), is_versioned=True)
COMMITTABLES = Argument("committables", (list,))
SHARES = Argument("shares", (list,))
SHARE = (
    Argument("the subtask of a share", (int,)),
    Argument("what is left of a share", (list,)),
    Argument("whether a share is prepared", (bool,)),
    Argument("what is committed of a share", (list,)),
    Argument("the number that failed of a share", (int,)),
    Argument("what a share passes on", (list, type(None))),
    Argument("the number that a share keeps no more", (int,)),
)
"""One share as it travels."""
TRIES = Argument("a number of tries", (int,))
COUNT = Argument("a count", (int,))
WARNINGS = Argument("warnings", (list,))
COUNTERS = Argument("counters", (dict,), values=(int, float))


def forms_of(coordinators: int) -> dict[str, Form]:
    """Every message that a process may send in a job with this many coordinators, by its tag."""
    coordinator = Argument("a coordinator", (int,), most=coordinators - 1)
    is_final = Argument("whether it is the last of this subtask", (bool,))
    is_fatal = Argument("whether no attempt could go on", (bool,))
    return {
        "initialize": Form("initialize"),
        "run": Form("run"),
        "confirm": Form("confirm", (coordinator, NUMBER)),
        "event": Form("operator_event", (coordinator, EVENT)),
        "registered_event": Form("operator_event", (coordinator, NUMBER, EVENT), _registered),
        "acknowledge": Form(
            "acknowledge", (CHECKPOINT, is_final, STATES, COMMITTABLES), _acknowledged
        ),
        "decline": Form("decline", (CHECKPOINT, REASON), _declined),
        "ended": Form("end_of_input"),
        "failed": Form("fail", (REASON, is_fatal), _failed),
        "finished": Form("finish"),
        "metrics": Form("metrics", (COUNTERS,)),
        # Taken from whom figures are taken.
        "warning": Form("metrics", (REASON,), _warned),
    }


def forms_of_commits() -> dict[str, Form]:
    """Every message that a process may send besides, in a job that commits in its tasks."""
    said = (CHECKPOINT, TRIES, SHARES, COUNT, WARNINGS)
    return {
        "committed": Form("commit_done", said, _committed),
        "commit_later": Form("commit_later", (*said, REASON), _committed_later),
    }


def _registered(subtask: int, coordinator: int, number: int, event: Any) -> tuple[Any, ...]:
    return coordinator, RegisteredEvent(number, event)


def _acknowledged(
    subtask: int,
    checkpoint: int,
    is_final: bool,
    states: dict[str, Versioned],
    committables: list[Any],
) -> tuple[Any, ...]:
    # What is empty holds nothing that a checkpoint cannot hold.
    if committables and (problem := problem_of_values(committables, COMMITTABLES.name)):
        raise MessageMalformed(f"'acknowledge' with {problem}")
    return checkpoint, is_final, (states, committables)


def _outcome(
    tag: str, subtask: int, shares: list[Any], before: int, warnings: list[Any], reason: str
) -> StepOutcome:
    if problem := problem_of_values(shares, SHARES.name):
        raise MessageMalformed(f"{tag!r} with {problem}")
    if not all(type(text) is str for text in warnings):
        raise MessageMalformed(f"{tag!r} with warnings that are no texts")
    if problem := next(filter(None, map(_problem_of_share, shares)), None):
        raise MessageMalformed(f"{tag!r} with {problem}")
    told = [f"subtask {subtask}: {shortened(text)}" for text in warnings]
    return StepOutcome([Share(*flat) for flat in shares], before, reason, told)


def _committed(
    subtask: int,
    checkpoint: int,
    tries: int,
    shares: list[Any],
    before: int,
    warnings: list[Any],
) -> tuple[Any, ...]:
    outcome = _outcome("committed", subtask, shares, before, warnings, "")
    if any(share.rest or share.passed is None for share in outcome.shares):
        raise MessageMalformed("'committed' with a share that is not committed, or not passed on")
    return checkpoint, tries, outcome


def _problem_of_share(flat: Any) -> str | None:
    """Return why this is no share as it travels, or None."""
    if type(flat) is not list or len(flat) != len(SHARE):
        return f"{_described(flat)} as a share, expected a list of {len(SHARE)}"
    problems = (one.problem_with(value) for one, value in zip(SHARE, flat, strict=True))
    return next(filter(None, problems), None)


def _committed_later(
    subtask: int,
    checkpoint: int,
    tries: int,
    shares: list[Any],
    before: int,
    warnings: list[Any],
    reason: str,
) -> tuple[Any, ...]:
    reason = f"subtask {subtask}: {shortened(reason)}"
    outcome = _outcome("commit_later", subtask, shares, before, warnings, reason)
    if any(share.passed is not None for share in outcome.shares):
        raise MessageMalformed("'commit_later' with a share that is passed on")
    return checkpoint, tries, outcome, outcome.reason


def _declined(subtask: int, checkpoint: int, reason: str) -> tuple[Any, ...]:
    return checkpoint, f"subtask {subtask} declined it: {shortened(reason)}"


def _failed(subtask: int, reason: str, is_fatal: bool) -> tuple[Any, ...]:
    reason = shortened(reason)
    return f"subtask {subtask}: {reason}" if is_fatal else reason, is_fatal


@dataclass(frozen=True)
class TaskWarning:
    """A warning to a person about a subtask: that user code takes long in it, and where."""

    text: str


def _warned(subtask: int, text: str) -> tuple[Any, ...]:
    return (TaskWarning(f"subtask {subtask}: {shortened(text)}"),)


def _is_versioned(value: Any) -> bool:
    """Return whether it is a state with a version that a checkpoint can hold."""
    return (
        type(value) is list
        and [type(one) for one in value] == [int, bytes]
        and 0 <= value[0] <= VERSION_MAX
    )


class MessageMalformed(Exception):
    """A message does not have the form that its tag demands; the text says what is wrong."""


class MessageReader:
    """Turns messages into triggers of the attempt, in a job with this many coordinators, whose
    tasks commit or do not.
    """

    def __init__(self, coordinators: int, *, has_commits: bool = False) -> None:
        self._forms = forms_of(coordinators) | (forms_of_commits() if has_commits else {})
        self._readings = {
            tag: (1 + len(form.arguments), _check_of(form), form.trigger, form.becomes)
            for tag, form in self._forms.items()
        }

    def read(self, subtask: int, message: Any) -> tuple[str, Sequence[Any]]:
        """The trigger of the attempt and its arguments behind the identity; MessageMalformed."""
        if type(message) is not list or not message:
            raise MessageMalformed(
                f"{_described(message)} instead of a list that begins with a tag"
            )
        try:
            length, fits, trigger, becomes = self._readings[message[0]]
        except (KeyError, TypeError):  # what cannot be hashed is no tag either
            raise MessageMalformed(f"the unknown tag {_described(message[0])}") from None
        if len(message) != length or not (fits is None or fits(message)):
            raise MessageMalformed(f"{message[0]!r} with {self._problem(*message)}")
        return trigger, message[1:] if becomes is None else becomes(subtask, *message[1:])

    def _problem(self, tag: str, *arguments: Any) -> str:
        declared = self._forms[tag].arguments
        if len(arguments) != len(declared):
            return f"{len(arguments)} arguments instead of {len(declared)}"
        problems = (d.problem_with(a) for d, a in zip(declared, arguments, strict=True))
        return next(problem for problem in problems if problem is not None)


def _check_of(form: Form) -> Check | None:
    fits: Check | None = None
    for position, argument in enumerate(form.arguments, start=1):
        check = argument.check_at(position)
        if check is not None:
            fits = check if fits is None else _both(fits, check)
    return fits


def _both(one: Check, other: Check) -> Check:
    return lambda message: one(message) and other(message)


def _described(value: Any) -> str:
    """A value that may be huge, in few words."""
    if value is None or type(value) in (bool, int, float):
        return repr(value)
    if type(value) in (str, bytes) and len(value) <= SHOWN_MAX:
        return repr(value)
    return f"a {type(value).__name__} of length {len(value)}"


def _named(types: tuple[type, ...]) -> str:
    return " or ".join(kind.__name__ for kind in types)
