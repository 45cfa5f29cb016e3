r"""The committer of one subtask: has the task commit what it handed over, once the checkpoint that
holds it is completed, and passes on what was committed.

Decides when the task is asked, one checkpoint after the other, oldest first; that a commit is tried
again a bounded number of times; and which checkpoints the task commits again after a failure: all
that the completed checkpoint does not hold as passed on, as the operators behind the committer are
restored from there. Between the barrier of a subtask and the end of its checkpoint the task is asked
for nothing: whatever it passes on then would belong to no side of the barrier::

    driver    due 1        barrier 2             stored 2
                 \\commit 1     \\            3 is due: commit 2, 3
    task           commits 1    snapshot 2 (1 is passed on)

Each checkpoint that is stored holds which of the earlier ones the subtask has still to commit, so
that a driver may die at any moment. Leaves to the user's committer that committing twice is the
same as once, and to `CommittableCollector` when a checkpoint is whole. Source: Apache Flink's
CommitterOperator (rules C13 to C17 in docs/protocol.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from epochgate.fsm import (
    ANY,
    STAY,
    Channel,
    Fifo,
    Ignore,
    Int,
    Machine,
    Opaque,
    Port,
    Row,
    Trigger,
    fallible,
    output,
)

if TYPE_CHECKING:
    from epochgate.models.committing_job import CommittingJob

AWAY, IDLE, COMMITTING, PAUSING, GIVEN_UP = "away", "idle", "committing", "pausing", "given_up"
QUIET = (AWAY, IDLE, PAUSING, GIVEN_UP)


class SubtaskCommitterPort(Port):
    """The place where the subtask's committables are kept, and its task, which is asked."""

    def renew(self) -> None:
        """The subtask's attempt is restored: what it has committed and passed on is what the
        completed checkpoint says.
        """

    @fallible("retry_later, expire", succeeds="committed", within="commit_timeout_s")
    def commit(self, identity: int, checkpoint: int, tries: int) -> None:
        """Ask this process to commit the subtask's part of a checkpoint; `tries` failed before."""

    def pause(self, checkpoint: int, tries: int) -> None:
        """Say `pause_over` after a pause, which is longer the more tries there were."""

    def keep(self, checkpoint: int, earlier: int, tries: int) -> None:
        """The checkpoint that is under way says that the subtask has to commit an earlier one,
        which it has tried so often.
        """

    def note(self, checkpoint: int, outcome: Opaque) -> None:
        """This is the state of the subtask's part: what is committed, and what is left."""

    def release(self, checkpoint: int) -> None:
        """The subtask never commits this checkpoint again."""


