"""The pages of a job, answered by the process that runs it, for as long as the job runs.

Decides nothing of what they show: they are those of `epochgate ui`, from the same history.
"""

from __future__ import annotations

import threading
import time

from epochgate.jobs.seen import Job
from epochgate.jobs.site import JobSite
from epochgate.pages.serving import LOOPBACK, CannotServe, Server
from epochgate.runtime.api.job_events import JobEvent, JobListener
from epochgate.runtime.observing.status import RunStatus, status_of
from epochgate.runtime.store import (
    CheckpointStore,
    DirectoryCheckpointStore,
    ObjectCheckpointStore,
)


class OwnPage(JobListener):
    """Serves http://HOST:PORT/ until `close`. port: 0 takes a free one.

    Raises CannotServe for an address that cannot be listened on, and for a job without a history.
    """

    def __init__(
        self, store: CheckpointStore, port: int = 0, host: str = LOOPBACK[0], *, has_history: bool
    ) -> None:
        if not has_history or not isinstance(
            store, DirectoryCheckpointStore | ObjectCheckpointStore
        ):
            raise CannotServe(
                f"ui_port is {port} and the job keeps no history, which its pages are made of: "
                "leave has_history out, and keep checkpoints in a directory or an object store"
            )
        job = Job(store.path)
        job.read = lambda: _status_of(store)
        self._server = Server(JobSite(job).answer, host, port, "--ui-port (ui_port in Python)")
        self._thread = threading.Thread(target=self._server.run, name="epochgate-ui", daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """The address of the pages."""
        return self._server.url

    def on_event(self, event: JobEvent) -> None:
        """The history keeps it."""

    def close(self) -> None:
        """Serve no more."""
        if self._thread.is_alive():
            self._server.close()
            self._thread.join()


def _status_of(store: DirectoryCheckpointStore | ObjectCheckpointStore) -> RunStatus:
    """The status as of now; objects are read by the job's own access to them."""
    objects = store.objects if isinstance(store, ObjectCheckpointStore) else None
    return status_of(
        store.path,
        now=time.time(),
        open_objects=None if objects is None else lambda _: objects,
    )
