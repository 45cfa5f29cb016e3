"""A queue that handles nothing until it is told to."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from epochgate.runtime.api.transport import TaskInbox


class SlowInbox(TaskInbox):
    """A queue that handles nothing until it is told to."""

    def __init__(self) -> None:
        self.received_count = 0
        self.marks: deque[Callable[[], None]] = deque()

    def connected(self, subtask: int, identity: int) -> None: ...

    def received(self, subtask: int, identity: int, messages: list[Any]) -> None:
        self.received_count += len(messages)

    def when_handled(self, call: Callable[[], None]) -> None:
        self.marks.append(call)

    def lost(self, subtask: int, identity: int, reason: str) -> None: ...

    def handle(self) -> int:
        """Handle what was received; how many messages were."""
        while self.marks:
            self.marks.popleft()()
        return self.received_count
