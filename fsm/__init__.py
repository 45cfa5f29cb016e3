"""The declaration of machines: rows, fields and ports, the systems made of machines, and the event
queue that drives them.

`from_transitions`, which reads machines of other libraries, is imported when it is first used.
"""

import importlib
from typing import TYPE_CHECKING, Any

from epochgate.fsm.errors import DeclarationError, ReplayDiverged, TransitionRefused
from epochgate.fsm.fields import Array, Bool, Channel, Fifo, Int, Opaque, Set
from epochgate.fsm.handles import Handle, Handles, drive
from epochgate.fsm.journal import Journal, JournalEntry, MemoryJournal, replay
from epochgate.fsm.machine import Machine, Trigger
from epochgate.fsm.ports import Answers, Effect, Port, fallible, output
from epochgate.fsm.rows import ANY, STAY, Ignore, Row
from epochgate.fsm.run_to_completion import Clock, EventQueue, Timer, VirtualClock
from epochgate.fsm.steps import Outcome
from epochgate.fsm.system import System, machines
from epochgate.fsm.table import Handling, TableCell, handling_table

if TYPE_CHECKING:
    from epochgate.fsm.existing import from_transitions

__all__ = [
    "ANY",
    "STAY",
    "Answers",
    "Array",
    "Bool",
    "Channel",
    "Clock",
    "DeclarationError",
    "Effect",
    "EventQueue",
    "Fifo",
    "Handle",
    "Handles",
    "Handling",
    "Ignore",
    "Int",
    "Journal",
    "JournalEntry",
    "Machine",
    "MemoryJournal",
    "Opaque",
    "Outcome",
    "Port",
    "ReplayDiverged",
    "Row",
    "Set",
    "System",
    "TableCell",
    "Timer",
    "TransitionRefused",
    "Trigger",
    "VirtualClock",
    "drive",
    "fallible",
    "from_transitions",
    "handling_table",
    "machines",
    "output",
    "replay",
]


def __getattr__(name: str) -> Any:
    if name != "from_transitions":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module("epochgate.fsm.existing").from_transitions
