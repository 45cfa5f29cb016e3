package org.apache.flink.runtime.operators.coordination;

import static org.apache.flink.runtime.operators.coordination.HazardJob.FUTURES;
import static org.apache.flink.runtime.operators.coordination.HazardJob.LONG_WORK;
import static org.apache.flink.runtime.operators.coordination.HazardJob.PATIENCE;
import static org.apache.flink.runtime.operators.coordination.HazardJob.TASKS;
import static org.apache.flink.runtime.operators.coordination.HazardJob.await;
import static org.apache.flink.runtime.operators.coordination.HazardJob.bytes;
import static org.apache.flink.runtime.operators.coordination.HazardJob.giveUp;
import static org.apache.flink.runtime.operators.coordination.HazardJob.has;
import static org.apache.flink.runtime.operators.coordination.HazardJob.print;
import static org.apache.flink.runtime.operators.coordination.HazardJob.send;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import org.apache.flink.api.common.JobID;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.JobManagerOptions;
import org.apache.flink.configuration.RestOptions;
import org.apache.flink.configuration.RestartStrategyOptions;
import org.apache.flink.configuration.RpcOptions;
import org.apache.flink.configuration.TaskManagerOptions;
import org.apache.flink.core.execution.SavepointFormatType;
import org.apache.flink.runtime.execution.ExecutionState;
import org.apache.flink.runtime.executiongraph.AccessExecutionVertex;
import org.apache.flink.runtime.jobgraph.JobGraph;
import org.apache.flink.runtime.minicluster.MiniCluster;
import org.apache.flink.runtime.minicluster.MiniClusterConfiguration;

/**
 * Runs one hazard in a real Flink: a cluster in this process, with its scheduler, its checkpoint
 * coordinator and its RPC, and one job of two subtasks, each a failover region of its own.
 *
 * <p>What is ours is the job: a coordinator that completes its futures when the hazard says so, and
 * tasks that take their snapshot when the hazard says so, as a receiver does whose barrier comes
 * with records and not by RPC. Each step waits for what the step before must bring about; only D3
 * waits for time to pass, several times the delay of a restart. The subtasks have a task manager
 * each, so that one that is kept busy does not hold up the other.
 */
public final class JobOracle {

    private static final long RESTART_DELAY_MS = 200;
    private static final long EXPIRES_MS = 4_000;
    private static final long NEVER_EXPIRES_MS = 600_000;
    private static final String LOOPBACK = "127.0.0.1";

    private final MiniCluster cluster;
    private final JobID job;

    private JobOracle(MiniCluster cluster, JobID job) {
        this.cluster = cluster;
        this.job = job;
    }

    public static void main(String[] arguments) throws Exception {
        boolean isPeriodic = arguments[0].equals("D1");
        long timeoutMs = arguments[0].matches("D2|D4|D6") ? EXPIRES_MS : NEVER_EXPIRES_MS;
        Configuration configuration = new Configuration();
        configuration.set(JobManagerOptions.BIND_HOST, LOOPBACK);
        configuration.set(TaskManagerOptions.BIND_HOST, LOOPBACK);
        configuration.set(RestOptions.BIND_ADDRESS, LOOPBACK);
        configuration.set(RpcOptions.ASK_TIMEOUT_DURATION, Duration.ofMinutes(5));
        configuration.set(RestartStrategyOptions.RESTART_STRATEGY, "fixed-delay");
        Duration delay = Duration.ofMillis(RESTART_DELAY_MS);
        configuration.set(RestartStrategyOptions.RESTART_STRATEGY_FIXED_DELAY_DELAY, delay);
        configuration.set(RestartStrategyOptions.RESTART_STRATEGY_FIXED_DELAY_ATTEMPTS, 10);
        if (arguments[0].matches("D1[012]")) {
            switch (arguments[0]) {
                case "D10" -> LastCommittables.run(configuration);
                case "D11" -> UnevenCommittables.runExpiring(configuration);
                default -> UnevenCommittables.runEndingEarly(configuration);
            }
            print("done");
            Runtime.getRuntime().halt(0);
        }
        MiniClusterConfiguration settings =
                new MiniClusterConfiguration.Builder()
                        .setConfiguration(configuration)
                        .setNumTaskManagers(2)
                        .setNumSlotsPerTaskManager(1)
                        .withRandomPorts()
                        .build();
        MiniCluster cluster = new MiniCluster(settings);
        cluster.start();
        JobGraph graph = HazardJob.graph(isPeriodic, timeoutMs);
        cluster.submitJob(graph).get();
        JobOracle oracle = new JobOracle(cluster, graph.getJobID());
        await("coord ready 0 0");
        await("coord ready 1 0");
        oracle.awaitThat(0, ExecutionState.RUNNING);
        oracle.awaitThat(1, ExecutionState.RUNNING);
        switch (arguments[0]) {
            case "D1" -> oracle.earlyReopening();
            case "D2" -> oracle.skippedReopening();
            case "D3" -> oracle.mixedClose();
            case "D4" -> oracle.forgottenSends();
            case "D5" -> oracle.abandonedFuture();
            case "D6" -> oracle.unreachedReopening();
            case "D7" -> oracle.intolerantCheckpoint();
            case "D8" -> oracle.untoldCoordinator();
            case "D9" -> oracle.lastWords();
            default -> throw new IllegalArgumentException(arguments[0] + " is none of D1 to D12");
        }
        print("done");
        Runtime.getRuntime().halt(0);
    }

