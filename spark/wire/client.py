"""A task's end of the channel to the driver; it lives in a Spark Python worker.

Which thread runs what: `connect` runs on the task's thread, and so does `receive`: reading and
decoding happen nowhere else. `send` and `send_many` may be called from any thread and write on it.
One daemon thread, "epochgate-heartbeat", writes a heartbeat every `heartbeat_interval_s`, also
while user code computes; only code that holds the interpreter's lock (a long call into C that does
not release it) or a stopped process silences it.

Decides when the driver counts as gone: when the connection ends, when its host acknowledges nothing
for longer than is usual (`detector`; while its process is stopped, the host does), and when nothing
was heard for `silence_timeout_s`, which is long, since a driver that pauses would lose all its
tasks. What has already arrived is always read first, so a task that computed for long
does not take its own absence for the driver's. After `ChannelClosed` the channel is of no more use;
what to do then is left to the task loop.

A send waits while the driver does not take the bytes (back pressure), for as long as the driver is
heard; what it says meanwhile is kept for `receive`.
"""

from __future__ import annotations

import contextlib
import logging
import select
import socket
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, Final, NoReturn, Self

from epochgate.spark.wire.detector import DETECTION, Detection, PhiDetector
from epochgate.spark.wire.errors import ChannelClosed, WireError, WireSettingInvalid
from epochgate.spark.wire.frames import (
    FRAME_BYTES_MAX,
    FRAME_BYTES_MIN,
    MESSAGE_BYTES_MAX,
    FrameDecoder,
    Message,
    pack_message,
    pack_messages,
)
from epochgate.spark.wire.handshake import SessionKeys, checked_key
from epochgate.spark.wire.joining import joined
from epochgate.spark.wire.link import unacknowledged_s
from epochgate.spark.wire.listening import peer_name
from epochgate.spark.wire.outgoing import Outgoing
from epochgate.spark.wire.sealing import FrameSeal
from epochgate.spark.wire.stream import Stream

_READ_BYTES: Final = 256 * 1024
_READS_MAX: Final = 64
"""In one call of `receive`, so that a task which computes for long between two calls keeps up."""
_FAREWELL_TIMEOUT_S: Final = 0.2
_log = logging.getLogger("epochgate.spark.wire")


