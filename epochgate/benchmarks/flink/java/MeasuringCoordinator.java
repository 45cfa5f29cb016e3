package headtohead;

import java.io.ByteArrayOutputStream;
import java.io.ObjectOutputStream;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.apache.flink.core.execution.CheckpointType;
import org.apache.flink.runtime.checkpoint.CompletedCheckpoint;
import org.apache.flink.runtime.jobgraph.OperatorID;
import org.apache.flink.runtime.operators.coordination.OperatorCoordinator;
import org.apache.flink.runtime.operators.coordination.OperatorEvent;

/**
 * Sends events to its subtasks, and tells the benchmark how long what took.
 *
 * <p>The methods that measure are called on the thread of the control line, one at a time. Futures
 * of sends complete on the job's main thread, where the stream and the round trips then go on.
 */
final class MeasuringCoordinator implements OperatorCoordinator {

    private static final long WAIT_S = 300;
    private static final Order SPLIT = Order.of(Order.SPLIT);
    private static final Order ANSWER = Order.of(Order.ANSWER);
    private static final Order RAISE = Order.of(Order.RAISE);

    private final Context context;
    private final ControlLine control;
    private final int inFlight;
    private final Map<Integer, SubtaskGateway> gateways = new ConcurrentHashMap<>();
    private final Heard heard;

    private volatile Runnable onAnswer = () -> {};
    private Stream load;

    MeasuringCoordinator(Context context, int controlPort, int inFlight) {
        this.context = context;
        this.inFlight = inFlight;
        heard = new Heard(context.currentParallelism());
        control = new ControlLine(controlPort, this);
    }

    @Override
    public void start() {
        control.start();
    }

    @Override
    public void close() {
        control.end();
    }

    @Override
    public void executionAttemptReady(int subtask, int attempt, SubtaskGateway gateway) {
        gateways.put(subtask, gateway);
        gateway.sendEvent(ANSWER);
    }

    @Override
    public void handleEventFromOperator(int subtask, int attempt, OperatorEvent event) {
        heard.from(subtask);
        onAnswer.run();
    }

    @Override
    public void checkpointCoordinator(long checkpoint, CompletableFuture<byte[]> result) {
        result.complete(new byte[0]);
    }

    @Override
    public void notifyCheckpointComplete(long checkpoint) {}

    @Override
    public void resetToCheckpoint(long checkpoint, byte[] state) {}

    @Override
    public void subtaskReset(int subtask, long checkpoint) {}

    @Override
    public void executionAttemptFailed(int subtask, int attempt, Throwable reason) {}

    /** Waits until every subtask has answered. */
    void ready() throws Exception {
        heard.allSince(0);
    }

    /** Returns the bytes of an event as Flink serializes it. */
    int eventBytes() throws Exception {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (ObjectOutputStream objects = new ObjectOutputStream(bytes)) {
            objects.writeObject(SPLIT);
        }
        return bytes.size();
    }

    /**
     * Sends events in the coordinator's calls, on the main thread, and returns the seconds until
     * all were confirmed and until all were handled.
     */
    double[] streamInCalls(long events) throws Exception {
        long begun = System.nanoTime();
        Stream stream = new Stream(events);
        stream.begin();
        long confirmed = stream.over.get(WAIT_S, TimeUnit.SECONDS);
        return new double[] {seconds(begun, confirmed), seconds(begun, heard.allSince(begun))};
    }

    /** The same, sent by this thread. */
    double[] streamByThread(long events) throws Exception {
        int subtasks = gateways.size();
        Semaphore room = new Semaphore(inFlight);
        CompletableFuture<Void> failure = new CompletableFuture<>();
        long begun = System.nanoTime();
        for (long sent = 0; sent < events; sent++) {
            room.acquire();
            Order order = events - sent <= subtasks ? ANSWER : SPLIT;
            gateways.get((int) (sent % subtasks))
                    .sendEvent(order)
                    .whenComplete(
                            (done, error) -> {
                                if (error != null) {
                                    failure.completeExceptionally(error);
                                }
                                room.release();
                            });
        }
        room.acquire(inFlight);
        long confirmed = System.nanoTime();
        failure.getNow(null);
        return new double[] {seconds(begun, confirmed), seconds(begun, heard.allSince(begun))};
    }

    /** Returns the microseconds of single events, each until its future is done. */
    double[] confirmedTrips(int times) throws Exception {
        double[] took = new double[times];
        CompletableFuture<Void> over = new CompletableFuture<>();
        onMainThread(() -> trip(took, 0, over));
        over.get(WAIT_S, TimeUnit.SECONDS);
        return took;
    }

