"""A journal on disk: what the machines of one process did, as lines of JSON.

Decides the files, their bound, when they are written, and what a failing disk means: nothing for
the job. `fsm.traces.lines` has the format. One process writes

    DIRECTORY/RUN/driver.000001.jsonl       or task-SUBTASK-IDENTITY.000001.jsonl
    DIRECTORY/RUN/driver.000002.jsonl       once the first is full; the oldest are removed

The thread that drains the queue writes between two bursts of events, once `FLUSH_S` has passed or
many lines have gathered, so a process that is killed loses the events since. Each segment begins
with the state of all machines, so that a check can begin with any of them.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, BinaryIO, Final

from epochgate import __version__
from epochgate.errors import UsageError
from epochgate.fsm import Clock, System
from epochgate.fsm.ports import Emitted
from epochgate.fsm.traces.encoding import Encoder, Entry
from epochgate.fsm.traces.lines import FORMAT, sealed
from epochgate.fsm.traces.shapes import digest
from epochgate.fsm.traces.states import written_state
from epochgate.runtime.api.configuration import JobConfiguration
from epochgate.runtime.filesystem import LocalFileSystem, opener

SEGMENT_BYTES: Final = 16 << 20
SEGMENTS_MAX: Final = 8
HEAD_SHARE: Final = 4
"""A segment is at least four times as long as its head, which has the state of all machines."""
ENTRIES_MAX: Final = 256
"""Events and effects that wait to be encoded, at the end of a burst. More of them would outlive a
collection of garbage, and cost more there than all else that is done for them.
"""
LINES_MAX: Final = 4_096
"""Lines that wait to be written, at the end of a burst."""
FLUSH_S: Final = 0.2
CLOCK_S: Final = 0.001
"""How far apart the clock is noted at least."""
_log = logging.getLogger(__name__)


class TraceExists(UsageError):
    """A trace of this process is there already."""


@dataclass(frozen=True)
class Tracing:
    """The place where the processes of one run write, and how much.

    is_ordered: no message between driver and tasks is lost, repeated or late while its connection
    stands; a check of both sides then insists on the order.
    """

    directory: str
    job_id: str
    run_id: str
    is_ordered: bool = True
    segment_bytes: int = SEGMENT_BYTES
    segments_max: int = SEGMENTS_MAX

    def driver(self, system: System) -> FileJournal:
        """The journal of the driver."""
        return FileJournal(self, "driver", {"role": "driver"}, system)

    def task(self, subtask: int, identity: int) -> Callable[[System], FileJournal]:
        """Return the maker of the journal of a task's process."""
        process = {"role": "task", "subtask": subtask, "identity": identity}
        return lambda system: FileJournal(self, f"task-{subtask}-{identity}", process, system)

    def path(self, name: str, segment: int) -> str:
        """The file of a process."""
        return os.path.join(self.directory, self.run_id, f"{name}.{segment:06}.jsonl")


def tracing_of(
    journal: str | os.PathLike[str] | Tracing | None, configuration: JobConfiguration
) -> Tracing | None:
    """Return what the argument `journal` of a job asks for."""
    if journal is None or isinstance(journal, Tracing):
        return journal
    directory = os.path.abspath(os.fspath(journal))
    return Tracing(directory, configuration.job_id, configuration.run_id)


