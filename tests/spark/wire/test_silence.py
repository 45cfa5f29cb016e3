"""A lost host is suspected sooner than a silent process, and neither by mistake."""

from __future__ import annotations

import os
import signal
import socket
import time

import pytest

from epochgate.spark.wire import Detection
from epochgate.spark.wire.link import unacknowledged_s
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
