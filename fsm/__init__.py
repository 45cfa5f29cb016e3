"""What a machine is: rows, fields and ports, the systems made of machines, and the event queue that
drives them.
"""

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
    "handling_table",
    "machines",
    "output",
    "replay",
]
