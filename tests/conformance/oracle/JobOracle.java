package org.apache.flink.runtime.operators.coordination;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.apache.flink.api.common.JobID;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.RestartStrategyOptions;
import org.apache.flink.configuration.RpcOptions;
import org.apache.flink.core.execution.SavepointFormatType;
import org.apache.flink.runtime.OperatorIDPair;
import org.apache.flink.runtime.checkpoint.CheckpointMetaData;
import org.apache.flink.runtime.checkpoint.CheckpointMetrics;
import org.apache.flink.runtime.checkpoint.CheckpointOptions;
import org.apache.flink.runtime.checkpoint.CheckpointRetentionPolicy;
import org.apache.flink.runtime.checkpoint.TaskStateSnapshot;
import org.apache.flink.runtime.execution.Environment;
import org.apache.flink.runtime.execution.ExecutionState;
import org.apache.flink.runtime.executiongraph.AccessExecutionVertex;
import org.apache.flink.runtime.jobgraph.JobGraph;
import org.apache.flink.runtime.jobgraph.JobGraphBuilder;
import org.apache.flink.runtime.jobgraph.JobVertex;
import org.apache.flink.runtime.jobgraph.JobVertexID;
import org.apache.flink.runtime.jobgraph.OperatorID;
import org.apache.flink.runtime.jobgraph.tasks.AbstractInvokable;
import org.apache.flink.runtime.jobgraph.tasks.CheckpointCoordinatorConfiguration;
import org.apache.flink.runtime.jobgraph.tasks.JobCheckpointingSettings;
import org.apache.flink.runtime.minicluster.MiniCluster;
import org.apache.flink.runtime.minicluster.MiniClusterConfiguration;
import org.apache.flink.util.SerializedValue;

/**
 * Runs one hazard in a real Flink: a cluster in this process, with its scheduler, its checkpoint
 * coordinator and its RPC, and one job of two subtasks, each a failover region of its own.
 *
 * <p>What is ours is the job: a coordinator that completes its futures when the hazard says so, and
 * tasks that take their snapshot when the hazard says so, as a receiver does whose barrier arrives
 * behind records. Nothing is slept for: each step waits for what the step before must bring about.
 */
public final class JobOracle {

    private static final OperatorID OPERATOR = new OperatorID(1, 1);
    private static final Duration PATIENCE = Duration.ofSeconds(20);
    private static final long INTERVAL_MS = 20;
    private static final long RESTART_DELAY_MS = 200;
    private static final long EXPIRES_MS = 4_000;
    private static final long NEVER_EXPIRES_MS = 600_000;

    private static final List<String> LINES = new ArrayList<>();
    private static final Map<Integer, Receiver> TASKS = new ConcurrentHashMap<>();
    private static final Map<String, OperatorCoordinator.SubtaskGateway> GATEWAYS = new ConcurrentHashMap<>();
    private static final Map<Long, CompletableFuture<byte[]>> FUTURES = new ConcurrentHashMap<>();
    private static final CompletableFuture<Void> LONG_WORK = new CompletableFuture<>();
    private static volatile String sentBeforeTheSnapshot = "";

    private final MiniCluster cluster;
    private final JobID job;

    private JobOracle(MiniCluster cluster, JobID job) {
        this.cluster = cluster;
        this.job = job;
    }

