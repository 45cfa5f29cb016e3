"""Machines of `transitions` in every shape that its documentation shows, written for these tests.

KNOWN maps a name to what makes a fresh object; its machine is its attribute `machine`, or itself.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import Any

from transitions import Machine, State
from transitions.extensions import (
    GraphMachine,
    HierarchicalGraphMachine,
    HierarchicalMachine,
    LockedHierarchicalMachine,
    LockedMachine,
    states,
)
from transitions.extensions.asyncio import AsyncMachine, HierarchicalAsyncMachine
from transitions.extensions.nesting import NestedState

FEATURES = [getattr(states, name) for name in ("Timeout", "Tags", "Volatile", "Retry")]
"""By name, since the type information of the library has not all of them."""


class Thing:
    """A model with everything that machines below call; it counts the calls."""

    def __init__(self) -> None:
        self.machine: Any = None
        self.calls = 0
        self.is_kept = True

    def count(self, *_: Any, **__: Any) -> None:
        self.calls += 1

    def is_hot(self, *_: Any) -> bool:
        return self.calls % 2 == 0

    def is_even(self, *_: Any) -> bool:
        return self.calls % 3 == 0

    @property
    def is_lucky(self) -> bool:
        return self.calls % 5 == 0


class AsyncThing(Thing):
    async def is_ready(self) -> bool:
        self.calls += 1
        return self.calls % 2 == 0

    async def wait(self) -> None:
        self.calls += 1


def made(kind: Callable[..., Any], thing: Thing | None = None, **options: Any) -> Any:
    model = Thing() if thing is None else thing
    model.machine = kind(model, **options)
    return model


MATTER = ["solid", "liquid", "gas", "plasma"]
HEATING = [
    {"trigger": "melt", "source": "solid", "dest": "liquid"},
    ["evaporate", "liquid", "gas"],
    ["sublimate", "solid", "gas"],
    ["ionize", "gas", "plasma"],
]


def matter() -> Any:
    return made(Machine, states=MATTER, transitions=HEATING, initial="solid")


def matter_with_callbacks() -> Any:
    thing = Thing()
    return made(
        Machine,
        thing,
        states=[State("solid", on_exit=["count"]), {"name": "liquid", "on_enter": "count"}, "gas"],
        transitions=[
            {
                "trigger": "melt",
                "source": "solid",
                "dest": "liquid",
                "prepare": [thing.count, "count"],
                "conditions": ["is_hot", thing.is_even],
                "unless": "is_lucky",
                "before": partial(thing.count, 1),
                "after": lambda *_: None,
            },
            {"trigger": "melt", "source": "solid", "dest": "gas", "unless": ["is_hot"]},
            {"trigger": "melt", "source": "solid", "dest": "=", "before": "count"},
            {"trigger": "cool", "source": "*", "dest": "solid"},
            {"trigger": "touch", "source": ["liquid", "gas"], "dest": "="},
            {"trigger": "look", "source": "liquid", "dest": None, "after": "count"},
        ],
        initial="solid",
        prepare_event="count",
        before_state_change="count",
        after_state_change="count",
        finalize_event="count",
    )


class Hero(Thing):
    """The hero of the library's documentation, with the machine among his attributes."""

    def __init__(self) -> None:
        super().__init__()
        states = ["asleep", "hanging out", "hungry", "sweaty", "saving the world"]
        self.machine = Machine(model=self, states=states, initial="asleep")
        self.machine.add_transition("wake_up", "asleep", "hanging out")
        self.machine.add_transition("work_out", "hanging out", "hungry")
        self.machine.add_transition("eat", "hungry", "hanging out")
        self.machine.add_transition("distress_call", "*", "saving the world", before="count")
        self.machine.add_transition("complete_mission", "saving the world", "sweaty", after="count")
        self.machine.add_transition("clean_up", "sweaty", "asleep", conditions=["is_hot"])
        self.machine.add_transition("clean_up", "sweaty", "hanging out")
        self.machine.add_transition("nap", "*", "asleep")


