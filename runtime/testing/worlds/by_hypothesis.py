"""Runs that Hypothesis begins, one at a time, through what it documents: `given`, `seed`,
`settings`, `st.data()` and its databases.

Hypothesis decides which values are drawn, and which of two failures is simpler. The values of a run
are what it saves in a database, bytes that it alone reads. Each test draws one boolean before all
else: the first values that Hypothesis tries are the simplest ones, the same for all seeds, and by
that boolean they are told and refused. Runs on the thread of the search.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar
from unittest import SkipTest

from hypothesis import HealthCheck, Phase, Verbosity, given, reject, seed, settings, strategies
from hypothesis.database import ExampleDatabase
from hypothesis.errors import HypothesisException

from epochgate.errors import UsageError

T = TypeVar("T")

# All that a profile of the user's could change: the one for CI leaves no database.
_SETTINGS: Final = settings(
    max_examples=1,
    database=None,
    derandomize=False,
    backend="hypothesis",
    deadline=None,
    print_blob=False,
    report_multiple_bugs=False,
    verbosity=Verbosity.quiet,
    suppress_health_check=list(HealthCheck),
)
_BOOLEANS: Final = strategies.booleans()


class _Ended(Exception):
    """The test is over, and Hypothesis saves what was drawn."""


class ValuesLost(UsageError):
    """Hypothesis was told to use no database, in which values are kept."""

    def __init__(self) -> None:
        super().__init__(
            "the run fails or is replayed, and Hypothesis keeps no values to draw again: leave out "
            "--hypothesis-seed, with which it has no database; simulated tests have their own seeds"
        )


class _Memory(ExampleDatabase):
    """Hands out the values that are known, once, and tells of those that are saved."""

    def __init__(self, known: bytes, on_saved: Callable[[bytes], object]) -> None:
        super().__init__()
        self.is_asked = False
        self._known = [known] if known else []
        self._on_saved = on_saved

    def fetch(self, key: bytes) -> Iterable[bytes]:
        self.is_asked = True
        known, self._known = self._known, []
        return known

    def save(self, key: bytes, value: bytes) -> None:
        self._on_saved(bytes(value))

    def delete(self, key: bytes, value: bytes) -> None:
        """Nothing is kept here."""

    def move(self, src: bytes, dest: bytes, value: bytes) -> None:
        """A failure that is no longer the simplest is of no use."""


def _tried(
    test: Callable[[Any], None],
    known: bytes,
    on_saved: Callable[[bytes], object],
    *phases: Phase,
    number: int = 0,
) -> None:
    """Let Hypothesis run a test; it may end in any way, since the test itself tells. Raises
    ValuesLost if there are `known` values, and Hypothesis did not ask for them.
    """

    def one(data: Any) -> None:
        test(data)

    # A seed takes the database away, and the settings that come after it bring it back.
    memory = _Memory(known, on_saved)
    made = settings(_SETTINGS, database=memory, phases=phases)
    with contextlib.suppress(_Ended, HypothesisException, SkipTest):
        made(seed(number)(given(strategies.data())(one)))()
    if known and not memory.is_asked:
        raise ValuesLost


def run_once(
    act: Callable[[Any], T], known: bytes, number: int, keeps: Callable[[T], bool]
) -> tuple[T, bytes] | None:
    """Run `act(data)` once, with the values `known`, behind which they come from the seed `number`;
    None if Hypothesis stops it: there are no more values, or none that a filter lets pass.

    Returns what it returns, and the values if `keeps` says so. Raises what `act`
    raises, and ValuesLost.
    """
    begun, came, failed, saved = False, list[T](), list[Exception](), list[bytes]()

    def test(data: Any) -> None:
        nonlocal begun
        if begun:  # what was refused is not tried with other values, a failure not run once more
            raise _Ended
        if not data.draw(_BOOLEANS) and not known:
            reject()
        begun = True
        try:
            came.append(act(data))
        except Exception as error:  # any that `act` raises is raised below
            failed.append(error)
            raise _Ended from error
        if keeps(came[0]):
            raise _Ended

    _tried(test, known, saved.append, Phase.reuse if known else Phase.generate, number=number)
    if failed:
        raise failed[0]
    if not came:
        return None
    if keeps(came[0]) and not saved:
        raise ValuesLost
    return came[0], saved[0] if saved else b""


def is_known(values: bytes) -> bool:
    """Return whether Hypothesis can read them."""
    read = list[Any]()
    _tried(read.append, values, len, Phase.reuse)
    return bool(read)


def shrunk(
    known: bytes, fails: Callable[[Any], T | None], calls_max: int
) -> tuple[T, bytes] | None:
    """Find the simplest values, as Hypothesis orders them, for which `fails(data)` returns
    something, and return both; None if it does not for the `known` ones.
    """
    calls, last, best = 0, list[T](), list[tuple[T, bytes]]()

    def test(data: Any) -> None:
        nonlocal calls
        calls += 1
        if calls > calls_max:
            return
        data.draw(_BOOLEANS)
        one = fails(data)
        # Hypothesis does not shrink what it knows already: with one more draw it is another.
        data.draw(_BOOLEANS)
        if one is not None:
            last[:] = [one]
            raise _Ended

    def keep(values: bytes) -> None:
        best[:] = [(last[0], values)]

    _tried(test, known, keep, Phase.reuse, Phase.shrink)
    return best[0] if best else None
