"""The trace of one run, step by step: on which lane, in which words, and which rows both sides
took. The words of a move are made before it, from the message that is about to arrive.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from epochgate.fsm.inside import machine_behind
from epochgate.runtime.api.operator import Operator
from epochgate.runtime.api.plain_values import PLAIN_TYPES
from epochgate.runtime.source import SourceSplit, SplitEnumerator, events
from epochgate.runtime.source.split import unpack_splits
from epochgate.runtime.testing.worlds.differences import Change, Own, content
from epochgate.runtime.testing.worlds.line import Mover
from epochgate.runtime.testing.worlds.rig import SHOWN_MAX, Call, Rig, RowTaken
from epochgate.runtime.testing.worlds.schedule import At, Deviation

TEST: Final = "test"
Keeps = Literal["nothing", "own", "states"]
"""What a trace has behind each step: what the user's objects have, or the states of all beside."""


@dataclass
class Happening:
    """One step of a run; `deviation` is set for what the default schedule does not have."""

    at: At
    now_s: float
    lane: str
    text: str
    deviation: Deviation | None = None
    rows: list[RowTaken] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    """The calls of the user's coordinators in it."""
    is_fault: bool = False
    """Whether it is a fault that the test itself injects."""
    is_telling: bool = False
    """Whether it goes before other steps in a report, however far from a deviation it is."""
    after: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The states behind it, where they are kept."""
    changes: list[Change] = field(default_factory=list)
    """What it changed in the user's objects, where a report is to show it."""

    def __str__(self) -> str:
        return f"{self.at[0]}:{self.at[1]} {self.now_s:g} {self.lane}: {self.text}"


def told(rig: Rig, mover: Mover) -> tuple[str, str]:
    """The lane and the words of what is about to move."""
    kind, which = mover
    if kind == "driver":
        return "driver", "handles its next event"
    if kind == "blocking":
        words = {"store": "the checkpoint is written", "commit": "the committer commits"}
        lane = "store" if which in words else "driver"
        return lane, words.get(str(which), f"runs work of {which}")
    process = rig.simulated.transport.processes[int(which)]
    lane = f"task {process.subtask}"
    if kind == "tell":
        return lane, f"receives {message(process.to_task[0])}"
    if kind == "hear":
        return "driver", f"receives from {lane}: {message(process.to_driver[0])}"
    words = {
        "connect": f"process {which} connects",
        "lose": f"the driver learns that process {which} is gone",
        "work": "runs `work()`",
    }
    return ("driver" if kind == "lose" else lane), words[kind]


def states(rig: Rig) -> dict[str, dict[str, Any]]:
    """Return what is in the store, what the user's coordinators and operators have, what is under
    way to and from each task, and what the machines of the driver hold.
    """
    own, shelf = own_values(rig), rig.simulated.shelf
    found: dict[str, dict[str, Any]] = {
        TEST: {},
        "store": {"checkpoints": sorted(shelf.checkpoints)},
    }
    for operator_id in rig.coordinators:
        for name in (_coordinator(operator_id), _enumerator(operator_id)):
            if name in own or name == _coordinator(operator_id):
                found[name] = {**own.get(name, {})}
    for subtask in range(rig.setup.subtasks):
        found[_task(subtask)] = {"state": "gone", "to_task": [], "to_driver": []}
    for process in rig.simulated.transport.processes.values():
        if process.is_alive:
            name = _task(process.subtask)
            found[name] = {
                "state": machine_behind(process.worker.task).state,
                **own.get(name, {}),
                "to_task": [message(one) for one in process.to_task],
                "to_driver": [message(one) for one in process.to_driver],
            }
    for name, values in rig.simulated.machines.values().items():
        found[name] = {key: _shown(value) for key, value in values.items()}
    return found


def _coordinator(operator_id: str) -> str:
    return f"coordinator {operator_id}"


def _enumerator(operator_id: str) -> str:
    return f"enumerator {operator_id}"


def _of_enumerator(enumerator: SplitEnumerator) -> dict[str, Any]:
    """Its attributes, also those of epochgate's own queue of splits; splits by their ids."""
    named = {name: _with_ids(value) for name, value in vars(enumerator).items()}
    return {name.lstrip("_"): value for name, value in named.items() if _is_plain(value)}


def _with_ids(value: Any) -> Any:
    if isinstance(value, SourceSplit):
        return value.split_id
    if isinstance(value, list | tuple | deque):
        return [_with_ids(each) for each in value]
    return value


def _task(subtask: int) -> str:
    return f"task[{subtask}]"