def ordered() -> Any:
    model = made(Machine, states=["a", "b", "c"], initial="a", auto_transitions=False)
    model.machine.add_ordered_transitions(
        conditions=["is_hot", None, None], loop_includes_initial=False
    )
    return model


class Light(Enum):
    RED = 0
    AMBER = 1
    GREEN = 2


def traffic_light() -> Any:
    return made(
        Machine,
        states=Light,
        initial=Light.RED,
        ignore_invalid_triggers=True,
        transitions=[
            ["go", Light.RED, Light.GREEN],
            ["slow", Light.GREEN, Light.AMBER],
            ["stop", Light.AMBER, Light.RED],
        ],
    )


def queued() -> Any:
    thing = made(Machine, states=["a", "b", "c", "d"], initial="a", queued=True)
    thing.machine.add_transition("advance", "a", "b", after="advance")
    thing.machine.add_transition("advance", "b", "c", before="count")
    thing.machine.add_transition("back", "*", "a", after="count")
    thing.machine.on_enter_c(lambda: thing.to_d())
    return thing


def immediate() -> Any:
    thing = made(Machine, states=["a", "b", "c"], initial="a")
    thing.machine.add_transition("advance", ["a", "b"], "b", after="leap")
    thing.machine.add_transition("leap", "b", "c")
    thing.machine.add_transition("back", "c", "a")
    return thing


def ending() -> Any:
    return made(
        Machine,
        states=["open", State("paid", final=True), {"name": "lost", "final": True}],
        initial="open",
        transitions=[["pay", "open", "paid"], ["lose", "open", "lost"]],
    )


def renamed_attribute() -> Any:
    return made(
        Machine,
        states=["a", "b"],
        initial="a",
        model_attribute="status",
        send_event=True,
        transitions=[
            ["go", "a", "b"],
            {
                "trigger": "go",
                "source": "b",
                "dest": "a",
                "conditions": "is_hot",
                "before": "count",
            },
        ],
    )


def its_own_model() -> Any:
    return Machine(states=["a", "b"], initial="a", transitions=[["go", "a", "b"], ["go", "b", "a"]])


def locked() -> Any:
    return made(LockedMachine, states=MATTER, transitions=HEATING, initial="solid")


def with_graph() -> Any:
    return made(
        GraphMachine, states=MATTER, transitions=HEATING, initial="solid", graph_engine="mermaid"
    )


def nested() -> Any:
    states = [
        "standing",
        "walking",
        {
            "name": "caffeinated",
            "initial": "dithering",
            "on_exit": "count",
            "children": ["dithering", "running"],
        },
    ]
    return made(
        HierarchicalMachine,
        states=states,
        initial="standing",
        transitions=[
            ["walk", "standing", "walking"],
            ["stop", "walking", "standing"],
            ["drink", "*", "caffeinated"],
            ["walk", ["caffeinated", "caffeinated_dithering"], "caffeinated_running"],
            ["relax", "caffeinated", "standing"],
            {
                "trigger": "relax",
                "source": "caffeinated_running",
                "dest": "caffeinated_dithering",
                "conditions": "is_hot",
            },
        ],
    )


class Dotted(NestedState):
    separator = "."


class DottedMachine(HierarchicalMachine):
    state_cls = Dotted


def with_separator() -> Any:
    return made(
        DottedMachine,
        states=["a", {"name": "b", "children": ["one", {"name": "two", "children": ["x"]}]}],
        initial="a",
        transitions=[["go", "a", "b.two.x"], ["up", "b.two", "b.one"], ["out", "b", "a"]],
    )


def counter() -> HierarchicalMachine:
    return HierarchicalMachine(
        states=["1", "2", "3", "done"],
        initial="1",
        transitions=[
            ["increase", "1", "2"],
            ["increase", "2", "3"],
            ["decrease", "3", "2"],
            ["decrease", "2", "1"],
            ["done", "3", "done"],
        ],
    )


