"""Queues that tell of a step without end."""

from __future__ import annotations

import sys
from collections import deque
from typing import Any


class Full(Exception):
    """A queue of a step was given more than it may get in one step."""


class BoundedDeque(deque[Any]):
    """A queue of a closed system; `room` is how many more calls the step may put into it."""

    room = sys.maxsize

    def append(self, item: Any) -> None:
        """Append a call; raises Full."""
        if self.room == 0:
            raise Full
        self.room -= 1
        super().append(item)
