"""The two windows of one attempt: the gateway and the window of the connection of `FloodedTask`.

A thread stands still wherever another may go on between what it has read and what comes of that: a
sender behind what it has read of the bytes that are over, and before it looks again; the queue's
thread behind what it has written, and before the lock; the wire's behind what it has read, and
before it looks again. Of the queue's thread each window has a part of its own, since the windows
know nothing of each other. The task, the network and the queue are played.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any, ClassVar, Final
from unittest import mock

from epochgate.fsm.machine import Machine
from epochgate.models.closed.flooding import FloodedTask
from epochgate.models.closed.surroundings.flooded_driver import (
    LOOKING,
    LOOKING_AGAIN,
    SAYING,
)
from epochgate.models.closed.surroundings.flooding import (
    ASKING,
    AT_REST,
    READY,
    REFUSED,
    WAITING,
)
from epochgate.runtime.api.send_future import SendFuture
from epochgate.runtime.shell import send_window
from epochgate.runtime.shell.send_window import NEVER, GatewayFull
from epochgate.spark import receive_window
from tests.playing.flooding_threads import (
    AT_LOCK,
    HAS_READ,
    HAS_WRITTEN,
    LOOKS_AGAIN,
    OVER,
    Gateway,
    Lock,
    Threads,
    Window,
)
from tests.playing.gates import Lie, Process, gated, the_truth
from tests.playing.stage import Act

SAID: Final = 0
BARRIER: Final = 0


class Flooding:
    """The world of `FloodedTask`."""

    def __init__(self, system: FloodedTask, lie: Lie = the_truth) -> None:
        self.system, self.threads = system, Threads()
        self._patches = ExitStack()
        self.returning, self.noting, self.wire = Process(), Process(), Process()
        """The queue's thread at either window, and the wire's."""
        self.senders: list[Process] = []
        """Threads that have asked for room, and look again."""
        self._sending, self._receiving = Process(), Process()
        """They keep the machines."""
        bounds = {
            name: system.constants[name] for name in ("waiting_bytes_max", "waiting_messages_max")
        }
        for module, name, value in (
            (send_window, "Handles", gated(self._sending, lie)),
            (send_window, "EVENT_BYTES", 0),
            (receive_window, "Handles", gated(self._receiving, lie, **bounds)),
            (receive_window, "MARK_BYTES", 1),
            (receive_window, "MARK_MESSAGES", 1),
        ):
            self._patches.enter_context(mock.patch.object(module, name, value))
        self.failures = self.checkpoints = self.heard = 0
        self.is_over = self.is_pending = self.is_gone = False
        self._begin()

    def _begin(self) -> None:
        """The next attempt has a gateway and a connection of its own."""
        master: Any = SimpleNamespace(
            subtask_of=[0],
            configuration=SimpleNamespace(unconfirmed_bytes_max=self.system.unconfirmed_bytes_max),
            queue=SimpleNamespace(post=self._post),
            job=SimpleNamespace(gateway={(0, 0): SimpleNamespace(send=None)}),
        )
        Gateway.world = Window.world = self
        self._sending.system = None
        self.gateway = Gateway(master, 0, 0, 1)
        self.gateway._lock = Lock(self)  # type: ignore[assignment]
        self.connection: Any = SimpleNamespace(decoder=SimpleNamespace(delivered_bytes=0))
        self.window = Window(self, self.connection)  # type: ignore[arg-type]
        self.is_paused = self.has_read_rest = False
        self.called: Callable[[], None] | None = None
        self.down, self.up, self.waiting = deque[Any](), deque[int](), deque[Any]()
        self.handled = self.said = self.sent_events = 0
        self.next_event, self.is_refused, self.told = 1, False, ""
        self.unconfirmed: dict[int, SendFuture] = {}
        self.room: SendFuture | None = None

    def close(self) -> None:
        """End what is under way."""
        for thread in (self.returning, self.noting, self.wire, *self.senders):
            thread.kill()
        self._patches.close()

    # What the windows ask of the runtime.

    def _post(self, send: object, attempt: int, future: SendFuture) -> None:
        self.unconfirmed[self.next_event] = future
        self.down.append(self.next_event)

    def pause(self, connection: object) -> None:
        """Read no more."""
        self.is_paused = True

    def resume(self, connection: object) -> None:
        """Read again."""
        self.is_paused = False

    def call(self, function: Callable[[], None]) -> None:
        """Have the wire's thread call it."""
        self.called = function

    def when_handled(self, call: Callable[[], None]) -> None:
        """Have it called by the queue's thread when what has arrived is handled."""
        self.waiting[-1][1] = call

    def machines(self) -> Iterator[tuple[str, tuple[int, ...], Machine]]:
        if self._sending.system is not None:
            yield "send_window", (), self._sending.system.send_window
        yield "receive_window", (), self._receiving.system.receive_window

    def facts(self) -> Iterator[tuple[str, Any, Any]]:
        told, task, wire = self.system.coordinator, self.system.task, self.system.wire
        queue, gateway, window = self.system.queue, self.gateway, self.window
        yield "the coordinator", told.state, self.coordinator
        granted = told.granted or self.system.unconfirmed_bytes_max
        sent = told.next_event, told.sent, told.over, granted, told.unconfirmed
        yield (
            "what was sent",
            sent,
            (
                *(self.next_event, gateway._sent, OVER.__get__(gateway), gateway._allowed),
                len(self.unconfirmed),
            ),
        )
        if self.told:
            unconfirmed = told.sent - told.over
            says = f"event of {self.size()} bytes", f" {unconfirmed} bytes of events wait"
            yield "what the sender is told", True, all(words in self.told for words in says)
            self.told = ""
        watched = told.watched if told.is_watched else NEVER
        yield "what is watched for of it", watched, gateway._watched
        yield "the task", (task.handled, task.said), (self.handled, self.said)
        arrived = (wire.arrived_bytes, wire.arrived), (wire.handled_bytes, wire.handled)
        yield "what has arrived", arrived, (window._arrived, window._kept)
        due = (wire.watched_bytes, wire.watched) if wire.is_watched else None
        yield "what is watched for of that", due, window._watched
        reading = wire.is_paused, wire.is_called
        yield "the connection", reading, (self.is_paused, self.called is not None)
        yield "the wire's thread", wire.state, self.reading
        yield "the queue's thread", queue.state, self.handling

    @property
    def coordinator(self) -> str:
        """Return what the coordinator does, as the model calls it."""
        if self.is_refused:
            return REFUSED
        if self.is_locked():
            return ASKING
        return READY if self.room is None or self.room.done() else WAITING

    def is_locked(self) -> bool:
        """Return whether a sender has the lock."""
        return any(thread.asked == HAS_READ for thread in self.senders)

    @property
    def reading(self) -> str:
        """Return what the wire's thread does."""
        return {None: AT_REST, HAS_READ: LOOKING, LOOKS_AGAIN: LOOKING_AGAIN}[self.wire.asked]

    @property
    def handling(self) -> str:
        """Return what the queue's thread does."""
        if self.returning.asked == AT_LOCK:
            return SAYING
        return AT_REST if self.noting.asked is self.returning.asked is None else LOOKING

    def size(self) -> int:
        """The bytes of the next event."""
        return self.system.bytes_large if self.next_event == self.system.large else 1

    def send(self) -> None:
        self.told = ""
        is_waiting = self.coordinator == WAITING
        try:
            self.gateway.send_event(bytes(self.size()))
            self.next_event += 1
        except GatewayFull as error:
            self.is_refused, self.told = not is_waiting, str(error)

    def has_more(self) -> bool:
        return self.next_event <= self.system.events and not self.is_gone

    def look(self) -> None:
        self.is_refused, self.gateway.is_asking = False, True
        self._ask()

    def _ask(self) -> None:
        thread = Process()
        self.senders.append(thread)

        def wait() -> None:
            # The future is known to others from the moment at which it waits.
            self.gateway.when_room()

        self.threads.call(thread, wait)

    def want(self) -> None:
        thread = next(thread for thread in self.senders if thread.asked == HAS_READ)
        self.room = self.gateway._waiting[-1]
        self.threads.go_on(thread)

    def looks_again(self) -> list[Process]:
        """The threads that are about to look."""
        return [thread for thread in self.senders if thread.asked == LOOKS_AGAIN]

    def look_again(self) -> None:
        for thread in self.looks_again():
            self.threads.go_on(thread)
        self.senders = [thread for thread in self.senders if thread.is_busy]

    def is_due(self) -> bool:
        """Return whether so much is over as is watched for."""
        return bool(OVER.__get__(self.gateway) >= self.gateway._watched)

    def take(self) -> None:
        event = self.down.popleft()
        if event == BARRIER:
            self.up.append(self.system.events + 1)
        else:
            assert event == self.handled + 1, "events arrive once, in the order of the sends"
            self.handled = event
            self.up.append(event)

    def can_say(self) -> bool:
        return not self.is_gone and len(self.up) < self.system.network

    def say(self) -> None:
        self.said += 1
        self.up.append(SAID)

    def read(self) -> None:
        self.has_read_rest = False
        self._read()

    def read_rest(self) -> None:
        self.has_read_rest = True
        self.threads.go_on(self.wire)
        self._read()

    def _read(self) -> None:
        message = self.up.popleft()
        self.waiting.append([message, None])
        self.connection.decoder.delivered_bytes += 2 if message == SAID else 1
        self.window.is_counting = True
        self.threads.call(self.wire, lambda: self.window.received(self, 1))  # type: ignore[arg-type]

    def is_called_due(self) -> bool:
        return self.wire.asked is None and self.called is not None

    def hear_call(self) -> None:
        called, self.called = self.called, None
        assert called is not None, "the queue's thread has asked"
        called()

    def handle(self) -> None:
        message, note = self.waiting.popleft()
        if message == SAID:
            self.heard += 1
        elif message > self.system.events:
            self.is_pending = False
        else:
            self._give_back(self.unconfirmed.pop(message))
        self.threads.call(self.noting, note)

    def _give_back(self, future: SendFuture) -> None:
        def confirmed() -> None:
            future.free()
            future.complete()

        self.threads.call(self.returning, confirmed)

    def handled_look(self) -> None:
        self.threads.go_on(self.noting)
        self.threads.go_on(self.returning)

    def begin(self) -> None:
        self.checkpoints += 1
        self.is_pending = True
        self.down.append(BARRIER)

    def cancel(self) -> None:
        self.is_over = True
        if not self.is_gone:
            self._lose()

    def die(self) -> None:
        self.failures += 1
        self._lose()

    def _lose(self) -> None:
        self.is_gone, self.is_pending, self.heard = True, False, 0
        self.down.clear()
        self.up.clear()
        self.waiting.clear()
        futures = [*self.unconfirmed.values()]
        self.unconfirmed.clear()
        if futures:
            self._give_back(futures[-1])
        self.threads.call(self.noting, lambda: self.threads.stand(HAS_WRITTEN))

    def may_restart(self) -> bool:
        states = self.coordinator, self.handling, self.reading
        return self.is_gone and not self.is_over and states == (READY, AT_REST, AT_REST)

    def restart(self) -> None:
        for thread in self.senders:
            thread.kill()
        self.senders, self.is_gone = [], False
        self._begin()

    def rests(self) -> bool:
        """Return whether the queue's thread is at nothing."""
        return self.handling == AT_REST

    acts: ClassVar[Mapping[str, Act]] = {
        "coordinator.send": Act(
            send,
            lambda world: world.coordinator == READY and world.has_more(),
            "the coordinator waits, or no event is left",
        ),
        "coordinator.send_besides": Act(
            send,
            lambda world: world.coordinator == WAITING and world.has_more(),
            "no thread waits, or no event is left",
        ),
        "coordinator.look": Act(
            look, lambda world: world.coordinator == REFUSED, "nothing was refused"
        ),
        "coordinator.want": Act(
            want, lambda world: world.coordinator == ASKING, "no thread asks for room"
        ),
        "coordinator.want_besides": Act(
            lambda world: world._ask(),
            lambda world: world.coordinator == WAITING,
            "no thread waits",
        ),
        "coordinator.look_again": Act(
            look_again,
            lambda world: (
                world.coordinator != ASKING and bool(world.looks_again()) and world.is_due()
            ),
            "no thread is about to look, or there is nothing to be seen",
        ),
        "task.take": Act(
            take, lambda world: bool(world.down) and world.can_say(), "nothing has arrived"
        ),
        "task.say": Act(
            say,
            lambda world: world.can_say() and world.said < world.system.said,
            "the network is full, or all is said",
        ),
        # The queue's thread hears of a loss when it has done what it was at.
        "task.die": Act(
            die,
            lambda world: not world.is_gone and world.failures < world.system.F,
            "the process is gone",
            is_apart=lambda world: not world.rests(),
        ),
        "task.restart": Act(restart, may_restart, "the attempt is not over yet"),
        "wire.read": Act(
            read,
            lambda world: world.reading == AT_REST and not world.is_paused and bool(world.up),
            "the connection is not read, or nothing has arrived",
        ),
        "wire.read_rest": Act(
            read_rest,
            lambda world: (
                world.reading == LOOKING_AGAIN and not world.has_read_rest and bool(world.up)
            ),
            "nothing has arrived",
        ),
        "wire.count": Act(
            lambda world: world.threads.go_on(world.wire),
            lambda world: world.reading == LOOKING,
            "nothing is to be counted",
        ),
        "wire.look_again": Act(
            lambda world: world.threads.go_on(world.wire),
            lambda world: world.reading == LOOKING_AGAIN,
            "the thread is not about to look",
        ),
        "wire.called": Act(hear_call, is_called_due, "the thread was not asked"),
        "queue.handle": Act(
            handle, lambda world: world.rests() and bool(world.waiting), "nothing waits"
        ),
        "queue.look": Act(
            handled_look, lambda world: world.handling == LOOKING, "nothing was handled"
        ),
        "queue.say": Act(
            lambda world: world.threads.go_on(world.returning),
            lambda world: world.handling == SAYING,
            "the thread has nothing to say",
            # It waits for the lock: what follows is as if it had come to it later.
            is_apart=is_locked,
        ),
        "queue.begin": Act(
            begin,
            lambda world: (
                world.rests()
                and not world.is_pending
                and world.checkpoints < world.system.K
                and not world.is_gone
            ),
            "a checkpoint is under way, or none is left",
        ),
        "queue.cancel": Act(
            cancel, lambda world: world.rests() and not world.is_over, "the job is over"
        ),
    }
