"""The prints of Flink's holder for a schedule, retold in a page of Python, each listed difference a
switch.

It is how a difference is explained: with no switch set the account has to print what the real
holder prints, with all of them what our machines print, over whole schedules and line by line; so
nothing but the listed conditions can make the two differ. It is written from what Flink's holder
and gateways do, and shares no code with the machines. The switches are the names in
`differences.py`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable
from typing import Any

CREATED, RUNNING, FINISHED, FAILED = range(4)
BATCH = -1
"""The id of a snapshot without a checkpoint, which closes nothing."""
REFUSED_ACKNOWLEDGEMENT = "refused-acknowledgement"
SKIPPED_NOTICE = "skipped-notice"
UNTOLD_NOTICE = "untold-notice"
MIXED_CLOSE = "mixed-close"
FORGOTTEN_SENDS = "forgotten-sends"
ORPHANED_SENDS = "orphaned-sends"
EARLY_OPENING = "early-opening"
HALF_MARKED = "half-marked"
LATE_SENDS = "late-sends"
NAMES = frozenset(
    (
        REFUSED_ACKNOWLEDGEMENT,
        SKIPPED_NOTICE,
        UNTOLD_NOTICE,
        MIXED_CLOSE,
        FORGOTTEN_SENDS,
        ORPHANED_SENDS,
        EARLY_OPENING,
        HALF_MARKED,
        LATE_SENDS,
    )
)


class Attempt:
    """One attempt of a subtask, and the calls that are under way to it."""

    def __init__(self, subtask: int, number: int) -> None:
        self.subtask, self.number = subtask, number
        self.stage = CREATED
        self.was_announced = False
        self.calls: list[Send] = []


class Send:
    """One event: the answer to its call, whether its sender knows it, and who waits for that."""

    def __init__(self, name: str, attempt: Attempt) -> None:
        self.name, self.attempt = name, attempt
        self.is_ok: bool | None = None
        self.is_late = False
        """It was sent for an attempt that is replaced."""
        self.waiting: list[Part] = []


class Gateway:
    """One gateway object: marks, and what is held for each checkpoint that has closed it."""

    def __init__(self, attempt: Attempt) -> None:
        self.attempt = attempt
        self.marked: set[int] = set()
        self.latest = float("-inf")
        self.held: dict[int, list[Send]] = {}


class Part:
    """The coordinator's part of one checkpoint, from the question to the result."""

    def __init__(self, checkpoint: int, order: float) -> None:
        self.checkpoint, self.order = checkpoint, order
        self.is_answered = False
        self.is_over = False
        self.state: str | None = None
        self.awaited: set[Send] = set()


class Exited(Exception):
    """The process has ended."""


