"""The checkpoints of a job, in a directory or at a URL."""

from __future__ import annotations

import os
from collections.abc import Callable

from epochgate.errors import UsageError
from epochgate.runtime.objects.client import ObjectStore, is_url, open_url
from epochgate.runtime.store.contract import CheckpointStore
from epochgate.runtime.store.directory import DirectoryCheckpointStore
from epochgate.runtime.store.objects import ObjectCheckpointStore


class UrlNotSupported(UsageError):
    """Checkpoints cannot be kept at this URL."""


def open_checkpoints(
    place: str,
    job_id: str | None = None,
    *,
    retained: int = 3,
    open_objects: Callable[[str], ObjectStore] = open_url,
) -> CheckpointStore:
    """Open the checkpoints of a job in a directory, or at a URL in an object store, which
    `open_objects` opens.

    Raises UrlNotSupported for any other URL, and the errors of the stores.
    """
    if is_url(place):
        named = job_id or place.rstrip("/").rpartition("/")[2]
        return ObjectCheckpointStore(open_objects(place), job_id=named, retained=retained)
    if "://" in place:
        raise UrlNotSupported(
            f"the checkpoints {place!r} are at a URL of no object store that epochgate knows; give "
            "a directory, or s3://, gs:// or abfss://"
        )
    folder = os.path.abspath(place)
    named = job_id or os.path.basename(folder) or "pipeline"
    return DirectoryCheckpointStore(folder, job_id=named, retained=retained)
