"""An event runs to completion: its row, the triggers it leads to, then its effects."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from epochgate.fsm import (
    STAY,
    DeclarationError,
    EventQueue,
    Machine,
    Outcome,
    Port,
    Row,
    System,
    TransitionRefused,
    VirtualClock,
    machines,
    output,
)

AWAKE = "awake"


class Mouth(Port):
    """The words of a speaker."""

    def say(self, word: str) -> None:
        """One word."""


class Speaker(Machine, unchecked=True):
    """Writes down when its actions begin and end, and fires others in between."""

    INDEX = ("speaker",)
    STATES = (AWAKE,)
    INITIAL = AWAKE
    ROWS = (
        Row("open", AWAKE, STAY, None, "greet, pass_on, close", "a debate begins"),
        Row("answer", AWAKE, STAY, None, "reply", "a speaker was asked"),
        Row("thank", AWAKE, STAY, None, "murmur", "a speaker was answered"),
        Row("fail", AWAKE, STAY, None, "break_off", "words fail"),
        Row("hush", AWAKE, STAY, "is_never", None, "this row never holds"),
    )

    system: Debate
    speaker: int

    mouth: Mouth = output(Mouth)

    def note(self, text: str) -> None:
        self.system.log.append(f"{self.speaker} {text}")

    def is_never(self) -> bool:
        return False

    def greet(self) -> None:
        self.note("greets")
        self.mouth.say("hello")
        other: Any = self.system.speaker[1]
        assert other.answer(self.speaker, "first") is Outcome.WAITING

    def pass_on(self) -> None:
        self.note("passes on")
        other: Any = self.system.speaker[1]
        other.answer(self.speaker, "second")

    def close(self) -> None:
        self.note("closes")

    def reply(self, asker: int, what: str) -> None:
        self.note(f"replies to the {what}")
        self.mouth.say(what)
        other: Any = self.system.speaker[asker]
        other.thank()
        self.note(f"has replied to the {what}")

    def murmur(self) -> None:
        self.note("murmurs")
        self.mouth.say("thanks")

    def break_off(self) -> None:
        other: Any = self.system.speaker[1]
        other.thank()
        raise ZeroDivisionError


class Debate(System):
    INDEX_SETS: ClassVar[dict[str, str]] = {"speaker": "speakers"}
    CONSTANTS: ClassVar[dict[str, int]] = {"speakers": 2}

    speaker: list[Speaker] = machines(Speaker)

    def __init__(self) -> None:
        super().__init__()
        self.log: list[str] = []


class Chairman:
    """Handles what is said; the first greeting opens a second round."""

    def __init__(self, debate: Debate) -> None:
        self.debate, self.rounds = debate, 0
        self.outcomes: list[Outcome] = []

    def say(self, speaker: int, word: str) -> None:
        self.debate.log.append(f"chairman hears {word!r} of {speaker}")
        if word == "hello" and self.rounds == 0:
            self.rounds += 1
            self.outcomes.append(fire(self.debate, "answer", 0, "third"))
            self.outcomes.append(fire(self.debate, "answer", 0, "fourth"))


def fire(debate: Debate, trigger: str, *arguments: Any, speaker: int = 1) -> Outcome:
    outcome = getattr(debate.speaker[speaker], trigger)(*arguments)
    assert isinstance(outcome, Outcome)
    return outcome


FIRST_STEP = [
    "0 greets",
    "0 passes on",
    "0 closes",
    "1 replies to the first",
    "1 has replied to the first",
    "1 replies to the second",
    "1 has replied to the second",
    "0 murmurs",
    "0 murmurs",
]


def test_no_machine_is_entered_again_while_its_actions_run_and_triggers_run_in_firing_order() -> (
    None
):
    debate = Debate()
    assert fire(debate, "open", speaker=0) is Outcome.TAKEN
    assert debate.log == FIRST_STEP


def test_effects_leave_when_the_inner_queue_is_empty_in_the_order_of_emission() -> None:
    debate = Debate()
    debate.bind("speaker", "mouth", Chairman(debate))
    queue = EventQueue(debate, VirtualClock())
    queue.post(debate.speaker[0].open)  # type: ignore[attr-defined]  # not declared, for brevity
    queue.drain()
    said = [line for line in debate.log if line.startswith("chairman")]
    assert debate.log[: len(FIRST_STEP)] == FIRST_STEP
    assert said[:5] == [
        "chairman hears 'hello' of 0",
        "chairman hears 'first' of 1",
        "chairman hears 'second' of 1",
        "chairman hears 'thanks' of 0",
        "chairman hears 'thanks' of 0",
    ]


def test_what_a_handler_fires_runs_after_all_effects_of_the_step_each_as_an_event() -> None:
    debate = Debate()
    chairman = Chairman(debate)
    debate.bind("speaker", "mouth", chairman)
    fire(debate, "open", speaker=0)
    debate.settle()
    assert chairman.outcomes == [Outcome.WAITING, Outcome.WAITING]
    assert debate.log[len(FIRST_STEP) + 5 :] == [
        "1 replies to the third",
        "1 has replied to the third",
        "0 murmurs",
        "chairman hears 'third' of 1",
        "chairman hears 'thanks' of 0",
        "1 replies to the fourth",
        "1 has replied to the fourth",
        "0 murmurs",
        "chairman hears 'fourth' of 1",
        "chairman hears 'thanks' of 0",
    ]


def test_what_a_handler_fires_waits_where_only_effects_are_delivered() -> None:
    debate = Debate()
    chairman = Chairman(debate)
    debate.bind("speaker", "mouth", chairman)
    fire(debate, "open", speaker=0)
    debate.settle(only_effects=True)
    heard = list(debate.log)
    assert chairman.outcomes == [Outcome.WAITING, Outcome.WAITING]
    assert (debate.is_unsettled, len(debate.outer_queue)) == (True, 2)
    debate.settle()
    assert not debate.is_unsettled
    assert debate.log[: len(heard)] == heard
    assert debate.log[len(heard) :][0] == "1 replies to the third"


def test_an_exception_leaves_the_inner_queue_empty() -> None:
    debate = Debate()
    with pytest.raises(ZeroDivisionError):
        fire(debate, "fail")
    assert (debate.open_queue, [*debate.inner_queue]) == (None, [])
    fire(debate, "thank", speaker=0)
    assert debate.log == ["0 murmurs"]


def test_a_refused_trigger_inside_a_step_ends_the_step() -> None:
    debate = Debate()

    def refused_inside() -> None:
        debate.open_queue = debate.inner_queue
        fire(debate, "hush")
        fire(debate, "thank")
        debate.open_queue = None
        fire(debate, "open", speaker=0)

    with pytest.raises(TransitionRefused, match="hush"):
        refused_inside()
    assert not debate.inner_queue
    assert "1 murmurs" not in debate.log


def test_the_name_of_a_queue_is_no_name_of_a_machine() -> None:
    with pytest.raises(DeclarationError, match="'outer_queue' is a machine, and a name that"):
        type("Taken", (System,), {"outer_queue": machines(Speaker), "INDEX_SETS": {}})
