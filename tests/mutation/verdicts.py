"""The finder of each mutant of a machine, kept from run to run in a file for each machine.

A verdict counts as long as what it rests on is the same: the machine, the closed systems around it
and everything of the models that these import; for one of a scenario or a test no closed system,
but the file in which this stands; for mutants that survive, all tests and the scenarios in which
the machine may run, too. Comments and docstrings of the models count for nothing. A verdict that
counts no more is kept as a hint: what found the mutant before is asked first.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from epochgate.fsm import Machine, System
from tests.mutation.by_test import TESTS
from tests.mutation.checking import systems_around
from tests.mutation.every import KINDS, every_of, kind_of
from tests.mutation.homes import HOMES
from tests.mutation.running import OF_NO_SCENARIO
from tests.mutation.sources import meanings
from tests.scenarios import test_scenarios as scenarios

ROOT = Path(__file__).resolve().parents[2]
KEPT = Path(__file__).parent / "verdicts"
SCENARIOS = ROOT / "tests" / "scenarios"

REFUSED = "refused when it is declared"
NOWHERE = "allows what is an error, and comes up nowhere"
UNTESTED = "not found by the checker"
UNTRIED = "not found by scenarios, nor in the first states"
UNSEARCHED = "not found by scenarios and tests, nor in the first states"
SURVIVES = "survives"
NOT_ASKED = "is heard by none, with a reason"
"""Of a lie about an argument that nothing has to look at."""
OF_SCENARIO, OF_TEST, OF_CHECKER = "test: scenario ", "test: ", "checker: "
"""How a verdict begins, before the scenario's name, the test's, or the system's."""
UNJUDGED = "."
"""In a file, in the place of a verdict that is not there yet."""
EARLIER = "?"
"""In a file, in front of a verdict that counts no more."""


@dataclass
class Verdicts:
    """The verdicts on one machine's mutants: name -> its finder, or one of the words above."""

    machine: str
    of: dict[str, str] = field(default_factory=dict)
    earlier: dict[str, str] = field(default_factory=dict)
    """Those that count no more, of mutants without another."""

    @classmethod
    def kept(cls, machine: str) -> Verdicts:
        """Those of an earlier run that still count."""
        told, found = kept(machine), cls(machine)
        if told is None:
            return found
        names = names_of(machine)
        for kind, verdicts in told.kinds.items():
            if told.names[kind] == digest(names.get(kind, ())):
                pairs = zip(names[kind], verdicts, strict=True)
                found.of |= {name: verdict for name, verdict in pairs if verdict}
                earlier = zip(names[kind], told.earlier[kind], strict=True)
                found.earlier |= {name: verdict for name, verdict in earlier if verdict}
        for name, verdict in [*found.of.items()]:
            if (
                told.checked != checked(machine)
                and (not verdict.startswith(OF_TEST) or told.run != run(machine))
            ) or told.files.get(verdict) != file_of(verdict):
                found.earlier[name] = found.of.pop(name)
            elif verdict == SURVIVES and told.tested != tested(machine):
                found.of[name] = UNTESTED
        return found

    def keep(self) -> None:
        """Write them into the machine's file, by kind and in the order of the mutants."""
        finders = sorted({*self.of.values(), *self.earlier.values()})
        numbers = {finder: str(number) for number, finder in enumerate(finders)}

        def number_of(name: str) -> str:
            if name in self.of:
                return numbers[self.of[name]]
            return f"{EARLIER}{numbers[self.earlier[name]]}" if name in self.earlier else UNJUDGED

        names = names_of(self.machine)
        told = {
            "checked": checked(self.machine),
            "run": run(self.machine),
            "tested": tested(self.machine),
            "finders": finders,
            "files": {finder: told for finder in finders if (told := file_of(finder))},
            "names": {kind: digest(some) for kind, some in names.items()},
            "kinds": {kind: " ".join(map(number_of, some)) for kind, some in names.items()},
            "surviving": {
                kind: left
                for kind, some in names.items()
                if (left := [name for name in some if self.of.get(name) == SURVIVES])
            },
        }
        path = _path(self.machine)
        path.parent.mkdir(exist_ok=True)
        beside = path.with_suffix(".new")
        beside.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
        beside.replace(path)


