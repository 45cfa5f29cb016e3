"""What a machine says leaves through ports, in order, and never inside the step."""

from __future__ import annotations

from typing import Any

import pytest

from epochgate.fsm import DeclarationError, EventQueue, VirtualClock
from tests.fsm.turnstile import GuardPort, Log, Station


def test_a_port_lists_its_messages_with_their_parameters() -> None:
    assert GuardPort.messages() == {"passed": ("count",), "tampered": ()}


def test_without_a_listener_messages_are_recorded() -> None:
    turnstile = Station().turnstile[0]
    turnstile.hit()
    sent: list[Any] = turnstile.guard.sent  # type: ignore[attr-defined]  # a recording port
    assert [(s.message, s.arguments) for s in sent] == [("tampered", ())]


def test_a_listener_hears_after_the_step_in_order_with_the_index_first() -> None:
    station, log = Station(gates=2), Log()
    station.bind("turnstile", "guard", log)
    station.turnstile[1].pay(2)
    station.turnstile[1].push("a")
    station.turnstile[0].hit()
    assert log.heard == []
    station.run_effects()
    assert log.heard == [("passed", 1, 1), ("tampered", 0)]
    station.run_effects()
    assert len(log.heard) == 2


def test_a_listener_that_lacks_a_message_is_refused() -> None:
    with pytest.raises(DeclarationError, match=r"it has no method \['passed', 'tampered'\]"):
        Station().bind("turnstile", "guard", object())


class Fragile(Log):
    def tampered(self, gate: int) -> None:
        raise OSError("the telephone is dead")


def test_after_a_listener_failed_the_rest_is_still_handed_over() -> None:
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
    station.run_effects()
    assert log.heard == [("passed", 1, 1)]
