"""Concurrent attempts without one of the rules: each variant must fail by one claim."""

from __future__ import annotations

from epochgate.fsm import STAY, Opaque, Row, machines
from epochgate.models.attempt import Attempt
from epochgate.models.closed.concurrent import ConcurrentAttempts
from epochgate.models.concurrent_job import ConcurrentAttempt
from epochgate.models.execution_vertex import ATTEMPTED, ENDED, ExecutionVertex
from epochgate.models.gateway import Gateway


class HastyVertex(ExecutionVertex):
    """Starts the subtask again whenever an attempt fails."""

    ROWS = (
        *(
            Row("attempt_failed", row.source, row.dest, row.when, "ask_restart", row.because)
            if row.actions == ("report_outlived",)
            else row
            for row in ExecutionVertex.ROWS
        ),
        Row("restart", (ATTEMPTED, ENDED), STAY, None, None, "another attempt goes on"),
    )


class HastyReset(ConcurrentAttempts):
    """A subtask is reset although another attempt of it goes on."""

    vertex: list[ExecutionVertex] = machines(HastyVertex)


class SilentAttempt(ConcurrentAttempt):
    """Starts the subtask again without telling the coordinators."""

    def reset_coordinators(self) -> None:
        self.system.vertex[self.vertex()].restart()


class MissingReset(ConcurrentAttempts):
    """A subtask starts again, and no coordinator takes back what it was told."""

    attempt: list[Attempt] = machines(SilentAttempt)


class LenientVertex(ExecutionVertex):
    """Lets the others run on when one has reached the end."""

    def end_others(self, place: int) -> None:
        pass


class TwoFinishers(ConcurrentAttempts):
    """An attempt that is overtaken goes on."""

    vertex: list[ExecutionVertex] = machines(LenientVertex)


class UnboundGateway(Gateway):
    """Does not ask for which attempt of its place an event is meant."""

    def is_bound(self, attempt: int) -> bool:
        return True


class CrossingEvents(ConcurrentAttempts):
    """A place is used again, and its gateway lets through what was meant for another attempt."""

    gateway: dict[tuple[int, int], Gateway] = machines(UnboundGateway)


class RepeatingVertex(ExecutionVertex):
    """Counts attempts from 0 with each restart of the subtask."""

    ROWS = tuple(
        Row("restart", row.source, row.dest, row.when, "count_from_zero", row.because)
        if row.trigger == "restart"
        else row
        for row in ExecutionVertex.ROWS
    )

    def count_from_zero(self) -> None:
        self.attempts = 0


class RepeatedNumbers(ConcurrentAttempts):
    """Two attempts of a subtask have one number."""

    vertex: list[ExecutionVertex] = machines(RepeatingVertex)


class OverlookingVertex(ExecutionVertex):
    """Forgets the process that waits beside the attempt that has reached the end."""

    def take_waiting(self) -> None:
        pass


class OverlookedProcess(ConcurrentAttempts):
    """A subtask that starts again asks for a process, although one is there."""

    vertex: list[ExecutionVertex] = machines(OverlookingVertex)


class HoldingAttempt(ConcurrentAttempt):
    """Leaves sends undecided that are on their way to an attempt that fails."""

    def drop_in_flight(self, reason: Opaque) -> None:
        pass


class ForgottenSends(ConcurrentAttempts):
    """Sends wait for an attempt that is gone."""

    attempt: list[Attempt] = machines(HoldingAttempt)
