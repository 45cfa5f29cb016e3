"""Names with several addresses: the driver listens on those it has, and tasks try all of them."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from typing import Any

import pytest

from epochgate.spark.wire import CannotBind, TaskChannel
from epochgate.spark.wire.listening import Address, addresses_of, bound_to, connected_to
from tests.spark.wire.harness import open_descriptors, running_wire

ELSEWHERE: Address = (socket.AF_INET, ("192.0.2.1", 0))
V4: Address = (socket.AF_INET, ("127.0.0.1", 0))
V4_TOO: Address = (socket.AF_INET, ("127.0.0.2", 0))


def has_ipv6() -> bool:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


needs_ipv6 = pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")


def bound(stack: ExitStack, *addresses: Address, port: int = 0) -> list[tuple[str, int]]:
    sockets = bound_to(addresses, "driver", port)
    for sock in sockets:
        stack.enter_context(sock)
    return [sock.getsockname()[:2] for sock in sockets]


@pytest.mark.parametrize("order", [(ELSEWHERE, V4), (V4, ELSEWHERE)])
def test_an_address_that_this_machine_does_not_have_is_passed_over(
    order: tuple[Address, ...],
) -> None:
    with ExitStack() as stack:
        ((host, port),) = bound(stack, *order)
        assert host == "127.0.0.1"
        with connected_to([(socket.AF_INET, (host, port))], 5.0) as sock:
            assert sock.getpeername() == (host, port)


def test_a_task_reaches_a_driver_whose_name_begins_with_an_address_of_another_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    resolve = socket.getaddrinfo

    def with_one_more_name(host: str, port: int, **hints: Any) -> list[Any]:
        hosts = ("192.0.2.1", "127.0.0.1", "127.0.0.2") if host == "driver.example" else (host,)
        return [found for each in hosts for found in resolve(each, port, **hints)]

    monkeypatch.setattr(socket, "getaddrinfo", with_one_more_name)
    with running_wire(host="driver.example") as wire:
        port = wire.server.address[1]
        for number, host in enumerate(("127.0.0.1", "127.0.0.2")):
            with TaskChannel.connect((host, port), wire.key, {"number": number}):
                assert wire.recorder.next_connection().hello == {"number": number}


@pytest.mark.parametrize("first", [V4, V4_TOO])
def test_all_addresses_of_a_name_are_listened_on_at_one_port(first: Address) -> None:
    with ExitStack() as stack:
        found = bound(stack, first, V4_TOO if first is V4 else V4)
        assert {host for host, _ in found} == {"127.0.0.1", "127.0.0.2"}
        assert len({port for _, port in found}) == 1
        for address in found:
            with connected_to([(socket.AF_INET, address)], 5.0):
                pass


@needs_ipv6
@pytest.mark.parametrize("hosts", [("::1", "127.0.0.1"), ("::", "0.0.0.0")])
def test_addresses_of_both_families_share_a_port(hosts: tuple[str, str]) -> None:
    with ExitStack() as stack:
        six: Address = (socket.AF_INET6, (hosts[0], 0, 0, 0))
        found = bound(stack, six, (socket.AF_INET, (hosts[1], 0)))
        assert [host for host, _ in found] == list(hosts)
        assert found[0][1] == found[1][1]


def test_a_port_that_another_program_has_on_one_address_is_an_error() -> None:
    with socket.create_server(("127.0.0.2", 0)) as other:
        port = other.getsockname()[1]
        descriptors = open_descriptors()
        with pytest.raises(CannotBind, match=rf"driver:{port}.*Another program listens there"):
            bound_to([V4, V4_TOO], "driver", port)
        assert open_descriptors() == descriptors


def test_a_name_without_any_address_of_this_machine_is_explained() -> None:
    elsewhere: Address = (socket.AF_INET, ("198.51.100.1", 0))
    with pytest.raises(
        CannotBind, match=r"192.0.2.1:0, 198.51.100.1:0.*No interface of this machine"
    ):
        bound_to([ELSEWHERE, elsewhere], "driver", 0)


def test_a_task_tries_all_addresses_in_order() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        host, port = server.getsockname()
        dead: Address = (socket.AF_INET, ("127.0.0.2", port))
        with connected_to([dead, (socket.AF_INET, (host, port))], 5.0) as sock:
            assert sock.getpeername() == (host, port)


def test_an_address_that_does_not_answer_leaves_time_for_the_next() -> None:
    with ExitStack() as stack:
        full = stack.enter_context(socket.create_server(("127.0.0.2", 0), backlog=0))
        for _ in range(3):  # Linux takes one more than the backlog, and drops the rest
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        answering = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        addresses = [(socket.AF_INET, sock.getsockname()) for sock in (full, answering)]
        with connected_to(addresses, 2.0) as sock:
            assert sock.getpeername() == answering.getsockname()


def test_every_address_that_failed_is_named_with_its_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    addresses = [(socket.AF_INET, (host, port)) for host in ("127.0.0.1", "127.0.0.2")]
    with pytest.raises(OSError, match=rf"127.0.0.1:{port}: .*refused; 127.0.0.2:{port}: .*refused"):
        connected_to(addresses, 1.0)


def test_an_address_that_the_resolver_says_twice_counts_once() -> None:
    found = addresses_of("127.0.0.1", 80)
    assert found == [(socket.AF_INET, ("127.0.0.1", 80))]
