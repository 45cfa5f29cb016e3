package org.apache.flink.runtime.operators.coordination;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.flink.runtime.OperatorIDPair;
import org.apache.flink.runtime.checkpoint.CheckpointMetaData;
import org.apache.flink.runtime.checkpoint.CheckpointMetrics;
import org.apache.flink.runtime.checkpoint.CheckpointOptions;
import org.apache.flink.runtime.checkpoint.CheckpointRetentionPolicy;
import org.apache.flink.runtime.checkpoint.TaskStateSnapshot;
import org.apache.flink.runtime.execution.Environment;
import org.apache.flink.runtime.jobgraph.JobGraph;
import org.apache.flink.runtime.jobgraph.JobGraphBuilder;
import org.apache.flink.runtime.jobgraph.JobVertex;
import org.apache.flink.runtime.jobgraph.JobVertexID;
import org.apache.flink.runtime.jobgraph.OperatorID;
import org.apache.flink.runtime.jobgraph.tasks.AbstractInvokable;
import org.apache.flink.runtime.jobgraph.tasks.CheckpointCoordinatorConfiguration;
import org.apache.flink.runtime.jobgraph.tasks.JobCheckpointingSettings;
import org.apache.flink.util.SerializedValue;

/**
 * The job that JobOracle leads: its graph, its tasks, its coordinator, and what all of them print.
 *
 * <p>All of it is in one process, so that a program reaches tasks and coordinator by static maps.
 */
final class HazardJob {

    static final Duration PATIENCE = Duration.ofSeconds(20);
    private static final OperatorID OPERATOR = new OperatorID(1, 1);
    private static final long INTERVAL_MS = 20;

    private static final List<String> LINES = new ArrayList<>();

    /** The present task of each subtask. */
    static final Map<Integer, Receiver> TASKS = new ConcurrentHashMap<>();
    static final Map<String, OperatorCoordinator.SubtaskGateway> GATEWAYS = new ConcurrentHashMap<>();
    static final Map<Long, CompletableFuture<byte[]>> FUTURES = new ConcurrentHashMap<>();

    /** What the coordinator has to do when an event comes, on the job's main thread. */
    static final CompletableFuture<Void> LONG_WORK = new CompletableFuture<>();

    /** If it is not empty: sent to subtask 0 right before the coordinator completes its future. */
    static volatile String sentBeforeTheSnapshot = "";

    static void print(String line) {
        synchronized (LINES) {
            LINES.add(line);
            LINES.notifyAll();
            System.out.println(line);
        }
    }

    static boolean has(String line) {
        synchronized (LINES) {
            return LINES.contains(line);
        }
    }

    static void await(String line) throws InterruptedException {
        long deadline = System.nanoTime() + PATIENCE.toNanos();
        synchronized (LINES) {
            while (!LINES.contains(line)) {
                long left = deadline - System.nanoTime();
                if (left <= 0) {
                    giveUp(line);
                }
                TimeUnit.NANOSECONDS.timedWait(LINES, left);
            }
        }
    }

    static void giveUp(String what) {
        System.out.println("waited " + PATIENCE.toSeconds() + " s in vain: " + what);
        Runtime.getRuntime().halt(2);
    }

    static void send(String target, String name) {
        GATEWAYS.get(target)
                .sendEvent(new Event(name))
                .whenComplete((ok, failure) -> print("sent " + name + (failure == null ? " ok" : " FAILED")));
        print("send " + target + " " + name);
    }

    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    static JobGraph graph(boolean isPeriodic, long timeoutMs) throws Exception {
        List<OperatorIDPair> operators = List.of(OperatorIDPair.generatedIDOnly(OPERATOR));
        JobVertex vertex = new JobVertex("receivers", new JobVertexID(1, 1), operators);
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
        private final List<String> events = Collections.synchronizedList(new ArrayList<>());

        /** Events arrive when this is complete; what is behind them on the same connection waits. */
        volatile CompletableFuture<Void> way = CompletableFuture.completedFuture(null);

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
                way.join();
                Event event = (Event) serialized.deserializeValue(getUserCodeClassLoader());
                events.add(event.name());
                int attempt = getEnvironment().getTaskInfo().getAttemptNumber();
                print("deliver " + getIndexInSubtaskGroup() + " " + attempt + " " + event.name());
            } catch (Exception exception) {
                throw new IllegalStateException(exception);
            }
        }

        @Override
        public CompletableFuture<Boolean> triggerCheckpointAsync(
                CheckpointMetaData checkpoint, CheckpointOptions options) {
            print("task " + getIndexInSubtaskGroup() + " barrier " + checkpoint.getCheckpointId());
            return CompletableFuture.completedFuture(true);
        }

        void tell(OperatorEvent event) throws Exception {
            getEnvironment()
                    .getOperatorCoordinatorEventGateway()
                    .sendOperatorEventToCoordinator(OPERATOR, new SerializedValue<>(event));
        }

        void snapshot(long id) throws Exception {
            print("task " + getIndexInSubtaskGroup() + " snapshot " + id + " with " + events);
            tell(new AcknowledgeCheckpointEvent(id));
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
            return new TalkingCoordinator(HazardJob::print, GATEWAYS, FUTURES) {
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
