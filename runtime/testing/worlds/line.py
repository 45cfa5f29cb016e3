"""The line of those who can move in a simulated job, in the order in which they became able to: the
default schedule.

A mover is the driver with its queue, one direction of one process's connection, a process that
works, or a lane of blocking work. Each has its turn, moves once and goes to the end of the line. A
process that had nothing to do is asked again when it was told something or time has passed.
"""

from __future__ import annotations

from collections.abc import Iterator

from epochgate.runtime.testing.simulation import SimulatedJob

Mover = tuple[str, int | str]
"""What moves: `driver`, a step of the transport with a process, or `blocking` with a lane."""
DRIVER: Mover = ("driver", "")


class Line:
    """The movers of one simulated job."""

    def __init__(self, simulated: SimulatedJob) -> None:
        self._simulated = simulated
        self.simulated_start = simulated.starts
        """Of which start of the driver it is."""
        self._waiting: dict[Mover, None] = {}
        self._idle: set[int | str] = set()
        self._held: set[Mover] = set()
        self._slow: set[int | str] = set()

    def movers(self) -> list[Mover]:
        """Return those who can move now, the next one first; those that are held back are not among
        them.
        """
        able = dict.fromkeys(self._able())
        self._waiting = {mover: None for mover in self._waiting if mover in able} | able
        return [mover for mover in self._waiting if not self._is_held(mover)]

    def _able(self) -> Iterator[Mover]:
        simulated = self._simulated
        if not simulated.master.queue.is_empty:
            yield DRIVER
        for kind, identity in simulated.transport.steps():
            if kind != "work" or identity not in self._idle:
                yield kind, identity
        for lane in simulated.blocking.lanes():
            yield "blocking", lane

    def _is_held(self, mover: Mover) -> bool:
        return mover in self._held or (
            mover[0] not in ("driver", "blocking") and self._is_slow(mover)
        )

    def _is_slow(self, mover: Mover) -> bool:
        return mover[1] in self._slow

    def move(self, mover: Mover) -> bool:
        """Let it have its turn; False when it had nothing to do."""
        kind, which = mover
        self._waiting.pop(mover, None)
        if kind == "driver":
            return self._simulated.drain(1) > 0
        if kind == "blocking":
            return self._simulated.run_blocking(str(which))
        has_moved = self._simulated.step((kind, int(which)))
        if kind == "work" and not has_moved:
            self._idle.add(which)
        elif kind == "tell":
            self._idle.discard(which)
        return has_moved

    def delay(self, mover: Mover) -> None:
        """Let it have its turn after all others."""
        self._waiting.pop(mover, None)
        self._waiting[mover] = None

    def hold(self, mover: Mover) -> None:
        """Leave it out until `release`."""
        self._held.add(mover)

    def slow(self, identity: int) -> None:
        """Leave out what a process does, hears and says until `release`."""
        self._slow.add(identity)

    def release(self) -> bool:
        """Hold nothing back any more; False if nothing was."""
        was_held = bool(self._held or self._slow)
        self._held.clear()
        self._slow.clear()
        return was_held

    def ask_again(self) -> None:
        """Something may have come for those who had nothing to do."""
        self._idle.clear()
