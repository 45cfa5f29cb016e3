"""Our own machines behind the line protocol of the conformance test.

    python -m tests.conformance.shell < commands

One command a line, its lines of output, then a line `.`; see README.md beside this. Decides what a
command's words mean; what they do is `World`'s. Odd input is answered with a line `EXC ...`, and
the next command is read: the shell ends with its input alone.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator

from epochgate.errors import EpochgateError
from tests.conformance.standins import HolderAlone
from tests.conformance.world import World

SUBTASKS_MAX = 1000
CHUNK_BYTES = 1 << 16


class BadCommand(EpochgateError):
    """A line that is no command of the protocol."""


def number(word: str) -> int:
    """An integer word of a command; raises BadCommand."""
    if not word.removeprefix("-").isdecimal() or len(word) > 18:
        raise BadCommand(f"{word!r} is not an integer of at most 18 characters")
    return int(word)


class Shell:
    """Answers commands, one at a time, on whatever thread calls; `system` is what it drives."""

    def __init__(self, system: type[HolderAlone] = HolderAlone) -> None:
        self._system = system
        self.world: World | None = None
        self._is_automatic = True

    def run(self, lines: Iterable[str]) -> list[list[str]]:
        """Each command's lines of output; the state stays from one call to the next."""
        return [self.answer(line) for line in lines]

    def answer(self, line: str) -> list[str]:
        """One command's lines of output. Raises nothing because of what the line says."""
        words = line.split()
        if not words or words[0].startswith("#"):
            return []
        problem = None
        try:
            self._perform(*words)
            if self._is_automatic and self.world is not None:
                self.world.drain()
        except EpochgateError as refused:
            problem = f"EXC {type(refused).__name__}: {refused}"
        lines = [] if self.world is None else self.world.lines
        said = [*lines, problem] if problem else list(lines)
        lines.clear()
        return said

    def _perform(self, name: str, *words: str) -> None:
        if name not in ARITIES:
            raise BadCommand(f"unknown command {name!r}; there are {', '.join(ARITIES)}")
        least, most = ARITIES[name]
        if len(words) < least:
            raise BadCommand(f"{name} takes {least} words or more, not {len(words)}")
        if name == "new":
            self._begin(*words[:most])
            return
        if self.world is None:
            raise BadCommand("there is no holder: begin with new N")
        if name == "auto":
            self._is_automatic = words[0] == "1"
        else:
            perform: Callable[..., None] = getattr(self, f"_{name}")
            perform(self.world, *words[:most])

    def _begin(self, subtasks: str, mode: str = "") -> None:
        count = number(subtasks)
        if not 0 <= count <= SUBTASKS_MAX:
            raise BadCommand(f"{count} subtasks: it takes from 0 to {SUBTASKS_MAX}")
        self.world = World(count, mode == "manual", self._system)
        self._is_automatic = True

    @staticmethod
    def _subtask(world: World, word: str) -> int:
        subtask = number(word)
        if not 0 <= subtask < len(world.stages):
            raise BadCommand(f"there is no subtask {subtask}: there are {len(world.stages)}")
        return subtask

    def _start(self, world: World) -> None:
        world.start()

    def _drain(self, world: World) -> None:
        world.drain()

    def _running(self, world: World, subtask: str) -> None:
        world.run(self._subtask(world, subtask))

    def _finish(self, world: World, subtask: str) -> None:
        world.finish(self._subtask(world, subtask))

    def _fail(self, world: World, subtask: str) -> None:
        world.fail(self._subtask(world, subtask))

    def _send(self, world: World, subtask: str, attempt: str, event: str) -> None:
        world.send(self._subtask(world, subtask), number(attempt), event)

    def _sendack(self, world: World, event: str, lost: str = "") -> None:
        world.answer(event, is_ok=not lost)

    def _event(self, world: World, subtask: str, attempt: str, event: str) -> None:
        world.event(self._subtask(world, subtask), number(attempt), event)

    def _ack(self, world: World, subtask: str, attempt: str, checkpoint: str) -> None:
        world.acknowledge(self._subtask(world, subtask), number(attempt), number(checkpoint))

    def _ckpt(self, world: World, checkpoint: str) -> None:
        world.ask(number(checkpoint))

    def _cdone(self, world: World, checkpoint: str, state: str) -> None:
        world.future(number(checkpoint), state)

    def _cfail(self, world: World, checkpoint: str) -> None:
        world.future(number(checkpoint), None)

    def _abort(self, world: World) -> None:
        world.abort_triggering()

    def _complete(self, world: World, checkpoint: str) -> None:
        world.complete(number(checkpoint))

    def _aborted(self, world: World, checkpoint: str) -> None:
        world.abort(number(checkpoint))

    def _reset(self, world: World, subtask: str, checkpoint: str) -> None:
        world.reset(self._subtask(world, subtask), number(checkpoint))

    def _restore(self, world: World, checkpoint: str, state: str = "null") -> None:
        world.restore(number(checkpoint), state)


ARITIES: dict[str, tuple[int, int]] = {
    "new": (1, 2),
    "start": (0, 0),
    "auto": (1, 1),
    "drain": (0, 0),
    "running": (1, 1),
    "finish": (1, 1),
    "fail": (1, 1),
    "send": (3, 3),
    "sendack": (1, 2),
    "event": (3, 3),
    "ack": (3, 3),
    "ckpt": (1, 1),
    "cdone": (2, 2),
    "cfail": (1, 1),
    "abort": (0, 0),
    "complete": (1, 1),
    "aborted": (1, 1),
    "reset": (2, 2),
    "restore": (1, 2),
}
"""How many words each command takes, at least and at most; what stands behind them is ignored."""


def _lines(descriptor: int) -> Iterator[list[str]]:
    """Return what can be read without waiting for more, line by line."""
    rest = b""
    while chunk := os.read(descriptor, CHUNK_BYTES):
        *whole, rest = (rest + chunk).split(b"\n")
        yield [line.decode("utf-8", "replace") for line in whole]
    if rest:
        yield [rest.decode("utf-8", "replace")]


def main() -> None:
    """Answer standard input on standard output until it ends."""
    shell = Shell()
    for lines in _lines(sys.stdin.fileno()):
        said = [line for answer in shell.run(lines) for line in (*answer, ".")]
        sys.stdout.buffer.write("".join(f"{line}\n" for line in said).encode())
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
