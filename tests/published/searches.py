"""Sequential algorithms: specifications of the TLA+ examples."""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import ANY, STAY, Array, Bool, Int, Row, Trigger, machines
from epochgate.fsm.closed import (
    ClosedSystem,
    Environment,
    Step,
    always,
    eventually,
    initially,
    weakly_fair,
)

THERE, DONE = "there", "done"


class Halving(Environment):
    """Looks for a number in a sorted sequence, which is given by how often it has each number."""

    STATES, INITIAL = ("looking", DONE), "looking"
    TERMINAL = (DONE,)

    system: BinarySearch

    times: list[int] = Array(Int("most", start=ANY), "numbers")
    wanted: int = Int(4, start=ANY)
    low: int = Int("beyond", 1)
    cut: int = Int("most")
    """How many at the end cannot be it."""
    result: int = Int("most")

    look: Trigger
    stutter: Trigger

    ROWS = (
        Row("look", "looking", STAY, "goes_on", "halve", "some are left"),
        Row("look", "looking", DONE, "not goes_on", None, "none is left, or it is found"),
        Row("stutter", DONE, STAY, None, None, "it is over"),
    )

    def goes_on(self) -> bool:
        return self.low <= self.length() - self.cut and self.result == 0

    def length(self) -> int:
        total = 0
        for i in range(self.system.numbers):
            total += self.times[i]
        return total

    def at(self, place: int) -> int:
        total = 0
        number = 0
        for i in range(self.system.numbers):
            total += self.times[i]
            if total < place:
                number = i + 1
        return number

    def halve(self) -> None:
        middle = (self.low + self.length() - self.cut) // 2
        number = self.at(middle)
        if number == self.wanted:
            self.result = middle
        elif self.wanted < number:
            self.cut = self.length() - middle + 1
        else:
            self.low = middle + 1


class BinarySearch(ClosedSystem):
    """BinarySearch: sequences of one to eight numbers, of five."""

    CONSTANTS: ClassVar[dict[str, int]] = {"numbers": 5, "most": 8, "beyond": 9}
    STEPS = (Step("search", "look", is_fair=False), Step("search", "stutter", is_fair=False))
    FAIRNESS = (weakly_fair(ANY),)

    numbers: int
    most: int
    search: Halving = machines(Halving)

    @initially("the sequence is not too long")
    def is_first(self) -> bool:
        return 1 <= self.search.length() <= self.most

    @always("it is found where it is, and else not")
    def is_right(self) -> bool:
        return (
            self.search.state != DONE
            or (
                self.search.result == 0
                and all(
                    i != self.search.wanted or self.search.times[i] == 0
                    for i in range(self.numbers)
                )
            )
            or (self.search.result > 0 and self.search.at(self.search.result) == self.search.wanted)
        )

    @eventually("the search ends")
    def is_over(self) -> bool:
        return self.search.state == DONE


class Rotation(Environment):
    """Finds the least rotation of a word of at most six letters, a or b, by a failure function; the
    states are the labels of the published algorithm. Behind the word are letters a.
    """

    STATES = ("l3", "l5", "l6", "l7", "l8", "l9", "l10", "l11", "l12", "l13", "l14", "lvr", DONE)
    INITIAL, TERMINAL = "l3", (DONE,)

    system: LeastRotation

    length: int = Int("letters", start=ANY)
    is_b: list[bool] = Array(Bool(start=ANY), "letters")
    failure: list[int] = Array(Int(12, start=-1, low=-1), "cells")
    i: int = Int(12, start=-1, low=-1)
    j: int = Int(12, 1)
    k: int = Int(12)

    go: Trigger

    ROWS = (
        Row("go", "l3", "l5", "goes_on", None, "letters are left"),
        Row("go", "l3", DONE, "not goes_on", None, "the word was gone through twice"),
        Row("go", "l5", "l6", None, "look_up", "the failure before"),
        Row("go", "l6", "l7", "breaks_match", None, "the letters differ"),
        Row("go", "l6", "l10", "not breaks_match", None, "the match goes on, or there is none"),
        Row("go", "l7", "l8", "is_less", None, "a smaller rotation"),
        Row("go", "l7", "l9", "not is_less", None, "no smaller one"),
        Row("go", "l8", "l9", None, "move_match", "it begins in the match"),
        Row("go", "l9", "l6", None, "fall_back", "a shorter match"),
        Row("go", "l10", "l11", "differs_alone", None, "no match is left"),
        Row("go", "l10", "l14", "not differs_alone", None, "the match goes on"),
        Row("go", "l11", "l12", "is_less", None, "a smaller rotation"),
        Row("go", "l11", "l13", "not is_less", None, "no smaller one"),
        Row("go", "l12", "l13", None, "move_here", "it begins here"),
        Row("go", "l13", "lvr", None, "note_none", "no match ends here"),
        Row("go", "l14", "lvr", None, "note_match", "a match ends here"),
        Row("go", "lvr", "l3", None, "advance", "the next letter"),
        Row("go", DONE, STAY, None, None, "it is over"),
    )

    def at(self, place: int) -> bool:
        if place >= 2 * self.length:
            return self.is_b[place - 2 * self.length]
        return self.is_b[place - self.length if place >= self.length else place]

    def here(self) -> bool:
        return self.at(self.j)

    def there(self) -> bool:
        return self.at(self.k + self.i + 1)

    def goes_on(self) -> bool:
        return self.j < 2 * self.length

    def breaks_match(self) -> bool:
        return self.here() != self.there() and self.i != -1

    def differs_alone(self) -> bool:
        return self.here() != self.there() and self.i == -1

    def is_less(self) -> bool:
        return not self.here() and self.there()

    def look_up(self) -> None:
        self.i = self.failure[self.j - self.k - 1]

    def fall_back(self) -> None:
        self.i = self.failure[self.i]

    def move_match(self) -> None:
        self.k = self.j - self.i - 1

    def move_here(self) -> None:
        self.k = self.j

    def note_none(self) -> None:
        self.failure[self.j - self.k] = -1

    def note_match(self) -> None:
        self.failure[self.j - self.k] = self.i + 1

    def advance(self) -> None:
        self.j += 1


