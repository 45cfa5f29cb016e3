"""The variants of commits that must fail, in the order of the catalogue."""

from __future__ import annotations

from epochgate.models.studies.broken import commit, committing
from epochgate.models.studies.broken.variant import Broken

OF_COMMITS: dict[str, Broken] = {
    "commit.unstored_ledger": Broken(
        commit.UnstoredLedger,
        "none is left out",
        9,
        "checkpoint.hear checkpoint.persist driver.die driver.start sink.apply",
    ),
    "commit.removed_too_much": Broken(
        commit.RemovedTooMuch,
        "what leaves the ledger has taken effect",
        8,
        "checkpoint.hear checkpoint.hear sink.apply sink.answer",
    ),
    "commit.early": Broken(
        commit.EarlyCommit,
        "nothing takes effect before its checkpoint is durable",
        2,
        "checkpoint.begin sink.apply",
    ),
    "commit.forgotten_ledger": Broken(
        commit.ForgottenLedger,
        "none is left out",
        9,
        "checkpoint.hear checkpoint.persist driver.die driver.start sink.apply",
    ),
    "commit.given_up_together": Broken(
        commit.GivenUpTogether,
        "none is left out",
        11,
        "checkpoint.persist checkpoint.persist doubt.forgo doubt.store driver.start sink.apply",
    ),
    "commit.given_up_in_vain": Broken(
        commit.GivenUpInVain,
        "no later start commits what a person has given up",
        7,
        "checkpoint.persist doubt.forgo doubt.store driver.start sink.apply",
    ),
    "commit.late_answer": Broken(
        commit.LateAnswer,
        "what leaves the ledger has taken effect",
        8,
        "checkpoint.hear sink.leave_out sink.answer_again",
    ),
    "commit.appending": Broken(
        commit.Appending,
        "I9: a committable takes effect once",
        8,
        "sink.apply driver.die driver.start sink.apply",
    ),
    "commit.key_of_a_run": Broken(
        commit.KeyOfARun, "I9: a committable takes effect once", 8, "sink.apply driver.die"
    ),
    "commit.last_seen": Broken(
        commit.LastSeen, "I9: a committable takes effect once", 13, "sink.apply driver.die"
    ),
    "commit.skipped_empty": Broken(
        commit.SkippedEmpty,
        "C5: the target of a job that has finished knows each of its checkpoints",
        13,
        "driver.die driver.finish",
    ),
    "commit.finished_too_early": Broken(
        commit.FinishedTooEarly,
        "the ledger of a job that has finished is empty",
        9,
        "checkpoint.hear driver.finish",
    ),
    "commit.unfenced": Broken(
        commit.Unfenced,
        "a driver that was replaced changes nothing in the target",
        6,
        "driver.die driver.start zombie.apply",
    ),
    "commit.silently_back": Broken(
        commit.SilentlyBack,
        "the target is never ahead of a driver that works",
        6,
        "sink.apply driver.die driver.go_back",
    ),
    "commit.forgotten_debt": Broken(
        commit.ForgottenDebt, "C8: the next driver finds what work is owed", 7, "sink.answer"
    ),
    "commit.skipped_work": Broken(
        commit.SkippedWork, "C7: the work of commits is done in their order", 12, "worker.fail"
    ),
    "commit.work_in_the_way": Broken(
        commit.WorkInTheWay,
        "C9: checkpoints complete",
        6,
        "sink.answer",
    ),
    "commit.tries_of_the_last": Broken(
        commit.TriesOfTheLast,
        "the tries of a commit are counted",
        11,
        "sink.put_off checkpoint.begin checkpoint.persist driver.die driver.start",
    ),
    "committing.asked_amid": Broken(
        committing.AskedAmid,
        "a task that has passed its barrier commits nothing until all tasks have",
        17,
        "store.finish_save person.stop process.tell before_it.finish process.tell",
    ),
    "committing.not_passed_on_again": Broken(
        committing.NotPassedOnAgain,
        "says that a subtask has to commit what its snapshot has not passed on",
        17,
        "store.finish_save process.tell process.hear process.usurp backoff.elapse person.stop process.hear",
    ),
    "committing.collected_twice": Broken(
        committing.CollectedTwice,
        "each part of a checkpoint comes once",
        21,
        "process.tell process.hear process.usurp backoff.elapse process.hear process.hear process.tell process.hear",
    ),
    "committing.missing_part": Broken(
        committing.MissingPart,
        "a checkpoint is whole once all its parts have come",
        15,
        "store.finish_save process.tell process.hear",
    ),
    "committing.left_too_early": Broken(
        committing.LeftTooEarly,
        "a task leaves once it has committed what the last checkpoint holds",
        8,
        "person.stop process.tell process.hear store.finish_save",
    ),
    "committing.still_sealed": Broken(
        committing.StillSealed,
        "says that a subtask has to commit what its snapshot has not passed on",
        20,
        "process.hear process.usurp backoff.elapse store.fail_save process.hear process.tell process.hear",
    ),
    "committing.input_forgotten": Broken(
        committing.InputForgotten,
        "each step passes on checkpoints in their order",
        21,
        "person.stop process.hear launch.die_unheard launch.launch process.tell process.hear behind_it.finish",
    ),
    "committing.tries_forgotten": Broken(
        committing.TriesForgotten,
        "the tries of a commit survive failures of its task and its driver",
        18,
        "process.put_off process.hear person.stop launch.die_unheard launch.launch process.hear",
    ),
    "committing.answer_of_another": Broken(
        committing.AnswerOfAnother,
        "what is noted of a commit is what the task has said",
        11,
        "process.usurp backoff.elapse store.finish_save process.hear_zombie",
    ),
    "committing.said_at_the_barrier": Broken(
        committing.SaidAtTheBarrier,
        "says that a subtask has to commit what its snapshot has not passed on",
        19,
        "person.stop process.tell process.tell process.hear before_it.finish process.hear",
    ),
    "committing.ledger_forgotten": Broken(
        committing.LedgerForgotten,
        "a stored checkpoint has each earlier one that is not committed",
        13,
        "store.finish_save process.tell process.hear person.stop process.tell process.hear",
    ),
}
