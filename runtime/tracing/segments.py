"""Finds traces on disk, and reads them: which files belong to one process, and their lines.

A trace is what one process wrote, a chain of segments. Only the last line of the last segment may
be torn, because only there can a process have been killed while it wrote; anything else that cannot
be read was damaged later.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from epochgate.errors import UsageError
from epochgate.fsm.traces.lines import FORMAT, LineDamaged, opened
from epochgate.fsm.traces.replaying import Refusal

SUFFIX = ".jsonl"
HEAD = (
    "job_id",
    "run_id",
    "process",
    "is_ordered",
    "epochgate",
    "system",
    "digest",
    "constants",
    "segment",
    "first",
    "state",
)
"""What a head has at least."""


class NoTraces(UsageError):
    """There is nothing to validate."""


class Place(NamedTuple):
    """A line of a file."""

    path: str
    line: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


class Refused(Exception):
    """A trace is refused at this place."""

    def __init__(self, place: Place, refusal: Refusal) -> None:
        super().__init__(f"{place}: {refusal}")
        self.place, self.refusal = place, refusal


@dataclass(frozen=True)
class Segment:
    """One file, and the values of its head."""

    path: str
    head: dict[str, Any]

    @property
    def number(self) -> int:
        """Its place in the chain, from 1."""
        return int(self.head["segment"])


class Line(NamedTuple):
    """One line behind the head; `values` is None for a torn one."""

    place: Place
    values: dict[str, Any] | None


@dataclass(frozen=True)
class Trace:
    """The trace of one process of one run, in its segments, the oldest first."""

    name: str
    segments: list[Segment] = field(default_factory=list)

    @property
    def head(self) -> dict[str, Any]:
        """The head of the first segment that is there."""
        return self.segments[0].head

    def lines(self, segment: Segment) -> Iterator[Line]:
        """The lines behind the head of one of the segments; raises Refused."""
        is_last = segment is self.segments[-1]
        with open(segment.path, "rb") as file:
            for number, line in enumerate(file, 1):
                if number == 1:
                    continue
                place = Place(segment.path, number)
                if not line.endswith(b"\n"):
                    if is_last:
                        yield Line(place, None)
                        return
                    raise Refused(
                        place,
                        Refusal("damaged", "the file ends within a line, and goes on in another"),
                    )
                try:
                    yield Line(place, opened(line))
                except LineDamaged as error:
                    raise Refused(
                        place, Refusal("damaged", f"the line is damaged: {error}")
                    ) from None


def found(paths: Iterable[str | os.PathLike[str]]) -> list[str]:
    """The files of traces at these paths, directories with all that is below them, in order.

    Raises NoTraces.
    """
    files: list[str] = []
    given = [os.fspath(path) for path in paths]
    for path in given:
        if os.path.isdir(path):
            below = [os.path.join(folder, n) for folder, _, names in os.walk(path) for n in names]
            files += sorted(each for each in below if each.endswith(SUFFIX))
        elif os.path.isfile(path):
            files.append(path)
        else:
            raise NoTraces(f"there is no file or directory {path}")
    if not files:
        raise NoTraces(
            f"there is no trace in {', '.join(given)}: a job writes traces when it "
            f"is given a directory for its journal (`epochgate ingest --journal DIR`, "
            f"`run_job(..., journal=DIR)`)"
        )
    return list(dict.fromkeys(files))


def chain_of(path: str) -> tuple[str, str]:
    """Return the chain of one process's files: their directory, and the name before the segment's
    number.

    >>> chain_of("traces/1c2f/driver.000002.jsonl")
    ('traces/1c2f', 'driver')
    """
    folder, name = os.path.split(path)
    stem = name.removesuffix(SUFFIX)
    base, _, number = stem.rpartition(".")
    return folder, base if base and number.isdigit() else stem


def chains(files: Iterable[str]) -> list[list[str]]:
    """The files of each process."""
    groups: dict[tuple[str, str], list[str]] = {}
    for path in files:
        groups.setdefault(chain_of(path), []).append(path)
    return [sorted(paths) for paths in groups.values()]


def opened_trace(paths: list[str]) -> Trace:
    """The trace whose segments are these files; raises Refused."""
    folder, name = chain_of(paths[0])
    shown = os.path.join(folder, name)
    trace = Trace(shown, [_segment(path) for path in paths])
    first = trace.head
    for before, segment in zip(trace.segments, trace.segments[1:], strict=False):
        head, place = segment.head, Place(segment.path, 1)
        same = ("job_id", "run_id", "process", "system", "digest", "constants")
        if odd := [key for key in same if head[key] != first[key]]:
            key = odd[0]
            text = f"{key} is {head[key]!r}, and {first[key]!r} in {trace.segments[0].path}"
            raise Refused(place, Refusal("foreign", f"a segment of another trace: {text}"))
        if segment.number != before.number + 1:
            text = f"segment {segment.number} follows segment {before.number}"
            raise Refused(place, Refusal("missing", f"a segment is missing: {text}"))
    return trace


def _segment(path: str) -> Segment:
    place = Place(path, 1)
    with open(path, "rb") as file:
        line = file.readline()
    if not line:
        raise Refused(place, Refusal("damaged", "the file is empty: a trace begins with its head"))
    try:
        head = opened(line)
    except LineDamaged as error:
        raise Refused(place, Refusal("damaged", f"the head is damaged: {error}")) from None
    if "trace" not in head:
        raise Refused(place, Refusal("missing", "the head of the trace is missing"))
    if head["trace"] != FORMAT:
        text = (
            f"the trace has format {head['trace']!r}, and this epochgate reads format {FORMAT}; "
            f"use the epochgate that wrote it"
        )
        raise Refused(place, Refusal("foreign", text))
    if lacking := [key for key in HEAD if key not in head]:
        text = f"the head lacks {', '.join(lacking)}"
        raise Refused(place, Refusal("malformed", text))
    return Segment(path, head)