class SubtaskCommitter(Machine):
    """The committables of one subtask, and what it has passed on since the completed checkpoint."""

    INDEX = ("subtask",)
    STATES = (AWAY, IDLE, COMMITTING, PAUSING, GIVEN_UP)
    INITIAL = AWAY
    TERMINAL = (GIVEN_UP,)

    system: CommittingJob
    subtask: int
    task: SubtaskCommitterPort = output(SubtaskCommitterPort)

    waiting: Fifo[int] = Channel("checkpoints", "checkpoints")
    """The checkpoints that the subtask has to commit, oldest first."""
    passed: Fifo[int] = Channel("checkpoints", "checkpoints")
    """Those that it has passed on since its last barrier."""
    sealed: Fifo[int] = Channel("checkpoints", "checkpoints")
    """Those that it had passed on before that, as the checkpoint under way says."""
    tried: int = Int("checkpoints")
    """The one that was tried last in vain; 0 for none."""
    tries: int = Int("commit_retries")
    """How often; of no meaning for none."""

    adopt: Trigger
    due: Trigger
    running: Trigger
    stopped: Trigger
    committed: Trigger
    retry_later: Trigger
    pause_over: Trigger
    expire: Trigger
    carry: Trigger
    complete: Trigger
    abort: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("adopt",        AWAY,                  STAY,       None,
            "enter_adopted",           "the restored checkpoint says that this one is to be committed"),

        Row("due",          AWAY,                  STAY,       None,
            "enter",                   "the subtask's next attempt commits it"),
        Row("due",          IDLE,                  COMMITTING, "not is_amid",
            "enter, commit",           "the checkpoint is completed"),
        Row("due",          IDLE,                  PAUSING,    "is_amid",
            "enter, pause",            "the subtask's next snapshot may be taken before the answer"),
        Row("due",          (COMMITTING, PAUSING), STAY,       None,
            "enter",                   "an earlier checkpoint comes first"),
        Ignore("due",       GIVEN_UP,                          None,
                                       "the job goes down"),

        Row("running",      AWAY,                  IDLE,       "is_done",
            "renew, settle",           "the attempt has nothing to commit"),
        Row("running",      AWAY,                  COMMITTING, "not is_done",
            "renew, commit",           "what the restored checkpoint has not seen committed"),

        Row("stopped",      (IDLE, COMMITTING, PAUSING), AWAY, None,
            "go_back",                 "the next attempt is restored, and passes on again"),
        Ignore("stopped",   AWAY,                              None,
                                       "the attempt has not come to commit anything"),
        Ignore("stopped",   GIVEN_UP,                          None,
                                       "the job goes down"),

        Row("committed",    COMMITTING,            IDLE,       "is_asked and is_last",
            "pass_on, settle",         "the subtask has committed all of it"),
        Row("committed",    COMMITTING,            COMMITTING, "is_asked and not is_last and not is_amid",
            "pass_on, commit",         "the next checkpoint is due"),
        Row("committed",    COMMITTING,            PAUSING,    "is_asked and not is_last and is_amid",
            "pass_on, pause",          "the next checkpoint waits for the snapshot"),
        Ignore("committed", COMMITTING,                        "not is_asked",
                                       "the answer is to an earlier try"),
        Ignore("committed", QUIET,                             None,
                                       "the task is not asked for anything"),

        Row("retry_later",  COMMITTING,            PAUSING,    "is_asked and may_retry",
            "note_rest, count, pause", "not all of it could be committed now"),
        Row("retry_later",  COMMITTING,            GIVEN_UP,   "is_asked and not may_retry",
            "note_rest, fail_job",     "it could not be committed in any allowed try"),
        Ignore("retry_later", COMMITTING,                      "not is_asked",
                                       "the answer is to an earlier try"),
        Ignore("retry_later", QUIET,                           None,
                                       "the task is not asked for anything"),

        Row("pause_over",   PAUSING,               COMMITTING, "is_asked and not is_amid",
            "commit",                  "the pause is over"),
        Row("pause_over",   PAUSING,               STAY,       "is_asked and is_amid",
            "pause",                   "the subtask's snapshot may be taken before the answer"),
        Ignore("pause_over", PAUSING,                          "not is_asked",
                                       "the pause was for an earlier try"),
        Ignore("pause_over", (AWAY, IDLE, COMMITTING, GIVEN_UP), None,
                                       "no pause is under way"),

        Row("expire",       COMMITTING,            STAY,       "is_asked and is_of_attempt",
            "fault_attempt",           "the task has not answered within its limit; its successor commits again"),
        Ignore("expire",    COMMITTING,                        "is_asked and not is_of_attempt",
                                       "the limit was for an earlier attempt"),
        Ignore("expire",    COMMITTING,                        "not is_asked",
                                       "the limit was for an earlier try"),
        Ignore("expire",    QUIET,                             None,
                                       "the task is not asked for anything"),

        Row("carry",        (IDLE, PAUSING),       STAY,       None,
            "keep_waiting, seal_passed", "all subtasks have taken their snapshots"),

        Row("complete",     ANY,                   STAY,       None,
            "release_sealed",          "what was passed on before the snapshot is durable"),
        Row("abort",        AWAY,                  STAY,       None,
            "unseal_waiting",          "the next attempt is restored from an earlier checkpoint"),
        Row("abort",        (IDLE, COMMITTING, PAUSING, GIVEN_UP), STAY, None,
            "unseal_passed",           "no checkpoint holds what was passed on"),
    )
    # fmt: on

    def is_done(self) -> bool:
        return self.waiting.empty()

    def is_last(self) -> bool:
        return self.waiting.size() == 1

    def is_asked(self, checkpoint: int, tries: int) -> bool:
        return checkpoint == self.waiting.head() and tries == self.head_tries()

    def is_of_attempt(self, checkpoint: int, tries: int, identity: int) -> bool:
        return identity == self.system.attempt[self.subtask].identity

    def is_amid(self) -> bool:
        """Return whether barriers are out whose snapshots are not all taken."""
        return self.system.checkpoint.is_pending()

    def may_retry(self) -> bool:
        return self.head_tries() < self.system.commit_retries

    def is_settled(self) -> bool:
        return self.state == IDLE

    def head_tries(self) -> int:
        """Count the tries of the oldest one that were in vain."""
        return self.tries if self.waiting.head() == self.tried else 0

    def enter_adopted(self, checkpoint: int, tries: int) -> None:
        self.waiting.push(checkpoint)
        if tries > 0:
            self.tried = checkpoint
            self.tries = tries

    def enter(self, checkpoint: int) -> None:
        self.waiting.push(checkpoint)

    def renew(self) -> None:
        self.task.renew()

    def commit(self) -> None:
        self.task.commit(
            self.system.attempt[self.subtask].identity, self.waiting.head(), self.head_tries()
        )

    def pause(self) -> None:
        self.task.pause(self.waiting.head(), self.head_tries())

    def pass_on(self, checkpoint: int, tries: int, outcome: Opaque) -> None:
        if tries > 0:
            self.tried = 0
        self.passed.push(self.waiting.pop())
        self.task.note(checkpoint, outcome)
        self.system.committable_collector.receive(self.subtask, checkpoint, outcome)

    def settle(self) -> None:
        self.system.lifecycle.commits_settled()

    def note_rest(self, checkpoint: int, tries: int, outcome: Opaque) -> None:
        self.task.note(checkpoint, outcome)

    def count(self) -> None:
        self.tries = self.head_tries() + 1
        self.tried = self.waiting.head()

    def fail_job(self, checkpoint: int, tries: int, outcome: Opaque, reason: Opaque) -> None:
        self.system.lifecycle.give_up(reason)

    def fault_attempt(self, checkpoint: int, tries: int, identity: int, reason: Opaque) -> None:
        self.system.attempt[self.subtask].fault(reason)

    def go_back(self) -> None:
        """Commit again, before everything else, what was passed on since the barrier."""
        for checkpoint in self.waiting.take_all():
            self.passed.push(checkpoint)
        self.waiting.drain(self.passed)

    def keep_waiting(self, checkpoint: int) -> None:
        for earlier in self.waiting.take_all():
            self.waiting.push(earlier)
            self.task.keep(checkpoint, earlier, self.tries if earlier == self.tried else 0)

    def seal_passed(self) -> None:
        self.sealed.drain(self.passed)

    def release_sealed(self) -> None:
        for earlier in self.sealed.take_all():
            self.task.release(earlier)

    def unseal_waiting(self) -> None:
        for checkpoint in self.waiting.take_all():
            self.sealed.push(checkpoint)
        self.waiting.drain(self.sealed)

    def unseal_passed(self) -> None:
        for checkpoint in self.passed.take_all():
            self.sealed.push(checkpoint)
        self.passed.drain(self.sealed)
