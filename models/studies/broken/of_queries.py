"""The variants of streaming queries that must fail, in the order of the catalogue."""

from __future__ import annotations

from epochgate.models.studies.broken import choosing, planning, steering, streaming
from epochgate.models.studies.broken.variant import Broken

OF_QUERIES: dict[str, Broken] = {
    "streaming.appending": Broken(
        streaming.Appending,
        "Q2: rows are in the table once at most",
        10,
        "driver.plan driver.run driver.step driver.lose driver.step",
    ),
    "streaming.skipping": Broken(
        streaming.Skipping,
        "Q2: what Spark has logged as committed is in the table",
        14,
        "driver.die user.set_back driver.start driver.plan driver.log",
    ),
    "streaming.undoing": Broken(
        streaming.Undoing,
        "Q3: what counts as committed is in the table, and stays",
        8,
        "driver.step driver.fail driver.abort",
    ),
    "streaming.one_note": Broken(
        streaming.OneNote,
        "Q2: what Spark has logged as committed is in the table",
        21,
        "driver.log driver.plan driver.die user.set_back driver.start driver.log",
    ),
    "streaming.notes_overwritten": Broken(
        streaming.NotesOverwritten,
        "Q2: what Spark has logged as committed is in the table",
        27,
        "driver.run driver.step user.copy driver.start_copy driver.log driver.log",
    ),
    "streaming.listed_files": Broken(
        streaming.ListedFiles,
        "Q4: what an attempt that failed has staged is never shown",
        7,
        "driver.spill driver.run driver.step",
    ),
    "streaming.recorded_before": Broken(
        streaming.RecordedBefore,
        "Q3: what counts as committed is in the table, and stays",
        6,
        "driver.run driver.step driver.step",
    ),
    "planning.nothing_written": Broken(
        planning.NothingWritten,
        "what Spark is told of can be read",
        7,
        "stream.appear driver.ask client.answer client.answer",
    ),
    "planning.splits_forgotten": Broken(
        planning.SplitsForgotten,
        "the batches that were run have each split once, in its order, read or pruned",
        18,
        "driver.ask client.lose client.answer driver.log driver.work",
    ),
    "planning.forgotten_batch_read": Broken(
        planning.ForgottenBatchRead,
        "what tasks read is not forgotten",
        32,
        "client.lose driver.log driver.commit driver.ask client.arrive client.answer",
    ),
    "planning.swept_too_early": Broken(
        planning.SweptTooEarly, "no plan refers to what was swept", 24, "driver.start driver.start"
    ),
    "planning.forgotten_batch_planned": Broken(
        planning.ForgottenBatchPlanned,
        "what Spark is told of is not forgotten",
        30,
        "driver.ask driver.ask driver.commit driver.ask client.answer",
    ),
    "planning.pruned_unrecorded": Broken(
        planning.PrunedUnrecorded,
        "the batches that were run have each split once, in its order, read or pruned",
        19,
        "stream.appear stream.update driver.ask stream.appear driver.ask driver.work",
    ),
    "planning.filter_of_an_earlier_batch": Broken(
        planning.FilterOfAnEarlierBatch,
        "a batch is pruned by the newest filter of when it was asked for, or by a newer one",
        12,
        "driver.ask stream.update driver.ask client.answer client.answer client.answer",
    ),
    "planning.filter_looked_up": Broken(
        planning.FilterLookedUp,
        "two runs of one batch are pruned by one filter",
        18,
        "driver.work driver.work stream.update client.answer",
    ),
    "steering.nothing_durable": Broken(
        steering.NothingDurable,
        "the decision of the newest batch is kept once a task has seen it",
        5,
        "driver.start driver.plan client.answer client.answer driver.work",
    ),
    "steering.looked_up_by_tasks": Broken(
        steering.LookedUpByTasks,
        "two runs of one batch see one version",
        10,
        "driver.plan driver.work user.update driver.work",
    ),
    "steering.zombie_overwrites": Broken(
        steering.ZombieOverwrites,
        "from when on a version is in force stays as it was answered",
        14,
        "driver.plan driver.start user.update client.answer asker.ask driver.work",
    ),
    "steering.forgotten_batch_decided": Broken(
        steering.ForgottenBatchDecided,
        "two runs of one batch see one version",
        23,
        "driver.plan driver.start user.update driver.work driver.commit driver.plan driver.work",
    ),
    "choosing.chosen_at_a_replay": Broken(
        choosing.ChosenAtAReplay,
        "the decision of a batch holds what its tasks have seen",
        14,
        "driver.start driver.plan driver.start client.answer client.waver driver.work",
    ),
    "choosing.nothing_restored": Broken(
        choosing.NothingRestored,
        "a coordinator chooses from the state of the batch before",
        16,
        "driver.plan client.waver driver.work driver.commit driver.plan client.answer",
    ),
    "choosing.earlier_state": Broken(
        choosing.EarlierState,
        "a coordinator chooses from the state of the batch before",
        25,
        "driver.commit driver.plan driver.start client.waver driver.commit driver.plan client.answer",
    ),
    "choosing.chosen_twice": Broken(
        choosing.ChosenTwice,
        "a coordinator chooses from the state of the batch before",
        10,
        "driver.plan client.answer client.deny driver.start client.answer",
    ),
    "steering.loss_unnoticed": Broken(
        steering.LossUnnoticed,
        "versions are seen in their order",
        18,
        "user.update driver.plan user.lose driver.work driver.commit driver.plan driver.work",
    ),
    "updating.second_number": Broken(
        steering.SecondNumber,
        "no update takes two versions",
        8,
        "client.begin client.answer client.lose client.arrive client.answer client.answer",
    ),
    "updating.removed_number": Broken(
        steering.RemovedNumber,
        "no update takes two versions",
        20,
        "client.lose client.arrive client.begin client.arrive client.answer",
    ),
    "updating.checked_too_early": Broken(
        steering.CheckedTooEarly,
        "what is in force has passed the check",
        10,
        "client.begin client.begin client.answer client.answer",
    ),
    "updating.last_writer_wins": Broken(
        steering.LastWriterWins,
        "an update that is done has a version of its own",
        10,
        "client.begin client.begin client.answer client.answer",
    ),
}
