"""The decisions of a control with a coordinator: the machine says when it is restored and when it
chooses, and this calls it.

Decides nothing: what the user's code raises is the trigger `broken`, and nothing runs. Runs where
Spark calls the function of `foreachBatch`, one batch of a query at a time.
"""

from __future__ import annotations

import contextlib
import copy
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from epochgate.runtime.api.coordinator import CoordinatorProvider
from epochgate.runtime.api.raised import described
from epochgate.runtime.entries.stores import Entries
from epochgate.runtime.entries.waits import USUAL, Waits
from epochgate.runtime.limited import CallLate
from epochgate.runtime.steering.accepting import insist_on_fit
from epochgate.runtime.steering.chooser import Chooser
from epochgate.runtime.steering.coordinator import CoordinatorState, NextBatch
from epochgate.runtime.steering.deciding import Deciding, Decision, this_process
from epochgate.runtime.steering.errors import ChoiceFailed
from epochgate.runtime.steering.values import Value, checked, checked_returned

T = TypeVar("T")
_log = logging.getLogger(__name__)


def no_check(value: Value) -> None:
    """Whatever is plain is valid."""


class Coordinated(Deciding):
    """The decisions of one control for one query, whose values a coordinator chooses.

    `check`: raises for values that are not valid.
    """

    def __init__(
        self,
        entries: Entries,
        store: str,
        control: str,
        query: str,
        initial: Value,
        provider: CoordinatorProvider,
        check: Callable[[Value], None] = no_check,
        now: Callable[[], float] = time.time,
        waits: Waits = USUAL,
    ) -> None:
        super().__init__(entries, store, control, query, initial, now, waits)
        self._provider, self._check = provider, check
        self._chooser: Chooser | None = None
        self._returned: tuple[int, Any] | None = None
        """What the function returned last, and for which batch."""
        self._completed = 0
        """The checkpoint of which the coordinator is still to be told; 0 for none."""

    def returned(self, batch: int, value: Any) -> None:
        """Keep what the function returned for a batch, for the next choice. Raises ValueRefused."""
        self._returned = batch, checked_returned(self._control, value)

    @property
    def metrics(self) -> Mapping[str, int | float]:
        """Those that the coordinator has registered."""
        return {} if self._chooser is None else self._chooser.context.metrics

    def close(self) -> None:
        """Close the coordinator. What it raises is logged: others have to be closed too."""
        chooser, self._chooser = self._chooser, None
        if chooser is not None:
            try:
                self._called("the coordinator's close", self._waits.maker, chooser.close)
            except BaseException:  # noqa: BLE001  # the user's code has no root for what it raises
                whose = self._provider.operator_id, self._control
                _log.warning(
                    "coordinator %r of control %r raised while it was closed", *whose, exc_info=True
                )

    # port `store`, and what `Deciding` leaves open

    def complete(self, _: int, batch: int) -> None:
        # Heard with the next choice, where an exception of the user's fails that batch.
        self._completed = batch

    def begin_from(self, batch: int, before: Decision | None) -> None:
        """Make a coordinator of the state in the decision. Raises ChoiceFailed."""
        self.close()
        self._completed = 0
        behind = (0, None) if before is None else (before.batch, before.state)

        def made() -> Chooser:
            chooser = Chooser(self._provider, self._query, this_process())
            chooser.start(*behind)
            return chooser

        with self._users_code(batch):
            self._chooser = self._of_users("the coordinator's start", made)

    def choice(self, batch: int, values: Value) -> tuple[Value, CoordinatorState | None]:
        """Let the coordinator choose. Raises ChoiceFailed."""
        chooser, completed, self._completed = self._chooser, self._completed, 0
        assert chooser is not None, "a coordinator was made"

        def chosen() -> tuple[Value, CoordinatorState | None]:
            if completed:
                chooser.complete(completed)
            changed = chooser.choose(self._next_batch(batch, values))
            value = checked(self._control, {**values, **changed})
            insist_on_fit(self._control, self._initial, changed)
            self._check(value)
            return value, chooser.state(batch + 1)

        with self._users_code(batch):
            return self._of_users("the coordinator's choice", chosen)

    def _of_users(self, what: str, call: Callable[[], T]) -> T:
        """Call the user's code; one that is late is left behind with its coordinator."""
        try:
            return self._called(f"{what} in {self._where}", self._waits.maker, call)
        except CallLate:
            self._chooser = None
            raise

    @property
    def _where(self) -> str:
        return f"{self._provider.operator_id!r} of control {self._control!r}"

    def _next_batch(self, batch: int, values: Value) -> NextBatch:
        returned = None
        if self._returned is not None and self._returned[0] == batch - 1:
            returned = self._returned[1]
        return NextBatch(batch, copy.deepcopy(values), copy.deepcopy(returned))

    @contextlib.contextmanager
    def _users_code(self, batch: int) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            whose = self._control, self._store, self._provider.operator_id
            told = described(error)
            raise ChoiceFailed(*whose, batch, told) from error
