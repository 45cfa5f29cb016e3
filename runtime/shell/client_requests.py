"""The requests of a job's clients to its coordinators, and the answers.

Hands each request to the holder of the coordinator of the operator named, which decides whether the
coordinator is asked, and ends every future: with the answer, with what the coordinator raised, with
the holder's refusal, or with the job. It does not touch the protocol: a request changes what a
coordinator does, never what is exactly once. Source: Apache Flink's CoordinationRequestHandler.

`ask` may be called from any thread; the coordinator is asked on the queue's.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from typing import Any, Final

from epochgate.errors import EpochgateError, UsageError
from epochgate.runtime.api.plain_values import ValueNotPlain, insist_on_plain
from epochgate.runtime.api.raised import let_pass
from epochgate.runtime.shell.futures import cancel, reject, resolve


class UnknownOperator(UsageError):
    """A client asked a coordinator that does not exist in this job."""


class CoordinatorUnavailable(EpochgateError):
    """The coordinator cannot be asked now: it has not started, could not start, or has failed the
    job and is not restored. The message says when to ask again.
    """


class JobOver(EpochgateError):
    """The job ended before it could answer."""


LATE: Final = (
    "the request came after the end of the job, whose wait() tells how it ended. A start on the "
    "same checkpoints has no more than what is left of its input; to begin again, give another "
    "checkpoint directory and another place for the output"
)


class ClientRequest(Future[Any]):
    """The answer to come to `value`."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value

    def __str__(self) -> str:
        return f"request {self.value!r}"


class ClientRequests:
    """The requests of one job; `triggers` maps operator ids to the holders' `client_request`."""

    def __init__(
        self, triggers: Mapping[str, Callable[[ClientRequest], Any]], post: Callable[..., None]
    ) -> None:
        self._triggers, self._post = triggers, post
        self._open: dict[int, ClientRequest] = {}

    def ask(self, operator_id: str, value: Any) -> Future[Any]:
        """Return the answer to come. It fails with ValueNotPlain, UnknownOperator,
        CoordinatorUnavailable, RequestNotHandled, JobOver, or what the coordinator raises.
        """
        request = ClientRequest(value)
        try:
            insist_on_plain(f"the request to {operator_id!r}", value)
            insist_on_operator(operator_id, self._triggers)
        except UsageError as error:
            request.set_exception(error)
        else:
            self._post(self._triggers[operator_id], request)
        return request

    def close(self, reason: str) -> None:
        """Fail what is not answered; queue thread."""
        for request in list(self._open.values()):
            reject(request, JobOver(f"the request was not answered: {reason}"))

    def answer(
        self, operator_id: str, handle: Callable[[Any], Any], request: ClientRequest
    ) -> None:
        """Let `handle`, a coordinator's `handle_client_request`, answer; queue thread."""
        self._open[id(request)] = request
        request.add_done_callback(lambda done: self._open.pop(id(done), None))
        try:
            answer = handle(request.value)
        except BaseException as error:  # noqa: BLE001  # it is handed to the one who asked
            let_pass(error)
            reject(request, error)
            return
        if isinstance(answer, Future):
            answer.add_done_callback(lambda done: _answer_later(operator_id, request, done))
        else:
            _answer(operator_id, request, answer)


def insist_on_operator(operator_id: str, known: Collection[str]) -> None:
    """Raise UnknownOperator unless `operator_id` is one of `known`."""
    if operator_id not in known:
        raise UnknownOperator(
            f"a coordinator of operator {operator_id!r} does not exist in this job; those that do "
            f"are: {', '.join(map(repr, known)) or 'none'}"
        )


def _answer(operator_id: str, future: Future[Any], answer: Any) -> None:
    try:
        insist_on_plain(f"the answer of coordinator {operator_id!r}", answer)
    except ValueNotPlain as error:
        reject(future, error)
    else:
        resolve(future, answer)


def _answer_later(operator_id: str, future: Future[Any], done: Future[Any]) -> None:
    if done.cancelled():
        cancel(future)
    elif (error := done.exception()) is not None:
        reject(future, error)
    else:
        _answer(operator_id, future, done.result())
