"""The list of all variants that must fail, with what a check says of each."""

from __future__ import annotations

from epochgate.models.studies import valve
from epochgate.models.studies.broken import (
    acknowledged,
    concurrent,
    discovering,
    filing,
    flooding,
    in_doubt,
    owning,
    pipelining,
    placing,
    setting,
    sources,
)
from epochgate.models.studies.broken.of_commits import OF_COMMITS
from epochgate.models.studies.broken.of_queries import OF_QUERIES
from epochgate.models.studies.broken.variant import Broken as Broken
from epochgate.models.studies.cases import hudi, iceberg, paimon, risingwave, sinkv2
from epochgate.models.studies.flink import hazards

I1 = "I1: what was sent before the coordinator's snapshot is in the subtask's"
I2 = "I2: what was sent after the coordinator's snapshot is not in the subtask's"


BROKEN: dict[str, Broken] = {
    "valve.none": Broken(
        valve.NoValve, I2, 7, "checkpoint.future sender.send subtask.deliver checkpoint.inject"
    ),
    "valve.lost_event": Broken(
        valve.LostEvent,
        I1,
        7,
        "sender.send checkpoint.future checkpoint.inject subtask.lose",
    ),
    "acknowledged.not_waiting": Broken(
        acknowledged.NotWaiting,
        I1,
        8,
        "sender.send checkpoint.future checkpoint.inject subtask.align",
    ),
    "acknowledged.reopened_at_injection": Broken(
        acknowledged.ReopenedAtInjection,
        I2,
        9,
        "checkpoint.future sender.send checkpoint.inject subtask.align",
    ),
    "acknowledged.past_the_marker": Broken(
        acknowledged.PastTheMarker,
        "what was acknowledged before the operator's snapshot",
        9,
        "subtask.report checkpoint.future sender.hear subtask.deliver",
    ),
    "flink.d1": Broken(
        hazards.EarlyReopening,
        I2,
        13,
        "snapshot.future pending.inject refusal.refuse main.run task.deliver task.align",
    ),
    "flink.d2": Broken(
        hazards.SkippedReopening,
        "a gateway that will not be reopened is open",
        14,
        "snapshot.future pending.inject task.vanish task.back_off main.run task.align",
    ),
    "flink.d3": Broken(
        hazards.MixedClose,
        "which ends the process",
        10,
        "pending.ask_coordinators task.vanish task.back_off snapshot.future main.run main.run",
    ),
    "flink.d4": Broken(
        hazards.ForgottenSends,
        I1,
        17,
        "sender.send snapshot.future timer.expire pending.begin snapshot.future task.align",
    ),
    "flink.d4_at_failover": Broken(
        hazards.ForgottenAtFailover,
        I1,
        24,
        "sender.send snapshot.future task.vanish pending.begin snapshot.future task.align",
    ),
    "flink.d4_with_a_loss": Broken(
        hazards.ForgottenLoss,
        I1,
        18,
        "sender.send snapshot.future timer.expire pending.begin task.lose task.deliver",
    ),
    "flink.d5": Broken(
        hazards.AbandonedFuture,
        "a gateway that was replaced holds nothing",
        12,
        "snapshot.future main.run sender.send main.run task.vanish task.back_off main.run",
    ),
    "flink.d6": Broken(
        hazards.UnreachedReopening,
        "deadlock",
        18,
        "task.finish pending.begin sender.send pending.begin snapshot.future main.run",
    ),
    "flink.d7": Broken(
        hazards.IntolerantCheckpoint,
        "no checkpoint fails while nothing has failed",
        9,
        "task.finish sender.send main.run",
    ),
    "flink.d8": Broken(
        hazards.UntoldCoordinator,
        "the coordinator is told how a checkpoint ends",
        3,
        "pending.begin timer.expire main.run",
    ),
    **OF_COMMITS,
    "concurrent.hasty_reset": Broken(
        concurrent.HastyReset,
        "the record is told of an attempt that another one outlives",
        4,
        "starter.arrive starter.arrive starter.die",
    ),
    "concurrent.missing_reset": Broken(
        concurrent.MissingReset,
        "the subtask is reset once, when its last attempt is gone",
        6,
        "starter.arrive starter.die delay.elapse starter.initialize",
    ),
    "concurrent.two_finishers": Broken(
        concurrent.TwoFinishers,
        "an attempt that has reached the end is the only one of its subtask",
        6,
        "starter.arrive starter.arrive starter.end",
    ),
    "concurrent.crossing_events": Broken(
        concurrent.CrossingEvents,
        "an event goes to the attempt of its gateway",
        6,
        "starter.arrive starter.initialize sends.send_late",
    ),
    "concurrent.repeated_numbers": Broken(
        concurrent.RepeatedNumbers,
        "each attempt of a subtask has its own number",
        8,
        "starter.initialize starter.die delay.elapse starter.initialize",
    ),
    "concurrent.overlooked_process": Broken(
        concurrent.OverlookedProcess,
        "no process waits for an attempt while an attempt waits for a process",
        8,
        "starter.end starter.arrive starter.die delay.elapse",
    ),
    "concurrent.forgotten_sends": Broken(
        concurrent.ForgottenSends,
        "no send waits for an attempt that is gone",
        5,
        "starter.initialize sends.send starter.die",
    ),
    "resuming.announced_abort": Broken(
        in_doubt.AnnouncedAbort,
        "I8: who was told that a checkpoint is aborted is never restored from it",
        9,
        "requester.want user.take_snapshot process.hear store.lose_answer",
    ),
    "resuming.announced_completion": Broken(
        in_doubt.AnnouncedCompletion,
        "I8: who was told that a checkpoint is completed is never restored from an older one",
        9,
        "requester.want user.take_snapshot process.hear store.lose_save",
    ),
    "discovering.unlisted": Broken(
        discovering.Unlisted, "T3: each file is found", 7, "file.arrive source.refuse"
    ),
    "discovering.confirmed_unseen": Broken(
        discovering.ConfirmedUnseen,
        "T4: a hint is done with once its file is known",
        3,
        "file.arrive source.give_out",
    ),
    "discovering.taken_again": Broken(
        discovering.TakenAgain, "T1: a file is taken once at most", 6, "file.arrive source.end_look"
    ),
    "discovering.waits_for_queue": Broken(
        discovering.WaitsForQueue,
        "T2: while nothing is under way, timers run to the next listing and the next question",
        2,
        "source.refuse",
    ),
    "sources.returned_at_failure": Broken(
        sources.ReturnedAtFailure,
        "I10: each split is read by at most one surviving history",
        9,
        "reader.tell job.take reader.tell reader.fail job.store reader.reset",
    ),
    "sources.reset_to_any_checkpoint": Broken(
        sources.ResetToAnyCheckpoint,
        "I10: each split is read by at most one surviving history",
        9,
        "reader.tell job.take reader.tell reader.fail job.store_unheard reader.reset",
    ),
    "sources.forgotten_at_abort": Broken(
        sources.ForgottenAtAbort,
        "I10: a completed checkpoint holds each split once",
        10,
        "dealer.push job.take reader.fail reader.reset job.take job.store",
    ),
    "sources.late_request_served": Broken(
        sources.LateRequestServed,
        "the reader that asks is there",
        3,
        "job.reset_all reader.hear_late",
    ),
    "sources.successor_not_told": Broken(
        sources.SuccessorNotTold,
        "each split is read, and each reader has ended",
        10,
        "job.reset_all dealer.push reader.ask reader.hear dealer.end",
    ),
    "placing.heard_host_given_up": Broken(
        placing.HeardHostGivenUp,
        "an executor is given up only while no process of its host is heard",
        5,
        "cluster.cut cluster.hush cluster.heal cluster.wait",
    ),
    "placing.silent_process_kept": Broken(
        placing.SilentProcessKept,
        "while a host that can reach the driver has room, the process comes",
        4,
        "scheduler.connect cluster.cut scheduler.silence",
    ),
    "placing.silent_host_trusted": Broken(
        placing.SilentHostTrusted,
        "a host is suspect exactly if the last task that tried from there has failed to",
        3,
        "cluster.cut cluster.hush",
    ),
    "placing.turned_away_in_vain": Broken(
        placing.TurnedAwayInVain,
        "a task is turned away from a suspect host alone, and while another one has room",
        5,
        "scheduler.offer cluster.cut cluster.fill cluster.doubt scheduler.look",
    ),
    "pipelining.mapped_again": Broken(
        pipelining.MappedAgain,
        "a batch is mapped once with the same settings",
        4,
        "program.work program.map_returns program.work",
    ),
    "pipelining.taken_late": Broken(
        pipelining.TakenLate,
        "each record is mapped once by the surviving history",
        3,
        "job.run_operator program.work program.map_returns",
    ),
    "pipelining.taken_early": Broken(
        pipelining.TakenEarly,
        "each record reaches the sink once",
        3,
        "job.run_function program.work program.map_returns",
    ),
    "pipelining.forgotten": Broken(
        pipelining.Forgotten,
        "a completed checkpoint holds each record that was taken",
        6,
        "job.ask program.map_returns program.barrier job.store",
    ),
    "setting.acknowledged_at_once": Broken(
        setting.AcknowledgedAtOnce,
        "I12: what was acknowledged is in the stored checkpoint",
        1,
        "client.ask",
    ),
    "setting.acknowledged_too_early": Broken(
        setting.AcknowledgedTooEarly,
        "I12: what was acknowledged is in the stored checkpoint",
        4,
        "job.begin client.ask job.store job.tell",
    ),
    "setting.forgotten": Broken(
        setting.Forgotten,
        "the value in force is the newest that was asked for",
        3,
        "client.ask job.fail job.restore",
    ),
    "setting.options_unheard": Broken(
        setting.OptionsUnheard,
        "the value in force is the newest that was asked for",
        4,
        "client.ask job.begin job.store job.reconfigure",
    ),
    "owning.fencing": Broken(
        owning.Fencing,
        "a table never goes back to a driver from before",
        10,
        "log.change client.boot client.boot client.answer client.answer",
    ),
    "owning.made_by_the_replaced": Broken(
        owning.MadeByTheReplaced,
        "a driver that another has replaced makes no table",
        7,
        "client.boot client.boot client.answer client.commit",
    ),
    "owning.unfenced": Broken(
        owning.Unfenced,
        "an entry is of the driver that the table names",
        12,
        "log.change client.boot client.answer client.boot client.answer client.commit client.answer",
    ),
    "filing.held_too_early": Broken(
        filing.HeldTooEarly,
        "a split is counted only if the newest complete checkpoint holds it",
        8,
        "job.take reader.barrier reader.read reader.hear job.store",
    ),
    "filing.believed": Broken(
        filing.Believed,
        "a split is counted only if the newest complete checkpoint holds it",
        10,
        "reader.read reader.hear reader.fail reader.reset job.take job.store",
    ),
    "filing.removed_before_the_commit": Broken(
        filing.RemovedBeforeTheCommit,
        "I13: no file is removed before the target has all its rows",
        10,
        "reader.read reader.hear job.take reader.barrier job.store",
    ),
    "filing.removed_with_another": Broken(
        filing.RemovedWithAnother,
        "I13: no file is removed before the target has all its rows",
        18,
        "job.store job.take job.commit job.store job.work",
    ),
    "flooding.granted_too_much": Broken(
        flooding.GrantedTooMuch,
        "no more than the bound is unconfirmed, or one event that is larger",
        7,
        "coordinator.send queue.handle coordinator.send coordinator.send",
    ),
    "flooding.large_events_refused": Broken(
        flooding.LargeEventsRefused,
        "a sender is refused only where something waits",
        18,
        "queue.handle queue.handle coordinator.send",
    ),
    "flooding.told_too_early": Broken(
        flooding.ToldTooEarly,
        "a sender is told when what was refused would be sent",
        9,
        "queue.handle coordinator.send coordinator.send coordinator.look coordinator.want",
    ),
    "flooding.sender_never_told": Broken(
        flooding.SenderNeverTold,
        "a sender that was refused is told when there is room",
        7,
        "coordinator.send coordinator.look task.die queue.look coordinator.want",
    ),
    "flooding.never_read_again": Broken(
        flooding.NeverReadAgain,
        "a connection that is not read is read again",
        14,
        "wire.read queue.handle queue.look wire.count wire.look_again",
    ),
    "flooding.never_paused": Broken(
        flooding.NeverPaused, "queue.waiting overflows", 14, "wire.read wire.read wire.read_rest"
    ),
    "flooding.sender_blocked": Broken(
        flooding.SenderBlocked,
        "a sender that was refused is told when there is room",
        13,
        "coordinator.send coordinator.look coordinator.want task.take task.say",
    ),
    "pressed.forgotten_waiters": Broken(
        flooding.ForgottenWaiters,
        "who waited for room of the attempt before was told",
        8,
        "sender.send sender.send process.usurp backoff.elapse",
    ),
    "pressed.held_uncounted": Broken(
        flooding.HeldUncounted,
        "no more than the bound is on the wire, or held by a closed gateway",
        8,
        "requester.want user.take_snapshot sender.send sender.send",
    ),
    **OF_QUERIES,
    "paimon.two_messages": Broken(
        paimon.TwoMessages,
        "no committable of the completed final checkpoint is lost",
        6,
        "writer.end_input writer.snapshot link.deliver_acknowledgement",
    ),
    "paimon.at_the_notice": Broken(
        paimon.AtTheNotice,
        "deadlock",
        8,
        "writer.end_input writer.snapshot link.deliver_acknowledgement link.deliver_event",
    ),
    "iceberg.last_offset": Broken(
        iceberg.LastOffset,
        "a data file is in the table once",
        9,
        "consumer.poll consumer.poll consumer.rebalance consumer.poll coordinator.commit "
        "consumer.poll coordinator.commit",
    ),
    "hudi.two_coordinators": Broken(
        hudi.TwoCoordinators,
        "a completed instant has its files",
        5,
        "coordinator.start coordinator.look first_job.cancel coordinator.start coordinator.commit",
    ),
    "risingwave.empty_pre_commit": Broken(
        risingwave.EmptyPreCommit,
        "the sink commits every epoch",
        12,
        "coordinator.pre_commit coordinator.pre_commit_nothing writer.flush cluster.fail "
        "writer.request writer.request cluster.restart",
    ),
    "sinkv2.early_end": Broken(
        sinkv2.EarlyEnd,
        "what is committed is committed globally once the job has finished",
        5,
        "committer.end_input checkpoint.complete checkpoint.notify global_committer.receive",
    ),
}
