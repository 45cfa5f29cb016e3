"""Makes a closed system of a Petri net that is given as data.

A net is one machine: a number of tokens for each place, and a row for each transition, which asks
for the tokens that it takes. The contest that publishes the nets' figures also publishes the
largest number of tokens in one place and in one marking; both are claims of the system.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

Bag = Mapping[str, int]
"""Places, and how many tokens in each."""


def bag(places: str | Iterable[str]) -> Bag:
    """The places that a text names, as often as it does."""
    return Counter(places.split() if isinstance(places, str) else places)


@dataclass(frozen=True)
class Net:
    """Places with their first tokens, and transitions: what each takes, and what it puts.

    `tokens` and `in_all` are the largest numbers in one place and in one marking.
    """

    tokens: int
    in_all: int
    marking: Bag
    transitions: list[tuple[Bag, Bag]] = field(default_factory=list)
    dead: str = ""
    """Why some transitions are never taken, if that is so."""

    def add(self, takes: str | Iterable[str], puts: str | Iterable[str]) -> None:
        """Add a transition."""
        self.transitions.append((bag(takes), bag(puts)))

    def places(self) -> list[str]:
        """All places, in the order in which they are named."""
        bags = [self.marking, *(bag for transition in self.transitions for bag in transition)]
        return list(dict.fromkeys(place for each in bags for place in each))


HEADER = """\
from epochgate.fsm import STAY, Array, Int, Row, Trigger, machines
from epochgate.fsm.closed import ClosedSystem, Environment, Step, always, sometimes


class Marking(Environment):
    STATES, INITIAL = ("marked",), "marked"

"""
SYSTEM = """

class System(ClosedSystem):
    CONSTANTS = {{"tokens": {tokens}}}
    STEPS = ({steps})
    UNTAKEN = {untaken}

    net: Marking = machines(Marking)

    @always("a marking has at most {in_all} tokens")
    def is_bounded(self) -> bool:
        return {sum} <= {in_all}

    @sometimes("a marking has {in_all} tokens")
    def is_full(self) -> bool:
        return {sum} == {in_all}

    @sometimes("a place has {tokens} tokens")
    def has_full_place(self) -> bool:
        return {any}
"""


def source(net: Net) -> str:
    """The net in the language of models."""
    names = {place: f"place_{number}" for number, place in enumerate(net.places())}
    lines = [
        f'    {name}: int = Int("tokens", {net.marking.get(place, 0)})  # {place}'
        for place, name in names.items()
    ]
    numbers = range(len(net.transitions))
    lines += [f"    fire_{number}: Trigger" for number in numbers]
    lines.append("    ROWS = (")
    lines += [
        f'        Row("fire_{number}", "marked", STAY, "may_{number}", "do_{number}", "it fires"),'
        for number in numbers
    ]
    lines.append("    )")
    for number, (takes, puts) in enumerate(net.transitions):
        asked = [f"self.{names[place]} >= {count}" for place, count in takes.items()]
        lines += [f"    def may_{number}(self) -> bool:", f"        return {' and '.join(asked)}"]
        changes = {p: puts.get(p, 0) - takes.get(p, 0) for p in dict.fromkeys((*takes, *puts))}
        done = [
            f"self.{names[place]} {'+' if change > 0 else '-'}= {abs(change)}"
            for place, change in changes.items()
            if change
        ]
        lines += [f"    def do_{number}(self) -> None:", *(f"        {each}" for each in done)]
        if not done:
            lines.append("        pass")
    held = [f"self.net.{name}" for name in names.values()]
    system = SYSTEM.format(
        tokens=net.tokens,
        in_all=net.in_all,
        steps="".join(f'Step("net", "fire_{number}"), ' for number in numbers),
        untaken={f"net.fire_{number}": net.dead for number in numbers if net.dead},
        sum=" + ".join(held),
        any=" or ".join(f"{each} == {net.tokens}" for each in held),
    )
    return HEADER + "\n".join(lines) + "\n" + system
