"""A coordinator that sends faster than its task takes is refused, and told when there is room."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from epochgate.runtime import GatewayFull, JobConfiguration, JobMisconfigured, SendFuture
from epochgate.runtime.api.restart_strategies import NoRestart
from epochgate.runtime.shell.coordinator_context import BoundGateway
from epochgate.runtime.shell.send_window import EVENT_BYTES, NEVER
from epochgate.runtime.testing.simulation import SimulatedJob
from tests.runtime.scripted import Script, simulated

KILOBYTE = bytes(1000)
ROOM_FOR = 8
BYTES_MAX = ROOM_FOR * (1000 + EVENT_BYTES)


def up(script: Script, **settings: Any) -> SimulatedJob:
    job = simulated(script, unconfirmed_bytes_max=BYTES_MAX, **settings)
    job.settle()
    return job


def filled(script: Script) -> list[SendFuture]:
    """Send until the gateway is full; the futures of what was sent."""
    gateway = script.coordinator.gateways[0]
    sent = [gateway.send_event(KILOBYTE) for _ in range(ROOM_FOR)]
    with pytest.raises(GatewayFull, match=f"unconfirmed_bytes_max is {BYTES_MAX}"):
        gateway.send_event(KILOBYTE)
    return sent


def test_what_is_over_the_bound_is_refused_where_it_is_sent_and_what_was_sent_arrives() -> None:
    script = Script()
    job = up(script)
    sent = filled(script)
    job.settle()
    assert [future.exception() for future in sent] == [None] * ROOM_FOR
    assert script.operators["op", 0].handled == [KILOBYTE] * ROOM_FOR
    filled(script)


def test_several_events_that_are_sent_as_one_count_together() -> None:
    script = Script()
    job = up(script)
    gateway = script.coordinator.gateways[0]
    gateway.send_events([KILOBYTE] * (ROOM_FOR - 1))
    with pytest.raises(GatewayFull):
        gateway.send_events([KILOBYTE] * (ROOM_FOR - 1))
    job.settle()
    assert len(script.operators["op", 0].handled) == ROOM_FOR - 1


def test_an_event_that_is_larger_than_the_bound_is_sent_alone() -> None:
    script = Script()
    job = up(script)
    gateway = script.coordinator.gateways[0]
    large = gateway.send_event(bytes(10 * BYTES_MAX))
    with pytest.raises(GatewayFull):
        gateway.send_event(KILOBYTE)
    job.settle()
    assert large.done()
    gateway.send_event(KILOBYTE)


def test_a_future_says_when_there_is_room_again() -> None:
    script = Script()
    job = up(script)
    gateway, told = script.coordinator.gateways[0], []
    assert gateway.when_room().done()
    filled(script)
    room = gateway.when_room()
    room.add_done_callback(lambda _: told.append(len(script.operators["op", 0].handled)))
    assert not room.done()
    job.settle()
    assert room.done()
    assert told
    filled(script)


def test_a_callback_that_sends_what_was_refused_again_is_called_once_it_fits() -> None:
    script = Script()
    job = up(script)
    gateway, large, tries = script.coordinator.gateways[0], bytes(BYTES_MAX * 3 // 4), list[int]()

    def send() -> None:
        tries.append(len(script.operators["op", 0].handled))
        if len(tries) < 10:
            try:
                gateway.send_event(large)
            except GatewayFull:
                gateway.when_room().add_done_callback(lambda _: send())

    sent = [gateway.send_event(KILOBYTE) for _ in range(ROOM_FOR // 2)]
    script.coordinator.context.post(send)
    job.settle()
    assert all(future.exception() is None for future in sent)
    assert len(tries) == 2
    assert script.operators["op", 0].handled == [*[KILOBYTE] * (ROOM_FOR // 2), large]


def test_events_that_are_held_and_events_that_are_lost_are_counted_until_they_are_over() -> None:
    script = Script()
    job = up(script)
    held = job.master.request_checkpoint()
    job.settle(lambda: job.machines.gateway[0, 0].state == "closed")
    sent, old = filled(script), script.coordinator.gateways[0]
    job.transport.kill(job.transport.living()[0])
    job.settle()
    assert all(future.done() for future in sent)
    assert held.done()
    assert old.when_room().done()
    filled(script)


def test_a_coordinator_that_does_not_mind_the_bound_fails_the_job_with_the_option() -> None:
    script = Script()
    job = up(script, restarts=NoRestart)

    def flood() -> None:
        while True:
            script.coordinator.gateways[0].send_event(KILOBYTE)

    script.coordinator.context.post(flood)
    job.settle(lambda: job.is_over)
    reason = job.master.result.result(0).reason
    assert "GatewayFull" in str(reason)
    assert f"unconfirmed_bytes_max is {BYTES_MAX}" in str(reason)


@pytest.mark.parametrize("most", [0, "64MiB", 1.5, True])
def test_a_job_without_room_for_a_byte_is_refused(most: Any) -> None:
    with pytest.raises(JobMisconfigured, match=f"unconfirmed_bytes_max is {most!r}; give a whole"):
        JobConfiguration("job", 1, unconfirmed_bytes_max=most)


def of(size: int) -> bytes:
    """An event that counts `size` bytes."""
    return bytes(size - EVENT_BYTES)


def gateway_of(bytes_max: int) -> BoundGateway:
    """A gateway of no job: events go nowhere, and the test confirms them."""
    master: Any = SimpleNamespace(
        subtask_of=[0],
        configuration=SimpleNamespace(unconfirmed_bytes_max=bytes_max),
        queue=SimpleNamespace(post=lambda *_: None),
        job=SimpleNamespace(gateway={(0, 0): SimpleNamespace(send=None)}),
        is_over=True,
    )
    return BoundGateway(master, 0, 0, 1)


def confirm(sent: SendFuture) -> None:
    """Do what the runtime does when an event is over."""
    sent.free()
    sent.complete()


def test_what_is_granted_is_what_is_over_and_the_bound() -> None:
    window = gateway_of(3000)
    sent = [window.send_event(of(1000)) for _ in range(3)]
    with pytest.raises(GatewayFull, match="3000 bytes of events wait"):
        window.send_event(of(1000))
    confirm(sent[0])
    with pytest.raises(GatewayFull):
        window.send_event(of(1001))
    window.send_event(of(1000))
    with pytest.raises(GatewayFull):
        window.send_event(of(257))
    for future in sent:
        confirm(future)
    for _ in range(2):
        window.send_event(of(1000))
    with pytest.raises(GatewayFull):
        window.send_event(of(257))


def test_who_waits_is_told_when_half_of_the_bound_is_free_and_not_before() -> None:
    window = gateway_of(4000)
    sent = [window.send_event(of(1000)) for _ in range(4)]
    rooms = [window.when_room(), window.when_room()]
    confirm(sent[0])
    assert [room.done() for room in rooms] == [False, False]
    confirm(sent[1])
    assert [room.done() for room in rooms] == [True, True]
    confirm(sent[2])
    assert window.when_room().done()


@pytest.mark.parametrize(
    ("size", "left"), [(1000, 2000), (2000, 2000), (2001, 1000), (3000, 1000), (3001, 0), (9000, 0)]
)
def test_who_waits_is_told_when_half_of_the_bound_is_free_and_the_largest_refused_event_fits(
    size: int, left: int
) -> None:
    window = gateway_of(4000)
    sent = [window.send_event(of(1000)) for _ in range(4)]
    for refused in (500, size, 600):
        with pytest.raises(GatewayFull, match=f"the event of {refused} bytes"):
            window.send_event(of(refused))
    room = window.when_room()
    unconfirmed = 4000
    while not room.done():
        confirm(sent.pop(0))
        unconfirmed -= 1000
    assert unconfirmed == left
    again = window.send_event(of(size))
    assert not again.done()


def test_who_asks_for_room_after_a_refusal_waits_for_the_refused_event_and_not_longer() -> None:
    window = gateway_of(4000)
    sent = [window.send_event(of(1000)) for _ in range(2)]
    with pytest.raises(GatewayFull):
        window.send_event(of(2001))
    assert not window.when_room().done()
    confirm(sent[0])
    assert window.when_room().done()
    window.send_event(of(1000))
    assert window.when_room().done()


def test_room_that_others_have_used_meanwhile_is_waited_for_again() -> None:
    window = gateway_of(4000)
    sent = [window.send_event(of(1000)) for _ in range(4)]
    room = window.when_room()
    confirm(sent[0])
    others = window.send_event(of(1000))
    confirm(sent[1])
    assert not room.done()
    confirm(sent[2])
    assert room.done()
    assert not others.done()


def test_what_was_refused_is_not_counted_and_who_is_told_may_send() -> None:
    window, again = gateway_of(2000), list[SendFuture]()
    large = window.send_event(of(9000))
    for _ in range(3):
        with pytest.raises(GatewayFull, match="9000 bytes of events wait"):
            window.send_event(of(1000))
    room = window.when_room()
    room.add_done_callback(lambda _: again.append(window.send_event(of(2000))))
    confirm(large)
    assert room.done()
    assert again
    with pytest.raises(GatewayFull, match="2000 bytes of events wait"):
        window.send_event(of(257))


def test_while_one_waits_for_room_another_is_refused_and_both_are_told() -> None:
    window = gateway_of(2000)
    sent = [window.send_event(of(1000)) for _ in range(2)]
    room = window.when_room()
    with pytest.raises(GatewayFull, match=r"the event of 1500 bytes .* 2000 bytes of events wait"):
        window.send_event(of(1500))
    confirm(sent[0])
    assert not room.done()
    confirm(sent[1])
    assert room.done()


def test_what_is_over_and_not_looked_at_yet_is_room_for_one_large_event() -> None:
    window = gateway_of(1000)
    sent = window.send_event(of(1000))
    room = window.when_room()
    window._over = window._sent  # the queue's thread has counted it, and not looked yet
    large = window.send_event(of(9000))
    with pytest.raises(GatewayFull, match=" 9000 bytes of events wait"):
        window.send_event(of(257))
    sent.free()
    window._wake_if_due()
    assert not room.done()
    confirm(large)
    assert room.done()


def test_who_asks_when_all_is_over_and_not_looked_at_yet_is_told_at_once() -> None:
    window = gateway_of(1000)
    window.send_event(of(1000))
    first = window.when_room()
    window._over = window._sent  # the queue's thread has counted it, and not looked yet
    assert window.when_room().done()
    assert first.done()


def test_who_waits_for_room_is_told_when_the_job_is_canceled() -> None:
    script = Script()
    job = up(script)
    sent, gateway = filled(script), script.coordinator.gateways[0]
    room = gateway.when_room()
    job.master.cancel("it is not wanted any more")
    job.settle(lambda: job.is_over)
    assert room.done()
    assert all(future.done() for future in sent)


def test_the_second_of_two_threads_that_would_tell_finds_no_one_who_waits() -> None:
    window = gateway_of(1000)
    sent = window.send_event(of(1000))
    room = window.when_room()
    confirm(sent)
    assert room.done()
    window._watched = window._over  # as a thread has read it before the other one told
    window._wake_if_due()
    assert window._watched == NEVER


def test_two_threads_that_complete_and_ask_for_room_do_not_miss_each_other() -> None:
    window = gateway_of(1000)
    for _ in range(500):
        sent = window.send_event(of(1000))
        completing = threading.Thread(target=confirm, args=(sent,))
        completing.start()
        room = window.when_room()
        completing.join()
        assert room.done()
