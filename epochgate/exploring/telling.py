"""A place of an exploration as values for a page, a terminal, or a program."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from epochgate.fsm.checker.exploring import Held, Place, Possible
from epochgate.fsm.checker.result import State, TraceStep
from epochgate.reports.messages import changes, shown
from epochgate.reports.spacetime import hues_of

VALUE_CHARACTERS_MAX = 400
MACHINES_MAX = 200
"""Of a page; JSON has all."""
CHANGES_MAX = 40


def brief(value: Any) -> str:
    """A value as text; of a long one the beginning."""
    text = shown(value)
    return text if len(text) <= VALUE_CHARACTERS_MAX else text[:VALUE_CHARACTERS_MAX] + "…"


def differences(step: TraceStep) -> list[tuple[str, str, str]]:
    """The places that a step changes, with what each was and is."""
    found = [(place, brief(was), brief(now)) for place, was, now in changes(step)]
    more = len(found) - CHANGES_MAX
    return found if more <= 0 else [*found[:CHANGES_MAX], ("more fields", "", str(more))]


def changed_line(step: TraceStep) -> str:
    """The same as one line."""
    told = [f"{place}: {was} → {now}" for place, was, now in differences(step)]
    return "; ".join(told + [f"effect {effect}" for effect in step.effects]) or "nothing"


def machines(state: State, last: TraceStep | None) -> Iterator[dict[str, Any]]:
    """Each machine with its fields, and what the last step changed of them."""
    return (
        machines_of(state, {}, "")
        if last is None
        else machines_of(state, last.changed, last.instance)
    )


def machines_of(
    state: State, was: Mapping[str, tuple[Any, Any]], acting: str
) -> Iterator[dict[str, Any]]:
    """Each machine with its fields; `was` maps `instance.field` to what it was and is."""
    hues = hues_of(state)
    for name, values in state.items():
        fields = [
            {
                "name": field,
                "now": brief(value),
                "was": brief(was[place][0]) if (place := f"{name}.{field}") in was else None,
            }
            for field, value in values.items()
        ]
        yield {
            "name": name,
            "hue": hues[name],
            "is_acting": name == acting,
            "state": next((f for f in fields if f["name"] == "state"), None),
            "fields": [f for f in fields if f["name"] != "state"],
        }


def as_json(place: Place) -> dict[str, Any]:
    """Everything as plain data."""
    return {
        "start": place.run.start,
        "steps": list(place.run.steps),
        "state": place.state,
        "fault": place.fault,
        "possible": [_possible(one) for one in place.possible],
        "left_out": place.left_out,
        "claims": [_claim(one) for one in place.claims],
    }


def _possible(one: Possible) -> dict[str, Any]:
    changed = {place: [was, now] for place, (was, now) in one.told.changed.items()}
    return {
        "step": one.name,
        "because": one.told.because,
        "changes": changed,
        "effects": list(one.told.effects),
        "fault": one.fault,
    }


def _claim(one: Held) -> dict[str, Any]:
    return {
        "name": one.claim.name,
        "kind": one.claim.kind,
        "claim": one.claim.claim,
        "holds": one.is_so,
        "is_broken": one.is_broken,
    }
