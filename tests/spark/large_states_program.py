"""The program of test_large_states: large states that can be told from damaged ones."""

from __future__ import annotations

import hashlib
import resource
from collections.abc import Mapping
from typing import Any

from epochgate.runtime import Operator, OperatorContext, Program, Work

BLOCK_BYTES = 1_000_003


def block_of(subtask: int) -> bytes:
    return hashlib.shake_256(b"%d" % subtask).digest(BLOCK_BYTES)


def state_of(subtask: int, state_bytes: int) -> bytes:
    """Bytes that differ from one subtask and from one place to the next; made block by block, so
    that the interpreter is free in between.
    """
    state, block = bytearray(), block_of(subtask)
    while len(state) < state_bytes:
        state += block[: state_bytes - len(state)]
    return bytes(state)


def is_state_of(subtask: int, state: bytes, state_bytes: int) -> bool:
    block, view = block_of(subtask), memoryview(state)
    return len(state) == state_bytes and all(
        view[start : start + BLOCK_BYTES] == block[: state_bytes - start]
        for start in range(0, state_bytes, BLOCK_BYTES)
    )


class LargeOperator(Operator):
    """Has a large state, and fails once it is in a completed checkpoint."""

    def __init__(self, state_bytes: int) -> None:
        self.state_bytes = state_bytes
        self.state = b""
        self.is_restored = self.is_complete = False

    def open(self, context: OperatorContext, state: bytes | None) -> None:
        super().open(context, state)
        self.is_restored = state is not None
        if state is None:
            state = state_of(context.subtask, self.state_bytes)
        elif not is_state_of(context.subtask, state, self.state_bytes):
            raise ValueError(f"a state of {len(state)} bytes was restored, and is damaged")
        self.state = state

    def snapshot(self, checkpoint_id: int) -> bytes:
        return self.state

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self.is_complete = True


class LargeProgram(Program):
    def __init__(self, state_bytes: int) -> None:
        self._operator = LargeOperator(state_bytes)

    @property
    def operators(self) -> Mapping[str, Operator]:
        return {"large": self._operator}

    def work(self) -> Work:
        if self._operator.is_restored:
            return Work.ENDED
        if self._operator.is_complete:
            raise RuntimeError("the state is in a checkpoint: restore it")
        return Work.IDLE

    def metrics(self) -> dict[str, Any]:
        return {"peak_kb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}
