"""Tasks that have been silent for too long: their processes, and the hosts that they run on.

Keeps two detectors for each connection. The one of the process hears whatever the task sends. The
one of the host hears that something came from there, acknowledgements by the operating system
included, which also come from a process that is stopped: a lost host is suspected sooner than a
silent process. Either way the connection is closed, as it is after `heartbeat_timeout_s`.

A subtask whose process was suspected gives all later ones twice the pause, up to the fixed time
limit: a program that holds the interpreter's lock for longer than the pause is suspected once or
twice, and not for ever. What a detector has learnt does not help there, since pauses may lie
further apart than its window reaches. Runs on the server's thread.
"""

from __future__ import annotations

from typing import Any

from epochgate.spark.wire.connection import Connection
from epochgate.spark.wire.detector import Detection, PhiDetector
from epochgate.spark.wire.link import unacknowledged_s


class SilenceWatch:
    """`interval_s`: how often each side is to be heard; `timeout_s`: from which silence on a peer
    is lost, whatever its detector says.
    """

    def __init__(self, detection: Detection, interval_s: float, timeout_s: float) -> None:
        self._detection, self._interval_s, self._timeout_s = detection, interval_s, timeout_s
        self._pauses_s: dict[int, float] = {}
        """Subtask -> the pause of its next processes, where one was suspected."""

    def of_process(self, hello: dict[str, Any], now_s: float) -> PhiDetector:
        """Make the detector of the process that has said `hello`."""
        pause_s = self._pauses_s.get(_subtask(hello), self._detection.pause_s)
        return self._detector(pause_s, now_s)

    def of_link(self, now_s: float) -> PhiDetector:
        """Make the detector of a connection's host."""
        return self._detector(self._detection.link_pause_s, now_s)

    def _detector(self, pause_s: float, now_s: float) -> PhiDetector:
        return PhiDetector(
            interval_s=self._interval_s,
            pause_s=pause_s,
            threshold=self._detection.threshold,
            silence_s_max=self._timeout_s,
            now_s=now_s,
        )

    def note_link(self, connection: Connection, now_s: float) -> None:
        """Ask the operating system when the task's host was last heard."""
        silent_s = unacknowledged_s(connection.sock)
        connection.link.heard_since(now_s - (silent_s or 0.0))

    def suspicion(self, connection: Connection, now_s: float) -> str | None:
        """Return why the task counts as lost, or None."""
        process, link = connection.process, connection.link
        if link.is_suspect(now_s):
            return (
                f"the task's host has acknowledged nothing for {link.silence_s(now_s):.1f} s (phi "
                f"{link.phi(now_s):.1f}, link_pause_s = {self._detection.link_pause_s:g}, "
                f"heartbeat_timeout_s = {self._timeout_s:g}): the host or its network is gone"
            )
        if process.is_suspect(now_s):
            key = _subtask(connection.hello)
            self._pauses_s[key] = min(self._timeout_s, 2 * process.pause_s)
            return (
                f"nothing was heard from the task for {process.silence_s(now_s):.1f} s (phi "
                f"{process.phi(now_s):.1f}, pause_s = {process.pause_s:g}, heartbeat_timeout_s = "
                f"{self._timeout_s:g}): its process is stopped or holds the interpreter's lock, or "
                "its network is gone"
            )
        return None


def _subtask(hello: dict[str, Any]) -> int:
    number = hello.get("subtask")
    return number if type(number) is int else -1
