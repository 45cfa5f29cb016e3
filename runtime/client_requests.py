"""What clients of a job ask its coordinators, and the answers.

Decides that the question goes to the coordinator of the operator named, and that every future ends:
with the answer, with what the coordinator raised, or with the job. It does not touch the protocol:
a request changes what a coordinator does, never what is exactly once. Source: Apache Flink's
CoordinationRequestHandler.

`ask` may be called from any thread; the coordinator is asked on the queue's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any

from epochgate.errors import EpochgateError, UsageError
from epochgate.runtime.futures import reject, resolve
from epochgate.runtime.plain import ValueNotPlain, insist_on_plain


class UnknownOperator(UsageError):
    """A client asked a coordinator that does not exist in this job."""


class JobOver(EpochgateError):
    """The job ended before it could answer."""


Handler = Callable[[Any], Any]
"""A coordinator's `handle_client_request`."""


class ClientRequests:
    """The requests of one job; `handlers` maps operator ids to what answers for them."""

    def __init__(self, handlers: Mapping[str, Handler], post: Callable[..., None]) -> None:
        self._handlers, self._post = handlers, post
        self._open: dict[int, Future[Any]] = {}
        self._end: str | None = None

    def ask(self, operator_id: str, request: Any) -> Future[Any]:
        """Return the answer to come. It fails with ValueNotPlain, UnknownOperator,
        RequestNotHandled, JobOver, or what the coordinator raises.
        """
        future: Future[Any] = Future()
        try:
            insist_on_plain(f"the request to {operator_id!r}", request)
        except ValueNotPlain as error:
            future.set_exception(error)
            return future
        self._post(self._handle, operator_id, request, future)
        return future

    def close(self, reason: str) -> None:
        """Fail what is not answered, and whatever comes later; queue thread."""
        self._end = reason
        for future in list(self._open.values()):
            reject(future, JobOver(f"the request was not answered: {reason}"))

    def _handle(self, operator_id: str, request: Any, future: Future[Any]) -> None:
        if self._end is not None:
            reject(future, JobOver(f"the request came too late: {self._end}"))
            return
        handler = self._handlers.get(operator_id)
        if handler is None:
            known = ", ".join(map(repr, self._handlers)) or "none"
            reject(
                future,
                UnknownOperator(
                    f"a coordinator of operator {operator_id!r} does not exist in this job; those "
                    f"that do are: {known}"
                ),
            )
            return
        self._open[id(future)] = future
        future.add_done_callback(lambda done: self._open.pop(id(done), None))
        try:
            answer = handler(request)
        except Exception as error:  # noqa: BLE001  # it is handed to the one who asked
            reject(future, error)
            return
        if isinstance(answer, Future):
            answer.add_done_callback(lambda done: _answer_later(operator_id, future, done))
        else:
            _answer(operator_id, future, answer)


def _answer(operator_id: str, future: Future[Any], answer: Any) -> None:
    try:
        insist_on_plain(f"the answer of coordinator {operator_id!r}", answer)
    except ValueNotPlain as error:
        reject(future, error)
    else:
        resolve(future, answer)


def _answer_later(operator_id: str, future: Future[Any], done: Future[Any]) -> None:
    if done.cancelled():
        future.cancel()
    elif (error := done.exception()) is not None:
        reject(future, error)
    else:
        _answer(operator_id, future, done.result())
