"""A message of a machine to the outside is a value in the outbox, and is handed over after the
step.
"""

from __future__ import annotations

import pytest

from epochgate.fsm import DeclarationError, EventQueue, VirtualClock
from tests.fsm.turnstile import GuardPort, Log, Station, Turnstile

PASSED, TAMPERED = (Turnstile.EFFECTS["guard"][message] for message in ("passed", "tampered"))


def test_a_port_lists_its_messages_with_their_parameters() -> None:
    assert GuardPort.messages() == {"passed": ("count",), "tampered": ()}


def test_an_effect_names_what_it_left_and_what_it_says() -> None:
    effect = PASSED((2, 5))
    assert (effect.machine, effect.port, effect.message) == ("Turnstile", "guard", "passed")
    assert (effect.index, effect.arguments) == ((2,), (5,))


def test_an_effect_is_printed_with_its_parameters() -> None:
    assert repr(PASSED((2, 5))) == "Turnstile[2].guard.passed(count=5)"
    assert str(TAMPERED((0,))) == "Turnstile[0].guard.tampered()"


def test_effects_are_equal_when_message_index_and_arguments_are() -> None:
    assert PASSED((0, 1)) == PASSED((0, 1))
    assert hash(PASSED((0, 1))) == hash(PASSED((0, 1)))
    assert PASSED((0, 1)) != PASSED((1, 1))
    assert PASSED((0,)) != TAMPERED((0,))
    assert PASSED((0, 1)) != (0, 1)
    assert len({PASSED((0, 1)), PASSED((0, 1)), PASSED((0, 2)), TAMPERED((0,))}) == 3


def test_effects_stay_in_the_outbox_in_the_order_of_emission() -> None:
    station = Station(gates=2)
    station.turnstile[1].pay(2)
    station.turnstile[1].push("a")
    station.turnstile[0].hit()
    assert station.effects == (PASSED((1, 1)), TAMPERED((0,)))


def test_a_port_without_a_handler_drops_its_effects() -> None:
    station = Station()
    station.turnstile[0].hit()
    station.settle()
    assert not station.effects


def test_a_handler_is_called_after_the_step_in_order_with_the_index_first() -> None:
    station, log = Station(gates=2), Log()
    station.bind("turnstile", "guard", log)
    station.turnstile[1].pay(2)
    station.turnstile[1].push("a")
    station.turnstile[0].hit()
    assert log.heard == []
    station.settle()
    assert log.heard == [("passed", 1, 1), ("tampered", 0)]
    station.settle()
    assert len(log.heard) == 2


def test_a_port_has_no_messages_but_those_of_its_class() -> None:
    with pytest.raises(AttributeError, match="ring"):
        Station().turnstile[0].guard.ring  # type: ignore[attr-defined]  # noqa: B018  # it is to fail


def test_a_handler_that_lacks_a_message_is_refused() -> None:
    with pytest.raises(DeclarationError, match=r"it has no method \['passed', 'tampered'\]"):
        Station().bind("turnstile", "guard", object())


class Fragile(Log):
    def tampered(self, gate: int) -> None:
        raise OSError("the telephone is dead")


def test_after_a_handler_failed_the_effects_behind_it_are_still_handed_over() -> None:
    station, log = Station(gates=2), Fragile()
    station.bind("turnstile", "guard", log)
    queue = EventQueue(station, VirtualClock())
    first, second = station.turnstile

    def both() -> None:
        first.hit()
        second.pay(2)
        second.push("a")

    queue.post(both)
    with pytest.raises(OSError, match="dead"):
        queue.drain()
    assert log.heard == []
    station.settle()
    assert log.heard == [("passed", 1, 1)]