    /** A checkpoint is under way and a savepoint fails before it marks anything. */
    private void earlyReopening() throws Exception {
        await("coord checkpoint 1");
        FUTURES.get(1L).complete(bytes("nothing-sent"));
        await("task 0 barrier 1");
        await("task 1 barrier 1");
        send("0 0", "X");
        say("savepoint 2", savepoint(Files.createTempFile("no", "directory").resolve("below")));
        await("savepoint 2 FAILED");
        await("deliver 0 0 X");
        TASKS.get(0).snapshot(1);
        TASKS.get(1).snapshot(1);
        await("coord complete 1");
    }

    /** A savepoint waits for the acknowledgement of a subtask while the other one is restarted. */
    private void skippedReopening() throws Exception {
        say("savepoint 1", savepoint(Files.createTempDirectory("savepoints")));
        await("coord checkpoint 1");
        FUTURES.get(1L).complete(bytes("s1"));
        await("task 0 barrier 1");
        await("task 1 barrier 1");
        TASKS.get(0).fail();
        await("savepoint 1 FAILED");
        await("coord ready 0 1");
        send("1 0", "X");
        awaitThat(0, ExecutionState.RUNNING);
        say("savepoint 2", savepoint(Files.createTempDirectory("savepoints")));
        await("coord checkpoint 2");
        FUTURES.get(2L).complete(bytes("s2"));
        await("savepoint 2 FAILED");
        await("deliver 1 0 X");
        print("subtask 1 " + (has("task 1 barrier 2") ? "got" : "never got") + " a barrier 2");
        print("the coordinator was " + (has("coord aborted 1") ? "" : "not ") + "told that 1 is aborted");
    }

    /** A savepoint waits for the coordinator while a subtask is restarted. */
    private void mixedClose() throws Exception {
        say("savepoint 1", savepoint(Files.createTempDirectory("savepoints")));
        await("coord checkpoint 1");
        TASKS.get(0).fail();
        await("coord failed 0 0");
        TASKS.get(1).tell(new Event("work"));
        await("coord event 1 0 work");
        Thread.sleep(10 * RESTART_DELAY_MS);
        FUTURES.get(1L).complete(bytes("s1"));
        LONG_WORK.complete(null);
        await("savepoint 1 FAILED");
        await("coord ready 0 1");
    }

    /** An event is on its way while one checkpoint expires and the next one completes. */
    private void forgottenSends() throws Exception {
        TASKS.get(0).way = new CompletableFuture<>();
        send("0 0", "X");
        say("checkpoint 1", cluster.triggerCheckpoint(job));
        await("coord checkpoint 1");
        FUTURES.get(1L).complete(bytes("X-sent"));
        await("checkpoint 1 FAILED");
        say("checkpoint 2", cluster.triggerCheckpoint(job));
        await("coord checkpoint 2");
        FUTURES.get(2L).complete(bytes("X-sent"));
        await("task 1 barrier 2");
        TASKS.get(0).snapshot(2);
        TASKS.get(1).snapshot(2);
        await("checkpoint 2 completed");
        TASKS.get(0).way.complete(null);
        await("deliver 0 0 X");
    }

    /** An event is held for a subtask that is restarted while a savepoint is under way. */
    private void abandonedFuture() throws Exception {
        say("savepoint 1", savepoint(Files.createTempDirectory("savepoints")));
        await("coord checkpoint 1");
        FUTURES.get(1L).complete(bytes("s1"));
        await("task 0 barrier 1");
        send("0 0", "X");
        TASKS.get(0).fail();
        await("savepoint 1 FAILED");
        await("coord ready 0 1");
        awaitThat(0, ExecutionState.RUNNING);
        say("savepoint 2", savepoint(Files.createTempDirectory("savepoints")));
        await("coord checkpoint 2");
        print("X is " + (has("sent X ok") || has("sent X FAILED") ? "decided" : "undecided"));
    }

