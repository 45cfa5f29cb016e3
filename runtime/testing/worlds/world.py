"""The world of one run: what a test's body is given.

Each call of the test on its world or job does one thing and lets the job move before it returns: to
rest in the default schedule, for less where the schedule says so, so that the next line of the test
can strike at any moment. Everything runs in the test's own thread, on a clock of its own. Decides
nothing about the schedule: `Choosing` does.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from epochgate.runtime.api.committer import Committer
from epochgate.runtime.api.configuration import JobConfiguration
from epochgate.runtime.api.coordinator import CoordinatorProvider, OperatorCoordinator
from epochgate.runtime.api.operator import Operator, Program
from epochgate.runtime.api.sink import SinkStart
from epochgate.runtime.shell.post_commits import AfterCommit
from epochgate.runtime.testing.simulation import Prepared, Preparing
from epochgate.runtime.testing.worlds.claims import Claim, ClaimBroken, caller
from epochgate.runtime.testing.worlds.factories import insist_on_factory, made_by, shown
from epochgate.runtime.testing.worlds.faults import FAULTS, doom, known
from epochgate.runtime.testing.worlds.job import WorldJob
from epochgate.runtime.testing.worlds.motion import End, Motion, WorldMisused
from epochgate.runtime.testing.worlds.rig import (
    NotSimulated,
    Parts,
    PlainProgram,
    Rig,
    Setup,
)
from epochgate.runtime.testing.worlds.schedule import Choosing, Deviation
from epochgate.runtime.testing.worlds.trace import Keeps, own_values


class World(Motion):
    """One run of a test. `choosing` decides what deviates from the default schedule, `draw` draws a
    value from a strategy of Hypothesis.
    """

    def __init__(
        self,
        choosing: Choosing,
        draw: Callable[[Any], Any],
        *,
        seed: int = 0,
        keeps: Keeps = "nothing",
    ) -> None:
        super().__init__(choosing, keeps)
        self._draw = draw
        self._calls: int | None = None
        self.drawn: list[tuple[str, Any]] = []
        self.random = random.Random(seed)
        """Chance that replays; for what the test itself varies."""

    def job(
        self,
        *providers: CoordinatorProvider | Callable[[], CoordinatorProvider],
        operators: Any = None,
        program: Callable[[int], Program] | None = None,
        subtasks: int = 1,
        committer: Callable[[], Committer] | None = None,
        after_commit: AfterCommit | None = None,
        checkpoint_every_s: float | None = None,
        **configuration: Any,
    ) -> WorldJob:
        """Start a job on the production runtime, and run it until all subtasks are up.

        `operators` is the factory of the only provider's operator, such as its class, or a dict
        from operator ids to factories. `program(subtask)` makes a whole program instead, for
        operators that do more than react to events. `committer` makes the committer of each start
        of the driver. `after_commit` is called with each visible checkpoint. `configuration` are
        further fields of `JobConfiguration`. Raises WorldMisused for a second job, and NotSimulated
        if no job can be made of the arguments.
        """
        makers = [_maker(each) for each in providers]
        made = program or _program(makers, operators)
        if committer is not None:
            insist_on_factory("committer", committer, Committer)

        def prepare(start: SinkStart) -> Parts:
            settings = {**DEFAULTS, "checkpoint_interval_s": checkpoint_every_s, **configuration}
            given = tuple(made_by("a provider", make, CoordinatorProvider) for make in makers)
            return Parts(
                JobConfiguration(start.job_id, subtasks, given, start.run_id, **settings),
                made,
                None if committer is None else made_by("committer", committer, Committer),
                after_commit,
            )

        return self._start(Setup(subtasks, prepare))

    def pipeline(
        self,
        pipeline: Preparing,
        *,
        subtasks: int = 1,
        checkpoint_every_s: float | None = None,
        **configuration: Any,
    ) -> WorldJob:
        """Start a `Pipeline`, and run it until all subtasks are up.

        `configuration` are further fields of `JobConfiguration`. Raises WorldMisused for a second
        job.
        """
        settings = {**DEFAULTS, "checkpoint_interval_s": checkpoint_every_s, **configuration}

        def prepare(start: SinkStart) -> Prepared:
            return pipeline.prepared(start, subtasks, **settings)

        return self._start(Setup(subtasks, prepare))

    def _start(self, setup: Setup) -> WorldJob:
        if self._job is not None:
            raise WorldMisused(
                "a world has one job; pass all providers to a single call of world.job"
            )
        self._job = WorldJob(self, Rig(setup))
        self._job.rig.watches_operators = self._keeps != "nothing"
        self.say(f"a job of {setup.subtasks} subtask{'s' * (setup.subtasks > 1)} starts")
        self.move()
        return self._job

    def draw(self, strategy: Any, name: str = "") -> Any:
        """Draw a value from a strategy of Hypothesis; it is shrunk together with the schedule."""
        value = self._draw(strategy)
        self.drawn.append((name or f"draw {len(self.drawn) + 1}", value))
        return value

    def always(
        self, text: str, holds: Callable[[], Any], *, shows: Callable[[], Any] | None = None
    ) -> None:
        """Claim an invariant: `holds()` is true after every step from now on.

        `shows()` returns details for the report, such as the values that are compared. Raises
        ClaimBroken.
        """
        self.claims.always[text] = Claim(text, holds, caller(), shows=shows)
        self._judge()

    def eventually(
        self,
        text: str,
        holds: Callable[[], Any],
        within_s: float = 30.0,
        *,
        shows: Callable[[], Any] | None = None,
    ) -> None:
        """Claim liveness: `holds()` becomes true within `within_s` seconds of simulated time after
        the faults have ended, and is true when the job is at rest. `shows` as in `always`.
        """
        self.claims.eventually[text] = Claim(text, holds, caller(), within_s, shows)

    def sometimes(self, text: str, holds: Callable[[], Any] | None = None) -> None:
        """Claim that `holds()` is true after some step of at least one run, so that the test is not
        vacuous. Without `holds`, some run must reach this line.
        """
        self.claims.sometimes[text] = None if holds is None else Claim(text, holds, caller())
        if holds is None:
            self.claims.reached.add(text)

    def tolerate(self, text: str) -> None:
        """Allow errors of user code whose text contains `text`; other errors fail the test."""
        self.tolerated.append(text)

    def move(self, seconds: float = 0.0) -> None:
        """Run the job for `seconds` of simulated time, and then until it is at rest.

        Raises ClaimBroken, like every method that runs the job.
        """
        job = self.the_job
        end_s = job.now_s + seconds
        while job.now_s < end_s:
            self._run(_never, until_s=end_s)
        self._run(job.is_at_rest)

    def lose(self, message: str) -> None:
        """Lose the next `event`, `confirmation` or `acknowledgement` although its connection lives
        on. Use `job.cut` to lose a connection together with its messages.
        """
        self._doom(message, "lost")

    def delay(self, message: str) -> None:
        """Let the next `confirmation` or `acknowledgement` arrive late."""
        self._doom(message, "late")

    def repeat(self, message: str) -> None:
        """Let the next `confirmation` or `acknowledgement` arrive twice."""
        self._doom(message, "repeated")

    def _doom(self, message: str, fate: Any) -> None:
        doom(self.the_job.rig, message, fate)
        self.say(f"the next {message} will be {fate}")
        self.move()

    def strike(self, fault: str, which: int = 0) -> None:
        """Inject a fault now, by its name. Raises UnknownFault, ClaimBroken, and WorldMisused if
        the fault has no target at this moment.
        """
        known((fault,))
        if not self._strike(Deviation(self.at, fault, which), is_of_test=True):
            raise WorldMisused(
                f"the fault {fault!r} ({FAULTS[fault].about}) has no target at this moment"
            )
        self.move()

    @property
    def calls(self) -> int:
        """The number of calls of the test before the faults ended."""
        return self.at[0] if self._calls is None else self._calls

    def own_values(self) -> dict[str, dict[str, str]]:
        """The plain values that the user's coordinators and operators have."""
        return {} if self._job is None else own_values(self._job.rig)

    def calm(self) -> None:
        """End all faults and run the job until it has recovered and is at rest.

        From here on the schedule is the default one, so assertions see a job at rest. Raises
        ClaimBroken.
        """
        if self._job is None or self._is_calm:
            return
        self._is_calm, self._calls = True, self.at[0]
        job = self._job
        self.say("the faults end")
        job.calm()
        for start in range(STARTS_MAX):
            if self._run(job.is_at_rest) is End.NEVER:
                raise ClaimBroken("rest", job.why_not_at_rest(), job.account())
            if not job.has_failed:
                break
            if start == STARTS_MAX - 1:
                raise ClaimBroken("end", job.simulated.result.reason or "no reason", job.account())
            job.start_again()
        for claim in self.claims.eventually.values():
            self._come_true(claim)

    def conclude(self) -> None:
        """End the faults if the test has not, and look once more at what should happen sometimes:
        no step follows that does.
        """
        self.calm()
        if self._job is not None:
            with self.only_looking():
                self.claims.look()

    def _come_true(self, claim: Claim) -> None:
        job = self.the_job
        end_s = job.now_s + claim.within_s
        while not self._holds(claim):
            if job.now_s >= end_s:
                detail = f"not within {claim.within_s:g} s after the last fault"
                if not job.is_at_rest():
                    detail += f"; {job.account()}"
                raise claim.broken("eventually", detail)
            self._run(lambda: self._holds(claim), until_s=end_s)
        self._run(job.is_at_rest)
        if not self._holds(claim):
            raise claim.broken("eventually", "it held, and no longer does at rest")


