"""The fuzzed job: what can be done to it, one method each, with the schedule in words; and the end,
in which everything must come right.

Its caller draws the choices: Hypothesis (`stateful`), or a plain loop. Each method says in
`schedule` what it did; `check` holds the record against I1 to I3 and I8, `finale` also asks for I4
to I6.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from epochgate.fsm import Machine, Row
from epochgate.fsm.inside import machines_behind
from epochgate.models.job import Job
from epochgate.runtime.api.configuration import JobConfiguration
from epochgate.runtime.api.restart_strategies import FixedDelay
from epochgate.runtime.shell.job_master import JobMaster
from epochgate.runtime.store import CheckpointOutcomeUnknown
from epochgate.runtime.testing.faulty_transport import Fate
from epochgate.runtime.testing.fuzzing.actors import (
    CountingCoordinator,
    ListingProgram,
    Orders,
    Poison,
    TableCommitter,
    providers_of,
)
from epochgate.runtime.testing.fuzzing.record import InvariantViolated, Record, operator_id
from epochgate.runtime.testing.in_process import Step
from epochgate.runtime.testing.scripted import Script
from epochgate.runtime.testing.simulation import SimulatedJob, Stuck
from tests.stateful import walks

TIMEOUT_S = 10.0
FINALES_MAX = 6
"""How often the end may have to be tried, because what went wrong before still ends a job."""

Observe = Callable[[Machine, str, Row], None]


@dataclass(frozen=True)
class Shape:
    """The constants of one example."""

    coordinators: int = 1
    subtasks: int = 1
    tolerable_failures: int = 0
    restarts_max: int = 1000
    is_periodic: bool = False


class FuzzedJob:
    """One job under fuzzing; `observe` hears of every row that is taken."""

    def __init__(
        self,
        shape: Shape,
        job: Callable[..., Job] = Job,
        observe: Observe | None = None,
    ) -> None:
        self.shape = shape
        self.record = Record(shape.coordinators, shape.subtasks, self._read_store)
        self.orders = Orders()
        self.schedule: list[str] = []
        self._observe = observe
        self._scripts = [Script(is_completing=False) for _ in range(shape.coordinators)]
        self.say(f"{shape}")
        self.simulated = SimulatedJob(
            self._configuration,
            lambda _: ListingProgram(self.record, self.orders),
            committer=lambda: TableCommitter(self.record, self.orders),
            job=job,
            prepare=self._prepare,
            retained=10**6,
        )

    def _configuration(self, start: int) -> JobConfiguration:
        shape = self.shape
        return JobConfiguration(
            "fuzzed",
            shape.subtasks,
            providers_of(
                self._scripts, CountingCoordinator, run=f"run-{start}", record=self.record
            ),
            checkpoint_interval_s=1.0 if shape.is_periodic else None,
            checkpoint_timeout_s=TIMEOUT_S,
            tolerable_checkpoint_failures=shape.tolerable_failures,
            restart_strategy=FixedDelay(shape.restarts_max, 1.0),
            commit_retries_max=1,
        )

    def _prepare(self, master: JobMaster) -> None:
        if self._observe is not None:
            observe = self._observe
            machines = machines_behind(master.job)
            machines.observer = lambda machine, source, row, _: observe(machine, source, row)

    def say(self, text: str) -> None:
        """Append a line to the schedule."""
        self.schedule.append(text)

    def coordinator(self, number: int) -> CountingCoordinator:
        """The coordinator that lives now."""
        coordinator = self._scripts[number].coordinator
        assert isinstance(coordinator, CountingCoordinator)
        return coordinator

    # what may be chosen from

    @property
    def coordinators(self) -> list[CountingCoordinator]:
        """Those of this start of the driver, in the job's order."""
        return [self.coordinator(number) for number in range(self.shape.coordinators)]

    def targets(self) -> list[tuple[int, int]]:
        """Coordinator and subtask between which a gateway is known."""
        return [(c.number, s) for c in self.coordinators for s in sorted(c.gateways)]

    def pending(self) -> list[tuple[int, int]]:
        """Coordinator and checkpoint of each future that is not completed, those of aborted
        checkpoints included.
        """
        return [(c.number, checkpoint) for c in self.coordinators for checkpoint in c.results]

    def moves(self) -> list[Step]:
        """The single steps that are not idle."""
        return [step for step in self.simulated.steps() if step[0] != "work"]

    @property
    def is_over(self) -> bool:
        """True if the job has ended."""
        return self.simulated.is_over

    # what can be done

    def drain(self, events_max: int | None = None) -> None:
        """Let the job master process its queue, wholly or in part."""
        with self.guarded():
            self.simulated.drain(events_max)

    def process(self, events_max: int | None) -> None:
        """The same, as a step of its own."""
        self.say(f"the job master processes {events_max or 'all'} of its events")
        self.drain(events_max)

    def flow(self, held: tuple[str, ...], only: int | None) -> None:
        """Let messages move, but for those held back."""
        who = "everybody" if only is None else f"subtask {only}"
        self.say(f"messages of {who} move" + (f", but not: {', '.join(held)}" if held else ""))
        with self.guarded():
            self.simulated.flow(held, only)

    def walk(self, machine: str, subtask: int, state: str) -> None:
        """Let everything happen, one thing at a time, until a machine is in this state."""
        self.say(f"things happen until {machine} of subtask {subtask} is {state}")
        walks.walk(self, machine, subtask, state)

    def fall_behind(self) -> None:
        """The committer does not answer any more, while checkpoints are completed."""
        self.say("commits hang, and things happen until a later checkpoint is completed")
        self.simulated.blocking.hanging.add("commit")
        walks.fall_behind(self)

    def catch_up(self) -> None:
        """The committer answers again."""
        self.say("commits hang no more")
        self.simulated.blocking.hanging.discard("commit")

    def move(self, step: Step) -> None:
        """Move one message."""
        self.say(f"step {step[0]} of {'message' if step[0] == 'late' else 'process'} {step[1]}")
        with self.guarded():
            self.simulated.step(step)

    def send(self, coordinator: int, subtask: int, count: int) -> None:
        """Let a coordinator send."""
        first = len(self.coordinator(coordinator).sent[subtask]) + 1
        self.say(f"coordinator {coordinator} sends {first}..{first + count - 1} to {subtask}")
        for _ in range(count):
            self.coordinator(coordinator).send_next(subtask)

    def send_to_the_past(self, coordinator: int, position: int) -> None:
        """Let it use the gateway of an attempt that has failed."""
        gateway = self.coordinator(coordinator).old_gateways[position]
        self.say(
            f"coordinator {coordinator} sends to attempt {gateway.attempt} of subtask "
            f"{gateway.subtask}, which has failed"
        )
        self.coordinator(coordinator).send_by(gateway)

    def answer(self, coordinator: int, checkpoint: int, how: str) -> None:
        """Let it complete the future of a checkpoint, or fail or cancel it."""
        self.say(f"coordinator {coordinator}'s future of {checkpoint}: {how}")
        self.coordinator(coordinator).answer(checkpoint, how)

    def order_answer(self, coordinator: int, how: str) -> None:
        """From now on it answers `now` or `later`; or it raises, once."""
        self.say(f"coordinator {coordinator} will answer: {how}")
        script = self._scripts[coordinator]
        script.is_completing = how == "now"
        script.errors.clear()
        if how == "raise":
            script.raise_at(f"{operator_id(coordinator)}.checkpoint", Poison("checkpoint"))

    def request(self) -> None:
        """Ask for a checkpoint."""
        self.say("a checkpoint is requested")
        self.simulated.master.request_checkpoint()

    def run_blocking(self, lane: str) -> None:
        """Let the next save (`store`) or commit (`commit`) run; its result is not processed yet."""
        self.say(f"blocking work runs: {lane}")
        self.simulated.run_blocking(lane)

    def advance(self) -> None:
        """The next timer."""
        self.say("time passes to the next timer")
        self.simulated.advance()

    def expire(self) -> None:
        """More time than a checkpoint may take."""
        self.say(f"{TIMEOUT_S:g} s pass")
        with self.guarded():
            self.simulated.wait(TIMEOUT_S)

    def kill(self, identity: int) -> None:
        """A process dies."""
        self.say(f"process {identity} is killed")
        self.simulated.transport.kill(identity)

    def cut(self, identity: int) -> None:
        """A connection breaks."""
        self.say(f"process {identity} loses its connection and lives on")
        self.simulated.transport.cut(identity)

    def intrude(self, subtask: int) -> None:
        """A process comes up that was not asked for."""
        identity = self.simulated.transport.launch(subtask)
        self.say(f"process {identity} of subtask {subtask} comes up uninvited")

    def overtake(self, subtask: int) -> None:
        """An uninvited process takes the place of another, of whose end the driver hears later."""
        self.intrude(subtask)
        self.flow(("lose",), None)
        self.advance()

    def doom(self, tag: str, fate: Fate) -> None:
        """The next message of a kind gets lost, or late, or repeated."""
        self.say(f"the next {tag} will be {fate}")
        self.simulated.faults.doom(tag, fate)

    def repeat(self, position: int) -> None:
        """An acknowledgement or confirmation arrives again."""
        subtask, identity, message = self.simulated.faults.heard[position]
        self.say(f"process {identity} of subtask {subtask} is heard again: {message[:3]}")
        self.simulated.faults.repeat(position)

    def poison(self, subtask: int, where: str) -> None:
        """User code of a subtask raises."""
        self.say(f"the next {where} of subtask {subtask} will raise")
        self.orders.poison.add((subtask, where))

    def fail_job(self, coordinator: int) -> None:
        """A coordinator fails the job."""
        self.say(f"coordinator {coordinator} fails the job")
        self.coordinator(coordinator).context.fail_job("by order of the test")

    def fail_store(self, how: str) -> None:
        """The next save raises: it is `not kept`, or the outcome is unknown, with the checkpoint
        stored (`but kept`) or not (`in doubt`).
        """
        self.say(f"the next save fails: {how}")
        error = CheckpointOutcomeUnknown("by order of the test") if how == "in doubt" else None
        self.simulated.store.fail_next_save(error, is_stored=how == "but kept")

    def fail_commit(self, how: str) -> None:
        """The next commit raises."""
        self.say(f"the next commit: {how}")
        self.orders.commit.append(how)

    def end(self, how: str) -> None:
        """Stop or cancel the job."""
        self.say(f"{how} the job")
        master = self.simulated.master
        (master.stop if how == "stop" else master.cancel)()

    def crash_driver(self) -> None:
        """The driver and all processes die, and another driver starts."""
        self.say("the job is started again" if self.is_over else "the driver dies and starts again")
        if self.is_over:
            self.drain()
            self._expect_all_futures_done()
        self.record.futures.clear()
        with self.guarded():
            self.simulated.crash_driver()

    # what must hold

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Return what the job master raises in here is a violation of I6."""
        try:
            yield
        except InvariantViolated:
            raise
        except Exception as error:
            # Whatever it is, in production the queue would have stopped with it.
            raise InvariantViolated("I6", f"the job master has stopped: {error!r}") from error

    def check(self) -> None:
        """I1 to I3, I8, the output and the contract."""
        self._read_store()
        self.record.check()
        newest = max(self.record.stored, default=0)
        has_finished = self.is_over and self.simulated.result.state == "finished"
        if has_finished and newest and newest not in self.record.table:
            account = f"the job has finished, and {newest} is not committed"
            raise InvariantViolated("output", account)

    def _read_store(self) -> None:
        for number in self.simulated.store.ids():
            if number not in self.record.stored:
                self.record.note_stored(self.simulated.store.load(number))

    def finale(self, crashes: bool = False) -> None:
        """Faults off, perhaps by another driver: I4 to I6, and a run to the end that leaves every
        event once.
        """
        if crashes:
            self.crash_driver()
        self.say("the faults end")
        for _ in range(FINALES_MAX):
            self._calm()
            if self._comes_to_rest() and self._takes_a_checkpoint() and self._finishes():
                self._expect_everything_once()
                return
            self.crash_driver()
        raise InvariantViolated("I6", f"no run has finished; {self.simulated.account()}")

    def _calm(self) -> None:
        transport = self.simulated.transport
        self.simulated.faults.calm()
        self.orders.poison.clear()
        self.orders.commit.clear()
        for coordinator in self.coordinators:
            coordinator.script.is_completing = True
            coordinator.script.errors.clear()
            for checkpoint in list(coordinator.results):
                coordinator.answer(checkpoint)
        for identity, process in list(transport.processes.items()):
            if process.is_cut:
                transport.kill(identity)

    def _settle(self, until: Callable[[], bool] | None = None) -> None:
        with self.guarded():
            try:
                self.simulated.rest(until)
            except Stuck as stuck:
                raise InvariantViolated("I6", str(stuck)) from None
        self.check()

    def _comes_to_rest(self) -> bool:
        self._settle()
        if not self.is_over:
            self._expect_one_process_each()
        return not self.is_over

    def _takes_a_checkpoint(self) -> bool:
        for _ in range(self.shape.tolerable_failures + 3):
            for target in self.targets():
                self.send(*target, 1)
            wanted = self.simulated.master.request_checkpoint()
            self._settle(wanted.done)
            if self.is_over:
                return False
            if wanted.exception() is None:
                self._settle()
                self._expect_all_futures_done()
                self._expect_open_gateways()
                return True
        raise InvariantViolated("I6", f"no checkpoint completes; {self.simulated.account()}")

    def _finishes(self) -> bool:
        for coordinator, subtask in self.targets():
            self.coordinator(coordinator).send_next(subtask)

        def is_over() -> bool:
            for coordinator in self.coordinators:
                for subtask in range(self.shape.subtasks):
                    coordinator.finish(subtask)
            return self.is_over

        self._settle(is_over)
        self._expect_all_futures_done()
        return self.simulated.result.state == "finished"

    def _expect_all_futures_done(self) -> None:
        if waiting := [future.event for future in self.record.futures if not future.done()]:
            raise InvariantViolated("I4", f"the outcome of {waiting} will never be told")

    def _expect_open_gateways(self) -> None:
        gateways = self.simulated.machines.gateway
        if shut := [repr(gateway) for gateway in gateways.values() if gateway.state != "open"]:
            raise InvariantViolated("I5", f"{shut} should have reopened")

    def _expect_one_process_each(self) -> None:
        speakers = [
            self.simulated.transport.processes[i].subtask for i in self.simulated.transport.living()
        ]
        if sorted(speakers) != list(range(self.shape.subtasks)):
            account = f"of {self.shape.subtasks} subtasks processes of {sorted(speakers)} live"
            raise InvariantViolated("processes", account)

    def _expect_everything_once(self) -> None:
        for c, s in self.record.pairs:
            rows, sent = self.record.rows(c, s), len(self.coordinator(c).sent[s])
            if rows != list(range(1, sent + 1)):
                account = f"coordinator {c} sent {sent} events to subtask {s}; committed: {rows}"
                raise InvariantViolated("output", account)
