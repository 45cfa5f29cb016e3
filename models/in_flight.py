"""The records of one subtask of a pipeline between its source and its sink.

Decides when a batch counts as taken from the source. A map with state has changed its state when it
returns, so the batch is taken in the same step, before a barrier can come between them, and the
mapped batch that waits for the sink is part of the subtask's snapshot. A function has no state: its
batch is taken when the sink accepts it, and a restored attempt maps it again::

    map with state    take, map ---- barrier: the mapped batch is stored ---- write
    function          map ---------- barrier: nothing is stored ------------- take, write

Also decides that a batch that waits is not mapped again, unless a function's settings have changed,
and that the source is not asked for another meanwhile.
Leaves to the source where it is in its
splits, to the sink whether it is ready, and to the shell in which form a mapped batch is stored.
Runs on the task's only thread. Source: none; in Apache Flink a record that an operator has emitted
is in the network buffers, which unaligned checkpoints store as channel state.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import STAY, Ignore, Machine, Port, Row, System, Trigger, machines, output

EMPTY, SHOWN, TAKEN = "empty", "shown", "taken"


class BatchPort(Port):
    """The handling of one batch."""

    def look(self) -> None:
        """Ask the source for a batch; answer with `show` if it has one now."""

    def map(self) -> None:
        """Map the batch, and ask the sink for it; answer with `accept` if the sink is ready."""

    def ask(self) -> None:
        """Ask the sink again; answer with `accept` if it is ready."""

    def take(self) -> None:
        """Move the source's position behind the batch."""

    def write(self) -> None:
        """Pass the mapped batch to the sink."""

    def keep(self) -> None:
        """Put the mapped batch into the snapshot."""


class InFlight(Machine):
    """The batch between source and sink."""

    STATES = (EMPTY, SHOWN, TAKEN)
    INITIAL = EMPTY

    system: RecordsInFlight
    batches: BatchPort = output(BatchPort)

    restore: Trigger
    work: Trigger
    show: Trigger
    accept: Trigger
    barrier: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("restore",   EMPTY, TAKEN,  None,
            None,           "the checkpoint holds a mapped batch that the sink has not accepted"),

        Row("work",      EMPTY, STAY,   None,
            "look",         "nothing waits for the sink"),
        Row("work",      TAKEN, STAY,   None,
            "ask",          "the map has a state, and has mapped the batch"),
        Row("work",      SHOWN, STAY,   "not is_changed",
            "ask",          "the batch was mapped with these settings"),
        Row("work",      SHOWN, STAY,   "is_changed",
            "map",          "a setting has changed, and no state has"),

        Row("show",      EMPTY, TAKEN,  "has_state",
            "take, map",    "the map's state and the source's position move together"),
        Row("show",      EMPTY, SHOWN,  "not has_state",
            "map",          "until the sink accepts the batch, it is the source's"),

        Row("accept",    TAKEN, EMPTY,  None,
            "write",        "the batch was taken when it was mapped"),
        Row("accept",    SHOWN, EMPTY,  None,
            "take, write",  "the sink is ready: the source moves on"),

        Row("barrier",   TAKEN, STAY,   None,
            "keep",         "source and map are behind the batch, and the sink is not"),
        Ignore("barrier", (EMPTY, SHOWN), None,
                            "source and sink are at the same record"),
    )
    # fmt: on

    def is_changed(self, is_changed: bool) -> bool:
        return is_changed

    def has_state(self, has_state: bool) -> bool:
        return has_state

    def look(self) -> None:
        self.batches.look()

    def map(self) -> None:
        self.batches.map()

    def ask(self) -> None:
        self.batches.ask()

    def take(self) -> None:
        self.batches.take()

    def write(self) -> None:
        self.batches.write()

    def keep(self) -> None:
        self.batches.keep()


class RecordsInFlight(System):
    """The records of a pipeline that are in flight, as its program decides about them."""

    in_flight: InFlight = machines(InFlight)
