"""The set of listeners of a job that `run_job` starts: the user's, the log, the history, and a page
of metrics, a sender of them and the job's own pages where they are wanted.

Decides that each is heard on a thread of its own, and that the history lies beside the checkpoints,
in their directory or object store.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence

from epochgate.errors import UsageError
from epochgate.runtime.api.job_events import JobListener
from epochgate.runtime.observing.history import History
from epochgate.runtime.observing.history_files import FOLDER
from epochgate.runtime.observing.log import JobLog
from epochgate.runtime.observing.metrics_page import LOOPBACK, MetricsPage
from epochgate.runtime.observing.otlp import OtlpSender
from epochgate.runtime.observing.own_thread import OnOwnThread
from epochgate.runtime.store import (
    CheckpointStore,
    DirectoryCheckpointStore,
    ObjectCheckpointStore,
)

Address = tuple[int | None, str | None]
"""A port, and the host whose port it is; none to serve nothing, and for the loopback address."""


class HostWithoutPort(UsageError):
    """An address is named for a page that is not served."""


class Listening:
    """All listeners of one job; `metrics_url`, `ui_url`: where its page of metrics and its own
    pages are, if it has them. metrics, ui: their port and host, as `run_job` has them, otlp: the
    URL of a collector.

    Raises MetricsUnavailable, CannotServe, HostWithoutPort.
    """

    def __init__(
        self,
        listeners: Sequence[JobListener],
        store: CheckpointStore,
        has_history: bool = True,
        metrics: Address = (None, None),
        ui: Address = (None, None),
        otlp: str | None = None,
    ) -> None:
        self.metrics_url: str | None = None
        self.ui_url: str | None = None
        everyone: list[JobListener] = [*listeners, JobLog()]
        with contextlib.ExitStack() as refused:
            if (address := wanted("metrics", *metrics)) is not None:
                page = MetricsPage(*address)
                refused.callback(page.close)
                self.metrics_url = page.url
                everyone.append(page)
            if otlp is not None:
                everyone.append(OtlpSender(otlp))
            if (address := wanted("ui", *ui)) is not None:
                from epochgate.jobs.own_page import OwnPage

                own = OwnPage(store, *address, has_history=has_history)
                self.ui_url = own.url
                everyone.append(own)
            refused.pop_all()
        if has_history and isinstance(store, DirectoryCheckpointStore):
            everyone.append(History(os.path.join(store.path, FOLDER), epoch=store.epoch))
        elif has_history and isinstance(store, ObjectCheckpointStore):
            everyone.append(History(store.objects, epoch=store.epoch))
        self.listeners: list[JobListener] = [OnOwnThread(one) for one in everyone]

    @contextlib.contextmanager
    def closed_on_error(self) -> Iterator[None]:
        """Close all if the block raises: there is no job then that would."""
        try:
            yield
        except BaseException:
            for listener in self.listeners:
                listener.close()
            raise


def wanted(page: str, port: int | None, host: str | None) -> tuple[int, str] | None:
    """Return the address of a page, none if it is not wanted. Raises HostWithoutPort.

    >>> wanted("ui", 0, None), wanted("ui", None, None)
    ((0, '127.0.0.1'), None)
    """
    if port is not None:
        return port, host or LOOPBACK
    if host is not None:
        raise HostWithoutPort(
            f"{page}_host is {host!r} and there is no {page}_port, so nothing is served there; "
            f"give a {page}_port too, 0 for a free one"
        )
    return None
