"""Broken variants of the owner of a table: what happens without one of the rules of section 15 in
docs/protocol.md.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import STAY, Row, machines
from epochgate.models.closed.owning import OwnedTable
from epochgate.models.table_owner import (
    ASKING,
    CLAIMED,
    ENTERING,
    MAKING,
    OWNER,
    TableOwner,
)


class EnteringAgain(TableOwner):
    """Enters the table again where another has written to it, and looks at no claim."""

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *(row for row in TableOwner.ROWS if row.when != "may_retry"),
        Row("overtaken", ENTERING, STAY, "may_retry",
            "count_try, ask_enter",    "others have written to it"),
    )
    # fmt: on


class Fencing(OwnedTable):
    """A driver that was suspended takes the table from the one that has replaced it."""

    table_owner: list[TableOwner] = machines(EnteringAgain)


class MakingUnasked(TableOwner):
    """Makes the table that it does not find, and looks at no claim."""

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *(row for row in TableOwner.ROWS if (row.trigger, row.source) != ("absent", CLAIMED)),
        Row("absent", CLAIMED, MAKING, "brings_rows",
            "note_rows, ask_make",     "the first commit of rows makes the table"),
        Row("absent", CLAIMED, ASKING, "not brings_rows",
            "note_rows, ask_last",     "there is nothing to make it of"),
    )
    # fmt: on

    def brings_rows(self, has_rows: bool) -> bool:
        return has_rows


class MadeByTheReplaced(OwnedTable):
    """A driver makes a table after another has replaced it."""

    table_owner: list[TableOwner] = machines(MakingUnasked)


class Trusting(TableOwner):
    """Writes to the table that it has entered, whichever driver the table names."""

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *(row for row in TableOwner.ROWS if (row.trigger, row.source) != ("present", OWNER)),
        Row("present", OWNER,  STAY, None,
            "report_ready",            "it has entered it"),
    )
    # fmt: on


class Unfenced(OwnedTable):
    """Rows of a driver that was replaced are in the table of the next."""

    table_owner: list[TableOwner] = machines(Trusting)
