"""Checkpoints that overlap, of machines that take one at a time.

Flink's holder may have several checkpoints marked at once; a job of ours has one. So that whole
schedules can be compared, a checkpoint that begins while another is unfinished gets a lane of its
own: one more set of the machines that run, in series with those before it. An event passes the
gateways of all lanes, that of the newest checkpoint first, and then goes on the wire::

    coordinator -> gateway of checkpoint 2 -> gateway of checkpoint 1 -> wire

Each lane decides about its own checkpoint alone; what it releases is a send in the next older lane.
A schedule that has one checkpoint at a time has one lane, as a job has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from epochgate.models.gateway import OPEN, WirePort
from epochgate.models.snapshot import IDLE
from tests.conformance.standins import HolderAlone, bind, fire
from tests.conformance.wire import Send

LANES = 48
"""How many checkpoints may be unfinished at once."""
Forward = Callable[["Lane", int, Send], None]
"""Takes a send, and its number, that has passed the gateway of a lane."""


class Lane(WirePort):
    """One set of machines, and what has passed their gateways."""

    def __init__(self, machines: HolderAlone, forward: Forward) -> None:
        self.machines = machines
        self.gateways = [machines.gateway[0, subtask] for subtask in range(machines.subtasks)]
        self.snapshot = machines.snapshot[0]
        self.forward = forward
        self._numbers: list[dict[Send, int]] = [{} for _ in self.gateways]
        """For each subtask what has passed since its attempt began, in order, with its number."""
        bind(machines, "gateway", "wire", self)

    def is_idle(self) -> bool:
        return self.snapshot.state == IDLE and all(g.state == OPEN for g in self.gateways)

    def catch_up_with(self, newest: Lane) -> None:
        """Tell these gateways what those of the newest lane were told, as far as it counts."""
        for subtask, told in enumerate(newest.gateways):
            if told.attempt:
                self.renew(subtask, told.attempt)
            if told.latest:
                fire(self.gateways[subtask].mark, told.latest)
                fire(self.gateways[subtask].reopen, told.latest)
            passed = list(newest._numbers[subtask])[told.confirmed :]
            for send in (*passed, *told.held):
                fire(self.gateways[subtask].send, send.attempt, send)

    def renew(self, subtask: int, attempt: int) -> None:
        self.machines.attempt[subtask].number = attempt
        self._numbers[subtask].clear()
        fire(self.gateways[subtask].renew, attempt)

    def lose(self, send: Send) -> None:
        """The wire has lost a send."""
        number = self._numbers[send.subtask][send]
        fire(self.gateways[send.subtask].lose, send.attempt, number, "its call has failed")

    def confirm(self, send: Send) -> None:
        """All sends up to this one are decided."""
        number = self._numbers[send.subtask][send]
        fire(self.gateways[send.subtask].confirm, send.attempt, number)

    def event(self, identity: int, number: int, event: Send) -> None:
        """Port `wire` of the gateways."""
        self._numbers[event.subtask][event] = number
        self.forward(self, number, event)


class Lanes:
    """All lanes of one coordinator. The oldest stays, because its holder is the coordinator's, and
    the newest, because its gateways know which checkpoint was the last.
    """

    def __init__(self, make: Callable[[], HolderAlone], wire: Callable[[int], WirePort]) -> None:
        self._make, self._wire = make, wire
        self._lanes: list[Lane] = []
        """From the oldest checkpoint to the newest."""
        self._add()
        self.machines = self._lanes[0].machines

    def __len__(self) -> int:
        return len(self._lanes)

    def _add(self) -> Lane:
        lane = Lane(self._make(), lambda *_: None)
        if self._lanes:
            lane.catch_up_with(self._lanes[-1])
        lane.forward = self._forward
        lane.machines.held_before = lambda subtask: self._held_before(lane, subtask)
        self._lanes.append(lane)
        return lane

    def free(self) -> Lane | None:
        """The lane for the next checkpoint; None if too many are unfinished."""
        oldest, *between, newest = self._lanes if len(self._lanes) > 1 else self._lanes * 2
        if newest.is_idle():
            return newest
        kept = [lane for lane in between if not lane.is_idle()]
        self._lanes = [oldest, *kept, newest] if newest is not oldest else [oldest]
        return self._add() if len(self._lanes) < LANES else None

    def _older(self, lane: Lane) -> Sequence[Lane]:
        return self._lanes[: self._lanes.index(lane)]

    def _forward(self, lane: Lane, number: int, send: Send) -> None:
        if older := self._older(lane):
            fire(older[-1].gateways[send.subtask].send, send.attempt, send)
        else:
            self._wire(send.subtask).event(0, number, send)

    def _held_before(self, lane: Lane, subtask: int) -> int:
        """Return how many sends the newer lanes hold back, which this one has not seen."""
        newer = self._lanes[self._lanes.index(lane) + 1 :]
        return sum(other.gateways[subtask].held.size() for other in newer)

    def send(self, send: Send) -> None:
        fire(self._lanes[-1].gateways[send.subtask].send, send.attempt, send)

    def reopen(self, subtask: int, checkpoint: int) -> None:
        for lane in self._lanes:
            fire(lane.gateways[subtask].reopen, checkpoint)

    def renew(self, subtask: int, attempt: int) -> None:
        for lane in self._lanes:
            lane.renew(subtask, attempt)

    def lose(self, send: Send) -> None:
        for lane in self._lanes:
            lane.lose(send)

    def confirm(self, send: Send) -> None:
        for lane in self._lanes:
            lane.confirm(send)