def _never() -> bool:
    return False


STARTS_MAX: Final = 3
"""How many starts a job that has failed is given once the faults have ended."""


DEFAULTS: Final[dict[str, Any]] = {"checkpoint_timeout_s": 10.0, "coordinator_call_warn_s": None}


def _maker(given: Any) -> Callable[[], CoordinatorProvider]:
    """Return the maker of the provider of each start: a provider serves all of them."""
    if isinstance(given, CoordinatorProvider):
        return lambda: given
    if isinstance(given, OperatorCoordinator):
        raise NotSimulated(
            f"a job is given {shown(given)}, which is a coordinator; give the CoordinatorProvider "
            "whose `create` makes it, or the class of that provider"
        )
    if not callable(given):
        raise NotSimulated(
            f"a job is given {shown(given)}, and needs a CoordinatorProvider, or what makes one"
        )
    make: Callable[[], CoordinatorProvider] = given
    return make


def _program(
    makers: Sequence[Callable[[], CoordinatorProvider]], operators: Any
) -> Callable[[int], Program]:
    """Return the maker of a program of operators that wait for events."""
    if operators is None:
        raise NotSimulated(
            "a job needs what runs in its tasks: operators=MyOperator, or program=MyProgram, which "
            "is called with the number of the subtask"
        )
    if not isinstance(operators, Mapping):
        if len(makers) != 1:
            raise NotSimulated(
                f"{len(makers)} providers and one operator: say which operator has which id, "
                "operators={'rules': MyOperator, ...}"
            )
        provider = made_by("a provider", makers[0], CoordinatorProvider)
        operators = {provider.operator_id: operators}
    made: dict[str, Callable[[], Operator]] = dict(operators)
    for factory in made.values():
        insist_on_factory("operators", factory, Operator)
    return lambda subtask: PlainProgram(
        {name: made_by("operators", make, Operator) for name, make in made.items()}
    )
