"""What a closed system says of itself: its steps, how fair they are, and what holds in its runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar


@dataclass(frozen=True)
class Step:
    """Any instance of the machine may fire the trigger, at any time.

    Steps that are fair are not put off for ever: an `is_fair` one is taken if it stays possible
    (weak fairness), an `is_strongly_fair` one also if it is only possible again and again (strong
    fairness). Both are demanded of each instance by itself. A step that `is_stuttering` has to
    leave everything as it is, or the check fails: what comes too late or a second time makes no
    difference.
    """

    machine: str
    trigger: str
    is_fair: bool = True
    is_stuttering: bool = False
    is_strongly_fair: bool = False

    @property
    def name(self) -> str:
        """For instance `wire.deliver`."""
        return f"{self.machine}.{self.trigger}"


@dataclass(frozen=True)
class Fairness:
    """Fairness to some steps as to one: it is enough that any of them is taken, by any instance;
    with `each`, for each member of that index set by itself.
    """

    steps: tuple[str, ...]
    is_strong: bool = False
    each: str = ""


def weakly_fair(*steps: str, each: str = "") -> Fairness:
    """Demand that one of these steps, `machine.trigger`, or ANY step, is taken if it stays so that
    one of them is possible; see `Fairness`.
    """
    return Fairness(steps, is_strong=False, each=each)


def strongly_fair(*steps: str, each: str = "") -> Fairness:
    """Demand that one of these steps, `machine.trigger`, or ANY step, is taken if it is possible
    again and again that one is; see `Fairness`.
    """
    return Fairness(steps, is_strong=True, each=each)


@dataclass(frozen=True)
class Property:
    """A claim about a closed system: `kind` is always, sometimes, eventually, leads_to,
    infinitely_often, eventually_always, each_step or terminal.

    `name` is the method that holds or not in a state; `then` the second one of leads_to, or the
    premise of an always that demands something only where that holds; `each` the index set for each
    member of which an each_step is claimed.
    """

    kind: str
    name: str
    claim: str
    then: str = ""
    each: str = ""


WITHOUT_END = ("eventually", "leads_to", "infinitely_often", "eventually_always")
"""The kinds of claims about runs without end."""

F = TypeVar("F", bound=Callable[..., Any])


def _mark(kind: str, claim: str, then: str = "", each: str = "") -> Callable[[F], F]:
    def mark(method: F) -> F:
        method.epochgate_property = (kind, claim, then, each)  # type: ignore[attr-defined]  # `properties` reads it
        return method

    return mark


def always(claim: str, when: str = "") -> Callable[[F], F]:
    """Claim that the method holds in every reachable state; with `when`, in those in which the
    method of that name holds, of which there must be one, or the claim is vacuous.
    """
    return _mark("always", claim, when)


def sometimes(claim: str) -> Callable[[F], F]:
    """Claim that the method holds in some reachable state: what is checked does happen."""
    return _mark("sometimes", claim)


def eventually(claim: str) -> Callable[[F], F]:
    """Claim that every fair run reaches a state in which the method holds."""
    return _mark("eventually", claim)


def leads_to(claim: str, then: str) -> Callable[[F], F]:
    """Claim that in every fair run, once the method holds, the method named `then` holds in that
    state or in a later one.
    """
    return _mark("leads_to", claim, then)


def infinitely_often(claim: str) -> Callable[[F], F]:
    """Claim that in every fair run the method holds again and again, without end (`[]<>`)."""
    return _mark("infinitely_often", claim)


def eventually_always(claim: str) -> Callable[[F], F]:
    """Claim that in every fair run the method holds from some moment on for good (`<>[]`)."""
    return _mark("eventually_always", claim)


def each_step(claim: str, each: str = "") -> Callable[[F], F]:
    """Claim that the method holds after each step that changes anything (`[][A]_v`).

    Each parameter of the method, an int or a bool, is named for a method of the system without
    parameters, and gets what that one gave before the step. With `each`, an index set, the claim is
    one for each member: the first parameter of both is its number.
    """
    return _mark("each_step", claim, each=each)


def terminal(claim: str) -> Callable[[F], F]:
    """Say in which states the system may end: a state without possible steps in which the method
    does not hold is a deadlock.
    """
    return _mark("terminal", claim)