class Account:
    """One schedule told; `corrected` names the differences in which it does as our machines do."""

    def __init__(self, corrected: Collection[str] = ()) -> None:
        self.corrected = frozenset(corrected)
        self.lines: list[str] = []
        self.has_exited = True
        self.queue: deque[Callable[[], None]] = deque()

    def run(self, commands: Iterable[str]) -> list[list[str]]:
        """Each command's lines; of those that begin with EXC or GLOBAL only that word."""
        return [self._answer(command.split()) for command in commands]

    def _answer(self, words: list[str]) -> list[str]:
        self.lines = []
        name, *rest = words
        try:
            if name == "new":
                self._new(int(rest[0]), "manual" in rest)
            elif self.has_exited:
                self.lines.append("EXC")
            else:
                getattr(self, f"do_{name}")(*(_value(word) for word in rest))
                if self.is_automatic:
                    self.do_drain()
        except Exited:
            self.lines.append("EXC")
            self.has_exited = True
        return self.lines

    def _new(self, subtasks: int, is_manual: bool) -> None:
        self.is_manual, self.is_automatic, self.has_exited = is_manual, True, False
        self.attempts = [Attempt(s, 0) for s in range(subtasks)]
        self.gateways = [Gateway(attempt) for attempt in self.attempts]
        self.handed: dict[tuple[int, int], Gateway] = {}
        self.queue = deque()
        self.in_flight: dict[str, deque[Send]] = {}
        self.tracked: dict[Send, None] = {}
        self.parts: dict[int, Part] = {}
        self.asked = 0
        self.newest = 0

    def do_start(self) -> None:
        self.lines.append("coord start")

    def do_auto(self, mode: int) -> None:
        self.is_automatic = mode == 1

    def do_drain(self) -> None:
        while self.queue:
            self.queue.popleft()()

    # attempts

    def do_running(self, subtask: int) -> None:
        attempt = self.attempts[subtask]
        if attempt.stage == CREATED:
            attempt.stage = RUNNING
        if not attempt.was_announced and attempt.stage == RUNNING:
            self.lines.append(f"coord ready {subtask} {attempt.number}")
            self.handed[subtask, attempt.number] = self.gateways[subtask]
        attempt.was_announced = True

    def do_finish(self, subtask: int) -> None:
        self._end(self.attempts[subtask], FINISHED)

    def do_fail(self, subtask: int) -> None:
        attempt = self.attempts[subtask]
        if attempt.stage != FAILED:
            self._end(attempt, FAILED)
            self.lines.append(f"coord failed {subtask} {attempt.number}")

    def _end(self, attempt: Attempt, stage: int) -> None:
        if attempt.stage != FAILED:
            attempt.stage = stage
            for send in attempt.calls:
                self._answer_call(send, False)

    def _succeed(self, subtask: int) -> Gateway:
        before = self.attempts[subtask]
        self._end(before, FAILED)
        self.attempts[subtask] = Attempt(subtask, before.number + 1)
        return self.gateways[subtask]

    def _replace(self, subtask: int) -> None:
        self.gateways[subtask] = Gateway(self.attempts[subtask])

    def do_reset(self, subtask: int, checkpoint: int) -> None:
        old = self._succeed(subtask)
        if ORPHANED_SENDS in self.corrected:
            self._open_completely(old)
        self._replace(subtask)
        self.lines.append(f"coord subtaskReset {subtask} {checkpoint}")

    def do_restore(self, checkpoint: int, state: Any = "null") -> None:
        for old in [self._succeed(subtask) for subtask in range(len(self.attempts))]:
            self._open_completely(old)
        for subtask in range(len(self.attempts)):
            self._replace(subtask)
        self.lines.append(f"coord resetTo {checkpoint} {state}")

    def _open_completely(self, gateway: Gateway) -> None:
        for checkpoint in sorted(gateway.held):
            for send in gateway.held[checkpoint]:
                self._call(send)
        gateway.held.clear()
        gateway.marked.clear()

    # sending

    def do_send(self, subtask: int, number: int, name: Any) -> None:
        gateway = self.handed.get((subtask, number))
        if gateway is None:
            self.lines.append("EXC")
        else:
            self.queue.append(lambda: self._send(gateway, Send(str(name), gateway.attempt)))

    def _send(self, gateway: Gateway, send: Send) -> None:
        if gateway.held:
            gateway.held[max(gateway.held)].append(send)
        else:
            self._call(send)
        send.is_late = send.attempt is not self.attempts[send.attempt.subtask]
        self.tracked[send] = None

    def _call(self, send: Send) -> None:
        attempt = send.attempt
        if attempt.stage != RUNNING:
            self._answer_call(send, False)
            return
        self.lines.append(f"deliver {attempt.subtask} {attempt.number} {send.name}")
        attempt.calls.append(send)
        if self.is_manual:
            self.in_flight.setdefault(send.name, deque()).append(send)
        else:
            self._answer_call(send, True)

    def do_sendack(self, name: Any, lost: str = "") -> None:
        if calls := self.in_flight.get(str(name)):
            self._answer_call(calls.popleft(), not lost)

    def _answer_call(self, send: Send, is_ok: bool) -> None:
        if send.is_ok is None:
            send.is_ok = is_ok
            self.queue.append(lambda: self._settle(send))

    def _settle(self, send: Send) -> None:
        if not send.is_ok and send.attempt.stage == RUNNING:
            self.lines.append(f"failover {send.attempt.subtask} {send.attempt.number}")
        self.tracked.pop(send, None)
        for part in sorted(send.waiting, key=lambda part: part.order):
            part.awaited.discard(send)
            if not send.is_ok:
                self._conclude(part, "FAILED")
            elif not part.awaited:
                self._conclude(part, part.state)
        self.lines.append(f"sent {send.name} {'ok' if send.is_ok else 'FAILED'}")

    # from the subtasks

    def do_event(self, subtask: int, number: int, event: Any) -> None:
        if self._is_heard(subtask, number):
            self.lines.append(f"coord event {subtask} {number} {event}")

    def do_ack(self, subtask: int, number: int, checkpoint: int) -> None:
        if self._is_heard(subtask, number):
            gateway = self.gateways[subtask]
            if gateway.latest < checkpoint and REFUSED_ACKNOWLEDGEMENT not in self.corrected:
                self.lines.append("GLOBAL")
            else:
                self._open(gateway, checkpoint)

    def _is_heard(self, subtask: int, number: int) -> bool:
        attempt = self.attempts[subtask]
        if attempt.number == number and attempt.stage == RUNNING:
            return True
        self.lines.append("EXC")
        return False

    # checkpoints

    def do_ckpt(self, checkpoint: int) -> None:
        self.queue.append(lambda: self._ask(checkpoint))

    def _ask(self, checkpoint: int) -> None:
        if checkpoint == BATCH:
            for gateway in self.gateways:
                if gateway.latest < BATCH:
                    self._mark(gateway, BATCH)
            self._begin(Part(BATCH, float("inf")))
            return
        if any(gateway.latest >= checkpoint for gateway in self.gateways):
            for gateway in self.gateways:
                if gateway.latest >= checkpoint or HALF_MARKED in self.corrected:
                    break
                self._mark(gateway, checkpoint)
            self.lines += [f"ckptfuture {checkpoint} FAILED", "GLOBAL"]
            return
        for gateway in self.gateways:
            self._mark(gateway, checkpoint)
        self.newest = checkpoint
        self.asked += 1
        self._begin(Part(checkpoint, self.asked))

    def _begin(self, part: Part) -> None:
        self.parts[part.checkpoint] = part
        self.lines.append(f"coord checkpoint {part.checkpoint}")

    def _mark(self, gateway: Gateway, checkpoint: int) -> None:
        gateway.marked.add(checkpoint)
        gateway.latest = checkpoint

    def do_cdone(self, checkpoint: int, state: Any) -> None:
        self._complete(checkpoint, str(state))

    def do_cfail(self, checkpoint: int) -> None:
        self._complete(checkpoint, None)

    def _complete(self, checkpoint: int, state: str | None) -> None:
        part = self.parts.get(checkpoint)
        if part is None:
            self.lines.append("EXC")
        elif not part.is_answered:
            part.is_answered, part.state = True, state
            self.queue.append(lambda: self._close(part))

    def _close(self, part: Part) -> None:
        if part.state is None:
            self._conclude(part, "FAILED")
            return
        if part.checkpoint != BATCH and not self._has_closed(part.checkpoint):
            self._conclude(part, "FAILED")
            return
        counts_late = part.checkpoint == BATCH or LATE_SENDS not in self.corrected
        part.awaited = {send for send in self.tracked if counts_late or not send.is_late}
        for send in part.awaited:
            send.waiting.append(part)
        if FORGOTTEN_SENDS not in self.corrected:
            self.tracked.clear()
        if not part.awaited:
            self._conclude(part, part.state)

    def _has_closed(self, checkpoint: int) -> bool:
        has_mark = [checkpoint in gateway.marked for gateway in self.gateways]
        if not all(has_mark):
            if any(has_mark) and MIXED_CLOSE not in self.corrected:
                raise Exited
            return False
        for gateway in self.gateways:
            gateway.held.setdefault(checkpoint, [])
        return True

    def _conclude(self, part: Part, state: str | None) -> None:
        if not part.is_over:
            part.is_over = True
            self.lines.append(f"ckptfuture {part.checkpoint} {state}")

    def do_abort(self) -> None:
        self.queue.append(self._abort_newest)

    def _abort_newest(self) -> None:
        for gateway in self.gateways:
            if gateway.marked:
                newest = self.newest if EARLY_OPENING in self.corrected else max(gateway.marked)
                self._open(gateway, newest)

    def do_complete(self, checkpoint: int) -> None:
        self.queue.append(lambda: self._tell("complete", checkpoint))

    def do_aborted(self, checkpoint: int) -> None:
        self.queue.append(lambda: self._tell("aborted", checkpoint))

    def _tell(self, what: str, checkpoint: int) -> None:
        has_seen = [gateway.latest >= checkpoint for gateway in self.gateways]
        throws = (SKIPPED_NOTICE if any(has_seen) else UNTOLD_NOTICE) not in self.corrected
        for gateway in self.gateways:
            if gateway.latest < checkpoint and throws:
                self.lines.append("EXC")
                return
            self._open(gateway, checkpoint)
        self.lines.append(f"coord {what} {checkpoint}")

    def _open(self, gateway: Gateway, checkpoint: int) -> None:
        if checkpoint not in gateway.marked:
            return
        if checkpoint in gateway.held:
            older = [other for other in gateway.held if other < checkpoint]
            if older:
                gateway.held[max(older)] += gateway.held[checkpoint]
            else:
                for send in gateway.held[checkpoint]:
                    self._call(send)
            del gateway.held[checkpoint]
        gateway.marked.discard(checkpoint)


def _value(word: str) -> Any:
    return int(word) if word.removeprefix("-").isdecimal() else word
