"""A counterexample as a space-time diagram: a lane for each machine that has a part in it, a row
for each step, messages as arrows between them.

Decides where everything stands: a lane is as wide as what is written at it, so that no lane's
texts reach into another. How it looks is in `epochgate/pages`: spacetime.html and style.css.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from epochgate.fsm.checker.result import Counterexample, TraceStep
from epochgate.reports.messages import (
    Message,
    effects_by_owner,
    lanes,
    messages,
    shown,
    touched,
)

ROW_PX = 46
HEADER_PX = 54
LANES_PX_MIN = 640
"""Few lanes spread over this width."""
LANE_PX_MIN, LANE_PX_MAX = 70, 190
CHARACTER_PX = 7.4
SMALL_PX = 6.8
"""Of a character of a state or a message, which are written smaller."""
FLYING_PX = 17
"""Between the ends of messages that are never received."""
HUES = 8
"""Colours of machines, after which they repeat."""
LABEL_CHARACTERS_MAX = 35
Drawn = Mapping[str, Any]


def hues(found: Counterexample) -> dict[str, int]:
    """A colour for each instance; those of one machine share it."""
    return hues_of(found.initial)


def hues_of(names: Iterable[str]) -> dict[str, int]:
    """A colour for each instance of these; those of one machine share it."""
    known = list(names)
    kinds = dict.fromkeys(name.partition("[")[0] for name in known)
    numbers = {kind: number % HUES for number, kind in enumerate(kinds)}
    return {name: numbers[name.partition("[")[0]] for name in known}


def space_time(found: Counterexample) -> Drawn:
    """Return what spacetime.html draws."""
    return _Drawing(found).drawn()


@dataclass
class _Drawing:
    found: Counterexample
    x: dict[str, int] = field(init=False)
    """The middle of each lane."""
    width_px: int = field(init=False)
    messages: list[Message] = field(init=False)
    flying: list[Message] = field(init=False)
    hue: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        self.hue = hues(self.found)
        self.messages = messages(self.found)
        self.flying = [message for message in self.messages if message.taken_at is None]
        names = lanes(self.found)
        least = max(LANE_PX_MIN, min(LANES_PX_MIN // len(names), LANE_PX_MAX))
        right = self._written_right()
        left, self.x = 10, {}
        for name in names:
            head = max(least, _head_px(name) + 8)
            self.x[name] = left + head // 2
            left += max(head, head // 2 + right.get(name, 0))
        self.width_px = left + 10

    def _written_right(self) -> dict[str, int]:
        """The width that the texts at each lane need, right of its middle."""
        found: dict[str, int] = {}
        for step in self.found.steps:
            for name in self.found.initial:
                if f"{name}.state" in step.changed:
                    _widen(found, name, 14, _short(shown(step.changed[f"{name}.state"][1])))
        for message in self.messages:
            if message.taken_at is None:
                _widen(found, message.owner, 14, _short(message.label))
            elif len(set(_ends(message))) == 1:
                _widen(found, message.taker, 44, _short(message.label))
        return found

    def y(self, step: int) -> int:
        return step * ROW_PX - ROW_PX // 2

    def drawn(self) -> Drawn:
        steps = self.found.steps
        height = max(len(steps), 1) * ROW_PX + 16 + len(self.flying) * FLYING_PX
        cycle = self.found.cycle
        return {
            "width": self.width_px,
            "height": height,
            "head_height": HEADER_PX,
            "row_height": ROW_PX,
            "lanes": [self._lane(name, x) for name, x in self.x.items()],
            "rows": [
                {
                    "number": step.number,
                    "top": (step.number - 1) * ROW_PX,
                    "label": step.label,
                    "because": step.because,
                    "repeats": cycle is not None and step.number > cycle,
                }
                for step in steps
            ],
            "reaches": [reach for step in steps for reach in self._reach(step)],
            "messages": [
                self._message(message, height, position)
                for position, message in enumerate(self.messages)
            ],
            "dots": [dot for step in steps for dot in self._dots(step)],
            "effects": [one for step in steps for one in self._effects(step)],
            "states": [one for step in steps for one in self._states(step)],
        }

    def _lane(self, name: str, x: int) -> Drawn:
        kind, index = _parts(name)
        return {
            "x": x,
            "hue": self.hue[name],
            "kind": kind,
            "index": index,
            "head_width": max(LANE_PX_MIN - 8, _head_px(name)),
        }

    def _reach(self, step: TraceStep) -> Iterator[Drawn]:
        reached = [self.x[name] for name in [step.instance, *touched(step)] if name in self.x]
        if min(reached) != max(reached):
            yield {
                "step": step.number,
                "x1": min(reached),
                "x2": max(reached),
                "y": self.y(step.number),
            }

    def _dots(self, step: TraceStep) -> Iterator[Drawn]:
        for name in [*touched(step), step.instance]:
            is_own = name == step.instance
            yield {
                "kind": "dot" if is_own else "ring",
                "radius": 7 if is_own else 5,
                "hue": self.hue[name],
                "step": step.number,
                "x": self.x[name],
                "y": self.y(step.number),
            }

    def _effects(self, step: TraceStep) -> Iterator[Drawn]:
        for name, effects in effects_by_owner(step).items():
            yield {
                "hue": self.hue[name],
                "step": step.number,
                "x": self.x[name],
                "y": self.y(step.number),
                "title": "\n".join(effects),
            }

    def _states(self, step: TraceStep) -> Iterator[Drawn]:
        for name, x in self.x.items():
            if f"{name}.state" in step.changed:
                now = _short(shown(step.changed[f"{name}.state"][1]))
                yield {"step": step.number, "x": x, "y": self.y(step.number), "text": now}

    def _message(self, message: Message, height: int, position: int) -> Drawn:
        is_flying = message.taken_at is None
        sender, taker = _ends(message)
        x1, y1, x2 = self.x[sender], max(self.y(message.pushed_at), 4), self.x[taker]
        if message.taken_at is None:
            y2 = height - 14 - (len(self.flying) - 1 - self.flying.index(message)) * FLYING_PX
            until = len(self.found.steps) + 1
        else:
            y2, until = self.y(message.taken_at), message.taken_at
        # The label stands between two rows, where there is room, and close to where it arrives.
        x, y, anchor = x2, y2 - ROW_PX // 2 + 4, "middle"
        if x1 == x2:
            # On its own lane a message swings out, not always equally far; to the left, when its
            # label stands right of its end.
            side = -1 if is_flying else 1
            swing = x1 + side * (30 + position % 3 * 9)
            line = (
                f"M{x1 + 7 * side} {y1 + 2} C{swing} {y1 + 10} {swing} {y2 - 12} "
                f"{x2 + 8 * side} {y2 - 2}"
            )
            x, y, anchor = (3 * swing + x1) // 4 + 3, y1 + ROW_PX // 2 + 4, "start"
        else:
            side = 1 if x2 > x1 else -1
            line = f"M{x1 + 6 * side} {y1 + 4} L{x2 - 7 * side} {y2 - 5}"
            x += round((x1 - x2) * min((y2 - y + 4) / max(y2 - y1, 1), 0.5))
        if is_flying:
            x, y, anchor = x2 + 8, y2 + 3, "start"
        return {
            "kind": "flying" if is_flying else "taken",
            "tip": "open" if is_flying else "arrow",
            "pushed_at": message.pushed_at,
            "until": until,
            "line": line,
            "x": x,
            "y": y,
            "anchor": anchor,
            "label": _short(message.label),
            "title": f"{message.channel}: {shown(message.value)}",
        }


def _ends(message: Message) -> tuple[str, str]:
    """The lanes between which it is drawn."""
    taker = message.owner if message.taken_at is None else message.taker
    # Who puts something into another's channel and takes it out again has it lie there.
    return message.owner if message.sender == taker else message.sender, taker


def _parts(name: str) -> tuple[str, str]:
    """A machine's name and its index."""
    kind, bracket, index = name.partition("[")
    return kind, bracket + index


def _head_px(name: str) -> int:
    return round(max(map(len, _parts(name))) * CHARACTER_PX) + 8


def _widen(found: dict[str, int], name: str, from_px: int, text: str) -> None:
    found[name] = max(found.get(name, 0), from_px + round(len(text) * SMALL_PX))


def _short(text: str) -> str:
    if len(text) <= LABEL_CHARACTERS_MAX:
        return text
    return text[: LABEL_CHARACTERS_MAX - 1] + "…"
