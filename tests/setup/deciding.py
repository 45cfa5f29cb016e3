"""The list of files that go around handles, and of the decisions of shells that are no rows, each
with the reason.

`test_machines_decide.py` refuses what stands here and is not there any more.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Way:
    """The import or name by which a file goes around handles, and why."""

    names: tuple[str, ...]
    reason: str


@dataclass(frozen=True)
class Decision:
    """A function outside of models/ that decides, what it decides by, and why that is no row."""

    file: str
    function: str
    by: str
    reason: str


VARIANT = "a test may give a variant of the machines"

WAYS = {
    "spark/checking/code.py": Way(
        (
            "epochgate.fsm.checker.compiler.machine_code",
            "epochgate.fsm.checker.engines.partition_kernels",
            "epochgate.fsm.checker.engines.store_kernels",
        ),
        "a search runs no protocol: it compiles the kernels of the checker",
    ),
    "spark/checking/partition.py": Way(
        ("epochgate.fsm.checker.engines.kernels",), "a search names places of its status"
    ),
    "spark/checking/store.py": Way(
        ("epochgate.fsm.checker.engines.kernels",), "a search names places of its status"
    ),
    "spark/handle.py": Way(("shown",), "the status of a job is displayed"),
    "runtime/shell/concurrent_attempts.py": Way(("shown",), "which attempts a status displays"),
    "runtime/shell/recreate_on_reset.py": Way(
        ("shown",), "a test or a debugger asks for the coordinator of the time"
    ),
    "epochgate/benchmarks/silent.py": Way(
        ("machine_behind",), "a benchmark acknowledges the checkpoint under way"
    ),
    "runtime/tracing/file_journal.py": Way(
        ("record_event",), "a trace has the states of the machines, and decides nothing"
    ),
    "runtime/shell/job_master.py": Way(("CommittingJob", "ConcurrentJob", "Job"), VARIANT),
    "runtime/source/assignment.py": Way(
        ("TransitionRefused", "machine_behind"),
        "a reader's or the user's call is refused whole, before anything of it is done",
    ),
    "runtime/steering/history.py": Way(
        ("BatchDecisions",), "what is forgotten by its number is not shown either"
    ),
    "epochgate/benchmarks/independent.py": Way(
        ("epochgate.fsm.STAY",), "its machines are searched, and run nothing"
    ),
    "epochgate/benchmarks/promela.py": Way(("Reference",), "the model is compared with another's"),
    "runtime/testing/simulation.py": Way(
        ("Job", "machines_behind"), "a simulation runs until its job is steady"
    ),
    "runtime/testing/playing/late.py": Way(
        ("__self__", "machine_behind"), "a played schedule waits until its next step can happen"
    ),
    "runtime/testing/playing/renaming.py": Way(
        ("machine_behind",), "a task counts again where its closed job does"
    ),
    "runtime/testing/playing/scripted.py": Way(
        ("Job", "__self__", "machine_behind"), "a played schedule says which process speaks"
    ),
    "runtime/testing/playing/stage.py": Way(
        ("ClosedJob", "Job", "machine_behind"), "the runtime's machines are compared with a model's"
    ),
    "runtime/testing/worlds/feedback.py": Way(("Job",), "the rows of the machines are counted"),
    "runtime/testing/worlds/fingerprint.py": Way(
        ("__self__",), "the objects behind bound methods are compared"
    ),
    "runtime/testing/worlds/rig.py": Way(
        ("machine_behind", "machines_behind"), "a world hears of the rows that are taken"
    ),
    "runtime/testing/worlds/trace.py": Way(
        ("machine_behind",), "the page of a failure shows the states behind each step"
    ),
}

CONFIGURED = (
    "the configuration of a job, which no event changes, refuses the caller before anything is "
    "posted"
)
FAREWELL = (
    "which message is the last between driver and task belongs to the connection: the machines "
    "know a process by its identity, and what is dropped here is to, or of, one that has left"
)
OF_SPARK = "what Spark shows of its tasks is put into triggers of the machine, within limits"
OF_USERS = "an enumerator of the user's is there, or not, or is called from a stale one"
COLLECTED = (
    "which collected rows are on their way, and which are final, is decided by hand: no machine "
    "has the window and the checkpoints of rows yet"
)

DECISIONS = (
    Decision(
        "runtime/shell/job_master.py",
        "JobMaster.request_checkpoint",
        "self.configuration.concurrent_attempts_max > 1",
        CONFIGURED,
    ),
    Decision(
        "runtime/shell/job_master.py",
        "JobMaster.request_savepoint",
        "self.configuration.concurrent_attempts_max > 1",
        CONFIGURED,
    ),
    Decision(
        "runtime/shell/job_master.py",
        "JobMaster.stop",
        "self.configuration.concurrent_attempts_max > 1",
        CONFIGURED,
    ),
    Decision("spark/attempt_loop.py", "Attempt.run", "messages[0] == ['finish']", FAREWELL),
    Decision("spark/attempt_loop.py", "Attempt._receive", "messages[-1] == RELEASE", FAREWELL),
    Decision(
        "spark/attempt_loop.py",
        "Attempt._give_up_quietly",
        "time.monotonic() < deadline_s",
        FAREWELL,
    ),
    Decision("spark/transport.py", "SparkTransport.send", "identity in self._ended", FAREWELL),
    Decision("spark/transport.py", "SparkTransport.received", "process.identity in told", FAREWELL),
    Decision(
        "spark/transport.py",
        "SparkTransport.lost",
        "process.identity not in self._left",
        "a process that has said that it leaves has no successor to wait for; what its loss means "
        "for the attempt is a row",
    ),
    Decision(
        "spark/transport.py",
        "SparkTransport.close",
        "self._is_closing = True",
        "the job is over by a row: a process that is connected, or connects later, is sent away",
    ),
    Decision(
        "spark/transport.py",
        "SparkTransport._job_ended",
        "len(self._told_to_finish) == self._parallelism",
        "the Spark job ends by itself once all tasks were told to finish; any other end is told to "
        "the machines",
    ),
    Decision("spark/placing.py", "Placing._tell", "run.status == 'FAILED'", OF_SPARK),
    Decision(
        "spark/placing.py", "Placing._tell_unanswered", "silent.waited_s > ANSWER_S", OF_SPARK
    ),
    Decision(
        "spark/placing.py",
        "Placing._tell_time",
        "len(failures) >= FAILURES_BEFORE_HELLO_MAX",
        OF_SPARK,
    ),
    Decision(
        "runtime/source/coordinator.py",
        "SourceCoordinator._running",
        "self._is_broken",
        OF_USERS,
    ),
    Decision(
        "runtime/source/generation.py",
        "Generation.call_async",
        "self._is_over",
        OF_USERS,
    ),
    Decision(
        "runtime/collect/coordinator.py",
        "CollectSinkCoordinator.notify_checkpoint_complete",
        "c > checkpoint_id",
        COLLECTED,
    ),
    Decision(
        "runtime/collect/coordinator.py", "CollectSinkCoordinator._help", "self._waiting", COLLECTED
    ),
    Decision(
        "runtime/collect/operator.py",
        "CollectSinkOperator._next_batch",
        "self._next >= self._until",
        COLLECTED,
    ),
    Decision(
        "runtime/steering/coordinated.py",
        "Coordinated.choice",
        "if completed",
        "a notice that the machine has given is passed on with the next choice, where an error of "
        "the user's fails that batch",
    ),
    Decision(
        "runtime/steering/history.py",
        "_first",
        "raise HistoryForgotten",
        "a question about the past, which changes nothing",
    ),
    Decision(
        "runtime/in_doubt.py",
        "_Settling.on_event",
        "self._store.save",
        "no job runs: a command of an operator's stores what the next start reads, once the "
        "committer has said that its commits are done",
    ),
)
