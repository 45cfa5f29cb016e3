"""Who listens to a job that `run_job` starts: the user's listeners, the log, and the history.

Decides that each is heard on a thread of its own, and that the history lies beside the checkpoints
where these are in a directory; elsewhere there is none.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from epochgate.runtime.api.job_events import JobListener
from epochgate.runtime.observing.history import FOLDER, History
from epochgate.runtime.observing.log import JobLog
from epochgate.runtime.observing.own_thread import OnOwnThread
from epochgate.runtime.store import CheckpointStore, DirectoryCheckpointStore


def all_listeners(
    listeners: Sequence[JobListener], store: CheckpointStore, *, has_history: bool
) -> list[JobListener]:
    """The user's listeners, and those that every job has."""
    everyone: list[JobListener] = [*listeners, JobLog()]
    if has_history and isinstance(store, DirectoryCheckpointStore):
        everyone.append(History(os.path.join(store.path, FOLDER), epoch=store.epoch))
    return [OnOwnThread(one) for one in everyone]
