"""Completing futures that others hold: a client may have cancelled one, or it may be done already.

Without this, `set_result` on a future that its holder has cancelled raises where the queue's thread
completes it, and so does a callback that raises `SystemExit`, which `Future` does not catch. Any
thread.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from typing import Any

from epochgate.runtime.api.raised import let_pass

_log = logging.getLogger(__name__)


def resolve(future: Future[Any], result: Any) -> None:
    """Complete `future`, unless it is over."""
    _complete(future.set_result, result)


def reject(future: Future[Any], error: BaseException) -> None:
    """Fail `future`, unless it is over."""
    _complete(future.set_exception, error)


def cancel(future: Future[Any]) -> None:
    """Cancel `future`, unless it is over."""
    _complete(future.cancel)


def _complete(complete: Callable[..., Any], *outcome: Any) -> None:
    try:
        complete(*outcome)
    except InvalidStateError:
        pass  # its holder has cancelled it
    except BaseException as error:  # noqa: BLE001  # a callback of its holder may raise anything
        let_pass(error)
        _log.exception("a callback of a future has raised")


def follow(future: Future[Any], other: Future[Any]) -> None:
    """Let `future` end as `other` does, once that is done."""

    def end(done: Future[Any]) -> None:
        if done.cancelled():
            cancel(future)
        elif (error := done.exception()) is not None:
            reject(future, error)
        else:
            resolve(future, done.result())

    other.add_done_callback(end)
