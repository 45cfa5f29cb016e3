"""The independent record of a fuzzed job, and the invariants that it is held against.

It is written by the coordinators, operators and committer of the fuzzed job (`actors`) and reads
the stored checkpoints; it never looks at a machine. Outlives the driver. What each invariant means
here:

I1  a stored checkpoint holds, for each coordinator and subtask, every event that the coordinator
    counted as sent when it completed its future;
I2  and no event beyond those;
I3  an attempt handles only events sent through its own gateway, in their order, none twice;
output  a commit belongs to a stored checkpoint, comes in order, is the same when repeated, and
    everything committed up to it is exactly what the checkpoint's states reflect;
I8  who was told that a checkpoint is aborted is never restored from it, and who was told that it is
    completed never from an older one, over all starts of the driver;
ledger  a stored checkpoint carries the committables of every earlier one that is not committed, as
    they are in that one;
work  the work after a commit comes once its checkpoint is committed, with its committables, and
    after that of every commit before;
contract  per subtask a coordinator hears ready, failed, reset, ready, and of no other attempt;
processes  when a job has come to rest, one process lives for each subtask: others were sent away.

Blind spots: sends of several threads at once, and what user code does with a state it restored.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgpack

from epochgate.runtime.api.committer import Committables
from epochgate.runtime.api.send_future import SendFuture
from epochgate.runtime.store import CompletedCheckpoint

Pair = tuple[int, int]
"""Coordinator, subtask."""


class InvariantViolated(AssertionError):
    """The fuzzed job has broken `invariant`; the message says what was seen."""

    def __init__(self, invariant: str, account: str) -> None:
        super().__init__(f"{invariant}: {account}")
        self.invariant = invariant


def operator_id(coordinator: int) -> str:
    """The operator of a coordinator."""
    return f"op{coordinator}"


@dataclass
class Record:
    """Everything that was seen, over all starts of the driver."""

    coordinators: int
    subtasks: int
    read_store: Callable[[], None]
    """Calls `note_stored` for what is new in the store."""
    violations: list[InvariantViolated] = field(default_factory=list)
    futures: list[SendFuture] = field(default_factory=list)
    """Of the events sent since the driver was started."""
    handled: dict[tuple[str, int, int], list[tuple[int, str, int, int]]] = field(
        default_factory=dict
    )
    """(run, subtask, attempt) -> (coordinator, gateway's run, its attempt, sequence number)."""
    stored: dict[int, CompletedCheckpoint] = field(default_factory=dict)
    table: dict[int, Committables] = field(default_factory=dict)
    """What was committed, by checkpoint, as a target would show it."""
    worked: set[int] = field(default_factory=set)
    """The checkpoints whose work after the commit was done."""
    told_aborted: dict[str, set[tuple[str, int]]] = field(default_factory=dict)
    """Coordinator or subtask -> the run and the id of each checkpoint that it was told is aborted;
    a later run may use the id again.
    """
    told_completed: dict[str, int] = field(default_factory=dict)
    """Coordinator or subtask -> the newest checkpoint that it was told is completed."""

    @property
    def pairs(self) -> list[Pair]:
        """Every coordinator with every subtask, by their numbers."""
        return [(c, s) for c in range(self.coordinators) for s in range(self.subtasks)]

    def note(self, invariant: str, account: str) -> None:
        """Something is wrong; it is raised after the step, since user code must not raise it."""
        self.violations.append(InvariantViolated(invariant, account))

    def check(self) -> None:
        """Raise the first violation, if there is one."""
        if self.violations:
            raise self.violations[0]

    def note_handled(
        self, run: str, subtask: int, attempt: int, coordinator: int, event: list[Any], due: int
    ) -> None:
        """An operator handles an event, and `due` is the sequence number that comes next."""
        gateway_run, gateway_attempt, for_subtask, number = event
        self.handled.setdefault((run, subtask, attempt), []).append(
            (coordinator, gateway_run, gateway_attempt, number)
        )
        where = f"event {number} of coordinator {coordinator}"
        if (gateway_run, gateway_attempt, for_subtask) != (run, attempt, subtask):
            self.note(
                "I3",
                f"attempt {attempt} of subtask {subtask} in {run} handled {where}, which was sent "
                f"to attempt {gateway_attempt} of subtask {for_subtask} in {gateway_run}",
            )
        elif number < 0:
            return
        elif number < due:
            self.note("I3", f"subtask {subtask} handled {where} twice or late; {due} was due")
        elif number > due:
            self.note("I1", f"subtask {subtask} handled {where}, and never handled {due}")

    def note_stored(self, checkpoint: CompletedCheckpoint) -> None:
        """A checkpoint was found in the store: hold it against I1 and I2."""
        number = checkpoint.checkpoint_id
        if number in self.stored:
            return
        self._note_ledger(checkpoint)
        self.stored[number] = checkpoint
        for c, s in self.pairs:
            sent = self.sent(checkpoint, c)[s]
            seen = self.seen(checkpoint, c, s)
            if seen is None:
                self.note("I1", f"checkpoint {number} was completed without subtask {s}")
            elif missing := sorted(set(range(1, sent + 1)) - set(seen)):
                self.note(
                    "I1",
                    f"coordinator {c} had sent {sent} events to subtask {s} when it completed "
                    f"checkpoint {number}, and the subtask's state lacks {missing}",
                )
            elif beyond := [event for event in seen if event > sent]:
                self.note(
                    "I2",
                    f"coordinator {c} had sent {sent} events to subtask {s} when it completed "
                    f"checkpoint {number}, and the subtask's state holds {beyond} too",
                )

    def _note_ledger(self, checkpoint: CompletedCheckpoint) -> None:
        number = checkpoint.checkpoint_id
        carried = {earlier: dict(flat) for earlier, flat in checkpoint.uncommitted.items()}
        for earlier, committables in carried.items():
            known = self.stored.get(earlier)
            if known is None or known.committables != committables:
                account = f"checkpoint {number} says that {earlier} holds {committables}"
                self.note("ledger", f"{account}, and in the store it is {known}")
        for earlier, known in self.stored.items():
            is_due = earlier < number and known.committables and earlier not in self.table
            if is_due and earlier not in carried:
                account = f"{earlier} is not committed, and checkpoint {number} carries {carried}"
                self.note("ledger", account)

    def sent(self, checkpoint: CompletedCheckpoint, coordinator: int) -> list[int]:
        """Count the events that the coordinator's state in the checkpoint counts, by subtask."""
        state = checkpoint.coordinators.get(operator_id(coordinator))
        if state is None:
            return [0] * self.subtasks
        sent, _ = msgpack.unpackb(state)
        return [len(events) for events in sent]

    def heard(self, checkpoint: CompletedCheckpoint, coordinator: int) -> list[list[int]]:
        """Return what the coordinator's state in the checkpoint has heard, by subtask."""
        _, heard = msgpack.unpackb(checkpoint.coordinators[operator_id(coordinator)] or b"")
        return list(heard)

    def seen(
        self, checkpoint: CompletedCheckpoint, coordinator: int, subtask: int
    ) -> list[int] | None:
        """The events that the subtask's state in the checkpoint reflects."""
        state = checkpoint.subtasks.get(subtask, {}).get(operator_id(coordinator))
        return None if state is None else list(msgpack.unpackb(state))

    def note_told(self, who: str, run: str, checkpoint: int, end: str) -> None:
        """A coordinator or subtask was told the `end` of a checkpoint: `completed` or `aborted`."""
        if end == "aborted":
            self.told_aborted.setdefault(who, set()).add((run, checkpoint))
        else:
            self.told_completed[who] = max(checkpoint, self.told_completed.get(who, 0))

    def note_restored(self, who: str, checkpoint: int) -> None:
        """Note that a coordinator or subtask begins from a checkpoint; 0 or below is none."""
        self.read_store()
        found = self.stored.get(checkpoint)
        if found is not None and (found.run_id, checkpoint) in self.told_aborted.get(who, ()):
            self.note("I8", f"{who} is restored from {checkpoint}, and was told that it is aborted")
        if max(checkpoint, 0) < (completed := self.told_completed.get(who, 0)):
            self.note(
                "I8",
                f"{who} is restored from {checkpoint}, and was told that {completed} is completed",
            )

    def note_commit(self, checkpoint: int, committables: Committables) -> None:
        """The committer is told to make these visible."""
        self.read_store()
        if checkpoint not in self.stored:
            self.note("output", f"{checkpoint} was committed, but it is not stored")
            return
        before = self.table.get(checkpoint)
        if before is not None:
            if before != committables:
                self.note("output", f"{checkpoint} had {before}, and now {committables}")
            return
        if committables and any(newer > checkpoint for newer in self.table):
            self.note("output", f"{checkpoint} came after {max(self.table)}: {committables}")
        self.table[checkpoint] = committables
        for c, s in self.pairs:
            rows = self.rows(c, s)
            states = self.seen(self.stored[checkpoint], c, s)
            if rows != states:
                self.note(
                    "output",
                    f"with checkpoint {checkpoint} the output of coordinator {c} and subtask {s} "
                    f"is {rows}, and the state in it reflects {states}",
                )

    def note_work(self, checkpoint: int, committables: Committables) -> None:
        """The work after the commit of this checkpoint is done."""
        if self.table.get(checkpoint) != committables:
            seen = f"{committables}, and the table has {self.table.get(checkpoint)}"
            self.note("work", f"that of {checkpoint} has {seen}")
        if left_out := sorted(n for n in self.table if n < checkpoint and n not in self.worked):
            self.note("work", f"that of {checkpoint} came before that of {left_out}")
        self.worked.add(checkpoint)

    def rows(self, coordinator: int, subtask: int) -> list[int]:
        """The committed output of one pair, in the order of the commits."""
        return [
            number
            for checkpoint in sorted(self.table)
            for c, number in self.table[checkpoint].get(subtask, [])
            if c == coordinator
        ]
