"""Requests of other processes to see and to change the settings of a job that runs.

    {"kind": "set", "values": {NAME: value, ...}}     answered with the same values, once a
                                                      completed checkpoint holds them all
    {"kind": "set", "values": {}}                     answered with the values of all settings

Decides what is answered to a name that no setting has. Leaves to the settings which values they
take, and when a change is made.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future
from typing import Any, Final, Protocol

from epochgate.runtime.pipeline.setting import Setting
from epochgate.runtime.requests.listening import Answer, Handler
from epochgate.runtime.shell.futures import follow, gathered, reject

KIND: Final = "set"
"""Of the request to a job."""


class _Job(Protocol):
    def request(self, operator_id: str, request: Any) -> Future[Any]: ...


def requested(providers: Iterable[Any], job: _Job) -> Handler:
    """Return a handler of such requests for the settings among the providers of a job."""
    settings = {one.name: one for one in providers if isinstance(one, Setting)}

    def handle(request: dict[str, Any]) -> Future[Answer]:
        values = request.get("values")
        if not isinstance(values, dict):
            raise ValueError(f"'values' is {values!r}, and no object of names and values")
        answer: Future[Answer] = Future()
        if unknown := [name for name in values if name not in settings]:
            has = ", ".join(sorted(settings))
            reject(
                answer,
                LookupError(
                    f"the job has no setting {unknown[0]!r}; it has {has}"
                    if has
                    else "the job has no settings"
                ),
            )
            return answer
        try:
            for name, value in values.items():  # all before the first is changed
                settings[name].check(value)
            changes = {name: settings[name].set(job, value) for name, value in values.items()}
        except Exception as refused:  # noqa: BLE001  # it is told to who asked
            reject(answer, refused)
            return answer
        if not values:
            changes = {name: one.get(job) for name, one in settings.items()}
        follow(answer, gathered(changes), lambda found: {"values": found})
        return answer

    return handle
