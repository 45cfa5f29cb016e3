"""Faults of the shells, which no model checker sees, planted again: each is a change of one place
of the runtime, and a test of a user's that it breaks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from epochgate.errors import EpochgateError
from epochgate.runtime import CoordinatorContext, RecreateOnReset
from epochgate.runtime.shell import coordinators, fenced_context
from epochgate.runtime.shell.checkpoints import Answer, Checkpoints
from epochgate.runtime.shell.client_requests import ClientRequests, CoordinatorUnavailable
from epochgate.runtime.store import CompletedCheckpoint
from epochgate.testing import World
from tests.worlds.rules import Applying, Rules, RulesProvider


def unknown_outcome(monkeypatch: pytest.MonkeyPatch) -> None:
    """A save of unknown outcome is taken for one that failed."""
    check_and_save = Checkpoints._check_and_save

    def certain(self: Checkpoints, whole: CompletedCheckpoint) -> Answer:
        try:
            return check_and_save(self, whole)
        except EpochgateError as error:
            return Answer("store_failed", str(error))

    monkeypatch.setattr(Checkpoints, "_check_and_save", certain)


def told_and_restored(world: World) -> None:
    """Claim that a checkpoint of whose abort a coordinator was told is never restored."""
    aborted: set[int] = set()
    restored: list[int] = []

    class Told(Rules):
        def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
            aborted.add(checkpoint_id)

        def reset_to_checkpoint(self, checkpoint_id: int, state: bytes | None) -> None:
            super().reset_to_checkpoint(checkpoint_id, state)
            restored.append(checkpoint_id)

    world.always("no aborted checkpoint is restored", lambda: aborted.isdisjoint(restored))
    job = world.job(RulesProvider(Told), operators=Applying, subtasks=2)
    job.checkpoint()
    job.restart_driver()


def bypassed_holder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients' requests go to the coordinator without asking its holder."""

    class Direct(ClientRequests):
        def __init__(
            self, triggers: Mapping[str, Callable[..., Any]], post: Callable[..., None]
        ) -> None:
            super().__init__(dict.fromkeys(triggers, self._ask), post)

        def _ask(self, request: Any) -> None:
            shell = self.shell  # type: ignore[attr-defined]
            shell.client_request(0, request)

    init = coordinators.Coordinators.__init__

    def made(self: coordinators.Coordinators, master: Any) -> None:
        init(self, master)
        self.requests.shell = self  # type: ignore[attr-defined]

    monkeypatch.setattr(coordinators, "ClientRequests", Direct)
    monkeypatch.setattr(coordinators.Coordinators, "__init__", made)


def asked_when_started(world: World) -> None:
    """A coordinator whose start has failed is not asked: another one takes its place."""
    starts: list[int] = []
    wrong: list[Any] = []

    class Asked(Rules):
        has_started = False

        def start(self) -> None:
            starts.append(1)
            if len(starts) == 1:
                raise OSError("the rules cannot be read")
            self.has_started = True

        def handle_client_request(self, request: Any) -> Any:
            if not self.has_started:
                wrong.append(request)
            return self.rule

    world.tolerate("the rules cannot be read")
    world.always("no coordinator is asked that has not started", lambda: not wrong)
    job = world.job(RulesProvider(Asked), operators=Applying, subtasks=2)
    try:
        assert job.request("which rule?") in (None, [1, "a"])
    except CoordinatorUnavailable:
        world.sometimes("a request is refused")


def leaky_fence(monkeypatch: pytest.MonkeyPatch) -> None:
    """The context of a coordinator that was replaced still runs what it has posted."""

    def let_through(self: Any, *arguments: Any) -> None:
        self.func(*arguments)

    monkeypatch.setattr(fenced_context._WhileOpen, "__call__", let_through)


class Ticking(Rules):
    """Acts after five seconds, and notes it if another coordinator has taken its place."""

    def __init__(self, context: CoordinatorContext, made: list[Ticking], late: list[int]) -> None:
        super().__init__(context)
        self.made, self.late = made, late
        made.append(self)

    def start(self) -> None:
        self.context.post_later(5.0, self.tick)

    def tick(self) -> None:
        if self.made[-1] is not self:
            self.late.append(len(self.made))
        self.change("tick")


def replaced_and_silent(world: World) -> None:
    """A coordinator that was replaced does nothing any more."""
    made: list[Ticking] = []
    late: list[int] = []
    world.always("no replaced coordinator acts", lambda: not late)
    world.job(
        lambda: RecreateOnReset(RulesProvider(lambda context: Ticking(context, made, late))),
        operators=Applying,
        subtasks=2,
    )
    world.move(10)


PLANTED = {
    "unknown outcome": (unknown_outcome, told_and_restored, 1, 0),
    "bypassed holder": (bypassed_holder, asked_when_started, 0, 1),
    "leaky fence": (leaky_fence, replaced_and_silent, 1, 0),
}
"""What is planted, the test that it breaks, and the faults and delays that show it."""
