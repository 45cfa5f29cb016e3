"""Processes whose shells stop at a gate in front of each question to the outside.

A shell runs on a thread of its own, and carries the effects of its machine out as in production. An
effect whose port says what may answer it waits at the gate, until the schedule tells how the world
answers: the back end then does as it is told, and the shell's handler runs to its end. One thread
runs at a time, so a schedule has one outcome.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from types import MethodType
from typing import Any, ClassVar

from epochgate.fsm import Handles, Port, System
from epochgate.fsm.inside import machines_behind

TURN_MAX_S = 60.0
"""After this time a turn has hung, which no schedule of these processes contains."""

WELL = "well"
"""The outcome of a question that the world answers."""


class Killed(BaseException):
    """The process of a shell was killed at its gate."""


class Process:
    """One process: the call under way, and the question at which it stands."""

    at_once: ClassVar[frozenset[str]] = frozenset()
    """Questions that the closed system has answered at once: they do not wait at the gate."""

    def __init__(self) -> None:
        self.asked: str | None = None
        """The message that waits at the gate; None while none does."""
        self.arguments: tuple[Any, ...] = ()
        self.outcome = WELL
        """How the back end is to answer the question that has passed the gate last."""
        self.result: Any = None
        self.error: BaseException | None = None
        """How the last call has ended."""
        self.is_busy = False
        self.system: Any = None
        """The machines of the shell."""
        self._is_killed = False
        self._may_go, self._stands = threading.Semaphore(0), threading.Semaphore(0)

    def call(self, body: Callable[[], Any]) -> None:
        """Let the process begin a call; returns once it stands at the gate, or has ended."""
        assert not self.is_busy, "a process has one call at a time"
        self.is_busy, self.result, self.error = True, None, None
        threading.Thread(target=self._run, args=(body,), daemon=True).start()
        self._wait()

    def answer(self, outcome: str = WELL) -> None:
        """Let what stands at the gate pass; returns as `call` does."""
        assert self.asked is not None, "nothing stands at the gate"
        self.outcome = outcome
        self._may_go.release()
        self._wait()

    def kill(self) -> None:
        """End the process where it stands."""
        self._is_killed = True
        if self.is_busy:
            self.answer()

    def stand(self, message: str, arguments: tuple[Any, ...]) -> None:
        """Wait at the gate; on the thread of the shell. Raises Killed."""
        if self._is_killed:  # user code, or a shell, has caught it
            raise Killed
        self.asked, self.arguments = message, arguments
        self._stands.release()
        self._may_go.acquire()
        self.asked, self.arguments = None, ()
        if self._is_killed:
            raise Killed

    def _run(self, body: Callable[[], Any]) -> None:
        try:
            self.result = body()
        except BaseException as error:  # noqa: BLE001  # how the call has ended is compared
            self.error = error
        self.is_busy = False
        self._stands.release()

    def _wait(self) -> None:
        assert self._stands.acquire(timeout=TURN_MAX_S), f"a turn hangs after {self.outcome}"


@dataclass(frozen=True)
class Heard:
    """A message as a machine tells it; its arguments begin with the machine's index."""

    machine: str
    port: str
    message: str
    parameters: tuple[str, ...]
    arguments: tuple[Any, ...]


Lie = Callable[[Heard], tuple[Any, ...]]
"""The arguments that a shell hears instead."""


def the_truth(heard: Heard) -> tuple[Any, ...]:
    """Return what a machine says is what its shell hears."""
    return heard.arguments


class GatedPort:
    """A shell's handler behind a gate: messages that are answered wait, the others pass."""

    def __init__(
        self, handler: Any, place: tuple[str, str], port: type[Port], process: Process, lie: Lie
    ) -> None:
        self._handler, self._place, self._process, self._lie = handler, place, process, lie
        self._messages = port.messages()
        asked = {name for name in self._messages if port.answers(name) is not None}
        self._answered = asked - process.at_once

    def __getattr__(self, message: str) -> Callable[..., None]:
        handled, parameters = getattr(self._handler, message), self._messages[message]

        def tell(*told: Any) -> None:
            arguments = self._lie(Heard(*self._place, message, parameters, told))
            if message in self._answered:
                self._process.stand(message, arguments)
            handled(*arguments)

        return tell


def gated(process: Process, lie: Lie = the_truth, **constants: int) -> Callable[..., Any]:
    """Return what stands in for `Handles` in the module of a shell: its system has the constants,
    and its handlers stand behind the gate of the process, which keeps the machines as `system`.
    """

    def make(system: Callable[..., System], **given: int) -> Handles[Any]:
        handles = Handles(system, **(given | constants))
        made = process.system = machines_behind(handles)

        def bind(made: System, name: str, port: str, handler: object) -> None:
            declared = made.MACHINES[name].PORTS[port].port
            made.bind(name, port, GatedPort(handler, (name, port), declared, process, lie))

        handles.bind = MethodType(bind, made)  # who drives a system finds it by this
        return handles

    return make
