"""A lost host is suspected sooner than a silent process, and neither by mistake."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import time

import pytest

from epochgate.spark.wire import DETECTION, FRAME_BYTES_MAX, Connection, Detection
from epochgate.spark.wire.frames import FrameDecoder
from epochgate.spark.wire.link import unacknowledged_s
from epochgate.spark.wire.outgoing import Outgoing
from epochgate.spark.wire.sealing import FrameSeal
from epochgate.spark.wire.silence import SilenceWatch
from tests.spark.wire.harness import WAIT_S, eventually, running_wire

QUICK = Detection(pause_s=0.5, link_pause_s=30.0)


def test_a_stopped_process_is_suspected_long_before_the_fixed_time_limit() -> None:
    with (
        running_wire(heartbeat_timeout_s=60.0, detection=QUICK) as wire,
        wire.task_process("chatter") as process,
    ):
        connection = wire.recorder.next_connection()
        wire.recorder.next_message()
        process.send_signal(signal.SIGSTOP)
        stopped_s = time.monotonic()
        lost, reason = wire.recorder.next_loss()
        assert lost is connection
        assert connection.fell_silent
        assert 0.5 < time.monotonic() - stopped_s < WAIT_S
        assert "nothing was heard from the task" in reason
        assert "pause_s = 0.5" in reason


def test_a_process_that_pauses_for_less_is_kept() -> None:
    calm = Detection(pause_s=WAIT_S)
    with (
        running_wire(heartbeat_timeout_s=60.0, detection=calm) as wire,
        wire.task_process("chatter") as process,
    ):
        wire.recorder.next_connection()
        wire.recorder.next_message()
        process.send_signal(signal.SIGSTOP)
        time.sleep(2.0)  # the pause is the subject, so time has to pass
        process.send_signal(signal.SIGCONT)
        while not wire.recorder.no_message_waits():
            wire.recorder.next_message()
        wire.recorder.next_message()
        assert wire.recorder.nothing_was_lost()


def test_a_pause_of_the_driver_teaches_nothing_about_a_task() -> None:
    with (
        running_wire(heartbeat_timeout_s=60.0, heartbeat_interval_s=0.5) as wire,
        wire.task_process("chatter"),
    ):
        connection = wire.recorder.next_connection()
        wire.recorder.next_message()
        usual_s = connection.process.limit_s
        ctypes.PyDLL(None).usleep(2_000_000)  # holds the interpreter's lock
        while not wire.recorder.no_message_waits():
            wire.recorder.next_message()
        wire.recorder.next_message()
        assert connection.process.limit_s < usual_s + 1.5


def test_rare_pauses_that_are_longer_than_the_limit_are_suspected_once() -> None:
    """For an hour, a task that beats twice a second pauses six seconds every five minutes."""
    watch, now_s, suspected_at_s = SilenceWatch(DETECTION, 0.5, 10.0), 0.0, []
    connection = connection_of(watch, now_s)
    while now_s < 3600.0:
        connection.link.heard(now_s)
        if not 60.0 <= now_s % 300.0 < 66.0:
            connection.process.heard(now_s)
        elif watch.suspicion(connection, now_s) is not None:
            suspected_at_s.append(now_s)
            connection = connection_of(watch, now_s)
        now_s += 0.5
    assert suspected_at_s == [65.0]


def connection_of(watch: SilenceWatch, now_s: float) -> Connection:
    """Return what the server has of a process of the first subtask, without a peer."""
    hello, seal = {"subtask": 0}, FrameSeal(bytes(32))
    sock = socket.socket()
    sock.close()
    return Connection(
        sock=sock,
        peer="a task",
        hello=hello,
        decoder=FrameDecoder(seal, FRAME_BYTES_MAX),
        outgoing=Outgoing(seal, FRAME_BYTES_MAX),
        message_bytes_max=FRAME_BYTES_MAX,
        outgoing_bytes_max=FRAME_BYTES_MAX,
        attend=lambda connection: None,
        process=watch.of_process(hello, now_s),
        link=watch.of_link(now_s),
    )


def test_the_process_after_a_suspected_one_is_given_twice_the_pause() -> None:
    hello = {"subtask": 3}
    with running_wire(heartbeat_timeout_s=60.0, detection=QUICK) as wire:
        with wire.pair(hello=hello, heartbeat_interval_s=600.0) as (connection, _):
            assert connection.process.pause_s == QUICK.pause_s
            wire.recorder.next_loss()
        with wire.pair(hello=hello) as (connection, _):
            assert connection.process.pause_s == 2 * QUICK.pause_s
        with wire.pair(hello={"subtask": 4}) as (connection, _):
            assert connection.process.pause_s == QUICK.pause_s


@pytest.mark.skipif(not hasattr(socket, "TCP_INFO"), reason="the system does not tell")
def test_the_host_of_a_stopped_process_acknowledges() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        pid = os.fork()
        if pid == 0:
            with socket.create_connection(server.getsockname()):
                signal.pause()
            os._exit(0)
        try:
            ours, _ = server.accept()
            with ours:
                os.kill(pid, signal.SIGSTOP)
                for _ in range(3):
                    ours.send(b"x")
                    assert eventually(lambda: unacknowledged_s(ours) == 0.0)
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def test_of_what_is_no_tcp_connection_nothing_is_known() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert unacknowledged_s(ours) is None
