"""Asking a job that runs from another process.

Decides whether a job runs: whether a driver holds the lock of the checkpoint directory; in an
object store, where nothing tells that a driver is alive, whether one takes the request. Runs in the
process that asks.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from typing import Any, Final

from epochgate.errors import EpochgateError
from epochgate.runtime.objects.client import ObjectStore, open_url
from epochgate.runtime.requests.place import ANSWER, DONE, FAILED, REQUEST, RequestPlace
from epochgate.runtime.store.claim import holder_of

TAKEN_WITHIN_LOOKS: Final = 3
"""Where this many intervals have passed and no driver has taken a request, there is none."""
ANSWER_LOOK_S: Final = 0.1
LAST_WORD_S: Final = 6.0
"""A driver that lets go of its checkpoints answers what it has taken within this time."""


class RequestRefused(EpochgateError):
    """The job could not do what it was asked for; the message is its reason."""


class RequestNotAnswered(EpochgateError):
    """The job has not answered in time; what it was asked for may be done yet."""


def ask_job(
    checkpoints: str,
    request: dict[str, Any],
    *,
    timeout_s: float,
    open_objects: Callable[[str], ObjectStore] = open_url,
    clock: Callable[[], float] = time.monotonic,
) -> dict[str, Any] | None:
    """Ask the job that runs with these checkpoints; return its answer, None if no job runs.

    `request` has its kind under "kind", and plain values. Raises RequestRefused,
    RequestNotAnswered, and OSError where the place cannot be written or read.
    """
    place = RequestPlace(checkpoints, open_objects)
    if not place.is_url and not holder_of(checkpoints).is_held:
        return None
    request_id, began_s = uuid.uuid4().hex, clock()
    there_s = began_s
    place.write(request_id + REQUEST, request)
    try:
        while True:
            answer = place.read(request_id + ANSWER)
            if answer is not None and answer["state"] == DONE:
                return answer
            if answer is not None and answer["state"] == FAILED:
                if answer.get("is_over", False):
                    return None
                raise RequestRefused(answer["reason"])
            now_s = clock()
            if answer is not None if place.is_url else holder_of(checkpoints).is_held:
                there_s = now_s
            if now_s - there_s > _patience_s(place):
                return None
            if now_s - began_s > timeout_s:
                raise RequestNotAnswered(
                    f"the job has not answered within {timeout_s:g} s. It may be restarting, or "
                    "its checkpoints take long: `epochgate status` says how it is. What was asked "
                    "for may be done yet; ask again with more --timeout"
                )
            time.sleep(ANSWER_LOOK_S)  # a file has no notice of its creation to wait for
    finally:
        place.remove(request_id + REQUEST)
        place.remove(request_id + ANSWER)


def _patience_s(place: RequestPlace) -> float:
    """Return the seconds without a sign of a driver after which there is none."""
    return TAKEN_WITHIN_LOOKS * place.look_s if place.is_url else LAST_WORD_S
