"""What happened in one run, step by step: on which lane, in which words, and which rows both sides
took. The words of a move are made before it, from the message that is about to arrive.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from epochgate.runtime.testing.worlds.line import Mover
from epochgate.runtime.testing.worlds.rig import Rig, RowTaken
from epochgate.runtime.testing.worlds.schedule import At, Deviation

TEST: Final = "test"
SHOWN_MAX: Final = 60


@dataclass
class Happening:
    """One step of a run; `deviation` is set for what the default schedule does not have."""

    at: At
    now_s: float
    lane: str
    text: str
    deviation: Deviation | None = None
    rows: list[RowTaken] = field(default_factory=list)
    after: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The states behind it, where they are kept."""

    def __str__(self) -> str:
        return f"{self.at[0]}:{self.at[1]} {self.now_s:g} {self.lane}: {self.text}"


def told(rig: Rig, mover: Mover) -> tuple[str, str]:
    """The lane and the words of what is about to move."""
    kind, which = mover
    if kind == "driver":
        return "driver", "handles what comes next"
    if kind == "blocking":
        words = {"store": "the checkpoint is written", "commit": "the committer commits"}
        lane = "store" if which in words else "driver"
        return lane, words.get(str(which), f"work runs that {which} has handed over")
    process = rig.simulated.transport.processes[int(which)]
    lane = f"task {process.subtask}"
    if kind == "tell":
        return lane, f"gets {message(process.to_task[0])}"
    if kind == "hear":
        return "driver", f"hears of {lane}: {message(process.to_driver[0])}"
    words = {
        "connect": f"process {which} connects",
        "lose": f"the driver learns that process {which} is gone",
        "work": "works",
    }
    return ("driver" if kind == "lose" else lane), words[kind]


def states(rig: Rig) -> dict[str, dict[str, Any]]:
    """What the machines of driver and tasks hold, and what is under way to and from each task."""
    found: dict[str, dict[str, Any]] = {TEST: {}, "store": {}}
    found["store"]["checkpoints"] = sorted(rig.simulated.shelf.checkpoints)
    for name, values in rig.simulated.master.job.values().items():
        found[name] = {key: _shown(value) for key, value in values.items()}
    for subtask in range(rig.setup.subtasks):
        found[f"task[{subtask}]"] = {"state": "gone", "to_task": [], "to_driver": []}
    for process in rig.simulated.transport.processes.values():
        if process.is_alive:
            found[f"task[{process.subtask}]"] = {
                "state": process.worker.task.state,
                "to_task": [message(one) for one in process.to_task],
                "to_driver": [message(one) for one in process.to_driver],
            }
    return found


def _shown(value: Any) -> Any:
    """A value of a field as plain data."""
    if isinstance(value, list | tuple):
        return [_shown(one) for one in value]
    return value if value is None or isinstance(value, bool | int | str) else short(value)


def handled(rows: Sequence[RowTaken]) -> str:
    """What the driver did in one event: the first row that led elsewhere, or the first."""
    if not rows:
        return "runs what was handed to it"
    row = next((row for row in rows if row.dest != row.source), rows[0])
    arrow = f", {row.source} → {row.dest}" if row.dest != row.source else ""
    return f"{row.instance}: {row.trigger}{arrow}"


def message(one: Any) -> str:
    """A message of either side in words."""
    if not isinstance(one, list) or not one:
        return short(one)
    tag, *arguments = one
    words: dict[str, Callable[[], str]] = {
        "event": lambda: f"event {short(arguments[-1])}",
        "registered_event": lambda: f"event {short(arguments[-1])}",
        "barrier": lambda: f"the barrier of checkpoint {arguments[0]}",
        "acknowledge": lambda: f"the acknowledgement of checkpoint {arguments[0]}",
        "decline": lambda: f"checkpoint {arguments[0]} is declined",
        "confirm": lambda: f"events up to {arguments[1]} were handled",
        "complete": lambda: f"checkpoint {arguments[0]} is complete",
        "aborted": lambda: f"checkpoint {arguments[0]} is aborted",
        "restore": lambda: (
            f"the state to begin from (attempt {arguments[0]}, checkpoint {arguments[1]})"
        ),
        "initialize": lambda: "the operators are being opened",
        "run": lambda: "it runs",
        "ended": lambda: "its input has ended",
        "finish": lambda: "it may leave",
        "finished": lambda: "it has finished",
        "failed": lambda: f"it failed: {short(arguments[0])}",
        "receipt": lambda: "the receipt of an event",
        "metrics": lambda: "its figures",
    }
    return words[tag]() if tag in words else short(one)


def short(value: Any) -> str:
    """A value in one line that is not too long."""
    text = (value if isinstance(value, str) else repr(value)).replace("\n", " ")
    return text if len(text) <= SHOWN_MAX else text[: SHOWN_MAX - 1] + "…"