    private void trip(double[] took, int number, CompletableFuture<Void> over) {
        if (number == took.length) {
            over.complete(null);
            return;
        }
        long begun = System.nanoTime();
        gateways.get(number % gateways.size())
                .sendEvent(SPLIT)
                .whenComplete(
                        (done, error) -> {
                            took[number] = (System.nanoTime() - begun) / 1e3;
                            if (error == null) {
                                trip(took, number + 1, over);
                            } else {
                                over.completeExceptionally(error);
                            }
                        });
    }

    /** Returns the microseconds of single events, each until the answer of its subtask is there. */
    double[] answeredTrips(int times) throws Exception {
        double[] took = new double[times];
        CompletableFuture<Void> over = new CompletableFuture<>();
        onMainThread(() -> ask(took, 0, over));
        try {
            over.get(WAIT_S, TimeUnit.SECONDS);
        } finally {
            onAnswer = () -> {};
        }
        return took;
    }

    private void ask(double[] took, int number, CompletableFuture<Void> over) {
        if (number == took.length) {
            over.complete(null);
            return;
        }
        long begun = System.nanoTime();
        onAnswer =
                () -> {
                    took[number] = (System.nanoTime() - begun) / 1e3;
                    ask(took, number + 1, over);
                };
        gateways.get(number % gateways.size()).sendEvent(ANSWER);
    }

    /** Returns, in milliseconds, for each checkpoint: until it is completed, and as Flink says. */
    double[] checkpoints(int times) throws Exception {
        double[] took = new double[2 * times];
        for (int number = 0; number < times; number++) {
            long begun = System.nanoTime();
            CompletedCheckpoint done =
                    context.getCheckpointCoordinator()
                            .triggerCheckpoint(CheckpointType.CONFIGURED)
                            .get(WAIT_S, TimeUnit.SECONDS);
            took[2 * number] = (System.nanoTime() - begun) / 1e6;
            took[2 * number + 1] = done.getCompletionTimestamp() - done.getTimestamp();
        }
        return took;
    }

    /** Begins to send events without end. */
    void beginLoad() {
        load = new Stream(Long.MAX_VALUE);
        load.begin();
    }

    /** Ends it, and returns the number of events that were confirmed. */
    long endLoad() throws Exception {
        onMainThread(() -> load.end());
        load.over.get(WAIT_S, TimeUnit.SECONDS);
        return load.confirmed;
    }

    /** Returns the milliseconds until the successor of a subtask that throws has answered. */
    double raise(int subtask) throws Exception {
        long begun = System.nanoTime();
        gateways.get(subtask).sendEvent(RAISE);
        return 1e3 * seconds(begun, heard.since(subtask, begun));
    }

    /** Returns the milliseconds until all have answered after a failure of the whole job. */
    double failAll() throws Exception {
        long begun = System.nanoTime();
        context.failJob(new IllegalStateException("the benchmark takes the job back"));
        return 1e3 * seconds(begun, heard.allSince(begun));
    }

    /** Futures of sends complete on the main thread. */
    private void onMainThread(Runnable action) {
        gateways.get(0).sendEvent(SPLIT).thenRun(action);
    }

    private static double seconds(long begun, long end) {
        return (end - begun) / 1e9;
    }

    /** A stream to all subtasks, whose last event to each asks for an answer. Main thread only. */
    private final class Stream {
        final CompletableFuture<Long> over = new CompletableFuture<>();
        private final int subtasks = gateways.size();
        private long unsent;
        private long underWay;
        long confirmed;

        Stream(long events) {
            unsent = events;
        }

        void begin() {
            onMainThread(
                    () -> {
                        for (int number = 0; number < inFlight; number++) {
                            sendTo(number % subtasks);
                        }
                    });
        }

        void end() {
            unsent = 0;
            if (underWay == 0) {
                over.complete(System.nanoTime());
            }
        }

        private void sendTo(int subtask) {
            if (unsent == 0) {
                return;
            }
            Order order = unsent <= subtasks ? ANSWER : SPLIT;
            int target = order == ANSWER ? (int) unsent - 1 : subtask;
            unsent--;
            underWay++;
            gateways.get(target)
                    .sendEvent(order)
                    .whenComplete((done, error) -> next(subtask, error));
        }

        private void next(int subtask, Throwable error) {
            underWay--;
            confirmed++;
            if (error != null) {
                over.completeExceptionally(error);
                return;
            }
            sendTo(subtask);
            if (unsent == 0 && underWay == 0) {
                over.complete(System.nanoTime());
            }
        }
    }

    /** Made in the job manager. */
    record Provider(OperatorID operator, int controlPort, int inFlight)
            implements OperatorCoordinator.Provider {
        @Override
        public OperatorID getOperatorId() {
            return operator;
        }

        @Override
        public OperatorCoordinator create(Context context) {
            return new MeasuringCoordinator(context, controlPort, inFlight);
        }
    }
}
