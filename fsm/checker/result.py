"""The result of a check: the verdict, how much was explored, and how to get to a violation."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Any

from epochgate.exit_codes import ExitCode

State = dict[str, dict[str, Any]]
"""The fields of each instance, by their names."""


class Verdict(Enum):
    """PASS and FAIL mean what they say; VACUOUS passes, but something was never exercised; BOUNDED
    found nothing before it was stopped.
    """

    PASS = "PASS"
    FAIL = "FAIL"
    VACUOUS = "VACUOUS"
    BOUNDED = "BOUNDED"


@dataclass(frozen=True)
class PropertyResult:
    """One claim and its verdict; `detail` gives the reason where the verdict does not."""

    kind: str
    name: str
    claim: str
    verdict: Verdict
    file: str
    line: int
    detail: str = ""


@dataclass(frozen=True)
class RowCoverage:
    """One row of one machine, and whether any instance took it anywhere."""

    machine: str
    trigger: str
    source: str
    because: str
    is_ignored: bool
    file: str
    line: int
    is_taken: bool
    excused: str = ""
    """Why the system says that it need not be taken."""
    is_environment: bool = False
    origin: str = ""
    """The class that declares the row; variants of a machine share its rows."""
    untaken_from: tuple[str, ...] = ()
    """The states of `source` in which no instance took it, and that no excuse names."""


@dataclass(frozen=True)
class TakenRow:
    """A row that an instance took in the course of a step."""

    instance: str
    trigger: str
    source: str
    dest: str
    because: str


@dataclass(frozen=True)
class TraceStep:
    """One step of a counterexample, with the state of everything before and after it."""

    number: int
    instance: str
    trigger: str
    label: str
    because: str
    rows: tuple[TakenRow, ...]
    """The rows that the machines took in the step, in order."""
    effects: tuple[str, ...]
    """What left the machines, in the order in which it was handed to the environment: for instance
    `gateway[0][1].task.event(number=1)`.
    """
    before: dict[str, dict[str, Any]]
    after: dict[str, dict[str, Any]]
    changed: dict[str, tuple[Any, Any]]
    """`instance.field` -> what it was and what it became."""
    channels: dict[str, Any]
    """`instance.field` -> what a channel holds afterwards, for those that hold something."""


@dataclass(frozen=True)
class Counterexample:
    """A shortest way, for a breadth-first search, to something that must not be.

    `kind` is that of a fault (refused, assertion, range, overflow, empty, index, changed or
    endless), that of a claim, deadlock, or inductive: then `initial` need not be reachable. From
    `cycle` on, counted in steps, the steps repeat for ever; with `cycle` equal to their number the
    last state does.
    """

    kind: str
    message: str
    file: str
    line: int
    initial: dict[str, dict[str, Any]]
    steps: tuple[TraceStep, ...]
    property: str = ""
    cycle: int | None = None
    usual: State = field(default_factory=dict)
    """The initial state, where the steps begin in another one."""
    fairness: tuple[str, ...] = ()
    """Of a run without end, line by line, how it satisfies the fairness that is demanded."""
    begins: dict[str, Any] = field(default_factory=dict)
    """`instance.field` -> what it begins with, where a check chooses that."""


@dataclass
class Result:
    """The outcome of one check; `states` are distinct ones, and the initial states are not counted
    among the `transitions`.
    """

    system: str
    constants: dict[str, int]
    engine: str
    workers: int
    verdict: Verdict
    states: int
    transitions: int
    depth: int
    """The distance of the farthest state; with a depth-first search, not known and 0."""
    terminal_states: int
    """States without possible steps that are not deadlocks."""
    compile_seconds: float
    search_seconds: float
    bytes_per_state: float
    """Of memory."""
    properties: list[PropertyResult]
    coverage: list[RowCoverage]
    counterexample: Counterexample | None = None
    stopped: str = ""
    """What stopped a search that is BOUNDED."""
    symmetry: str = ""
    partial_order: bool = False
    left_out: int = 0
    """Possible steps that a partial-order reduction did not take."""
    order: str = "breadth"
    effort: str = ""
    """How much was looked at, where it was no search through states."""
    fairness: list[str] = field(default_factory=list)
    """What is demanded of runs without end, by kind, where there are claims about them."""
    notes: list[str] = field(default_factory=list)
    disk_bytes: int = 0
    """What the states take on disk, where they are kept there."""

    @property
    def exit_code(self) -> int:
        """Return the exit code, of those that `epochgate.exit_codes` lists."""
        is_about_rows = self.verdict is Verdict.VACUOUS and all(
            claim.verdict is not Verdict.VACUOUS for claim in self.properties
        )
        return ExitCode.UNTAKEN if is_about_rows else ExitCode[self.verdict.value]

    @property
    def untaken(self) -> list[RowCoverage]:
        """The rows that no step took and no excuse names."""
        return [row for row in self.coverage if not row.is_taken and not row.excused]

    def to_json(self) -> dict[str, Any]:
        """Everything as plain data."""
        found = asdict(self, dict_factory=_plain)
        found["exit_code"] = int(self.exit_code)
        return found

    def json_text(self) -> str:
        """Everything as JSON, indented."""
        return json.dumps(self.to_json(), indent=2)


def _plain(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return {name: v.value if isinstance(v, Verdict) else v for name, v in pairs}


def changes(before: State, after: State) -> dict[str, tuple[Any, Any]]:
    """Every field that differs, with what it was and what it is."""
    return {
        f"{name}.{field_name}": (before[name][field_name], value)
        for name, values in after.items()
        for field_name, value in values.items()
        if before[name][field_name] != value
    }