@dataclass(frozen=True)
class Kept:
    """A machine's file as it is read: verdicts by kind, empty where there is none yet."""

    checked: str
    run: str
    tested: str
    files: dict[str, str]
    """Verdict of a scenario or a test -> a digest of its file."""
    names: dict[str, str]
    kinds: dict[str, list[str]]
    earlier: dict[str, list[str]]
    """Verdicts that count no more, by kind; empty where there is none."""
    surviving: dict[str, list[str]]


def kept(machine: str) -> Kept | None:
    """Return what a machine's file says, whether it still counts or not; None without a file."""
    path = _path(machine)
    if not path.exists():
        return None
    told = json.loads(path.read_text(encoding="utf-8"))
    counting = {str(number): finder for number, finder in enumerate(told["finders"])}
    hints = {f"{EARLIER}{number}": finder for number, finder in counting.items()}

    def by_kind(finders: dict[str, str]) -> dict[str, list[str]]:
        return {
            kind: [finders.get(number, "") for number in numbers.split()]
            for kind, numbers in told["kinds"].items()
        }

    return Kept(
        told["checked"],
        told.get("run", ""),
        told["tested"],
        told.get("files", {}),
        told["names"],
        by_kind(counting),
        by_kind(hints),
        told["surviving"],
    )


def _path(machine: str) -> Path:
    return KEPT / f"{machine}.json"


@cache
def names_of(machine: str) -> dict[str, tuple[str, ...]]:
    """The names of a machine's mutants by kind, where there are any."""
    found: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for mutant in every_of(machine):
        found[kind_of(mutant)].append(mutant.name)
    return {kind: tuple(names) for kind, names in found.items() if names}


def digest(parts: Iterable[str]) -> str:
    """A short digest of texts."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


@cache
def checked(machine: str) -> str:
    """A digest of what the checker's verdicts rest on."""
    systems = systems_around(HOMES[machine].system, machine)
    return digest([*map(str, systems), *_models(machine, *(each.system for each in systems))])


@cache
def run(machine: str) -> str:
    """A digest of the machine as it runs, in scenarios and tests."""
    return digest(_models(machine))


def _models(machine: str, *around: type[System]) -> list[str]:
    """The modules of a machine, its system and those around it, with all that these import."""
    home = HOMES[machine]
    return meanings(kind.__module__ for kind in (home.machine, home.system, *around))


@cache
def file_of(verdict: str) -> str | None:
    """A digest of the file of a scenario or a test that has found a mutant; None for others."""
    if verdict.startswith(OF_SCENARIO):
        path = SCENARIOS / f"{verdict.removeprefix(OF_SCENARIO)}.txt"
    elif verdict.startswith(OF_TEST):
        path = ROOT / verdict.removeprefix(OF_TEST).partition("::")[0]
    else:
        return None
    return digest([path.read_text(encoding="utf-8")]) if path.exists() else ""


@cache
def tested(machine: str) -> str:
    """A digest of the tests and scenarios that are run with a machine's mutants."""
    home = HOMES[machine]
    files = [ROOT / test for test in TESTS[home.system]]
    if home.system not in OF_NO_SCENARIO:
        files += [path for path in scenarios.FILES if _may_run(path, home.machine)]
    return digest(f"{path.name}\0{path.read_text(encoding='utf-8')}" for path in files)


def _may_run(path: Path, machine: type[Machine]) -> bool:
    """Return whether a scenario's world may have a machine, or a variant of it, in it."""
    world = scenarios.world_of(path.read_text(encoding="utf-8"))
    system: type[System] | None = getattr(world, "SYSTEM", None)
    return system is None or any(issubclass(each, machine) for each in system.MACHINES.values())
