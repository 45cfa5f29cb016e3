"""Machines of `python-statemachine` in the shapes that its documentation shows, for these tests."""

from __future__ import annotations

from typing import Any

from statemachine import HistoryState, State, StateChart, StateMachine


class Order(StateMachine):
    waiting = State(initial=True)
    processing = State()
    shipping = State()
    completed = State(final=True)

    add = waiting.to(waiting)
    pay = waiting.to(processing, cond="is_enough") | waiting.to(waiting, unless="is_enough")
    start = processing.to(shipping, validators="may_start")
    ship = shipping.to(completed)

    def __init__(self) -> None:
        self.paid = 0
        super().__init__()

    def is_enough(self) -> bool:
        return self.paid >= 2

    def may_start(self) -> None:
        if self.paid > 5:
            raise ValueError("too much")

    def before_add(self) -> None:
        self.paid = 0

    def before_pay(self) -> None:
        self.paid += 1


class Journey(StateChart[Any]):
    class Travel(State.Parallel):
        class Ring(State.Compound):
            carried = State(initial=True)
            destroyed = State(final=True)
            drop = carried.to(destroyed)

        class King(State.Compound):
            ranger = State(initial=True)
            crowned = State(final=True)
            crown = ranger.to(crowned)

    peace = State(final=True)
    done_state_Travel = Travel.to(peace)  # noqa: N815  # the library finds it by its name


class Player(StateChart[Any]):
    class On(State.Compound):
        first = State(initial=True)
        second = State()
        skip = first.to(second)
        memory = HistoryState()

    off = State()
    stop = On.to(off)
    play = off.to(On.memory)


class Chained(StateChart[Any]):
    asked = State(initial=True)
    granted = State()
    denied = State(final=True)
    ask = asked.to(granted, cond="is_good")
    doubt = asked.to(denied)
    fall = granted.to(denied)

    def is_good(self) -> bool:
        return True

    def on_enter_granted(self) -> None:
        self.send("fall")


KNOWN: dict[str, Any] = {"order": Order, "journey": Journey, "player": Player, "chained": Chained}