def own_values(rig: Rig) -> dict[str, dict[str, str]]:
    """The plain values that the user's objects have, each in one line: of the coordinators, and of
    the operators that are open or were when they were last seen.
    """
    found = _own(rig)
    for subtask, opened in rig.seen.items():
        if _task(subtask) not in found:
            found[f"{_task(subtask)}, gone"] = _of_task(opened)
    return {
        name: {key: short(repr(value)) for key, value in own.items()}
        for name, own in sorted(found.items())
        if own
    }


def contents(rig: Rig) -> Own:
    """The same, to be compared: of what is open now, as it is now."""
    return {
        name: {key: content(value) for key, value in own.items()} for name, own in _own(rig).items()
    }


def _own(rig: Rig) -> dict[str, dict[str, Any]]:
    found = {
        _coordinator(operator_id): _plain(coordinator)
        for operator_id, coordinator in rig.coordinators.items()
    }
    for operator_id, enumerator in rig.enumerators.items():
        found[_enumerator(operator_id)] = _of_enumerator(enumerator)
    for subtask in range(rig.setup.subtasks):
        if (opened := rig.operators(subtask)) is not None:
            found[_task(subtask)] = _of_task(opened)
    return found


def _of_task(opened: Mapping[str, Operator]) -> dict[str, Any]:
    return {
        key if len(opened) == 1 else f"{operator_id}.{key}": value
        for operator_id, operator in opened.items()
        for key, value in _plain(operator).items()
    }


def _plain(user_code: Any) -> dict[str, Any]:
    """Nothing for what is epochgate's own, a source's coordinator for instance."""
    if type(user_code).__module__.startswith("epochgate."):
        return {}
    values = getattr(user_code, "__dict__", {})
    return {name: value for name, value in values.items() if _is_plain(value)}


def _is_plain(value: Any) -> bool:
    """Return whether it can be shown as it is: no object is in it."""
    if isinstance(value, dict):
        return all(map(_is_plain, value)) and all(map(_is_plain, value.values()))
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    return type(value) in PLAIN_TYPES


def _shown(value: Any) -> Any:
    """A value of a field as plain data."""
    if isinstance(value, list | tuple):
        return [_shown(one) for one in value]
    return value if value is None or isinstance(value, bool | int | str) else short(value)


def handled(rows: Sequence[RowTaken], sent: Sequence[tuple[int, Any]] = ()) -> str:
    """Tell what the driver did in one event: what it sent, the first row that led elsewhere, or the
    first.
    """
    if sent:
        return ", ".join(
            f"sends to task {subtask}: event {_event(event)}" for subtask, event in sent
        )
    if not rows:
        return "runs a call on its queue"
    row = next((row for row in rows if row.dest != row.source), rows[0])
    arrow = f", {row.source} → {row.dest}" if row.dest != row.source else ""
    return f"{row.instance}: {row.trigger}{arrow}"


def message(one: Any) -> str:
    """A message of either side in words."""
    if not isinstance(one, list) or not one:
        return short(one)
    tag, *arguments = one
    words: dict[str, Callable[[], str]] = {
        "event": lambda: f"event {_event(arguments[-1])}",
        "events": lambda: f"{len(arguments[-1])} events, the first {_event(arguments[-1][0])}",
        "registered_event": lambda: f"event {_event(arguments[-1])}",
        "barrier": lambda: f"the barrier of checkpoint {arguments[0]}",
        "acknowledge": lambda: f"the acknowledgement of checkpoint {arguments[0]}",
        "decline": lambda: f"the decline of checkpoint {arguments[0]}",
        "confirm": lambda: f"the confirmation of events up to {arguments[1]}",
        "complete": lambda: f"the notice that checkpoint {arguments[0]} is complete",
        "aborted": lambda: f"the notice that checkpoint {arguments[0]} is aborted",
        "restore": lambda: (
            f"the state to restore (attempt {arguments[0]}, checkpoint {arguments[1]})"
        ),
        "initialize": lambda: "initializing",
        "run": lambda: "running",
        "ended": lambda: "the end of its input",
        "finish": lambda: "the permission to finish",
        "finished": lambda: "finished",
        "failed": lambda: f"failed: {short(arguments[0])}",
        "receipt": lambda: "the receipt of an event",
        "metrics": lambda: "its metrics",
    }
    return words[tag]() if tag in words else short(one)


def _event(event: Any) -> str:
    """An event; the splits of a source by their ids."""
    match event:
        case [events.SPLITS, bytes(packed)]:
            try:
                splits = unpack_splits(packed)
            except (ValueError, TypeError):  # of a coordinator that is no source's
                return short(event)
            return short("with splits " + ", ".join(repr(split.split_id) for split in splits))
    return short(event)


def short(value: Any) -> str:
    """A value in one line that is not too long."""
    text = (value if isinstance(value, str) else repr(value)).replace("\n", " ")
    return text if len(text) <= SHOWN_MAX else text[: SHOWN_MAX - 1] + "…"
