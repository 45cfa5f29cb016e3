"""The fairness that a closed system demands of its runs, step by step of each instance."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from epochgate.fsm.closed import ClosedSystem, Fairness
from epochgate.fsm.rows import ANY


@dataclass(frozen=True)
class Demand:
    """Fairness to some steps of instances, `wire[0].deliver`, as to one."""

    told: str
    steps: tuple[str, ...]
    is_strong: bool

    @property
    def kind(self) -> str:
        return "strong" if self.is_strong else "weak"


Labels = dict[str, tuple[str, tuple[int, ...]]]
"""The step of each instance -> the name of its step, and the instance's index."""


def demands(system: ClosedSystem) -> list[Demand]:
    """Everything that is demanded: of each instance by itself, and of steps together."""
    labels: Labels = {}
    found = []
    for step, machine in system.step_instances():
        position = "".join(f"[{i}]" for i in machine.index)
        label = f"{step.machine}{position}.{step.trigger}"
        labels[label] = step.name, machine.index
        if step.is_fair or step.is_strongly_fair:
            found.append(Demand(label, (label,), step.is_strongly_fair))
    for declared in system.FAIRNESS:
        found += _together(system, declared, labels)
    return found


def _together(system: ClosedSystem, declared: Fairness, labels: Labels) -> Iterator[Demand]:
    """The demands of one line of FAIRNESS: one, or one for each member of an index set."""
    meant = {n: i for n, i in labels.items() if ANY in declared.steps or i[0] in declared.steps}
    if not declared.each:
        yield Demand(_named(system, declared), tuple(meant), declared.is_strong)
        return
    for member in range(system.constants[system.INDEX_SETS[declared.each]]):
        its = [
            label
            for label, (name, index) in meant.items()
            if index[_sets(system, name).index(declared.each)] == member
        ]
        yield Demand(" or ".join(its), tuple(its), declared.is_strong)


def _sets(system: ClosedSystem, step: str) -> tuple[str, ...]:
    return system.MACHINES[step.partition(".")[0]].INDEX


def _named(system: ClosedSystem, declared: Fairness) -> str:
    if ANY in declared.steps:
        return "any step"
    return " or ".join(f"any {n}" if _sets(system, n) else n for n in declared.steps)


def summary(system: ClosedSystem) -> list[str]:
    """Tell what is demanded, by kind, for a person: `weak: each buyer.buy, any step`."""
    told: dict[bool, list[str]] = {False: [], True: []}
    for step in system.STEPS:
        if step.is_fair or step.is_strongly_fair:
            is_array = _sets(system, step.name)
            told[step.is_strongly_fair].append(f"each {step.name}" if is_array else step.name)
    for one in system.FAIRNESS:
        names = " or ".join(one.steps) if one.each else _named(system, one)
        told[one.is_strong].append(f"for each {one.each} {names}" if one.each else names)
    return [
        f"{'strong' if is_strong else 'weak'}: {', '.join(names)}"
        for is_strong, names in told.items()
        if names
    ]
