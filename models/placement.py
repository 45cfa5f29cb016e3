"""The places where the tasks of a job may run: hosts that cannot reach the driver, or fall silent,
are avoided.

Spark gives a task that has failed the next free slot, which may be on the same host again. Decides
that an attempt on a host that is suspect is turned away, before it has tried, while another host
has a free slot; that it may try where none has; that a host is trusted again once a process from
there has spoken; and what a process that does not come means: where the subtask has never had one the
job is given up, since the set-up is at fault, and else the restart strategy is asked, once for each
time limit that passes. A process that falls silent is ended, and its host is suspect: Python may be
stopped on all of it. Where Spark's executor does not answer to that either, and no other process is
heard from the host, the host is lost: Spark is to give the executor up, and not to wait for its own
time limits::

    host 1    attempt 4  missed          attempt 6  turned away
    host 2                                                        attempt 7  reached
    suspect                host 1 ---------------------------------------------------

Leaves to Spark which slot comes next, and to the shell to look who runs where, and whether that is
connected. Runs on the thread that asks Spark. Source: none; Spark's own `excludeOnFailure` counts
every failure of a task, and ends the job where no host is left.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import (
    STAY,
    Array,
    Bool,
    Ignore,
    Machine,
    Opaque,
    Port,
    Row,
    System,
    Trigger,
    fallible,
    machines,
    output,
)

PLACING, STRANDED, GIVEN_UP = "placing", "stranded", "given_up"
GOING_ON = (PLACING, STRANDED)


class PlacementPort(Port):
    """Spark, which is asked and told."""

    @fallible("refused")
    def turn_away(self, host: int, attempt: Opaque) -> None:
        """End this attempt at once: Spark gives its successor another slot, or this one again."""

    @fallible("refused")
    def remove_executor(self, host: int, attempt: Opaque) -> None:
        """Take the executor of this attempt for lost: Spark runs its tasks again elsewhere."""

    def avoid(self, host: int) -> None:
        """The host is suspect from now on."""

    def trust(self, host: int) -> None:
        """The host is as good as any other again."""

    def strand(self, host: int) -> None:
        """Every free slot is on a host that is suspect."""

    def ask_strategy(self, subtask: Opaque, reason: Opaque) -> None:
        """The subtask's process has not come: may the job go on waiting for it?"""

    def give_up(self, reason: Opaque) -> None:
        """The job cannot begin."""


class Placement(Machine):
    """The hosts of a job, and which of them are suspect."""

    STATES = (PLACING, STRANDED, GIVEN_UP)
    INITIAL = PLACING
    TERMINAL = (GIVEN_UP,)

    system: Placements
    spark: PlacementPort = output(PlacementPort)

    suspects: list[bool] = Array(Bool(), "hosts")
    rooms: list[bool] = Array(Bool(), "hosts")
    """Which hosts have a free slot, as Spark has told last."""
    has_come: bool = Bool()
    """A process has spoken to the driver."""

    room: Trigger
    landed: Trigger
    missed: Trigger
    reached: Trigger
    silenced: Trigger
    unanswered: Trigger
    failing: Trigger
    overdue: Trigger
    refused: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("room",       GOING_ON, STAY,     None,
            "note_room",          "Spark tells its executors and their tasks"),

        Ignore("landed",  PLACING,            "not is_suspect",
                                  "nothing speaks against the host"),
        Row("landed",     STRANDED, PLACING,  "not is_suspect",
            None,                 "a host that is trusted has room again"),
        Row("landed",     GOING_ON, PLACING,  "is_suspect and has_room_elsewhere",
            "turn_away",          "the driver cannot be reached from there, and another host has room"),
        Row("landed",     PLACING,  STRANDED, "is_suspect and not has_room_elsewhere",
            "tell_stranded",      "no other host has room: it may try again"),
        Ignore("landed",  STRANDED,           "is_suspect and not has_room_elsewhere",
                                  "no other host has room, as was told: it may try again"),

        Row("missed",     GOING_ON, STAY,     "not is_suspect",
            "suspect",            "a task has failed there before it could speak to the driver"),
        Ignore("missed",  GOING_ON,           "is_suspect",
                                  "the host is suspect already"),

        Row("reached",    GOING_ON, PLACING,  "not is_suspect",
            "note_process",       "a process speaks to the driver from there"),
        Row("reached",    GOING_ON, PLACING,  "is_suspect",
            "note_process, trust", "the driver can be reached from there again"),

        Row("silenced",   GOING_ON, STAY,     "not is_suspect",
            "suspect, turn_away", "a process there is silent: it is ended, and its successor goes elsewhere"),
        Row("silenced",   GOING_ON, STAY,     "is_suspect",
            "turn_away",          "one more process there is silent: it is ended"),

        Row("unanswered", GOING_ON, STAY,     "not is_heard",
            "remove_executor",    "neither processes nor executor answer: the host is lost"),
        Ignore("unanswered", GOING_ON,        "is_heard",
                                  "another process of the host is heard: its executor may be slow"),

        Row("failing",    GOING_ON, GIVEN_UP, "not has_had_processes",
            "give_up",            "no process has ever come, and tasks fail: the set-up is at fault"),
        Ignore("failing", GOING_ON,           "has_had_processes",
                                  "the set-up is right; the time that it takes decides"),

        Row("overdue",    GOING_ON, STAY,     "has_run",
            "ask_strategy",       "the subtask has had a process: the restart strategy decides"),
        Row("overdue",    GOING_ON, GIVEN_UP, "not has_run",
            "give_up",            "the subtask has never had a process: the set-up is at fault"),

        Ignore("refused", GOING_ON,           None,
                                  "Spark did not carry it out: its own time limits end task or executor"),
    )
    # fmt: on

    def is_suspect(self, host: int) -> bool:
        return self.suspects[host]

    def has_room_elsewhere(self, host: int) -> bool:
        return any(
            h != host and self.rooms[h] and not self.suspects[h] for h in range(self.system.hosts)
        )

    def is_heard(self, host: int, attempt: Opaque, is_heard: bool) -> bool:
        return is_heard

    def has_had_processes(self) -> bool:
        return self.has_come

    def has_run(self, subtask: Opaque, reason: Opaque, has_run: bool) -> bool:
        return has_run

    def note_room(self, host: int, has_room: bool) -> None:
        self.rooms[host] = has_room

    def turn_away(self, host: int, attempt: Opaque) -> None:
        self.spark.turn_away(host, attempt)

    def remove_executor(self, host: int, attempt: Opaque) -> None:
        self.spark.remove_executor(host, attempt)

    def tell_stranded(self, host: int) -> None:
        self.spark.strand(host)

    def suspect(self, host: int) -> None:
        self.suspects[host] = True
        self.spark.avoid(host)

    def note_process(self) -> None:
        self.has_come = True

    def trust(self, host: int) -> None:
        self.suspects[host] = False
        self.spark.trust(host)

    def ask_strategy(self, subtask: Opaque, reason: Opaque) -> None:
        self.spark.ask_strategy(subtask, reason)

    def give_up(self, subtask: Opaque, reason: Opaque) -> None:
        self.spark.give_up(reason)


class Placements(System):
    """The placement of one job; `hosts`: how many can be told apart."""

    CONSTANTS: ClassVar[dict[str, int]] = {"hosts": 1}

    hosts: int

    placement: Placement = machines(Placement)
