"""The steps of the commit of a batch, in the order in which the machine asks for them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from threading import Event

import pytest

from epochgate.models.query_batch import AHEAD, BEHIND, CHANGED, EMPTIED, KNOWN, LATE, MOVED
from epochgate.runtime import RetryLater
from epochgate.runtime.limited import CallLate
from epochgate.spark.streaming.batch_commit import BatchCommit
from tests.runtime.stalling import Stall

BATCH = 7


class Refused(Exception):
    """The place was told to refuse."""


class Scripted:
    """A place that knows `number` batches, and does what it is told: which steps are unsure at
    first, which fails, and which hangs until it may go on.
    """

    def __init__(
        self,
        number: int = BATCH,
        *,
        origin: int = KNOWN,
        others: int = 0,
        unsure: str = "",
        fails_in: str = "",
        hangs_in: str = "",
        carries: bool = True,
    ) -> None:
        self.hangs_in, self.went_on = hangs_in, Event()
        self.stall: Callable[[], bool] = lambda: True
        self.number, self.origin, self.others = number, origin, others
        self.unsure, self.fails_in, self.carries = unsure.split(), fails_in, carries
        self.steps: list[str] = []
        self.pauses: list[float] = []

    def _step(self, name: str) -> None:
        self.steps.append(name)
        if name in self.unsure:
            self.unsure.remove(name)
            raise RetryLater(f"no answer in {name}")
        if name == self.hangs_in:
            self.stall()
            self.went_on.set()
        if name == self.fails_in:
            raise OSError(f"the disk fails in {name}")

    def look(self) -> tuple[int, int, int]:
        self._step("look")
        return self.number, self.origin, self.others

    def note(self) -> None:
        self._step("note")

    def apply(self) -> bool:
        self._step("apply")
        return self.carries

    def record(self) -> None:
        self._step("record")

    def sweep(self) -> None:
        self._step("sweep")

    def refusal(self, reason: int) -> Exception:
        return Refused(reason)


def steps_of(place: Scripted, accepts: int = 0, held: int = 0) -> str:
    """Return what a commit of batch 7 has done."""
    BatchCommit(place, pause=place.pauses.append).commit(BATCH, accepts, held)
    return " ".join(place.steps)


def refused(place: Scripted, accepts: int = 0, held: int = 0) -> int:
    """Return why a commit of batch 7 is refused, after a look and nothing else."""
    with pytest.raises(Refused) as raised:
        steps_of(place, accepts, held)
    assert place.steps == ["look"]
    reason: int = raised.value.args[0]
    return reason


def test_the_next_batch_is_noted_then_applied() -> None:
    assert steps_of(Scripted()) == "look note apply sweep"


def test_a_batch_that_took_effect_is_swept_and_not_applied_again() -> None:
    assert steps_of(Scripted(BATCH + 1)) == "look sweep"


def test_an_effect_that_does_not_carry_its_number_is_recorded_afterwards() -> None:
    assert steps_of(Scripted(carries=False)) == "look note apply record sweep"


def test_a_history_that_the_target_does_not_know_is_refused() -> None:
    assert refused(Scripted(BATCH - 1)) == BEHIND
    assert refused(Scripted(0)) == BEHIND
    assert refused(Scripted(BATCH + 2)) == AHEAD
    assert refused(Scripted(BATCH + 1, others=1)) == CHANGED
    for number in (0, BATCH - 1, BATCH, BATCH + 1, BATCH + 2):
        assert refused(Scripted(number, origin=MOVED)) == MOVED
        assert refused(Scripted(number, origin=MOVED, others=1)) == MOVED
        assert refused(Scripted(number, origin=EMPTIED)) == EMPTIED


def test_what_the_user_accepts_is_accepted_and_nothing_else() -> None:
    assert steps_of(Scripted(origin=MOVED), MOVED) == "look note apply sweep"
    assert steps_of(Scripted(BATCH + 1, origin=MOVED), MOVED) == "look sweep"
    assert refused(Scripted(origin=MOVED), EMPTIED) == MOVED
    assert steps_of(Scripted(origin=EMPTIED), EMPTIED) == "look note apply sweep"
    assert refused(Scripted(BATCH - 1, origin=EMPTIED), EMPTIED) == BEHIND
    assert steps_of(Scripted(0), LATE) == "look note apply sweep"
    assert refused(Scripted(1), LATE) == BEHIND
    assert refused(Scripted(BATCH + 2), LATE) == AHEAD
    assert steps_of(Scripted(4), LATE, 4) == "look note apply sweep"
    for number in (0, 3, 5):
        assert refused(Scripted(number), LATE, 4) == BEHIND
    assert refused(Scripted(4), 0, 4) == BEHIND
    assert refused(Scripted(origin=MOVED), LATE) == MOVED


def test_a_batch_noted_with_other_offsets_that_did_not_take_effect_is_noted_again() -> None:
    assert steps_of(Scripted(others=1)) == "look note apply sweep"


@pytest.mark.parametrize(
    ("step", "done"),
    [
        ("look", "look look note apply sweep"),
        ("note", "look note look note apply sweep"),
        ("apply", "look note apply look note apply sweep"),
        ("record", "look note apply record record sweep"),
    ],
)
def test_where_an_answer_is_lost_the_target_is_looked_at_again(step: str, done: str) -> None:
    place = Scripted(unsure=step, carries=step != "record")
    assert steps_of(place) == done


def test_pauses_grow_and_end() -> None:
    place = Scripted(unsure="apply apply apply apply apply apply")
    assert steps_of(place).count("apply") == 7
    assert place.pauses == sorted(place.pauses)
    assert 0 < place.pauses[0] < place.pauses[-1] <= 2


@pytest.mark.parametrize("step", ["look", "note", "apply", "record"])
def test_after_seven_tries_the_batch_is_given_up_with_the_last_error(step: str) -> None:
    place = Scripted(unsure=" ".join([step] * 7), carries=step != "record")
    with pytest.raises(RetryLater, match=f"no answer in {step}"):
        steps_of(place)
    assert place.steps.count(step) == 7
    assert "sweep" not in place.steps


@pytest.mark.parametrize(
    ("step", "done"),
    [
        ("look", "look"),
        ("note", "look note"),
        ("apply", "look note apply"),
        ("record", "look note apply record"),
    ],
)
def test_an_error_ends_it_where_it_is(step: str, done: str) -> None:
    place = Scripted(fails_in=step, carries=step != "record")
    with pytest.raises(OSError, match=f"the disk fails in {step}"):
        steps_of(place)
    assert " ".join(place.steps) == done


def test_what_cannot_be_swept_fails_no_batch() -> None:
    assert steps_of(Scripted(fails_in="sweep")) == "look note apply sweep"
    assert steps_of(Scripted(unsure="sweep")) == "look note apply sweep"


def test_an_abort_does_nothing() -> None:
    place = Scripted()
    BatchCommit(place).abort()
    assert place.steps == []


HANGING = {"look": "look", "note": "look note", "apply": "look note apply"}


@pytest.mark.parametrize("step", [*HANGING, "record"])
def test_a_step_that_hangs_ends_the_commit_with_its_name_and_its_place(
    monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    place = Scripted(hangs_in=step, carries=step != "record")
    place.stall = stall = Stall(monkeypatch)
    with pytest.raises(CallLate, match=f"the step {step!r} of the commit of batch 7") as raised:
        BatchCommit(place, timeout_s=0.01).commit(BATCH, 0)
    assert "has not ended within 0.01 s; commit_timeout_s" in str(raised.value)
    assert "in _step\n    self.stall()" in str(raised.value)
    stall.goes_on.set()
    assert place.went_on.wait(60)
    assert " ".join(place.steps) == HANGING.get(step, "look note apply record")


def test_a_batch_that_took_effect_is_done_though_its_sweep_hangs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place = Scripted(hangs_in="sweep")
    place.stall = stall = Stall(monkeypatch)
    BatchCommit(place, timeout_s=0.01).commit(BATCH, 0)
    assert place.steps[-1] == "sweep"
    stall.goes_on.set()


def test_a_function_of_a_user_has_no_limit_and_stays_on_its_thread() -> None:
    threads = []

    class Noting(Scripted):
        def apply(self) -> bool:
            threads.append(threading.current_thread())
            return super().apply()

        def sweep(self) -> None:
            threads.append(threading.current_thread())

    BatchCommit(Noting(), calls_user=True).commit(BATCH, 0)
    assert threads[0] is threading.current_thread()
    assert threads[1] is not threading.current_thread()
