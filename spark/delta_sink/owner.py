"""A driver's part in who owns a Delta table: carries out what the machine `table_owner` asks.

Decides nothing: what the claims and the log say are triggers of the machine, an error is `broken`.
Runs on the driver.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Protocol

from epochgate.errors import InvariantBroken
from epochgate.fsm import Handles
from epochgate.models.table_owner import TableOwners
from epochgate.spark.delta_sink.errors import LogOvertaken
from epochgate.spark.delta_sink.ownership import Ownership
from epochgate.spark.tables.errors import TableTakenOver


class Table(Protocol):
    """A table with a log."""

    def enter(self) -> int:
        """Write the next driver's number behind what was read; the number. Raises LogOvertaken
        where others have written since, which are read then.
        """

    def identity(self) -> str:
        """The text that tells this table from one of the same name."""


class Owner:
    """One run's claim to the table: the handler of the machine's port. `number`: by which the
    table's log knows this driver; 0 before it does.
    """

    def __init__(self, own: Ownership, table: Table, shown: str, run: str) -> None:
        self._own, self._table, self._shown, self._run = own, table, shown, run
        system = Handles(TableOwners)
        system.bind("table_owner", "table", self)
        self._machine, self._settle = system.table_owner[0], system.settle
        self._make: Callable[[], None] = _nothing
        self._outcome: Exception | None = None
        self._error: Exception = InvariantBroken("nothing has failed")
        self.number = 0

    def start(self, *, is_there: bool) -> None:
        """Claim the table, and enter it if it is there. Raises TableTakenOver, and what claims and
        log raise.
        """
        self._machine.start(is_there)
        try:
            self._settled()
        except LogOvertaken as error:
            raise TableTakenOver(self._shown, self._run) from error

    def present(self, number: int, *, is_maker: bool) -> None:
        """Return if rows may be added to the table, whose log names this driver's number as the
        last, and that this driver has made, or not. Raises as `start`, and LogOvertaken.
        """
        self._machine.present(number, is_maker)
        self._settled()

    def absent(self, make: Callable[[], None] | None) -> None:
        """Make the table, if there is anything to make it of. Raises as `present`, and what `make`
        raises.
        """
        self._make = make or _nothing
        self._machine.absent(make is not None)
        self._settled()

    def _settled(self) -> None:
        """Let the machine go on until it has told. Raises its error."""
        self._outcome = InvariantBroken("the machine has told nothing")
        self._settle()
        if self._outcome is not None:
            raise self._outcome

    # port `table`

    def claim(self, _: int) -> None:
        with self._answered():
            self._own.add_run(self._run)
            self._machine.claimed()

    def ask(self, _: int) -> None:
        with self._answered():
            self._own.require_last(self._run)
            self._machine.last()

    def make(self, _: int) -> None:
        with self._answered():
            self._make()
            self._machine.made()

    def enter(self, _: int) -> None:
        with self._answered():
            self._machine.entered(self._table.enter())

    def name(self, _: int) -> None:
        with self._answered():
            self._own.put_table(self._table.identity())
            self._machine.named()

    def ready(self, _: int, number: int) -> None:
        self.number, self._outcome = number, None

    def refuse(self, _: int) -> None:
        self._outcome = TableTakenOver(self._shown, self._run)

    def fail(self, _: int) -> None:
        self._outcome = self._error

    @contextlib.contextmanager
    def _answered(self) -> Iterator[None]:
        try:
            yield
        except TableTakenOver as error:
            self._error = error
            self._machine.late()
        except LogOvertaken as error:
            self._error = error
            self._machine.overtaken()
        except Exception as error:  # noqa: BLE001  # what the libraries raise has no root
            self._error = error
            self._machine.broken()


def _nothing() -> None:
    """Nothing is made."""