class LeastRotation(ClosedSystem):
    """LeastCircularSubstring: each word of at most six letters, of two."""

    CONSTANTS: ClassVar[dict[str, int]] = {"letters": 6, "cells": 13}
    STEPS = (Step("rotation", "go"),)

    letters: int
    rotation: Rotation = machines(Rotation)

    @initially("nothing lies behind the word")
    def is_first(self) -> bool:
        return all(
            i < self.rotation.length or not self.rotation.is_b[i] for i in range(self.letters)
        )

    @eventually("it ends")
    def is_over(self) -> bool:
        return self.rotation.state == DONE


class Search(Environment):
    """Looks for the highest of at most three numbers; those behind the last are 0."""

    STATES, INITIAL = ("looking", "done"), "looking"
    TERMINAL = ("done",)

    length: int = Int("most", start=ANY)
    numbers: list[int] = Array(Int(4, start=ANY), "most")
    highest: int = Int(4, start=-1, low=-1)
    place: int = Int("most")

    look: Trigger
    stutter: Trigger

    ROWS = (
        Row("look", "looking", STAY, "has_more", "compare", "there is another number"),
        Row("look", "looking", "done", "not has_more", None, "all were looked at"),
        Row("stutter", "done", STAY, None, None, "it is over"),
    )

    def has_more(self) -> bool:
        return self.place < self.length

    def compare(self) -> None:
        if self.numbers[self.place] > self.highest:
            self.highest = self.numbers[self.place]
        self.place += 1


class FindHighest(ClosedSystem):
    """FindHighest: the highest of some numbers."""

    CONSTANTS: ClassVar[dict[str, int]] = {"most": 3}
    STEPS = (Step("search", "look"), Step("search", "stutter"))

    most: int
    search: Search = machines(Search)

    @initially("nothing lies behind the last number")
    def is_short(self) -> bool:
        return all(i < self.search.length or self.search.numbers[i] == 0 for i in range(self.most))

    @always("none is higher than the highest")
    def is_highest(self) -> bool:
        return self.search.state != "done" or all(
            i >= self.search.length or self.search.numbers[i] <= self.search.highest
            for i in range(self.most)
        )


class Count(Environment):
    """Looks through at most five votes for one of three candidates; the rest are 0."""

    STATES, INITIAL = (THERE,), THERE

    system: Majority

    length: int = Int("most", start=ANY)
    votes: list[int] = Array(Int(2, start=ANY), "most")
    candidate: int = Int(2, start=ANY)
    place: int = Int("most")
    lead: int = Int("most")

    look: Trigger

    ROWS = (Row("look", THERE, STAY, "has_more", "weigh", "there is another vote"),)

    def has_more(self) -> bool:
        return self.place < self.length

    def weigh(self) -> None:
        vote = self.votes[self.place]
        self.place += 1
        if self.lead == 0:
            self.candidate = vote
            self.lead = 1
        elif self.candidate == vote:
            self.lead += 1
        else:
            self.lead -= 1

    def votes_for(self, candidate: int) -> int:
        found = 0
        for i in range(self.system.most):
            if i < self.length and self.votes[i] == candidate:
                found += 1
        return found


class Majority(ClosedSystem):
    """Majority: who has more than half of the votes is the candidate at the end."""

    CONSTANTS: ClassVar[dict[str, int]] = {"most": 5}
    STEPS = (Step("count", "look"),)

    most: int
    count: Count = machines(Count)

    @initially("nothing lies behind the last vote")
    def is_short(self) -> bool:
        return all(i < self.count.length or self.count.votes[i] == 0 for i in range(self.most))

    @always("who has a majority is found")
    def is_right(self) -> bool:
        return self.count.place < self.count.length or all(
            2 * self.count.votes_for(who) <= self.count.length or who == self.count.candidate
            for who in range(3)
        )
