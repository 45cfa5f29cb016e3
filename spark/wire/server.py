"""The driver's service that tasks connect to.

Which thread runs what: one thread, "epochgate-wire", accepts, authenticates, reads, decodes,
watches heartbeats, writes what callers could not, and calls the listener; so the listener's calls
never overlap, and one that blocks stops the reading and the heartbeats of all connections. `start`
and `close` belong to any other thread. The work of a turn is proportional to the connections that
are ready; only the watch over heartbeats goes through all of them, once per interval.

Decides who may stay connected, and when a silent task counts as lost. Leaves to its listener what
messages mean and which attempt is the current one, to `reception` who comes in, and to `incoming`
how much memory unfinished frames may take. It binds the driver's addresses only.

With a certificate all bytes are encrypted (`private_stream`), from the first that a peer sends.
"""

from __future__ import annotations

import contextlib
import logging
import selectors
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, Self

from epochgate.spark.wire.arrivals import Admission, Arrival
from epochgate.spark.wire.connection import Connection, Listener
from epochgate.spark.wire.detector import DETECTION, Detection
from epochgate.spark.wire.errors import WireError, WireSettingInvalid
from epochgate.spark.wire.frames import (
    FRAME_BYTES_MAX,
    FRAME_BYTES_MIN,
    LENGTH,
    MESSAGE_BYTES_MAX,
)
from epochgate.spark.wire.handshake import checked_key
from epochgate.spark.wire.incoming import IncomingFrames
from epochgate.spark.wire.listening import bound_sockets
from epochgate.spark.wire.reception import Reception, arrivals_max_by_default
from epochgate.spark.wire.silence import SilenceWatch

if TYPE_CHECKING:
    from epochgate.spark.wire.certificate import Credentials

OUTGOING_BYTES_MAX: Final = 256 * 1024 * 1024
INCOMING_BYTES_MAX: Final = 256 * 1024 * 1024
_READ_BYTES: Final = 256 * 1024
_log = logging.getLogger("epochgate.spark.wire")


