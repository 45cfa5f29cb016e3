"""A counterexample as a Mermaid sequence diagram, which code hosts draw by themselves.

A lane for each instance that acts, changes, emits or receives something. A step is a note on its
lane; what it does to others is a dotted arrow, effects are a note right of the lane that they
leave, a message is a solid arrow where it is put into a channel and again where another instance
takes it out. What repeats for ever stands in a loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from epochgate.fsm.checker.result import Counterexample, Result, TraceStep
from epochgate.reports.messages import Message, effects_by_owner, messages, owner_of, shown, touched

ESCAPED = {character: f"#{ord(character)};" for character in '#;:<>"{}%&`\\'} | {"\n": " "}
"""Characters that mean something to Mermaid inside a text."""
CHANGES_SHOWN_MAX = 3


def sequence_diagrams(results: Mapping[str, Result]) -> str:
    """A Markdown text with a diagram for each system."""
    return "\n".join(
        f"## {name}: {result.verdict.value}\n\n```mermaid\n{sequence_diagram(name, result)}```\n"
        for name, result in results.items()
    )


def sequence_diagram(name: str, result: Result) -> str:
    """The Mermaid source; without a counterexample a diagram that says so."""
    found = result.counterexample
    if found is None:
        said = f"{result.verdict.value}: {result.states:,} states, no counterexample"
        return f"sequenceDiagram\n  participant p0 as {safe(name)}\n  Note over p0: {safe(said)}\n"
    return "\n".join(["sequenceDiagram", *_diagram(found)]) + "\n"


def _diagram(found: Counterexample) -> Iterator[str]:
    told = messages(found)
    drawn = {message.owner for message in told} | {step.instance for step in found.steps}
    drawn |= {owner for step in found.steps for owner in effects_by_owner(step)}
    drawn |= {owner_of(place) for step in found.steps for place in step.changed}
    present = [lane for lane in found.initial if lane in drawn] or list(found.initial)
    names = {lane: f"p{number}" for number, lane in enumerate(present)}
    for lane, short in names.items():
        yield f"  participant {short} as {safe(lane)}"
    every = f"{next(iter(names.values()))},{list(names.values())[-1]}"
    if begins := [f"{place} {shown(value)}" for place, value in found.begins.items()]:
        yield f"  Note over {every}: begins with {safe(', '.join(begins))}"
    for step in found.steps:
        if found.cycle is not None and step.number == found.cycle + 1:
            yield "  loop for ever"
        yield from _step(step, names, told)
    if found.cycle is not None and found.cycle < len(found.steps):
        yield "  end"
    elif found.cycle is not None:
        yield f"  Note over {every}: here it stays for ever"
    for message in told:
        if message.taken_at is None:
            yield f"  Note over {names[message.owner]}: in flight {safe(message.label)}"
    yield f"  Note over {every}: {safe(found.message)}"


def _step(step: TraceStep, names: dict[str, str], told: list[Message]) -> Iterator[str]:
    me = names[step.instance]
    values = step.label.partition("(")[1:] if step.label.endswith(")") else ()
    taken = "".join([step.trigger, *values])
    yield f"  Note over {me}: {step.number}. {safe(taken)}<br/>({safe(step.because)})"
    channels = {
        owner_of(m.channel) + "." + m.channel.partition(".")[2].partition("[")[0] for m in told
    }
    for message in told:
        if message.taken_at == step.number and message.taker != message.owner:
            yield f"  {names[message.owner]}->>{me}: take {safe(message.label)}"
    for other in [step.instance, *touched(step)]:
        changes = [
            f"{place.partition('.')[2]} {shown(before)} → {shown(after)}"
            for place, (before, after) in step.changed.items()
            if owner_of(place) == other and place not in channels
        ]
        if len(changes) > CHANGES_SHOWN_MAX:
            rest = len(changes) - CHANGES_SHOWN_MAX
            changes = [*changes[:CHANGES_SHOWN_MAX], f"and {rest} more"]
        if changes:
            text = "<br/>".join(map(safe, changes))
            yield f"  {me}-->>{names[other]}: {text}"
    for owner, effects in effects_by_owner(step).items():
        yield f"  Note right of {names[owner]}: {'<br/>'.join(map(safe, effects))}"
    for message in told:
        if message.pushed_at == step.number:
            yield f"  {me}-){names[message.owner]}: {safe(message.label)}"


def safe(text: str) -> str:
    """Escape text for a note, an arrow or a lane."""
    return "".join(ESCAPED.get(character, character) for character in text)