    public static void main(String[] arguments) throws Exception {
        boolean isPeriodic = arguments[0].equals("D1");
        Configuration configuration = new Configuration();
        configuration.set(RpcOptions.ASK_TIMEOUT_DURATION, Duration.ofMinutes(5));
        configuration.set(RestartStrategyOptions.RESTART_STRATEGY, "fixed-delay");
        configuration.set(RestartStrategyOptions.RESTART_STRATEGY_FIXED_DELAY_DELAY, Duration.ofMillis(RESTART_DELAY_MS));
        configuration.set(RestartStrategyOptions.RESTART_STRATEGY_FIXED_DELAY_ATTEMPTS, 10);
        MiniClusterConfiguration settings =
                new MiniClusterConfiguration.Builder()
                        .setConfiguration(configuration)
                        .setNumTaskManagers(1)
                        .setNumSlotsPerTaskManager(2)
                        .withRandomPorts()
                        .build();
        MiniCluster cluster = new MiniCluster(settings);
        cluster.start();
        JobGraph graph = graph(isPeriodic, arguments[0].matches("D2|D6") ? EXPIRES_MS : NEVER_EXPIRES_MS);
        cluster.submitJob(graph).get();
        JobOracle oracle = new JobOracle(cluster, graph.getJobID());
        await("coord ready 0 0");
        await("coord ready 1 0");
        awaitThat("both subtasks run", () -> TASKS.size() == 2 && oracle.isIn(0, ExecutionState.RUNNING) && oracle.isIn(1, ExecutionState.RUNNING));
        switch (arguments[0]) {
            case "D1" -> oracle.earlyReopening();
            case "D2" -> oracle.skippedReopening();
            case "D3" -> oracle.mixedClose();
            case "D5" -> oracle.abandonedFuture();
            case "D6" -> oracle.unreachedReopening();
            case "D7" -> oracle.intolerantCheckpoint();
            default -> throw new IllegalArgumentException(arguments[0] + " is none of D1, D2, D3, D5, D6, D7");
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
        settle();
        Path file = Files.createTempFile("no", "directory");
        say("savepoint 2", cluster.triggerSavepoint(job, file.resolve("under").toUri().toString(), false, SavepointFormatType.CANONICAL));
        await("savepoint 2 FAILED");
        await("deliver 0 0 X");
        TASKS.get(0).snapshot(1);
        TASKS.get(1).snapshot(1);
        await("coord complete 1");
    }

    /** A savepoint waits for the acknowledgement of a subtask while the other one is restarted. */
    private void skippedReopening() throws Exception {
        say("savepoint 1", savepoint());
        await("coord checkpoint 1");
        FUTURES.get(1L).complete(bytes("s1"));
        await("task 0 barrier 1");
        await("task 1 barrier 1");
        TASKS.get(0).fail();
        await("savepoint 1 FAILED");
        await("coord ready 0 1");
        settle();
        send("1 0", "X");
        settle();
        awaitThat("subtask 0 runs again", () -> isIn(0, ExecutionState.RUNNING));
        say("savepoint 2", savepoint());
        await("coord checkpoint 2");
        FUTURES.get(2L).complete(bytes("s2"));
        await("savepoint 2 FAILED");
        await("deliver 1 0 X");
        settle();
        print("subtask 1 " + (has("task 1 barrier 2") ? "got" : "never got") + " a barrier 2");
        print("the coordinator was " + (has("coord aborted 1") ? "" : "not ") + "told that 1 is aborted");
    }

    /** A savepoint waits for the coordinator while a subtask is restarted. */
    private void mixedClose() throws Exception {
        say("savepoint 1", savepoint());
        await("coord checkpoint 1");
        TASKS.get(0).fail();
        await("coord failed 0 0");
        TASKS.get(1).tell("work");
        await("coord event 1 0 work");
        Thread.sleep(5 * RESTART_DELAY_MS);
        FUTURES.get(1L).complete(bytes("s1"));
        LONG_WORK.complete(null);
        await("savepoint 1 FAILED");
        await("coord ready 0 1");
    }

    /** An event is held for a subtask that is restarted while a savepoint is under way. */
    private void abandonedFuture() throws Exception {
        say("savepoint 1", savepoint());
        await("coord checkpoint 1");
        FUTURES.get(1L).complete(bytes("s1"));
        await("task 0 barrier 1");
        send("0 0", "X");
        settle();
        TASKS.get(0).fail();
        await("savepoint 1 FAILED");
        await("coord ready 0 1");
        settle();
        print("X is " + (has("sent X ok") || has("sent X FAILED") ? "decided" : "undecided"));
    }

    /** A plain savepoint is taken while a subtask has finished. */
    private void unreachedReopening() throws Exception {
        TASKS.get(0).finish();
        awaitThat("subtask 0 has finished", () -> isIn(0, ExecutionState.FINISHED));
        send("0 0", "~before");
        await("sent ~before FAILED");
        say("savepoint 1", savepoint());
        await("coord checkpoint 1");
        FUTURES.get(1L).complete(bytes("s1"));
        await("task 1 barrier 1");
        TASKS.get(1).snapshot(1);
        await("savepoint 1 completed");
        settle();
        send("0 0", "~after");
        settle();
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
        awaitThat("subtask 0 has finished", () -> isIn(0, ExecutionState.FINISHED));
        sentBeforeTheSnapshot = "~X";
        say("checkpoint 1", cluster.triggerCheckpoint(job));
        await("coord checkpoint 1");
        await("checkpoint 1 FAILED");
    }

    private CompletableFuture<String> savepoint() throws Exception {
        String folder = Files.createTempDirectory("savepoints").toUri().toString();
        return cluster.triggerSavepoint(job, folder, false, SavepointFormatType.CANONICAL);
    }

    private static CompletableFuture<String> say(String what, CompletableFuture<String> result) {
        print(what + " requested");
        result.whenComplete((place, failure) -> print(what + (failure == null ? " completed" : " FAILED" + cause(failure))));
        return result;
    }

    private static String cause(Throwable failure) {
        return failure.getCause() == null ? ": " + failure.getMessage() : cause(failure.getCause());
    }

    private static void send(String target, String name) {
        GATEWAYS.get(target)
                .sendEvent(new Event(name))
                .whenComplete((ok, failure) -> print("sent " + name + (failure == null ? " ok" : " FAILED")));
        print("send " + target + " " + name);
    }

    /** Whatever was posted to the job's main thread before has run: a question to it was answered. */
    private void settle() throws Exception {
        for (int round = 0; round < 3; round++) {
            cluster.getExecutionGraph(job).get(PATIENCE.toSeconds(), TimeUnit.SECONDS);
        }
    }

    private boolean isIn(int subtask, ExecutionState state) {
        try {
            for (AccessExecutionVertex vertex : cluster.getExecutionGraph(job).get().getAllExecutionVertices()) {
                if (vertex.getParallelSubtaskIndex() == subtask) {
                    return vertex.getExecutionState() == state;
                }
            }
            return false;
        } catch (Exception exception) {
            throw new IllegalStateException(exception);
        }
    }

    private static void print(String line) {
        synchronized (LINES) {
            LINES.add(line);
            LINES.notifyAll();
            System.out.println(line);
        }
    }

    private static boolean has(String line) {
        synchronized (LINES) {
            return LINES.contains(line);
        }
    }

    private static void await(String line) throws InterruptedException {
        long deadline = System.nanoTime() + PATIENCE.toNanos();
        synchronized (LINES) {
            while (LINES.stream().noneMatch(printed -> printed.startsWith(line))) {
                long left = deadline - System.nanoTime();
                if (left <= 0) {
                    giveUp(line);
                }
                TimeUnit.NANOSECONDS.timedWait(LINES, left);
            }
        }
    }

    private static void awaitThat(String what, BooleanSupplier holds) throws InterruptedException {
        long deadline = System.nanoTime() + PATIENCE.toNanos();
        while (!holds.getAsBoolean()) {
            if (System.nanoTime() > deadline) {
                giveUp(what);
            }
            Thread.sleep(5);
        }
    }

    private static void giveUp(String what) {
        System.out.println("waited " + PATIENCE.toSeconds() + " s in vain: " + what);
        Runtime.getRuntime().halt(2);
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static JobGraph graph(boolean isPeriodic, long timeoutMs) throws Exception {
        JobVertex vertex = new JobVertex("receivers", new JobVertexID(1, 1), List.of(OperatorIDPair.generatedIDOnly(OPERATOR)));
        vertex.setInvokableClass(Receiver.class);
        vertex.setParallelism(2);
        vertex.addOperatorCoordinator(new SerializedValue<>(new Talkers()));
        CheckpointCoordinatorConfiguration checkpoints =
                CheckpointCoordinatorConfiguration.builder()
                        .setCheckpointInterval(isPeriodic ? INTERVAL_MS : Long.MAX_VALUE)
                        .setCheckpointTimeout(timeoutMs)
                        .setMaxConcurrentCheckpoints(1)
                        .setCheckpointRetentionPolicy(CheckpointRetentionPolicy.NEVER_RETAIN_AFTER_TERMINATION)
                        .setExactlyOnce(true)
                        .setTolerableCheckpointFailureNumber(1000)
                        .setEnableCheckpointsAfterTasksFinish(true)
                        .build();
        return JobGraphBuilder.newStreamingJobGraphBuilder()
                .setJobName("hazard")
                .addJobVertex(vertex)
                .setJobCheckpointingSettings(new JobCheckpointingSettings(checkpoints, null))
                .build();
    }

    /** A task that notes the events it gets, and takes its snapshots when the hazard says so. */
    public static final class Receiver extends AbstractInvokable {
        private final CompletableFuture<Void> end = new CompletableFuture<>();
        private final List<String> events = new ArrayList<>();

        public Receiver(Environment environment) {
            super(environment);
        }

        @Override
        public void invoke() throws Exception {
            TASKS.put(getIndexInSubtaskGroup(), this);
            end.get();
        }

        @Override
        public void cancel() {
            end.completeExceptionally(new Exception("canceled"));
        }

        void finish() {
            end.complete(null);
        }

        void fail() {
            TASKS.remove(getIndexInSubtaskGroup());
            end.completeExceptionally(new Exception("asked to fail"));
        }

        @Override
        public void dispatchOperatorEvent(OperatorID operator, SerializedValue<OperatorEvent> serialized) {
            try {
                Event event = (Event) serialized.deserializeValue(getUserCodeClassLoader());
                events.add(event.name());
                int attempt = getEnvironment().getTaskInfo().getAttemptNumber();
                print("deliver " + getIndexInSubtaskGroup() + " " + attempt + " " + event.name());
            } catch (Exception exception) {
                throw new IllegalStateException(exception);
            }
        }

        @Override
        public CompletableFuture<Boolean> triggerCheckpointAsync(CheckpointMetaData checkpoint, CheckpointOptions options) {
            print("task " + getIndexInSubtaskGroup() + " barrier " + checkpoint.getCheckpointId());
            return CompletableFuture.completedFuture(true);
        }

        void tell(String name) throws Exception {
            getEnvironment()
                    .getOperatorCoordinatorEventGateway()
                    .sendOperatorEventToCoordinator(OPERATOR, new SerializedValue<>(new Event(name)));
        }

        void snapshot(long id) throws Exception {
            print("task " + getIndexInSubtaskGroup() + " snapshot " + id + " with " + events);
            getEnvironment()
                    .getOperatorCoordinatorEventGateway()
                    .sendOperatorEventToCoordinator(OPERATOR, new SerializedValue<>(new AcknowledgeCheckpointEvent(id)));
            getEnvironment().acknowledgeCheckpoint(id, new CheckpointMetrics(), new TaskStateSnapshot());
        }

        @Override
        public Future<Void> notifyCheckpointCompleteAsync(long id) {
            return CompletableFuture.completedFuture(null);
        }

        @Override
        public Future<Void> notifyCheckpointAbortAsync(long id, long latestCompleted) {
            return CompletableFuture.completedFuture(null);
        }

        @Override
        public Future<Void> notifyCheckpointSubsumedAsync(long id) {
            return CompletableFuture.completedFuture(null);
        }
    }

    private static final class Talkers implements OperatorCoordinator.Provider {
        @Override
        public OperatorID getOperatorId() {
            return OPERATOR;
        }

        @Override
        public OperatorCoordinator create(OperatorCoordinator.Context context) {
            return new TalkingCoordinator(JobOracle::print, GATEWAYS, FUTURES) {
                @Override
                public void handleEventFromOperator(int subtask, int attempt, OperatorEvent event) {
                    super.handleEventFromOperator(subtask, attempt, event);
                    LONG_WORK.join();
                }

                @Override
                public void checkpointCoordinator(long id, CompletableFuture<byte[]> result) {
                    super.checkpointCoordinator(id, result);
                    if (!sentBeforeTheSnapshot.isEmpty()) {
                        send("0 0", sentBeforeTheSnapshot);
                        result.complete(bytes("s" + id));
                    }
                }
            };
        }
    }
}
