"""The doors to the machines behind handles.

Shells have none of them: `tests/setup/test_machines_decide.py` lists who may import which door,
each with the reason.
"""

from __future__ import annotations

from typing import Any

from epochgate.fsm.handles import Handle, Handles, M, S, system_of
from epochgate.fsm.machine import Machine

__all__ = ["machine_behind", "machines_behind", "shown"]


def shown(handle: Handle[Machine]) -> dict[str, Any]:
    """Return the state and the fields of one machine as plain data, for display alone."""
    return machine_behind(handle).values()


def machine_behind(handle: Handle[M]) -> M:
    """Return the machine behind a handle; for tests, and for what plays or judges schedules."""
    machine: M = next(iter(vars(handle).values())).__self__  # a trigger is a bound method
    return machine


def machines_behind(handles: Handles[S]) -> S:
    """Return the system behind handles; for tests, and for what plays or judges schedules."""
    return system_of(handles)