class FileJournal:
    """Writes the trace of `system`, which belongs to the process of that name.

    An error of the disk is logged, and ends the trace where it is. Raises TraceExists.
    """

    def __init__(
        self, tracing: Tracing, name: str, process: dict[str, Any], system: System
    ) -> None:
        self.clock: Clock | None = None
        self._tracing, self._name, self._process, self._system = tracing, name, process, system
        self._entries: list[Entry] = []
        # Bound methods of a list: each event of a job passes here, and a call into Python costs
        # more than all else that is done for it meanwhile.
        self.record_event: Callable[[Entry], None] = self._entries.append
        self.record_effects: Callable[[Iterable[Emitted]], None] = self._entries.extend
        self._encoder = Encoder(system)
        self._lines: list[bytes] = []
        self._has_encoded = False
        self._digest = digest(type(system))
        self._segment, self._bytes, self._bytes_max = 0, 0, 0
        self._began_s: float | None = None
        self._written_s = self._noted_s = 0.0
        self._file: BinaryIO | None = None
        if os.path.exists(tracing.path(name, 1)):
            raise TraceExists(
                f"there is a trace at {tracing.path(name, 1)} already; name another directory for "
                f"the journal, or give the job another run_id"
            )
        self._guarded(self._next_segment)

    def between_events(self) -> None:
        """Write what has gathered, if it is time, and note the clock."""
        now_s = self._now_s()
        if now_s - self._written_s >= FLUSH_S or len(self._lines) >= LINES_MAX:
            self._guarded(self._write)
            self._written_s = now_s
        elif len(self._entries) >= ENTRIES_MAX:
            self._encode()
        if not self._entries or now_s - self._noted_s >= CLOCK_S:
            self._entries.append((None, (now_s,)))
            self._noted_s = now_s

    def due_in_s(self) -> float | None:
        """After how long what waits is to be written."""
        is_empty = len(self._entries) <= 1 and not self._has_encoded  # the clock alone is nothing
        if self._file is None or is_empty:
            return None
        return max(0.0, self._written_s + FLUSH_S - self._now_s())

    def close(self) -> None:
        """Write what is left, and that this is the end."""
        self._guarded(self._end)
        self._release()

    def _now_s(self) -> float:
        """The seconds since the first look at the clock."""
        now_s = 0.0 if self.clock is None else self.clock.now_s()
        if self._began_s is None:
            self._began_s = now_s
        return now_s - self._began_s

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except OSError as error:
            _log.warning(
                "the journal of %s in %s cannot be written: %s. Its trace ends here; the job goes "
                "on without",
                self._name,
                self._tracing.directory,
                error,
            )
            self._release()
            self._system.journal = None

    def _encode(self) -> None:
        """Bring what waits into lines; the last may go on."""
        self._lines += self._encoder.encode(self._entries)
        self._entries.clear()
        self._has_encoded = True

    def _write(self) -> None:
        self._encode()
        lines = b"".join([*self._lines, *self._encoder.end()])
        self._lines.clear()
        self._has_encoded = False
        if self._file is None or not lines:
            return
        self._put(lines)
        if self._bytes >= self._bytes_max:
            self._next_segment()

    def _end(self) -> None:
        self._write()
        if self._file is not None:
            foot = {"end": self._encoder.numbered, "state": written_state(self._system)}
            self._put(sealed(foot))

    def _next_segment(self) -> None:
        self._release()
        self._segment += 1
        tracing = self._tracing
        path = tracing.path(self._name, self._segment)
        LocalFileSystem().make_directory(os.path.dirname(path))
        self._file = open(path, "xb", buffering=0, opener=opener)  # noqa: SIM115  it is kept open
        head = sealed(self._head())
        self._bytes, self._bytes_max = 0, max(tracing.segment_bytes, HEAD_SHARE * len(head))
        self._put(head)
        if self._segment > tracing.segments_max:
            with contextlib.suppress(FileNotFoundError):
                os.remove(tracing.path(self._name, self._segment - tracing.segments_max))

    def _head(self) -> dict[str, Any]:
        system = self._system
        return {
            "trace": FORMAT,
            "epochgate": __version__,
            "job_id": self._tracing.job_id,
            "run_id": self._tracing.run_id,
            "process": self._process,
            "is_ordered": self._tracing.is_ordered,
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "began_at": time.time(),
            "system": f"{type(system).__module__}:{type(system).__qualname__}",
            "digest": self._digest,
            "constants": system.constants,
            "segment": self._segment,
            "first": self._encoder.numbered + 1,
            "state": written_state(system),
        }

    def _put(self, data: bytes) -> None:
        assert self._file is not None, "it was opened"
        self._file.write(data)
        self._bytes += len(data)

    def _release(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            with contextlib.suppress(OSError):
                file.close()
