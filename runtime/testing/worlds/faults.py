"""The faults of a world, by name: to what each can happen at a moment, and what it does.

They are the faults of the closed systems under `models/closed`, whose rows name them; what strikes
user code there strikes the user's own code here. `DESCRIBED` is what a person reads of them.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from epochgate.errors import UsageError
from epochgate.runtime.store import CheckpointOutcomeUnknown
from epochgate.runtime.testing.faulty_transport import FATES, Fate
from epochgate.runtime.testing.worlds.line import Line
from epochgate.runtime.testing.worlds.rig import INJECTED, Rig

JUMP_S: Final = 11.0
"""How far the clock jumps: over the timeout of a checkpoint."""
REPEATABLE: Final = ("acknowledge", "confirm")


class UnknownFault(UsageError):
    """A fault that worlds do not have."""


@dataclass(frozen=True)
class Fault:
    """A kind of fault: `targets` are those to which it can happen now, `strike` lets it happen and
    returns what a person reads of it, with the lane that it belongs to.
    """

    about: str
    targets: Callable[[Rig], Sequence[Any]]
    strike: Callable[[Rig, Line, Any], tuple[str, str]]


def _lane(rig: Rig, identity: int) -> str:
    return f"task {rig.simulated.transport.processes[identity].subtask}"


# processes


def _living(rig: Rig) -> list[int]:
    return rig.simulated.transport.living()


def _die(rig: Rig, line: Line, identity: int) -> tuple[str, str]:
    lane = _lane(rig, identity)
    rig.simulated.transport.kill(identity, INJECTED)
    return lane, f"process {identity} dies"


def _lose_connection(rig: Rig, line: Line, identity: int) -> tuple[str, str]:
    rig.simulated.transport.cut(identity, INJECTED)
    return _lane(rig, identity), f"process {identity} loses its connection and lives on"


def _usurp(rig: Rig, line: Line, subtask: int) -> tuple[str, str]:
    identity = rig.simulated.transport.launch(subtask)
    return f"task {subtask}", f"process {identity} connects, which the job did not start"


def _slow(rig: Rig, line: Line, identity: int) -> tuple[str, str]:
    line.slow(identity)
    return _lane(rig, identity), f"process {identity} pauses for a while"


# messages


def _repeatable(rig: Rig) -> list[int]:
    """The processes of which the next word is one that may come late or twice."""
    processes = rig.simulated.transport.processes
    return [
        identity
        for kind, identity in rig.simulated.transport.steps()
        if kind == "hear" and processes[identity].to_driver[0][0] in REPEATABLE
    ]


def _fated(fate: Fate) -> Callable[[Rig, Line, int], tuple[str, str]]:
    words = {"late": "is delayed", "repeated": "will arrive again later"}

    def strike(rig: Rig, line: Line, identity: int) -> tuple[str, str]:
        message = rig.simulated.transport.processes[identity].to_driver[0]
        lane = _lane(rig, identity)
        rig.simulated.faults.doom(message[0], fate)
        rig.simulated.step(("hear", identity))
        return lane, f"the message {message[0]} {message[1]} of process {identity} {words[fate]}"

    return strike


# coordinators


def _may_fail_snapshots(rig: Rig) -> list[str]:
    return ["fail"] if rig.contexts and not rig.strikes.snapshots else []


def _snapshot(fate: str, words: str) -> Callable[[Rig, Line, Any], tuple[str, str]]:
    def strike(rig: Rig, line: Line, target: Any) -> tuple[str, str]:
        rig.strikes.snapshots.append(fate)
        return "driver", f"the next coordinator's snapshot {words}"

    return strike


def _fail_everything(rig: Rig, line: Line, operator_id: str) -> tuple[str, str]:
    rig.contexts[operator_id].fail_job(INJECTED)
    return (
        "driver",
        f"coordinator {operator_id!r} fails the job, which restores its last checkpoint",
    )


# the driver and its store


def _is_saving(rig: Rig) -> list[str]:
    return [lane for lane in rig.simulated.blocking.lanes() if lane == "store"]


def _crash(rig: Rig, line: Line, target: Any) -> tuple[str, str]:
    rig.simulated.crash_driver()
    return (
        "driver",
        f"the driver dies with all its processes, and start {rig.simulated.starts} begins",
    )


def _save(
    error: Callable[[], Exception] | None, is_stored: bool, words: str
) -> Callable[[Rig, Line, Any], tuple[str, str]]:
    def strike(rig: Rig, line: Line, lane: str) -> tuple[str, str]:
        rig.simulated.store.fail_next_save(None if error is None else error(), is_stored=is_stored)
        rig.simulated.run_blocking(lane)
        return "store", words

    return strike


def _may_tear(rig: Rig) -> list[str]:
    """A start needs one whole checkpoint where there is a torn one, and refuses otherwise."""
    return _is_saving(rig) if rig.simulated.shelf.checkpoints else []


def _tear(rig: Rig, line: Line, lane: str) -> tuple[str, str]:
    shelf = rig.simulated.shelf
    before = dict(shelf.checkpoints)
    rig.simulated.run_blocking(lane)
    torn = [number for number in shelf.checkpoints if number not in before]
    for number, data in before.items():
        shelf.checkpoints.setdefault(number, data)
    for number in torn:
        shelf.checkpoints[number] = shelf.checkpoints[number][: len(shelf.checkpoints[number]) // 2]
    rig.simulated.crash_driver()
    return "store", f"the driver dies while it writes checkpoint {torn}, and half of it is stored"


# the committer


def _is_committing(rig: Rig) -> list[str]:
    lanes = rig.simulated.blocking.lanes()
    return [lane for lane in lanes if lane == "commit" and rig.committers]


def _commit(when: str, words: str) -> Callable[[Rig, Line, Any], tuple[str, str]]:
    def strike(rig: Rig, line: Line, lane: str) -> tuple[str, str]:
        rig.strikes.commits.append(when)
        rig.simulated.run_blocking(lane)
        return "store", words

    return strike


def _hang(words: str) -> Callable[[Rig, Line, Any], tuple[str, str]]:
    def strike(rig: Rig, line: Line, lane: str) -> tuple[str, str]:
        rig.simulated.exceed_limit(lane)
        return "store", words

    return strike


def _jump(rig: Rig, line: Line, target: Any) -> tuple[str, str]:
    rig.simulated.clock.advance(JUMP_S)
    rig.simulated.master.queue.post_due()
    rig.simulated.transport.wake()
    line.ask_again()
    return "driver", f"the clock jumps by {JUMP_S:g} s"


FAULTS: Final[dict[str, Fault]] = {
    "die": Fault("a worker process dies", _living, _die),
    "lose-connection": Fault(
        "a worker process loses its connection and lives on; its messages arrive late",
        lambda rig: rig.simulated.transport.living(is_connected=True),
        _lose_connection,
    ),
    "usurp": Fault(
        "a worker process connects that the job did not start, as when Spark retries a task",
        lambda rig: range(rig.setup.subtasks) if _living(rig) else (),
        _usurp,
    ),
    "slow": Fault("a worker process pauses for a while", _living, _slow),
    "hear-late": Fault(
        "an acknowledgement or confirmation arrives late", _repeatable, _fated("late")
    ),
    "hear-again": Fault(
        "an acknowledgement or confirmation arrives twice", _repeatable, _fated("repeated")
    ),
    "fail-snapshot": Fault(
        "a coordinator's snapshot fails", _may_fail_snapshots, _snapshot("fail", "fails")
    ),
    "late-snapshot": Fault(
        "a coordinator completes its snapshot late",
        _may_fail_snapshots,
        _snapshot("late", "comes late"),
    ),
    "fail-everything": Fault(
        "a coordinator fails the job, which restores its last checkpoint",
        lambda rig: list(rig.contexts),
        _fail_everything,
    ),
    "crash": Fault("the driver dies, and another driver starts", lambda rig: ("driver",), _crash),
    "fail-save": Fault(
        "storing a checkpoint fails", _is_saving, _save(None, False, "the save fails")
    ),
    "full-disk": Fault(
        "the store has no room for a checkpoint",
        _is_saving,
        _save(
            lambda: OSError(errno.ENOSPC, INJECTED),
            False,
            "the disk is full: whether the checkpoint is stored is unknown, and it is not",
        ),
    ),
    "lose-save": Fault(
        "a checkpoint is not stored, and the driver cannot tell",
        _is_saving,
        _save(
            lambda: CheckpointOutcomeUnknown(INJECTED),
            False,
            "the store does not answer, and has stored nothing",
        ),
    ),
    "lose-answer": Fault(
        "a checkpoint is stored, and the store's answer is lost",
        _is_saving,
        _save(None, True, "the checkpoint is stored, and the store's answer is lost"),
    ),
    "torn-write": Fault("the driver dies while it writes a checkpoint", _may_tear, _tear),
    "put-off": Fault(
        "a commit cannot be made at the moment",
        _is_committing,
        _commit("before", "the commit must be retried: nothing was done"),
    ),
    "lose-commit-answer": Fault(
        "a commit takes effect, and its answer is lost",
        _is_committing,
        _commit("after", "the commit must be retried, although it took effect"),
    ),
    "hang-save": Fault(
        "the store does not answer within its limit, and has stored nothing",
        _is_saving,
        _hang("the save hangs for longer than store_timeout_s"),
    ),
    "hang-commit": Fault(
        "a commit does not end within its limit, and has done nothing",
        _is_committing,
        _hang("the commit hangs for longer than commit_timeout_s"),
    ),
    "jump": Fault("the clock jumps forward", lambda rig: ("clock",), _jump),
}
"""Every fault that a world can have, by the name that a test and a token use."""
ON_REQUEST: Final = ("hang-save", "hang-commit")
"""Injected where a test names them: for a user's code they are like saves and commits of unknown
outcome, which all tests have.
"""
BY_DEFAULT: Final = tuple(name for name in FAULTS if name not in ON_REQUEST)


def known(names: Sequence[str]) -> tuple[str, ...]:
    """The faults of these names; raises UnknownFault."""
    for name in names:
        if name not in FAULTS:
            raise UnknownFault(f"there is no fault {name!r}; there are {', '.join(FAULTS)}")
    return tuple(names)


MESSAGES: Final = {"acknowledgement": "acknowledge", "confirmation": "confirm", "event": "event"}
"""What a test calls a message -> its tag."""


def doom(rig: Rig, message: str, fate: Fate) -> None:
    """Decide on the next message of a kind; raises UnknownFault."""
    tag = MESSAGES.get(message, "")
    if fate not in FATES.get(tag, ()):
        possible = [word for word, its in MESSAGES.items() if fate in FATES[its]]
        raise UnknownFault(f"no {message!r} can be {fate}; {' or '.join(possible)} can")
    rig.simulated.faults.doom(tag, fate)
