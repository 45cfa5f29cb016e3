"""The looks for new files of a source with a queue of hints, as the machine `discovery` asks.

Decides how long a rest is, and what is counted. The queue is asked on a thread of its own, since it
makes its caller wait; a call that hangs is left behind with its thread. Looks run where the
enumerator's other work does, on an enumeration that nothing else uses. Lives on the job's queue.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from epochgate.fsm import Handles
from epochgate.models.discovery import Discoveries
from epochgate.runtime.limited import CallLate, Limit, LimitedCalls
from epochgate.runtime.source import SplitEnumeratorContext
from epochgate.spark.files import FileEnumeration
from epochgate.spark.files.found import Found
from epochgate.spark.ingest.hints.hint import Heard, Hints, HintsFailed

HEAR_S: Final = 10.0
"""The queue is waited for so long at a time, and less while a file may still be being written."""
HEAR_LIMIT: Final = Limit("HEAR_LIMIT", 60.0)
"""After this time the queue counts as hanging."""
REST_S: Final = 1.0
"""The queue is left alone for so long after a failure; twice as long after each further one."""
_log = logging.getLogger("epochgate.ingest")


class Discovering:
    """The looks of one enumerator, from `start` to `close`.

    `looking`: finds files, and is used by looks alone. `list_every_s`: from the end of one listing
    to the next. `adopt`: is told what a look has found. `fail`: what a look has raised.
    """

    def __init__(
        self,
        context: SplitEnumeratorContext,
        looking: FileEnumeration,
        hints: Hints,
        list_every_s: float,
        adopt: Callable[[Found], None],
        fail: Callable[[BaseException], None],
    ) -> None:
        self._context, self._looking, self._hints = context, looking, hints
        self._list_every_s, self._adopt, self._fail = list_every_s, adopt, fail
        self._found: Found | None = None
        self._heard = Heard()
        self._unsettled: tuple[str, ...] = ()
        self._known = looking.files_found
        self._asked: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._calls = LimitedCalls("epochgate-hints-call")
        self._is_failing = False
        self._counts = dict.fromkeys(
            ("hints_heard", "hints_foreign", "hints_failed", "files_hinted", "files_unhinted"), 0
        )
        for name in self._counts:
            context.metrics.gauge(name, partial(self._counts.__getitem__, name))
        context.metrics.gauge("hints_up", lambda: int(not self._is_failing))
        self._system = Handles(Discoveries)
        self._system.bind("discovery", "source", self)
        self._discovery = self._system.discovery

    def start(self) -> None:
        """Open the queue, list, and go on."""
        threading.Thread(target=self._serve, name="epochgate-hints", daemon=True).start()
        self._tell(self._discovery.start)

    def close(self) -> None:
        """End the thread, once what it waits for is there."""
        self._asked.put(None)
        self._hints.close()

    def _tell(self, trigger: Callable[..., None], *arguments: Any) -> None:
        trigger(*arguments)
        self._system.settle()

    # port `source` of the machine

    def list_all(self) -> None:
        """Look at all files of the source."""
        looking, listed = self._looking, self._discovery.listed
        self._look("files_unhinted", lambda: look_once(looking), listed)

    def look(self) -> None:
        """Look at the files that hints name, and at those that may still be being written."""
        named = {**dict.fromkeys(self._unsettled), **self._heard.named}
        looking, looked = self._looking, self._discovery.looked
        self._look("files_hinted", lambda: _look_at(looking, named), looked)

    def _look(self, count: str, look: Callable[[], Found], trigger: Callable[..., None]) -> None:
        def found(what: Found) -> None:
            self._found, self._unsettled = what, (*what.settling.files,)
            known, self._known = self._known, self._looking.files_found
            self._counts[count] += max(0, self._known - known)
            self._tell(trigger)

        self._context.call_async(look, found, on_error=self._fail)

    def take_found(self) -> None:
        """Let the enumerator know what the look has found."""
        found, self._found = self._found, None
        assert found is not None, "a look has ended"
        self._adopt(found)

    def hear(self) -> None:
        """Ask the queue, for a short time while a file may still be being written."""
        settle_s = self._looking.settle_s
        wait_s = min(HEAR_S, settle_s) if self._unsettled else HEAR_S

        def hear() -> Callable[[], None]:
            heard = self._hints.hear(wait_s)
            return lambda: self._answered(heard)

        self._asked.put(partial(self._ask, "waiting for hints", hear))

    def _answered(self, heard: Heard) -> None:
        self._heard = heard
        self._note_answer()
        if heard.is_empty():
            self._tell(self._discovery.silent, bool(self._unsettled))
            return
        self._counts["hints_heard"] += max(len(heard.named), len(heard.receipts))
        self._counts["hints_foreign"] += heard.foreign
        self._tell(self._discovery.heard)

    def confirm(self) -> None:
        """Tell the queue that the hints are done with."""
        receipts, self._heard = self._heard.receipts, Heard()

        def confirm() -> Callable[[], None]:
            self._hints.confirm(receipts)
            return lambda: self._tell(self._discovery.confirmed)

        self._asked.put(partial(self._ask, "confirming hints", confirm))

    def wait(self) -> None:
        """Let the time to the next listing begin."""
        self._later(self._list_every_s, self._discovery.due)

    def rest(self, failures: int) -> None:
        """Leave the queue alone for a while."""
        self._later(REST_S * 2.0 ** (failures - 1), self._discovery.rested)

    def _later(self, delay_s: float, trigger: Callable[..., None]) -> None:
        self._context.call_async(_nothing, lambda _: self._tell(trigger), delay_s=delay_s)

    # the thread that asks the queue

    def _serve(self) -> None:
        while (ask := self._asked.get()) is not None:
            ask()

    def _ask(self, what: str, call: Callable[[], Callable[[], None]]) -> None:
        try:
            then = self._calls.call(f"{what} of {self._hints.name}", HEAR_LIMIT, call)
        except CallLate as error:
            then = partial(self._failed, HintsFailed(self._hints.name, str(error)))
        except Exception as error:  # noqa: BLE001  a library may raise anything
            is_told = isinstance(error, HintsFailed)
            told = error if is_told else HintsFailed(self._hints.name, repr(error))
            then = partial(self._failed, told)
        self._context.post(then)

    def _failed(self, error: BaseException) -> None:
        if not self._is_failing:
            _log.warning("%s", error)
        self._is_failing = True
        self._counts["hints_failed"] += 1
        self._tell(self._discovery.failed)

    def _note_answer(self) -> None:
        if self._is_failing:
            _log.warning("%s answers again", self._hints.name)
        self._is_failing = False


def look_once(looking: FileEnumeration) -> Found:
    """List all files, and return what is new."""
    looking.discover()
    looking.seal()
    return looking.take_found()


def _look_at(looking: FileEnumeration, named: dict[str, Any]) -> Found:
    looking.look_at(named)
    looking.seal()
    return looking.take_found()


def _nothing() -> None:
    return None
