"""A machine that fires through `transitions` itself, which the dispatch is held against."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import transitions

from epochgate.fsm.machine import Machine
from epochgate.fsm.transitions_backed import library_machine


class LibraryTwin:
    """Fires a machine's triggers through `transitions` itself, on the machine's own state."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        declared = type(machine)
        self._library = library_machine(
            None, declared.STATES, declared.INITIAL, declared.expanded_rows(), self._callback
        )
        self._library.add_model(self, initial=machine.state)

    @property
    def state(self) -> str:
        return self._machine.state

    @state.setter
    def state(self, state: str) -> None:
        self._machine.state = state

    def _callback(self, name: str) -> Callable[..., Any]:
        return self._machine.bound_callback(name)

    def fire(self, trigger: str, *arguments: Any) -> bool:
        """Fire `trigger`; False when the library refused it: no row here, or none that holds."""
        try:
            return bool(self._library.events[trigger].trigger(self, *arguments))
        except transitions.MachineError:
            return False