class TaskChannel:
    """The connection of one task attempt; made by `connect`, closed by `close` or as a context
    manager.
    """

    def __init__(
        self,
        sock: Stream,
        session: SessionKeys,
        *,
        driver: str,
        frame_bytes_max: int,
        message_bytes_max: int,
        heartbeat_interval_s: float,
        heartbeat_value: Callable[[], Any] | None,
        silence_timeout_s: float,
        detection: Detection,
    ) -> None:
        self._sock = sock
        self._driver = driver
        self._message_bytes_max = message_bytes_max
        self._silence_timeout_s = silence_timeout_s
        self._readable = select.poll()
        self._readable.register(sock, select.POLLIN)
        self._writable = select.poll()
        self._writable.register(sock, select.POLLOUT)
        self._decoder = FrameDecoder(
            FrameSeal(session.from_driver), frame_bytes_max, message_bytes_max
        )
        self._read_buffer = bytearray(_READ_BYTES)
        self._read_view = memoryview(self._read_buffer)
        self._read_lock = threading.Lock()
        self._undelivered: list[list[Any]] = []
        self._heard_at_s = time.monotonic()
        self._outgoing = Outgoing(FrameSeal(session.from_task), frame_bytes_max)
        self._send_lock = threading.Lock()
        self._closed_reason: str | None = None
        self._close_lock = threading.Lock()
        self._ended = threading.Event()
        self._heartbeat_interval_s = heartbeat_interval_s
        self._heartbeat_value = heartbeat_value
        self._link = PhiDetector(
            interval_s=heartbeat_interval_s,
            # The driver, which knows its other tasks, is to decide first.
            pause_s=2 * detection.link_pause_s,
            threshold=detection.threshold,
            silence_s_max=silence_timeout_s,
            now_s=time.monotonic(),
        )
        self._heart = threading.Thread(target=self._beat, name="epochgate-heartbeat", daemon=True)

    @classmethod
    def connect(
        cls,
        address: tuple[str, int],
        key: bytes,
        hello: dict[str, Any],
        *,
        certificate: bytes | None = None,
        timeout_s: float = 10.0,
        frame_bytes_max: int = FRAME_BYTES_MAX,
        message_bytes_max: int = MESSAGE_BYTES_MAX,
        heartbeat_interval_s: float = 1.0,
        heartbeat_value: Callable[[], Any] | None = None,
        silence_timeout_s: float = 30.0,
        detection: Detection = DETECTION,
    ) -> TaskChannel:
        """Connect, prove the key both ways, say hello, and start the heartbeat.

        `address`: (host, port) as executors reach the driver. `hello`: a map of plain values with
        str keys. `certificate`: the driver's (DER) where the wire is private. `heartbeat_value()`:
        a plain value, taken on the heartbeat's thread, that the driver receives as the message
        `["heartbeat", value]`; without it heartbeats carry nothing and are not delivered.
        `silence_timeout_s` should be several times the driver's `heartbeat_interval_s`.
        `detection`: of the driver's host.

        Raises `CannotConnect`, `AuthenticationFailed`, `ProtocolMismatch`, `HandshakeTimedOut`,
        `MessageNotPlain`, `MessageTooLarge`, `WireSettingInvalid`.
        """
        checked_key(key)
        if not FRAME_BYTES_MIN <= frame_bytes_max < 2**32:
            raise WireSettingInvalid(
                f"frame_bytes_max is {frame_bytes_max}; it must be between {FRAME_BYTES_MIN} and "
                f"{2**32 - 1}."
            )
        if not (timeout_s > 0 and heartbeat_interval_s > 0 and silence_timeout_s > 0):
            raise WireSettingInvalid(
                f"timeout_s, heartbeat_interval_s and silence_timeout_s are {timeout_s}, "
                f"{heartbeat_interval_s} and {silence_timeout_s}; all must be above 0."
            )
        packed_hello = pack_message(["hello", hello], message_bytes_max)
        with joined(address, key, certificate, timeout_s) as (sock, session):
            channel = cls(
                sock,
                session,
                driver=peer_name(address),
                frame_bytes_max=frame_bytes_max,
                message_bytes_max=message_bytes_max,
                heartbeat_interval_s=heartbeat_interval_s,
                heartbeat_value=heartbeat_value,
                silence_timeout_s=silence_timeout_s,
                detection=detection,
            )
            channel._send_pieces([(packed_hello, 1)])
        channel._heart.start()
        return channel

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.close(
            "the task is done"
            if error is None
            else f"the task failed: {type(error).__name__}: {error}"
        )

    @property
    def closed_reason(self) -> str | None:
        """The reason why the channel ended, or None while it is open as far as is known."""
        return self._closed_reason

    def receive(self, timeout_s: float = 0.0) -> list[list[Any]]:
        """All messages that have arrived, in order; waits up to `timeout_s` for the first, 0 only
        looks.

        An empty list when there is none. For one thread at a time. Raises `ChannelClosed`, after
        the last message that arrived whole was returned.
        """
        messages = self._read()
        if messages or timeout_s <= 0:
            return messages
        deadline_s = time.monotonic() + timeout_s
        while not messages:
            remaining_s = deadline_s - time.monotonic()
            if remaining_s <= 0:
                break
            # In slices, so that a silent driver is noticed in the midst of a long wait.
            self._readable.poll(max(1, int(min(remaining_s, self._silence_timeout_s / 4) * 1000)))
            messages = self._read()
        return messages

    def send(self, message: Message) -> None:
        """Write a message. Raises `ChannelClosed`, `MessageNotPlain`, `MessageTooLarge`."""
        self._send_pieces([(pack_message(message, self._message_bytes_max), 1)])

    def send_many(self, messages: Iterable[Message]) -> None:
        """Write messages, in order, in as few frames as possible. Raises what `send` raises, with
        none of them sent: `MessageNotPlain`, `MessageTooLarge`, `ChannelClosed`.
        """
        pieces = pack_messages(list(messages), self._message_bytes_max)
        if pieces:
            self._send_pieces([(piece.data, piece.count) for piece in pieces])

    def close(self, reason: str = "the task is done") -> None:
        """Say `reason` to the driver and free the socket and the thread; idempotent."""
        self._ended.set()
        if self._closed_reason is None and self._send_lock.acquire(timeout=_FAREWELL_TIMEOUT_S):
            try:
                self._outgoing.add_farewell(reason)
                with contextlib.suppress(OSError):
                    if not self._outgoing.write_to(self._sock):
                        self._writable.poll(int(_FAREWELL_TIMEOUT_S * 1000))
                        self._outgoing.write_to(self._sock)
            finally:
                self._send_lock.release()
        self._end(f"this task closed the channel: {reason}")
        if self._heart.is_alive() and threading.current_thread() is not self._heart:
            self._heart.join()
        # Unread bytes would turn the end into a reset, which may overtake the farewell.
        self._last_words()
        with self._send_lock, self._read_lock:
            self._sock.close()

    def _read(self) -> list[list[Any]]:
        with self._read_lock:
            if self._closed_reason is not None and self._sock.fileno() < 0:
                raise ChannelClosed(self._closed_reason)
            messages, self._undelivered = self._undelivered, []
            if messages:
                return messages
            for _ in range(_READS_MAX):
                read_bytes = self._read_once(messages)
                if read_bytes < _READ_BYTES:
                    break
            return messages

    def _read_once(self, messages: list[list[Any]]) -> int:
        """Add the messages that the next bytes complete; how many bytes there were."""
        try:
            read_bytes = self._sock.recv_into(self._read_buffer)
        except BlockingIOError:
            if not messages:
                self._check_silence()
            return 0
        except OSError as error:
            if not messages:
                self._fail(f"the connection to the driver at {self._driver} broke: {error}")
            return 0  # the next read says so again, when these messages have been returned
        messages += self._take(read_bytes, has_messages=bool(messages))
        return read_bytes

    def _take(self, read_bytes: int, *, has_messages: bool) -> list[list[Any]]:
        if read_bytes:
            self._heard_at_s = time.monotonic()
            self._decoder.feed(self._read_view[:read_bytes])
        messages: list[list[Any]] = []
        try:
            while (batch := self._decoder.next_batch()) is not None:
                messages = messages + batch if messages else batch
        except WireError as error:
            # Raised again by the decoder at the next call, when these messages have been returned.
            if not (messages or has_messages):
                self._fail(str(error))
        if messages or has_messages:
            return messages
        if self._decoder.farewell is not None:
            self._fail(f"the driver closed the connection: {self._decoder.farewell}")
        if not read_bytes:
            self._fail(
                f"the driver at {self._driver} closed the connection without an error: its "
                "process has ended, or the network failed. See the job's log on the driver."
            )
        return []

    def _check_silence(self) -> None:
        if self._closed_reason is not None:
            raise ChannelClosed(self._closed_reason)
        silent_s = time.monotonic() - self._heard_at_s
        if silent_s > self._silence_timeout_s:
            self._fail(
                f"nothing was heard from the driver at {self._driver} for {silent_s:.1f} s "
                f"(silence_timeout_s = {self._silence_timeout_s}): it is stopped or overloaded, or "
                "the network between is gone."
            )

    def _send_pieces(self, pieces: list[tuple[bytes | memoryview, int]]) -> None:
        with self._send_lock:
            if self._closed_reason is not None:
                raise ChannelClosed(self._closed_reason)
            for data, count in pieces:
                self._outgoing.add(data, count)
            self._write()

    def _write(self) -> None:
        """Write all that waits, with the send lock held."""
        waiting_bytes, taken_at_s = self._outgoing.waiting_bytes, time.monotonic()
        try:
            while not self._outgoing.write_to(self._sock):
                if self._outgoing.waiting_bytes != waiting_bytes:
                    waiting_bytes, taken_at_s = self._outgoing.waiting_bytes, time.monotonic()
                self._hear_driver()
                silent_s = time.monotonic() - max(taken_at_s, self._heard_at_s)
                remaining_s = self._silence_timeout_s - silent_s
                if remaining_s <= 0:
                    self._fail(
                        f"the driver at {self._driver} has neither taken a byte nor said one for "
                        f"{self._silence_timeout_s} s (silence_timeout_s): it is stopped or "
                        "overloaded."
                    )
                # In slices, so that the driver is heard in the midst of a long wait.
                wait_s = min(remaining_s, self._silence_timeout_s / 4)
                self._writable.poll(max(1, int(wait_s * 1000)))
        except OSError as error:
            self._fail(
                self._last_words()
                or f"the connection to the driver at {self._driver} broke: {error}"
            )

    def _hear_driver(self) -> None:
        """Keep what the driver has said meanwhile, unless another thread reads."""
        if not self._read_lock.acquire(blocking=False):
            return
        try:
            read_bytes = self._sock.recv_into(self._read_buffer)
            if read_bytes:
                self._heard_at_s = time.monotonic()
                self._keep(read_bytes)
        except (BlockingIOError, WireError):
            pass  # what the decoder refuses it refuses again when it is to deliver
        finally:
            self._read_lock.release()

    def _last_words(self) -> str | None:
        """The reason the driver gave before it closed, when a write is the first to notice.

        Messages found on the way are kept for `receive`.
        """
        if not self._read_lock.acquire(blocking=False):
            return None
        try:
            while (read_bytes := self._sock.recv_into(self._read_buffer)) > 0:
                self._keep(read_bytes)
        except (OSError, WireError):
            pass  # the connection is known to be broken; what had arrived is read
        finally:
            self._read_lock.release()
        farewell = self._decoder.farewell
        return None if farewell is None else f"the driver closed the connection: {farewell}"

    def _keep(self, read_bytes: int) -> None:
        self._decoder.feed(self._read_view[:read_bytes])
        while (batch := self._decoder.next_batch()) is not None:
            self._undelivered += batch

    def _fail(self, reason: str) -> NoReturn:
        self._end(reason)
        raise ChannelClosed(self._closed_reason)

    def _end(self, reason: str) -> None:
        with self._close_lock:
            if self._closed_reason is None:
                self._closed_reason = reason
        self._ended.set()
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)

    def _beat(self) -> None:
        due_s = time.monotonic() + self._heartbeat_interval_s
        while not self._ended.wait(max(0.0, due_s - time.monotonic())):
            now_s = time.monotonic()
            self._check_link(now_s, now_s - due_s)
            due_s = now_s + self._heartbeat_interval_s
            try:
                self._send_heartbeat()
            except ChannelClosed:
                return
            except Exception as error:  # noqa: BLE001  heartbeat_value is the caller's code
                _log.exception("the heartbeat failed")
                self._end(f"the heartbeat failed: {type(error).__name__}: {error}")

    def _check_link(self, now_s: float, late_s: float) -> None:
        # A time in which this thread did not run is no silence of the driver's.
        self._link.excuse(min(late_s, self._link.silence_s(now_s)))
        self._link.heard_since(now_s - (unacknowledged_s(self._sock) or 0.0))
        if self._link.is_suspect(now_s):
            self._end(
                f"the host of the driver at {self._driver} has acknowledged nothing for "
                f"{self._link.silence_s(now_s):.1f} s: the host or its network is gone."
            )

    def _send_heartbeat(self) -> None:
        packed = None
        if self._heartbeat_value is not None:
            packed = pack_message(["heartbeat", self._heartbeat_value()], self._message_bytes_max)
        if not self._send_lock.acquire(blocking=False):
            return  # Another thread is sending, which tells the driver as much.
        try:
            if self._closed_reason is None:
                if packed is None:
                    self._outgoing.add_heartbeat()
                else:
                    self._outgoing.add(packed, 1)
                self._write()
        finally:
            self._send_lock.release()
