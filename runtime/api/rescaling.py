"""Rescaling: a start with another parallelism than that of the checkpoint it resumes from.

An operator's states, one for each subtask of then, are redistributed into states for the subtasks
of now. Only the operator's author can do that, so it is asked for by operator id: of
`JobConfiguration.redistribute`, or else of the operator's `CoordinatorProvider`. Source: Apache
Flink's redistribution of operator state. Runs on the driver, before the job starts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from epochgate.errors import UsageError

Redistribution = Callable[[Mapping[int, bytes], int], Mapping[int, bytes | None]]
"""From the states of the subtasks that had one, and the new parallelism, to the state of each new
subtask; None: it begins without a state. A subtask that is left out is refused.
"""


class SubtaskStates(dict[int, bytes]):
    """The states that a redistribution is given, by subtask; `version`: in which they are. What it
    returns is taken to be of the same, and is upgraded afterwards.
    """

    def __init__(self, states: Mapping[int, bytes], version: int) -> None:
        super().__init__(states)
        self.version = version


class NotRescalable(UsageError):
    """An operator has state that is not redistributed: start with the checkpoint's parallelism."""


def keep_nothing(states: Mapping[int, bytes], parallelism: int) -> dict[int, bytes]:
    """Redistribute the states of an operator that has none: all of them must be empty.

    Raises NotRescalable when one holds a byte.

    >>> keep_nothing({0: b"", 1: b""}, 3)
    {0: b'', 1: b'', 2: b''}
    """
    if held := sorted(subtask for subtask, state in states.items() if state):
        raise NotRescalable(f"subtasks {held} have state")
    return dict.fromkeys(range(parallelism), b"")