class TaskServer:
    """Accepts tasks and moves messages between them and a listener.

    `credentials`: of the run, for a private wire. `heartbeat_timeout_s`: a task from which nothing
    arrives for so long is lost (a stopped process keeps its TCP connection), and sooner where
    `detection` suspects it.
    `heartbeat_interval_s`: how often a task hears from the driver at least. `incoming_bytes_max`:
    what large frames that have not arrived whole may take, over all connections. `arrivals_max`:
    how many connections may be in their handshake, by default half of
    the process's soft limit of descriptors, and at most 1024. `on_refused(peer, error)` hears, on
    the server's thread, of each peer that was not let in. Raises `WireSettingInvalid`; `start`
    raises `CannotBind`.
    """

    def __init__(
        self,
        *,
        key: bytes,
        credentials: Credentials | None = None,
        host: str,
        port: int = 0,
        listener: Listener,
        frame_bytes_max: int = FRAME_BYTES_MAX,
        message_bytes_max: int = MESSAGE_BYTES_MAX,
        outgoing_bytes_max: int = OUTGOING_BYTES_MAX,
        incoming_bytes_max: int = INCOMING_BYTES_MAX,
        handshake_timeout_s: float = 5.0,
        heartbeat_timeout_s: float = 10.0,
        detection: Detection = DETECTION,
        heartbeat_interval_s: float = 1.0,
        arrivals_max: int | None = None,
        on_refused: Callable[[str, WireError], None] | None = None,
    ) -> None:
        _check("frame_bytes_max", frame_bytes_max, FRAME_BYTES_MIN, 2**32 - 1)
        _check("message_bytes_max", message_bytes_max, FRAME_BYTES_MIN, 2**32 - 1)
        _check("outgoing_bytes_max", outgoing_bytes_max, frame_bytes_max, 2**63)
        _check("incoming_bytes_max", incoming_bytes_max, frame_bytes_max, 2**63)
        _check("handshake_timeout_s", handshake_timeout_s, 0.01, 3600)
        _check("heartbeat_interval_s", heartbeat_interval_s, 0.01, 3600)
        _check("heartbeat_timeout_s", heartbeat_timeout_s, 2 * heartbeat_interval_s, 86400)
        if arrivals_max is None:
            arrivals_max = arrivals_max_by_default()
        _check("arrivals_max", arrivals_max, 1, 10**6)
        self._key, self._credentials = checked_key(key), credentials
        self._host, self._port = host, port
        self._listener = listener
        self._frame_bytes_max, self._message_bytes_max = frame_bytes_max, message_bytes_max
        self._outgoing_bytes_max = outgoing_bytes_max
        self._handshake_timeout_s = handshake_timeout_s
        self._heartbeat_timeout_s = heartbeat_timeout_s
        self._silence = SilenceWatch(detection, heartbeat_interval_s, heartbeat_timeout_s)
        self._arrivals_max = arrivals_max
        self._on_refused = on_refused
        self._watch_interval_s = min(
            heartbeat_interval_s, heartbeat_timeout_s / 4, handshake_timeout_s / 4
        )
        self._guard = threading.Lock()
        self._closed = False
        self._closing_reason = "the driver has closed its service"
        self._thread: threading.Thread | None = None
        self._thread_id = -1
        self._address: tuple[str, int] | None = None
        self._attention: deque[Connection] = deque()
        self._calls: deque[Callable[[], None]] = deque()
        self._woken = False
        self._wake_lock = threading.Lock()
        # From here on the server's thread alone.
        self._connections: dict[Connection, None] = {}
        self._incoming: IncomingFrames[Connection] = IncomingFrames(
            incoming_bytes_max + LENGTH.size
        )
        self._read_buffer = bytearray(_READ_BYTES)
        self._read_view = memoryview(self._read_buffer)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def address(self) -> tuple[str, int]:
        """(host, port) as bound, the first of several; only after `start`."""
        if self._address is None:
            raise WireSettingInvalid(
                "the server has no address before start(); call start() first."
            )
        return self._address

    def start(self) -> None:
        """Bind and begin to serve. Raises `CannotBind`, or `WireSettingInvalid` when called a
        second time.
        """
        with self._guard:
            if self._thread is not None or self._closed:
                raise WireSettingInvalid(
                    "a TaskServer is started once; make a new one for another run."
                )
            listening = bound_sockets(self._host, self._port)
            self._address = listening[0].getsockname()[:2]
            self._wake_read, self._wake_write = socket.socketpair()
            self._wake_read.setblocking(False)
            self._wake_write.setblocking(False)
            self._selector = selectors.DefaultSelector()
            self._reception = Reception(
                listening,
                self._selector,
                key=self._key,
                credentials=self._credentials,
                frame_bytes_max=self._frame_bytes_max,
                message_bytes_max=self._message_bytes_max,
                handshake_timeout_s=self._handshake_timeout_s,
                arrivals_max=self._arrivals_max,
                on_refused=self._on_refused,
                admit=self._admit,
            )
            self._selector.register(self._wake_read, selectors.EVENT_READ, self._drain_wakeups)
            self._thread = threading.Thread(target=self._run, name="epochgate-wire", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Close all connections (`lost` for each), free the port and end the thread; idempotent.

        Returns when all is done; called by the listener, it only initiates that.
        """
        with self._guard:
            self._closed = True
            thread = self._thread
        if thread is None:
            return
        self._wake()
        if threading.get_ident() != self._thread_id:
            thread.join()

    # Called from any thread.

    def _attend(self, connection: Connection) -> None:
        self._attention.append(connection)
        if threading.get_ident() != self._thread_id and not self._woken:
            self._woken = True
            self._wake()

    def call(self, function: Callable[[], None]) -> None:
        """Let the server's thread call `function` soon; never, once it is closed."""
        self._calls.append(function)
        self._wake()

    def _wake(self) -> None:
        # A full pipe wakes as well, and a closed one has no reader to wake.
        with self._wake_lock, contextlib.suppress(OSError):
            self._wake_write.send(b"\0")

    # The server's thread.

    def _run(self) -> None:
        self._thread_id = threading.get_ident()
        try:
            self._serve()
        except Exception as error:  # noqa: BLE001  the tasks must hear of it, whatever it is
            _log.exception("the wire's server failed; all connections are closed")
            self._closing_reason = f"the driver's service failed: {error!r}"
            self._closed = True
        finally:
            self._free_everything()

    def _serve(self) -> None:
        watch_at_s = time.monotonic() + self._watch_interval_s
        while not self._closed:
            self._reception.begin_turn()
            wait_s = 0.0 if self._attention else max(0.0, watch_at_s - time.monotonic())
            ready_now = self._selector.select(wait_s)
            # Before anything is read, which would teach a pause of this thread as one of a task.
            watch_at_s = self._watched(watch_at_s)
            for key, ready in ready_now:
                key.data(ready)
                # Whatever else is ready, tasks hear in time.
                watch_at_s = self._watched(watch_at_s)
            self._attend_connections()
            watch_at_s = self._watched(watch_at_s)

    def _watched(self, due_s: float) -> float:
        """Look after all connections if that is due; return when to do so next."""
        late_s = time.monotonic() - due_s
        if late_s < 0:
            return due_s
        self._watch(late_s)
        return time.monotonic() + self._watch_interval_s

    def _drain_wakeups(self, ready: int) -> None:
        with contextlib.suppress(BlockingIOError):
            self._wake_read.recv(4096)
        # Cleared before the attention is looked at, so that what comes later wakes again.
        self._woken = False

    def _attend_connections(self) -> None:
        for _ in range(len(self._calls)):
            try:
                self._calls.popleft()()
            except Exception:  # noqa: BLE001  the caller's code must not end the service
                _log.exception("a call on the wire's thread failed")
        for _ in range(len(self._attention)):
            connection = self._attention.popleft()
            if connection in self._connections:
                self._settle(connection)

    def _settle(self, connection: Connection) -> None:
        blocked = connection.settle()
        if connection.closed_reason is not None:
            self._dismiss(connection, "")
        elif blocked != connection.watches_writable:
            connection.watches_writable = blocked
            self._listen_to(connection)

    def _listen_to(self, connection: Connection) -> None:
        """Watch the socket for what is wanted of it now; for nothing at all, if need be."""
        is_read = not self._incoming.is_waiting(connection)
        events = (selectors.EVENT_READ if is_read else 0) | (
            selectors.EVENT_WRITE if connection.watches_writable else 0
        )
        if connection.sock in self._selector.get_map():
            self._selector.unregister(connection.sock)
        if events:
            self._selector.register(
                connection.sock, events, partial(self._connection_ready, connection)
            )

    def _admit(self, arrival: Arrival, admission: Admission) -> None:
        now_s = time.monotonic()
        connection = Connection(
            sock=arrival.sock,
            peer=arrival.peer,
            hello=admission.hello,
            decoder=admission.decoder,
            outgoing=admission.outgoing,
            message_bytes_max=self._message_bytes_max,
            outgoing_bytes_max=self._outgoing_bytes_max,
            attend=self._attend,
            process=self._silence.of_process(admission.hello, now_s),
            link=self._silence.of_link(now_s),
        )
        self._connections[connection] = None
        self._listen_to(connection)
        try:
            self._listener.connected(connection, admission.hello)
            if admission.messages and connection.closed_reason is None:
                self._listener.received(connection, admission.messages)
        except Exception as error:  # noqa: BLE001  the caller's code must not end the service
            self._blame_listener(connection, error)
        self._hand_over(connection)

    def _connection_ready(self, connection: Connection, ready: int) -> None:
        if connection not in self._connections:
            return
        if ready & selectors.EVENT_WRITE:
            self._settle(connection)
        if ready & selectors.EVENT_READ and connection in self._connections:
            self._read(connection)

    def _read(self, connection: Connection) -> None:
        try:
            read_bytes = connection.sock.recv_into(self._read_buffer)
        except BlockingIOError:
            return
        except OSError as error:
            self._dismiss(connection, f"the connection broke: {error}")
            return
        if read_bytes == 0:
            self._dismiss(
                connection, "the task's process ended or closed its connection without an error"
            )
            return
        connection.process.heard(time.monotonic())
        connection.decoder.feed(self._read_view[:read_bytes])
        self._hand_over(connection)

    def _hand_over(self, connection: Connection) -> None:
        """Give the listener each complete batch, for as long as the connection is open."""
        decoder, has_batch = connection.decoder, False
        try:
            while connection.closed_reason is None:
                messages = decoder.next_batch()
                if messages is None:
                    break
                has_batch = True
                if messages:
                    self._listener.received(connection, messages)
        except WireError as error:
            if decoder.failure is error:
                connection.close(str(error))
            else:
                self._blame_listener(connection, error)
        except Exception as error:  # noqa: BLE001  the caller's code must not end the service
            self._blame_listener(connection, error)
        if decoder.farewell is not None:
            self._dismiss(connection, f"the task closed: {decoder.farewell}")
        elif decoder.awaited_bytes or self._incoming.has_place(connection):
            self._find_place(connection, has_batch=has_batch)

    def _find_place(self, connection: Connection, *, has_batch: bool) -> None:
        """Let a large frame that begins go on, or wait until others have arrived."""
        if connection not in self._connections:
            return
        now_s = time.monotonic()
        if has_batch:
            self._read_again(self._incoming.leave(connection, now_s))
        self._incoming.enter(connection, connection.decoder.awaited_bytes, now_s)
        if self._incoming.is_waiting(connection):
            self._listen_to(connection)

    def pause(self, connection: Connection) -> None:
        """Read no more from the connection until `resume`; on the server's thread, as `resume`."""
        self._incoming.pause(connection)
        self._listen_to(connection)

    def resume(self, connection: Connection) -> None:
        """Read from the connection again."""
        self._incoming.resume(connection)
        if connection in self._connections:
            self._read_again([connection])

    def _read_again(self, connections: list[Connection]) -> None:
        for connection in connections:
            connection.process.excuse(connection.process.silence_s(time.monotonic()))
            self._listen_to(connection)

    def _blame_listener(self, connection: Connection, error: Exception) -> None:
        _log.error("the listener failed on %r", connection, exc_info=error)
        connection.close(
            f"the driver failed on this task's messages: {type(error).__name__}: {error}"
        )

    def _dismiss(self, connection: Connection, reason: str) -> None:
        if connection not in self._connections:
            return
        del self._connections[connection]
        if connection.sock in self._selector.get_map():
            self._selector.unregister(connection.sock)
        self._incoming.resume(connection)
        self._read_again(self._incoming.leave(connection, time.monotonic()))
        reason = connection.dispose(reason)
        try:
            self._listener.lost(connection, reason)
        except Exception:  # noqa: BLE001  the caller's code must not end the service
            _log.exception("the listener failed on the loss of %r", connection)

    def _watch(self, late_s: float) -> None:
        """Look for peers that are silent for too long, and be heard by the others."""
        now_s = time.monotonic()
        self._reception.watch(now_s)
        for connection in self._incoming.overdue(now_s, self._heartbeat_timeout_s):
            connection.close(
                f"a frame of {connection.decoder.awaited_bytes} bytes has not arrived whole within "
                f"{self._heartbeat_timeout_s} s (heartbeat_timeout_s) for each "
                f"{FRAME_BYTES_MAX} bytes, and others wait for the "
                "memory that it takes: the network is slow, or the task is stopped"
            )
        for connection in list(self._connections):
            for peer in (connection.process, connection.link):
                # A time in which this thread did not run is no silence of theirs.
                peer.excuse(min(late_s, peer.silence_s(now_s)))
            if self._incoming.is_waiting(connection):
                connection.process.excuse(connection.process.silence_s(now_s))
            self._silence.note_link(connection, now_s)
            if connection.process.is_suspect(now_s):
                # What has arrived meanwhile counts.
                self._read(connection)
            reason = self._silence.suspicion(connection, now_s)
            if reason is None:
                connection.beat()
            elif connection in self._connections:
                connection.fell_silent = True
                connection.close(reason)

    def _free_everything(self) -> None:
        self._reception.close()
        for connection in list(self._connections):
            connection.close(self._closing_reason)
            self._dismiss(connection, self._closing_reason)
        self._selector.close()
        with self._wake_lock:
            self._wake_read.close()
            self._wake_write.close()
        self._read_view.release()


def _check(name: str, value: float, least: float, most: float) -> None:
    if not least <= value <= most:
        raise WireSettingInvalid(f"{name} is {value}; it must be between {least} and {most}.")
