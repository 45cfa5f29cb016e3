"""Completing futures that others hold: a client may have cancelled one, or it may be done already.

Without this, `set_result` on a future that its holder has cancelled raises where the queue's thread
completes it. Any thread.
"""

from __future__ import annotations

import contextlib
from concurrent.futures import Future, InvalidStateError
from typing import Any


def resolve(future: Future[Any], result: Any) -> None:
    """Complete `future`, unless it is over."""
    with contextlib.suppress(InvalidStateError):
        future.set_result(result)


def reject(future: Future[Any], error: BaseException) -> None:
    """Fail `future`, unless it is over."""
    with contextlib.suppress(InvalidStateError):
        future.set_exception(error)


def follow(future: Future[Any], other: Future[Any]) -> None:
    """Let `future` end as `other` does, once that is done."""

    def end(done: Future[Any]) -> None:
        if done.cancelled():
            future.cancel()
        elif (error := done.exception()) is not None:
            reject(future, error)
        else:
            resolve(future, done.result())

    other.add_done_callback(end)
