"""Global failover: everything is canceled, the coordinator is reset, and all gateways are rebuilt.

The reset opens every gateway completely before it replaces them. What they hold goes to attempts that
are gone, so each future fails, and no gateway is left closed: what a regional reset does to a
checkpoint that is still pending does not happen here.

Source: Apache Flink's OperatorCoordinatorHolder.resetToCheckpoint and its scheduler. The first
failure of the job counts until the reset.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import STAY, Ignore, Machine, Row, Trigger
from epochgate.fsm.closed import Step, sometimes
from epochgate.fsm.system import machines
from epochgate.models.studies.flink.gateway import Gateway
from epochgate.models.studies.flink.holder import FAIL_ALL, RESTART_ALL, MainThread
from epochgate.models.studies.flink.system import Flink
from epochgate.models.studies.flink.task import (
    BACKED_OFF,
    DEPLOYED,
    FAILED,
    GONE,
    RESET,
    RUNNING,
    Task,
)

SOUND, FAILING, CANCELED, RESTARTING = "sound", "failing", "canceled", "restarting"


class OpenedGateway(Gateway):
    """A gateway that is opened for good."""

    def open_all(self) -> None:
        for k in range(self.system.K):
            if self.marked[k]:
                self.reopen(k)


class CanceledTask(Task):
    """A subtask that is canceled and restarted with all others."""

    cancel: Trigger
    restart_with_all: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *(row for row in Task.ROWS if row.trigger not in ("back_off", "restart")),

        Row("back_off",         FAILED,                                     BACKED_OFF, "is_newest",
            "post_restart",                         "the delay is over and the attempt is gone"),
        Row("restart",          BACKED_OFF,                                 RESET,      "is_newest",
            "abort_pending, replace_gateway, load", "the next attempt is restored, inline"),
        Ignore("restart",       BACKED_OFF,                                             "not is_newest",
                                                    "all subtasks are about to be restarted"),
        Ignore("ready",         (RUNNING, GONE, FAILED, BACKED_OFF, RESET),             None,
                                                    "it was canceled meanwhile"),

        Row("cancel",           (RUNNING, GONE),                            FAILED,     None,
            "lose_sends, tell_coordinator",         "all subtasks are canceled"),
        Row("cancel",           (RESET, DEPLOYED),                          FAILED,     None,
            None,                                   "it is canceled before it runs"),
        Ignore("cancel",        (FAILED, BACKED_OFF),                                   None,
                                                    "it is not there"),

        Row("restart_with_all", (FAILED, BACKED_OFF),                       RESET,      None,
            "replace_gateway, load",                "all subtasks are restored together"),
    )
    # fmt: on

    system: GlobalFlink

    def is_newest(self) -> bool:
        return self.system.failover.lets_regions_restart()


class AnyThread(MainThread):
    """The main thread with the calls of a global failover."""

    system: GlobalFlink

    def run_of_all(self, kind: int) -> None:
        if kind == FAIL_ALL:
            self.system.failover.cancel_all()
        elif kind == RESTART_ALL:
            self.system.failover.reset_all()


class Failover(Machine):
    """The job as a whole."""

    STATES = (SOUND, FAILING, CANCELED, RESTARTING)
    INITIAL = SOUND

    system: GlobalFlink

    fail_job: Trigger
    cancel_all: Trigger
    back_off: Trigger
    reset_all: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("fail_job",   SOUND,      FAILING,    "may_fail",
            "spend, post_failure",                   "the coordinator fails the job"),
        Row("fail_job",   FAILING,    STAY,       "may_fail",
            "spend",                                 "later failures are only logged"),
        Row("cancel_all", FAILING,    CANCELED,   None,
            "stop_scheduler, cancel",                "the main thread learns of it"),
        Row("back_off",   CANCELED,   RESTARTING, None,
            "post_restart",                          "the delay is over and all attempts are gone"),
        Row("reset_all",  RESTARTING, SOUND,      None,
            "abort_pending, open_gateways, restart", "everything is restored, inline"),
    )
    # fmt: on

    def lets_regions_restart(self) -> bool:
        return self.state == SOUND or self.state == FAILING

    def may_fail(self) -> bool:
        return self.system.faults.failures < self.system.F

    def spend(self) -> None:
        self.system.faults.failures += 1

    def post_failure(self) -> None:
        self.system.main.post(FAIL_ALL, 0)

    def stop_scheduler(self) -> None:
        if self.system.periodic > 0:
            self.system.requests.abort_all()

    def cancel(self) -> None:
        for s in range(self.system.N):
            self.system.task[s].cancel()

    def post_restart(self) -> None:
        self.system.main.post(RESTART_ALL, 0)

    def abort_pending(self) -> None:
        self.system.requests.abort_all()

    def open_gateways(self) -> None:
        for s in range(self.system.N):
            attempt = self.system.holder.current[s]
            self.system.gateway[s, attempt].open_all()

    def restart(self) -> None:
        for s in range(self.system.N):
            self.system.task[s].restart_with_all()


class GlobalFlink(Flink):
    """Flink's mechanism where the job as a whole may fail too."""

    CONSTANTS: ClassVar[dict[str, int]] = {
        **Flink.CONSTANTS,
        "K": 1,
        "F": 2,
        "concurrent": 1,
    }
    UNTAKEN: ClassVar[dict[str, str]] = {
        "gateway.close": "a gateway is closed for one checkpoint at a time",
        "gateway.reopen": "a gateway is closed for one checkpoint at a time",
    }

    STEPS: ClassVar[tuple[Step, ...]] = (
        *Flink.STEPS,
        Step("failover", "fail_job", is_fair=False),
        Step("failover", "back_off"),
    )

    main: MainThread = machines(AnyThread)
    gateway: dict[tuple[int, int], OpenedGateway] = machines(OpenedGateway)  # type: ignore[assignment]  # a Gateway
    task: list[CanceledTask] = machines(CanceledTask)  # type: ignore[assignment]  # a Task too
    failover: Failover = machines(Failover)

    @sometimes("a checkpoint completes after everything was restarted")
    def completes_after_all(self) -> bool:
        return (
            self.pending[self.K - 1].state == "completed"
            and self.task[0].attempt > 0
            and self.task[self.N - 1].attempt > 0
        )


class GlobalOnly(GlobalFlink):
    """Savepoints are all there is, so that nothing is aborted before the restart, and only the job as
    a whole fails: no gateway is left closed, and no future undecided.
    """

    CONSTANTS: ClassVar[dict[str, int]] = {
        **Flink.CONSTANTS,
        "periodic": 0,
        "savepoints": 2,
    }
    STEPS: ClassVar[tuple[Step, ...]] = tuple(
        step for step in GlobalFlink.STEPS if step.trigger != "vanish"
    )
