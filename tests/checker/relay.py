"""A system that exercises every way in which machines reach each other within one step."""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import ANY, STAY, Int, Machine, Port, Row, Trigger, machines, output
from epochgate.fsm.closed import ClosedSystem, Environment, Step, always, sometimes

READY, DONE = "ready", "done"
DIGIT = 8
"""Each number that is written down is a digit of this base."""
ALL_WRITTEN = 0o123555
ALL_CROSSED = 0o123


class Line(Port):
    """The reports of a runner to the referee."""

    def cross(self, number: int) -> None:
        """The runner crosses this line."""


class Stand(Port):
    """The view of the crowd on a runner."""

    def bow(self, depth: int) -> None:
        """A bow, so deep."""


class Runner(Machine):
    """A step of it has triggers on three levels, effects of several machines, and events."""

    INDEX = ("runner",)
    STATES = (READY, DONE)
    INITIAL = READY

    system: Relay
    runner: int

    legs: int = Int("runners")

    line: Line = output(Line)
    stand: Stand = output(Stand)

    start: Trigger
    rest: Trigger
    take: Trigger
    thank: Trigger
    applaud: Trigger

    # fmt: off
    ROWS = (
        Row("start",   READY, DONE,  None, "begin, count", "the race begins"),
        Row("rest",    DONE,  READY, None, None,           "the race is over"),
        Row("take",    ANY,   STAY,  None, "hand_over",    "another runner hands the baton over"),
        Row("thank",   ANY,   STAY,  None, "answer",       "the baton has arrived"),
        Row("applaud", ANY,   STAY,  None, "show",         "the referee claps"),
    )
    # fmt: on

    def begin(self) -> None:
        self.system.track.clear()
        self.line.cross(1)
        self.system.runner[(self.runner + self.legs) % self.system.runners].take(self.runner)
        self.system.track.write(1)
        assert self.state == DONE, "the state changes before the actions"
        assert self.system.track.written != 1, "no other machine runs in between"

    def count(self) -> None:
        self.legs = (self.legs + 1) % self.system.runners
        self.line.cross(2)

    def hand_over(self, giver: int) -> None:
        self.system.track.write(2)
        self.system.runner[giver].thank()
        self.line.cross(3)

    def answer(self) -> None:
        self.system.track.write(3)

    def show(self) -> None:
        self.system.track.write(5)
        self.stand.bow(self.runner)


class Track(Machine):
    """Keeps what was written in one step, in order."""

    STATES = (READY,)
    INITIAL = READY

    system: Relay

    written: int = Int("written_max")
    bows: int = Int("bows_max")

    clear: Trigger
    write: Trigger

    ROWS = (
        Row("clear", READY, STAY, None, "wipe", "a race begins"),
        Row("write", READY, STAY, None, "add", "a runner writes"),
    )

    def wipe(self) -> None:
        self.written = 0
        self.bows = 0

    def add(self, number: int) -> None:
        self.written = self.written * DIGIT + number
        if number == 5:
            self.bows += 1


class Referee(Environment):
    """Keeps which lines were crossed, in order, and claps for each as an event of its own."""

    INDEX = ("runner",)
    STATES = (READY,)
    INITIAL = READY

    system: Relay
    runner: int

    crossed: int = Int("crossed_max")
    heard: int = Int("bows_max")

    cross: Trigger
    hear: Trigger

    ROWS = (
        Row("cross", READY, STAY, "is_first", "forget, see, clap", "a race has begun"),
        Row("cross", READY, STAY, "not is_first", "see, clap", "the next line is crossed"),
        Row("hear", READY, STAY, None, "listen", "the crowd is loud"),
    )

    def is_first(self, number: int) -> bool:
        return number == 1

    def forget(self) -> None:
        self.system.crowd.crossed = 0
        self.system.crowd.bows = 0

    def see(self, number: int) -> None:
        self.system.crowd.crossed = self.system.crowd.crossed * DIGIT + number
        assert self.system.track.bows == 0, "an event begins when all effects are handed over"

    def clap(self, number: int) -> None:
        self.system.runner[(self.runner + number) % self.system.runners].applaud()

    def listen(self, bows: int) -> None:
        self.heard = bows


class Listener(Environment):
    """Handles bows by a method, and has the referee hear them at once."""

    INDEX = ("runner",)
    STATES = (READY,)
    INITIAL = READY

    system: Relay
    runner: int

    def bow(self, depth: int) -> None:
        self.system.crowd.bows += 1
        self.system.referee[depth].hear(self.system.crowd.bows)
        assert self.system.referee[depth].heard == self.system.track.bows, (
            "an event is over, effects included, before the next one begins"
        )


class Crowd(Environment):
    """The environment's knowledge of one race."""

    STATES = (READY,)
    INITIAL = READY

    system: Relay

    crossed: int = Int("crossed_max")
    bows: int = Int("bows_max")


class Relay(ClosedSystem):
    """Runners that hand a baton on, a referee and a crowd."""

    INDEX_SETS: ClassVar[dict[str, str]] = {"runner": "runners"}
    CONSTANTS: ClassVar[dict[str, int]] = {
        "runners": 3,
        "written_max": ALL_WRITTEN,
        "crossed_max": ALL_CROSSED,
        "bows_max": 3,
    }
    WIRING: ClassVar[dict[str, str]] = {"runner.line": "referee", "runner.stand": "stand"}
    STEPS = (Step("runner", "start"), Step("runner", "rest"))

    runners: int

    runner: list[Runner] = machines(Runner)
    track: Track = machines(Track)
    referee: list[Referee] = machines(Referee)
    stand: list[Listener] = machines(Listener)
    crowd: Crowd = machines(Crowd)

    @always("triggers run in the order of firing, and events after them")
    def is_written_in_order(self) -> bool:
        return self.track.written == 0 or self.track.written == ALL_WRITTEN

    @always("effects leave in the order of emission, after the last trigger")
    def is_crossed_in_order(self) -> bool:
        return self.crowd.crossed == 0 or self.crowd.crossed == ALL_CROSSED

    @sometimes("a race is over")
    def is_over(self) -> bool:
        return self.track.written == ALL_WRITTEN


class Confused(Relay):
    """Holds where it must not."""

    @always("no runner crosses a line")
    def is_uncrossed(self) -> bool:
        return self.crowd.crossed == 0
