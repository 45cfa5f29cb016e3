"""A job on real threads, with user code that hangs until a test lets it go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from epochgate.runtime import Committer, JobConfiguration, JobListener, JobLoop, JobMaster
from epochgate.runtime.api.transport import Message, Transport
from epochgate.runtime.shell.blocking_work import ThreadedWork
from epochgate.runtime.shell.clock import MonotonicClock
from epochgate.runtime.store import CheckpointStore, InMemoryCheckpointStore
from epochgate.runtime.testing.scripted import Script, ScriptedProvider
from tests.runtime.test_loop import OneTask


class EndingTask(OneTask):
    """Its process has no input, acknowledges checkpoints, and leaves when it is told to."""

    def deploy(self, subtask: int, attempt: int) -> None:
        super().deploy(subtask, attempt)
        self.inbox.received(subtask, attempt + 1, [["ended"]])

    def send(self, subtask: int, identity: int, message: Message) -> None:
        if message[0] == "barrier":
            said = ["acknowledge", message[1], True, {}, []]
            self.inbox.received(subtask, identity, [said])
        elif message[0] == "finish":
            self.inbox.received(subtask, identity, [["finished"]])
            self.inbox.lost(subtask, identity, "it has left")


class Hung:
    """Its script, committer, store and listeners may hang; `settings` go to its configuration."""

    def __init__(
        self,
        script: Script,
        committer: Committer | None = None,
        store: CheckpointStore | None = None,
        listeners: Sequence[JobListener] = (),
        task: Callable[[], Transport] = OneTask,
        **settings: Any,
    ) -> None:
        provider = ScriptedProvider("op", script)
        configuration = JobConfiguration(
            "hung", 1, (provider,), checkpoint_interval_s=None, **settings
        )
        self.loop = JobLoop(
            JobMaster(
                configuration,
                transport=task(),
                store=store or InMemoryCheckpointStore(job_id="hung"),
                clock=MonotonicClock(),
                blocking=ThreadedWork,
                committer=committer,
                listeners=listeners,
            )
        )
        self.loop.start()
