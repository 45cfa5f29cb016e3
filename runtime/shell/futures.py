"""Completing futures that others hold: a client may have cancelled one, it may be done already, and
its callbacks are user code.

Without this, `set_result` on a future that its holder has cancelled raises where the queue's thread
completes it, so does a callback that raises `SystemExit`, which `Future` does not catch, and one
that hangs holds the job. Any thread.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, InvalidStateError
from functools import partial
from typing import Any, TypeVar

from epochgate.runtime.api.raised import let_pass

T = TypeVar("T")
CallBack = Callable[[Callable[[Future[Any]], object], Future[Any]], object]
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


def follow(
    future: Future[Any], other: Future[Any], change: Callable[[Any], Any] | None = None
) -> None:
    """Let `future` end as `other` does, once that is done, with its result or what `change` makes
    of it.
    """

    def end(done: Future[Any]) -> None:
        if done.cancelled():
            cancel(future)
        elif (error := done.exception()) is not None:
            reject(future, error)
        else:
            resolve(future, done.result() if change is None else change(done.result()))

    other.add_done_callback(end)


def gathered(futures: Mapping[str, Future[Any]]) -> Future[dict[str, Any]]:
    """Return a future of the results of all, by the same names; it fails with the first error."""
    all_of: Future[dict[str, Any]] = Future()
    results: dict[str, Any] = {}

    def end(name: str, done: Future[Any]) -> None:
        if done.cancelled():
            cancel(all_of)
        elif (error := done.exception()) is not None:
            reject(all_of, error)
        else:
            results[name] = done.result()
            if len(results) == len(futures):
                resolve(all_of, {one: results[one] for one in futures})

    for name, future in futures.items():
        future.add_done_callback(partial(end, name))
    if not futures:
        resolve(all_of, {})
    return all_of


class HandedOut(Future[T]):
    """A future of which `call_back` calls the callbacks."""

    def __init__(self, call_back: CallBack) -> None:
        super().__init__()
        self._call_back = call_back

    def add_done_callback(self, fn: Callable[[Future[T]], object]) -> None:
        """Have `fn` called once this is done."""
        super().add_done_callback(partial(self._call_back, fn))


def handed_out(future: Future[T], call_back: CallBack) -> Future[T]:
    """Return a future that ends as `future` does, of which `call_back` calls the callbacks."""
    given: Future[T] = HandedOut(call_back)
    follow(given, future)
    return given


def for_client(future: Future[T]) -> Future[T]:
    """Return a future for a client, each callback of which has a daemon thread of its own: one that
    hangs holds up neither the job nor the interpreter.
    """
    return handed_out(future, _on_own_thread)


def _on_own_thread(callback: Callable[[Future[T]], object], done: Future[T]) -> None:
    def call() -> None:
        try:
            callback(done)
        except BaseException as error:  # noqa: BLE001  # it is the user's code
            let_pass(error)
            _log.exception("a callback of a future has raised")

    threading.Thread(target=call, name="epochgate-callback", daemon=True).start()


class SnapshotFuture(Future[bytes]):
    """The future of a coordinator's snapshot, which notices when no code can complete it any more.

    `dropped` is called when it is garbage while still undone: on whichever thread drops it,
    possibly within the garbage collector, so it must neither wait nor take a lock.
    """

    dropped: Callable[[], None]

    def __del__(self) -> None:
        if not self.done():
            self.dropped()