    /** A plain savepoint is taken while a subtask has finished. */
    private void unreachedReopening() throws Exception {
        TASKS.get(0).finish();
        awaitThat(0, ExecutionState.FINISHED);
        send("0 0", "~before");
        await("sent ~before FAILED");
        say("savepoint 1", savepoint(Files.createTempDirectory("savepoints")));
        await("coord checkpoint 1");
        FUTURES.get(1L).complete(bytes("s1"));
        await("task 1 barrier 1");
        TASKS.get(1).snapshot(1);
        await("savepoint 1 completed");
        send("0 0", "~after");
        say("checkpoint 2", cluster.triggerCheckpoint(job));
        await("coord checkpoint 2");
        FUTURES.get(2L).complete(bytes("s2"));
        await("checkpoint 2 FAILED");
        await("sent ~after FAILED");
        print("subtask 1 " + (has("task 1 barrier 2") ? "got" : "never got") + " a barrier 2");
        say("checkpoint 3", cluster.triggerCheckpoint(job));
        await("coord checkpoint 3");
        FUTURES.get(3L).complete(bytes("s3"));
        await("task 1 barrier 3");
        TASKS.get(1).snapshot(3);
        await("checkpoint 3 completed");
    }

    /** An event that may be lost is sent to a finished subtask right before the snapshot. */
    private void intolerantCheckpoint() throws Exception {
        TASKS.get(0).finish();
        awaitThat(0, ExecutionState.FINISHED);
        HazardJob.sentBeforeTheSnapshot = "~X";
        say("checkpoint 1", cluster.triggerCheckpoint(job));
        await("coord checkpoint 1");
        await("checkpoint 1 FAILED");
    }

    /** A savepoint fails before it marks anything. */
    private void untoldCoordinator() throws Exception {
        say("savepoint 1", savepoint(Files.createTempFile("no", "directory").resolve("below")));
        await("savepoint 1 FAILED");
        say("savepoint 2", savepoint(Files.createTempDirectory("savepoints")));
        await("coord checkpoint 2");
        print("the coordinator was " + (has("coord aborted 1") ? "" : "not ") + "told that 1 is aborted");
    }

    /** Right before each snapshot the coordinator sends to an attempt that was replaced. */
    private void lastWords() throws Exception {
        TASKS.get(0).fail();
        await("coord ready 0 1");
        awaitThat(0, ExecutionState.RUNNING);
        HazardJob.sentBeforeTheSnapshot = "X";
        for (int id = 1; id <= 5; id++) {
            say("checkpoint " + id, cluster.triggerCheckpoint(job));
            await("coord checkpoint " + id);
            await("checkpoint " + id + " FAILED");
        }
        HazardJob.sentBeforeTheSnapshot = "";
        say("checkpoint 6", cluster.triggerCheckpoint(job));
        await("coord checkpoint 6");
        FUTURES.get(6L).complete(bytes("s6"));
        await("task 0 barrier 6");
        await("task 1 barrier 6");
        TASKS.get(0).snapshot(6);
        TASKS.get(1).snapshot(6);
        await("checkpoint 6 completed");
    }

    private CompletableFuture<String> savepoint(Path folder) {
        return cluster.triggerSavepoint(job, folder.toUri().toString(), false, SavepointFormatType.CANONICAL);
    }

    private static CompletableFuture<String> say(String what, CompletableFuture<String> result) {
        print(what + " requested");
        result.whenComplete((place, failure) -> print(what + (failure == null ? " completed" : " FAILED")));
        return result;
    }

    private void awaitThat(int subtask, ExecutionState state) throws Exception {
        long deadline = System.nanoTime() + PATIENCE.toNanos();
        while (stateOf(subtask) != state || !TASKS.containsKey(subtask)) {
            if (System.nanoTime() > deadline) {
                giveUp("subtask " + subtask + " is " + state);
            }
            Thread.sleep(5);
        }
    }

    private ExecutionState stateOf(int subtask) throws Exception {
        for (AccessExecutionVertex vertex : cluster.getExecutionGraph(job).get().getAllExecutionVertices()) {
            if (vertex.getParallelSubtaskIndex() == subtask) {
                return vertex.getExecutionState();
            }
        }
        throw new IllegalStateException("the job has no subtask " + subtask);
    }
}
