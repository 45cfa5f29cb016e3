"""A counterexample as a space-time diagram: an SVG with a lane for each instance, time downwards.

A dot is the instance that acts, a ring one that the step reaches at once, a triangle one that emits
effects, which its tooltip lists, and an arrow a message from where it is put into a channel to
where it is taken out; dashed, it is still in flight at the end. The drawing is whole without a
script; classes and `data-` attributes let one step through it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape

from epochgate.fsm.checker.result import Counterexample, TraceStep
from epochgate.reports.messages import (
    Message,
    effects_by_owner,
    lanes,
    messages,
    shown,
    touched,
)

GUTTER_PX = 262
"""What the numbers and labels of the steps need, left of the lanes."""
ROW_PX = 46
HEADER_PX = 54
LANES_PX_MIN = 640
"""What few lanes spread over."""
LANE_PX_MIN, LANE_PX_MAX = 70, 190
MARGIN_PX = 56
"""Right of the last lane, for its labels."""
CHARACTER_PX = 7.4
FLYING_PX = 17
"""Between the ends of messages that are never received."""
HUES = 8
"""Colours of machines, after which they repeat."""
LABEL_CHARACTERS_MAX = 35


@dataclass(frozen=True)
class SpaceTime:
    """The lanes' names above, and the lanes below, which scroll."""

    header: str
    body: str
    width_px: int


def hues(found: Counterexample) -> dict[str, int]:
    """A colour for each instance; those of one machine share it."""
    kinds = dict.fromkeys(name.partition("[")[0] for name in found.initial)
    numbers = {kind: number % HUES for number, kind in enumerate(kinds)}
    return {name: numbers[name.partition("[")[0]] for name in found.initial}


def space_time(found: Counterexample) -> SpaceTime:
    """Draw it."""
    return _Drawing(found).drawn()


