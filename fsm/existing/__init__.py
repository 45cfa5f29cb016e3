"""Machines of other libraries: `transitions` and `python-statemachine`, read to be checked, drawn
and fuzzed.

    from_transitions     reads a machine
      oracle             asks the library itself what each trigger does in each state
      table              the rows as they were written, and what is wrong in them
      callbacks          which guards are checked as they are, and which are abstracted
      declared           the table as declarations of this project: a machine, a closed system
      fuzzing            a state machine for Hypothesis, over real objects
"""

from epochgate.fsm.existing.claims import (
    Claim,
    always,
    before,
    happens,
    never,
    never_follows,
    sometimes,
)
from epochgate.fsm.existing.oracle import CannotRead
from epochgate.fsm.existing.reading import ExistingMachine, from_transitions, read_if_machine

__all__ = [
    "CannotRead",
    "Claim",
    "ExistingMachine",
    "always",
    "before",
    "from_transitions",
    "happens",
    "never",
    "never_follows",
    "read_if_machine",
    "sometimes",
]
