"""The claims of a closed system: its steps, how fair they are, and what holds in its runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from epochgate.fsm.choosing import Over
from epochgate.fsm.errors import DeclarationError


@dataclass(frozen=True)
class Step:
    """Any instance of the machine may fire the trigger, at any time, with arguments that the step
    chooses, one from each part of `over`: the numbers below a constant, a range, or a tuple.

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
    over: tuple[Over, ...] = ()

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
    infinitely_often, eventually_always, each_step, implements or terminal.

    `name` is the method that holds or not in a state; `then` the second one of leads_to, or the
    premise of an always that demands something only where that holds; `each` the index set for each
    member of which something is claimed. Of one member both names carry its number, `asks[1]`.
    """

    kind: str
    name: str
    claim: str
    then: str = ""
    each: str = ""

    @property
    def method(self) -> str:
        """The name of the method, without the number of a member."""
        return self.name.partition("[")[0]

    def of(self, member: int) -> Property:
        """The claim for one member of its index set."""
        then = f"{self.then}[{member}]" if self.then else ""
        told = f"{self.claim} ({self.each} {member})"
        return Property(self.kind, f"{self.name}[{member}]", told, then, self.each)


def called(name: str) -> tuple[str, tuple[int, ...]]:
    """The method of a claim, and the number of the member that it is for: of `asks[1]`."""
    method, _, member = name.partition("[")
    return method, (int(member[:-1]),) if member else ()


def holds(system: Any, name: str) -> bool:
    """Return whether the method of a claim, `asks` or `asks[1]`, holds of a system now."""
    method, member = called(name)
    return bool(getattr(system, method)(*member))


WITHOUT_END = ("eventually", "leads_to", "infinitely_often", "eventually_always")
"""The kinds of claims about runs without end."""

OF_STATES = ("always", "sometimes", "terminal", *WITHOUT_END)
"""The kinds of claims whose methods hold or not in a state."""

F = TypeVar("F", bound=Callable[..., Any])


def _mark(kind: str, claim: str, then: str = "", each: str = "") -> Callable[[F], F]:
    def mark(method: F) -> F:
        if hasattr(method, "epochgate_property"):
            raise DeclarationError(
                f"{method.__module__}.{method.__qualname__} makes two claims, "
                f"{method.epochgate_property[1]!r} and {claim!r}, of which one would be lost; "
                f"write a method for each"
            )
        method.epochgate_property = (kind, claim, then, each)  # type: ignore[attr-defined]  # `properties` reads it
        return method

    return mark


def always(claim: str, when: str = "", *, each: str = "") -> Callable[[F], F]:
    """Claim that the method holds in every reachable state; with `when`, in those in which the
    method of that name holds, of which there must be one, or the claim is vacuous.

    With `each`, an index set, this and the other claims are one claim for each member: the methods
    have one parameter, named for the index set, and get its number.
    """
    return _mark("always", claim, when, each)


def sometimes(claim: str, *, each: str = "") -> Callable[[F], F]:
    """Claim that the method holds in some reachable state: what is checked does happen."""
    return _mark("sometimes", claim, each=each)


def eventually(claim: str, *, each: str = "") -> Callable[[F], F]:
    """Claim that every fair run reaches a state in which the method holds."""
    return _mark("eventually", claim, each=each)


def leads_to(claim: str, then: str, *, each: str = "") -> Callable[[F], F]:
    """Claim that in every fair run, once the method holds, the method named `then` holds in that
    state or in a later one.
    """
    return _mark("leads_to", claim, then, each)


def infinitely_often(claim: str, *, each: str = "") -> Callable[[F], F]:
    """Claim that in every fair run the method holds again and again, without end (`[]<>`)."""
    return _mark("infinitely_often", claim, each=each)


def eventually_always(claim: str, *, each: str = "") -> Callable[[F], F]:
    """Claim that in every fair run the method holds from some moment on for good (`<>[]`)."""
    return _mark("eventually_always", claim, each=each)


def each_step(claim: str, each: str = "") -> Callable[[F], F]:
    """Claim that the method holds after each step that changes anything (`[][A]_v`).

    Each parameter of the method, an int or a bool, is named for a method of the system without
    parameters, and gets what that one gave before the step. With `each`, an index set, the claim is
    one for each member: the first parameter of both is its number.
    """
    return _mark("each_step", claim, each=each)


def implements(claim: str, specification: type[Any], **constants: str | int) -> Callable[[F], F]:
    """Claim that the system implements another closed system: the method, which gets one of that
    class, writes into its machines the state that a state of this one stands for. Each initial
    state then stands for an initial one of the specification, and each step for one of its steps
    or for none (safety alone).

    The method is plain Python, and what it does not write is as the specification begins.
    `constants` are those of the specification: numbers, or names of constants of this system.
    """

    def mark(method: F) -> F:
        method.epochgate_implements = specification, constants  # type: ignore[attr-defined]  # `Refinement` reads it
        return _mark("implements", claim)(method)

    return mark


def terminal(claim: str) -> Callable[[F], F]:
    """Say in which states the system may end: a state without possible steps in which the method
    does not hold is a deadlock.
    """
    return _mark("terminal", claim)
