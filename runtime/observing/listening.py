"""The set of listeners of a job that `run_job` starts: the user's, the log, the history, and a page
of metrics where one is wanted.

Decides that each is heard on a thread of its own, and that the history lies beside the checkpoints,
in their directory or object store.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence

from epochgate.runtime.api.job_events import JobListener
from epochgate.runtime.observing.history import History
from epochgate.runtime.observing.history_files import FOLDER
from epochgate.runtime.observing.log import JobLog
from epochgate.runtime.observing.metrics_page import LOOPBACK, MetricsPage, MetricsUnavailable
from epochgate.runtime.observing.own_thread import OnOwnThread
from epochgate.runtime.store import (
    CheckpointStore,
    DirectoryCheckpointStore,
    ObjectCheckpointStore,
)


class Listening:
    """All listeners of one job; `metrics_url`: where its page of metrics is, if it has one.
    metrics: its port and host, as `run_job` has them.

    Raises MetricsUnavailable.
    """

    def __init__(
        self,
        listeners: Sequence[JobListener],
        store: CheckpointStore,
        has_history: bool = True,
        metrics: tuple[int | None, str | None] = (None, None),
    ) -> None:
        everyone: list[JobListener] = [*listeners, JobLog()]
        self.metrics_url: str | None = None
        metrics_port, metrics_host = metrics
        if metrics_port is not None:
            page = MetricsPage(metrics_port, metrics_host or LOOPBACK)
            self.metrics_url = page.url
            everyone.append(page)
        elif metrics_host is not None:
            raise MetricsUnavailable(
                f"metrics_host is {metrics_host!r} and there is no metrics_port, so no page of "
                "metrics is served; give a metrics_port too, 0 for a free one"
            )
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
