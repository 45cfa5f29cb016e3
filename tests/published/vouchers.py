"""A voucher that all parties have to agree on: four specifications of the TLA+ examples, which are
one protocol.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import STAY, Bool, Int, Row, Trigger, machines
from epochgate.fsm.closed import ClosedSystem, Environment, Step, always, sometimes

THERE = "there"
WAITING, PREPARED, AGREED, ABORTED = "waiting", "prepared", "agreed", "aborted"


class Party(Environment):
    """A holder or one on the other side; who is prepared has said so."""

    INDEX = ("party",)
    STATES, INITIAL = (WAITING, PREPARED, AGREED, ABORTED), WAITING
    TERMINAL = (PREPARED, AGREED, ABORTED)

    system: Protocol

    is_heard: bool = Bool()

    prepare: Trigger
    choose: Trigger
    hear_agreed: Trigger
    hear_abort: Trigger

    ROWS = (
        Row("prepare", WAITING, PREPARED, "is_open", None, "it is ready"),
        Row("choose", WAITING, ABORTED, "is_open", None, "it does not want to"),
        Row("hear_agreed", WAITING, AGREED, "is_agreed", None, "it is told"),
        Row("hear_abort", WAITING, ABORTED, "is_open and is_aborted", None, "it is told"),
    )

    def is_open(self) -> bool:
        return self.system.desk.marked == 0

    def is_agreed(self) -> bool:
        return self.system.desk.state == AGREED

    def is_aborted(self) -> bool:
        return self.system.desk.state == ABORTED


class Desk(Environment):
    """Decides for one of the vouchers; `marked` is which one it has changed, 0 none."""

    STATES, INITIAL = (WAITING, AGREED, ABORTED), WAITING
    TERMINAL = (AGREED, ABORTED)

    marked: int = Int("vouchers")

    agree: Trigger
    abort: Trigger

    ROWS = (
        Row("agree", WAITING, AGREED, None, "mark", "all are prepared"),
        Row("abort", WAITING, ABORTED, None, None, "it has waited long enough"),
    )

    def mark(self, number: int) -> None:
        self.marked = number


class Ticket(Environment):
    """One of the vouchers."""

    INDEX = ("voucher",)
    STATES, INITIAL = (THERE,), THERE

    system: Protocol
    voucher: int

    agree: Trigger
    abort: Trigger

    ROWS = (
        Row("agree", THERE, STAY, "is_open and are_all_heard", "settle", "all are prepared"),
        Row("abort", THERE, STAY, "is_open", "give_up", "it has waited long enough"),
    )

    def is_open(self) -> bool:
        return self.system.desk.state == WAITING

    def are_all_heard(self) -> bool:
        return all(self.system.party[i].is_heard for i in range(2 * self.system.side))

    def settle(self) -> None:
        self.system.desk.agree(self.voucher + 1 if self.system.changes == 1 else 0)

    def give_up(self) -> None:
        self.system.desk.abort()


class Pair(Environment):
    """The messages of a holder and one of the other side, which are heard together."""

    INDEX = ("holder", "other")
    STATES, INITIAL = (THERE,), THERE

    system: Protocol
    holder: int
    other: int

    hear: Trigger

    ROWS = (Row("hear", THERE, STAY, "may_hear", "note", "both have sent"),)

    def may_hear(self) -> bool:
        return (
            self.system.desk.state == WAITING
            and self.system.party[self.holder].state == PREPARED
            and self.system.party[self.other + self.system.side].state == PREPARED
        )

    def note(self) -> None:
        self.system.party[self.holder].is_heard = True
        self.system.party[self.other + self.system.side].is_heard = True


class Protocol(ClosedSystem):
    """VoucherIssue, VoucherCancel, VoucherRedeem: three holders, three others, three vouchers; with
    `changes` 0 VoucherTransfer, after which the voucher is as before.
    """

    INDEX_SETS: ClassVar[dict[str, str]] = {
        "party": "parties",
        "holder": "side",
        "other": "side",
        "voucher": "vouchers",
    }
    CONSTANTS: ClassVar[dict[str, int]] = {"side": 3, "vouchers": 3, "changes": 1}
    DERIVED: ClassVar[dict[str, str]] = {"parties": "2 * side"}
    UNTAKEN: ClassVar[dict[str, str]] = {
        "party.hear_agreed": "all are prepared by then, and who is prepared waits no more"
    }
    STEPS = (
        Step("ticket", "agree"),
        Step("ticket", "abort"),
        Step("pair", "hear"),
        Step("party", "prepare"),
        Step("party", "choose"),
        Step("party", "hear_abort"),
        Step("party", "hear_agreed"),
    )

    side: int
    changes: int
    party: list[Party] = machines(Party)
    desk: Desk = machines(Desk)
    ticket: list[Ticket] = machines(Ticket)
    pair: dict[tuple[int, int], Pair] = machines(Pair)

    @always("none has aborted once it is agreed")
    def is_consistent(self) -> bool:
        return self.desk.state != AGREED or all(
            self.party[i].state != ABORTED for i in range(2 * self.side)
        )

    @sometimes("it is agreed")
    def is_agreed(self) -> bool:
        return self.desk.state == AGREED