def reused(*, remap: bool) -> Any:
    inner = {"name": "counting", "children": counter()}
    if remap:
        inner["remap"] = {"done": "waiting"}
    return made(
        HierarchicalMachine,
        states=["waiting", "collecting", inner],
        initial="waiting",
        transitions=[
            ["collect", "*", "collecting"],
            ["wait", "*", "waiting"],
            ["count", "collecting", "counting"],
        ],
    )


def parallel() -> Any:
    region = {
        "name": "p",
        "parallel": [
            {
                "name": "1",
                "children": ["a", "b", {"name": "c", "final": True}],
                "initial": "a",
                "transitions": [["go", "a", "b"], ["go", "b", "c"]],
            },
            {
                "name": "2",
                "children": ["x", "y", {"name": "z", "final": True}],
                "initial": "x",
                "transitions": [
                    ["go", "x", "y"],
                    {"trigger": "skip", "source": ["x", "y"], "dest": "z", "unless": "is_hot"},
                ],
            },
        ],
    }
    return made(
        HierarchicalMachine,
        states=["out", region],
        initial="out",
        queued=True,
        transitions=[["enter", "out", "p"], ["leave", "p", "out"]],
    )


def locked_nested() -> Any:
    return made(
        LockedHierarchicalMachine,
        states=["a", {"name": "b", "children": ["c"], "initial": "c"}],
        initial="a",
        transitions=[["go", "a", "b"], ["go", "b_c", "a"]],
    )


def nested_with_graph() -> Any:
    return made(
        HierarchicalGraphMachine,
        states=["a", {"name": "b", "children": ["c"], "initial": "c"}],
        initial="a",
        graph_engine="mermaid",
        transitions=[["go", "a", "b"], ["go", "b_c", "a"]],
    )


def awaited() -> Any:
    return made(
        AsyncMachine,
        AsyncThing(),
        states=["a", "b", "c"],
        initial="a",
        transitions=[
            ["go", "a", "b"],
            {
                "trigger": "go",
                "source": "b",
                "dest": "c",
                "conditions": ["is_ready", "is_hot"],
                "before": "wait",
            },
            ["go", "c", "a"],
        ],
    )


def awaited_nested() -> Any:
    return made(
        HierarchicalAsyncMachine,
        AsyncThing(),
        queued=True,
        initial="a",
        states=[
            "a",
            {
                "name": "b",
                "children": ["x", "y"],
                "initial": "x",
                "transitions": [
                    {"trigger": "go", "source": "x", "dest": "y", "conditions": "is_ready"}
                ],
            },
        ],
        transitions=[["go", "a", "b"], ["out", "b", "a"]],
    )


@states.add_state_features(*FEATURES)
class Featured(Machine):
    pass


def with_features() -> Any:
    return made(
        Featured,
        initial="waiting",
        states=[
            {"name": "waiting", "timeout": 60, "on_timeout": "give_up", "tags": ["idle"]},
            {"name": "trying", "retries": 2, "on_failure": "to_failed"},
            "failed",
        ],
        transitions=[
            ["start", "waiting", "trying"],
            ["again", "trying", "trying"],
            ["give_up", "waiting", "failed"],
            ["reset", "*", "waiting"],
        ],
    )


KNOWN: dict[str, Callable[[], Any]] = {
    "matter": matter,
    "matter with callbacks": matter_with_callbacks,
    "hero": Hero,
    "ordered": ordered,
    "traffic light": traffic_light,
    "queued": queued,
    "immediate": immediate,
    "ending": ending,
    "renamed attribute": renamed_attribute,
    "its own model": its_own_model,
    "locked": locked,
    "with graph": with_graph,
    "nested": nested,
    "with separator": with_separator,
    "reused": partial(reused, remap=False),
    "remapped": partial(reused, remap=True),
    "parallel": parallel,
    "locked nested": locked_nested,
    "nested with graph": nested_with_graph,
    "awaited": awaited,
    "awaited nested": awaited_nested,
    "with features": with_features,
}