@dataclass
class _Drawing:
    found: Counterexample
    x: dict[str, int] = field(init=False)
    """The middle of each lane."""
    width_px: int = field(init=False)
    messages: list[Message] = field(init=False)
    flying: list[Message] = field(init=False)

    def __post_init__(self) -> None:
        names = lanes(self.found)
        least = max(LANE_PX_MIN, min(LANES_PX_MIN // len(names), LANE_PX_MAX))
        left, self.x = GUTTER_PX, {}
        for name in names:
            width = max(least, round(max(map(len, _parts(name))) * CHARACTER_PX) + 14)
            self.x[name] = left + width // 2
            left += width
        self.width_px = left + MARGIN_PX
        self.messages = messages(self.found)
        self.flying = [message for message in self.messages if message.taken_at is None]

    def y(self, step: int) -> int:
        return step * ROW_PX - ROW_PX // 2

    def drawn(self) -> SpaceTime:
        count = len(self.found.steps)
        height = max(count, 1) * ROW_PX + 16 + len(self.flying) * FLYING_PX
        parts = [*self._rows(), *self._lanes(height), *self._cycle()]
        for step in self.found.steps:
            parts += self._reach(step)
        for position, message in enumerate(self.messages):
            parts += self._message(message, height, position)
        for step in self.found.steps:
            parts += self._dots(step)
        return SpaceTime(
            self._svg(HEADER_PX, "heads", self._heads()),
            self._svg(height, "lanes", [ARROWS, *parts]),
            self.width_px,
        )

    def _svg(self, height: int, name: str, parts: list[str]) -> str:
        size = f'width="{self.width_px}" height="{height}" viewBox="0 0 {self.width_px} {height}"'
        inner = "\n".join(parts)
        return f'<svg class="{name}" {size} xmlns="http://www.w3.org/2000/svg">\n{inner}\n</svg>'

    def _heads(self) -> list[str]:
        hue = hues(self.found)
        found = [f'<text class="gutter" x="42" y="{HEADER_PX - 16}">step</text>']
        for name, x in self.x.items():
            kind, index = _parts(name)
            width = max(LANE_PX_MIN - 8, round(max(len(kind), len(index)) * CHARACTER_PX) + 8)
            text = f'<text class="head" x="{x}" y="{25 if index else 32}">{escape(kind)}</text>'
            if index:
                text += f'<text class="head index" x="{x}" y="40">{escape(index)}</text>'
            found.append(
                f'<g class="h{hue[name]}"><rect class="head" x="{x - width // 2}" y="8" '
                f'width="{width}" height="39" rx="8"/>{text}</g>'
            )
        return found

    def _rows(self) -> Iterator[str]:
        for step in self.found.steps:
            top = (step.number - 1) * ROW_PX
            yield (
                f'<g class="row" data-step="{step.number}">'
                f'<rect x="1" y="{top + 1}" width="{self.width_px - 2}" height="{ROW_PX - 2}" '
                f'rx="8"/><text class="number" x="42" y="{top + 20}">{step.number}</text>'
                f'<text class="label" x="52" y="{top + 20}">{escape(_short(step.label))}</text>'
                f'<text class="because" x="52" y="{top + 36}">'
                f"{escape(_short(step.because))}</text>"
                f"<title>{escape(step.label)}: {escape(step.because)}</title></g>"
            )

    def _lanes(self, height: int) -> Iterator[str]:
        hue = hues(self.found)
        for name, x in self.x.items():
            yield f'<line class="lane h{hue[name]}" x1="{x}" y1="0" x2="{x}" y2="{height}"/>'

    def _cycle(self) -> Iterator[str]:
        cycle, count = self.found.cycle, len(self.found.steps)
        if cycle is None or cycle >= count:
            return
        top, bottom = self.y(cycle + 1), self.y(count)
        if top == bottom:
            top, bottom = top - 8, bottom + 8
        yield (
            f'<path class="cycle" marker-end="url(#again)" d="M16 {bottom} Q5 {bottom} 5 '
            f'{bottom - 8} L5 {top + 8} Q5 {top} 16 {top}"><title>these steps repeat for ever'
            "</title></path>"
        )

    def _reach(self, step: TraceStep) -> Iterator[str]:
        reached = [self.x[name] for name in [step.instance, *touched(step)] if name in self.x]
        if min(reached) != max(reached):
            y = self.y(step.number)
            yield (
                f'<line class="reach" data-step="{step.number}" '
                f'x1="{min(reached)}" y1="{y}" x2="{max(reached)}" y2="{y}"/>'
            )

    def _dots(self, step: TraceStep) -> Iterator[str]:
        hue, y = hues(self.found), self.y(step.number)
        for name in touched(step):
            yield (
                f'<circle class="ring h{hue[name]}" data-step="{step.number}" '
                f'cx="{self.x[name]}" cy="{y}" r="5"/>'
            )
        yield (
            f'<circle class="dot h{hue[step.instance]}" data-step="{step.number}" '
            f'cx="{self.x[step.instance]}" cy="{y}" r="7"/>'
        )
        for name, effects in effects_by_owner(step).items():
            left = self.x[name] - 11
            yield (
                f'<g class="effects h{hue[name]}" data-step="{step.number}">'
                f'<path d="M{left - 9} {y - 6} L{left} {y} L{left - 9} {y + 6} z"/>'
                f"<title>{escape(chr(10).join(effects))}</title></g>"
            )
        for name, x in self.x.items():
            if f"{name}.state" in step.changed:
                now = shown(step.changed[f"{name}.state"][1])
                yield (
                    f'<text class="state" data-step="{step.number}" x="{x + 9}" y="{y - 7}">'
                    f"{escape(_short(now))}</text>"
                )

    def _message(self, message: Message, height: int, position: int) -> Iterator[str]:
        is_flying = message.taken_at is None
        taker = message.owner if is_flying else message.taker
        # Who puts something into another's channel and takes it out again has it lie there.
        sender = message.owner if message.sender == taker else message.sender
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
        kind, tip = ("flying", "open") if is_flying else ("taken", "arrow")
        title = f"{message.channel}: {shown(message.value)}"
        yield (
            f'<g class="message {kind}" data-from="{message.pushed_at}" data-to="{until}">'
            f'<path d="{line}" marker-end="url(#{tip})"/>'
            f'<text class="{anchor}" x="{x}" y="{y}">{escape(_short(message.label))}</text>'
            f"<title>{escape(title)}</title></g>"
        )


TIP = 'viewBox="0 0 10 10" refY="5" markerUnits="userSpaceOnUse" markerWidth="12" markerHeight="12"'
ARROWS = f"""<defs>
<marker id="arrow" {TIP} refX="9" orient="auto"><path class="tip" d="M0 1 L10 5 L0 9 z"/></marker>
<marker id="open" {TIP} refX="5"><circle class="opening" cx="5" cy="5" r="3.5"/></marker>
<marker id="again" {TIP} refX="9" orient="auto"><path class="again" d="M0 1 L10 5 L0 9 z"/></marker>
</defs>"""


def _parts(name: str) -> tuple[str, str]:
    """A machine's name and its index."""
    kind, bracket, index = name.partition("[")
    return kind, bracket + index


def _short(text: str) -> str:
    if len(text) <= LABEL_CHARACTERS_MAX:
        return text
    return text[: LABEL_CHARACTERS_MAX - 1] + "…"
