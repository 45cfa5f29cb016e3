package org.apache.flink.runtime.operators.coordination;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.runtime.checkpoint.CheckpointCoordinator;
import org.apache.flink.runtime.concurrent.ComponentMainThreadExecutor;
import org.apache.flink.runtime.executiongraph.ExecutionAttemptID;
import org.apache.flink.runtime.executiongraph.ExecutionGraphID;
import org.apache.flink.runtime.executiongraph.TaskInformation;
import org.apache.flink.runtime.jobgraph.JobVertexID;
import org.apache.flink.runtime.jobgraph.OperatorID;
import org.apache.flink.runtime.messages.Acknowledge;
import org.apache.flink.runtime.metrics.groups.JobManagerJobMetricGroup;
import org.apache.flink.runtime.metrics.groups.UnregisteredMetricGroups;
import org.apache.flink.runtime.scheduler.strategy.ExecutionVertexID;
import org.apache.flink.util.SerializedValue;

/**
 * Drives Flink's own OperatorCoordinatorHolder and SubtaskGatewayImpl by lines of text.
 *
 * <p>It decides nothing about gateways, marks, futures or their order: the real classes do. What it
 * stands in for is what surrounds them in a job manager, each as Flink 2.3.0 has it:
 *
 * <ul>
 *   <li>the main thread: one FIFO queue. What Flink posts waits there; reset, restore, fail, event
 *       and ack run inline, before what is queued. What a queued call throws is printed as EXC, and
 *       the queue goes on, as the RPC actor does;
 *   <li>attempts, as ExecutionSubtaskAccess shows them: one at a time for each subtask, bound for
 *       life. A send to an attempt that does not run fails at once, and sends under way fail when
 *       their attempt ends, by fail, by finish or because its successor is there (in the order of
 *       the sends, where Flink iterates a hash set and has no order);
 *   <li>the handler above the holder: what comes from an attempt that does not run is refused (EXC
 *       TaskNotRunningException), and what the holder throws fails the job (GLOBAL);
 *   <li>the coordinator, which prints its calls and keeps the gateways that it is handed.
 * </ul>
 *
 * <p>An event whose name begins with ~ is tolerant of loss. After EXC exit, which is where Flink
 * ends its process, only new is answered.
 */
public final class HolderOracle {

    private static final PrintStream OUT =
            new PrintStream(new java.io.FileOutputStream(java.io.FileDescriptor.out), false, StandardCharsets.UTF_8);
    private static final OperatorID OPERATOR = new OperatorID(1, 1);
    private static final JobVertexID VERTEX = new JobVertexID(1, 1);
    private static final ExecutionGraphID GRAPH = new ExecutionGraphID();
    private static final JobManagerJobMetricGroup METRICS =
            UnregisteredMetricGroups.createUnregisteredJobManagerJobMetricGroup();
    private static final CheckpointCoordinator PRESENT = instanceWithoutConstruction();

    private final StringBuilder lines = new StringBuilder();
    private MainThread mainThread = new MainThread();
    private List<Attempt> attempts = new ArrayList<>();
    private Map<String, ArrayDeque<CompletableFuture<Acknowledge>>> inFlight = new HashMap<>();
    private Map<String, OperatorCoordinator.SubtaskGateway> gateways = new HashMap<>();
    private Map<Long, CompletableFuture<byte[]>> futures = new HashMap<>();
    private OperatorCoordinatorHolder holder;
    private boolean manual;
    private boolean automatic = true;

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        HolderOracle oracle = new HolderOracle();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            OUT.append(oracle.answer(line.trim())).append(".\n");
            if (!in.ready()) {
                OUT.flush();
            }
        }
        OUT.flush();
    }

    /** Gateways are registered only if there is a checkpoint coordinator; this one is never called. */
    private static CheckpointCoordinator instanceWithoutConstruction() {
        try {
            Field field = sun.misc.Unsafe.class.getDeclaredField("theUnsafe");
            field.setAccessible(true);
            sun.misc.Unsafe unsafe = (sun.misc.Unsafe) field.get(null);
            return (CheckpointCoordinator) unsafe.allocateInstance(CheckpointCoordinator.class);
        } catch (ReflectiveOperationException exception) {
            throw new ExceptionInInitializerError(exception);
        }
    }

    private String answer(String line) {
        lines.setLength(0);
        String[] words = line.split(" +");
        try {
            if (line.isEmpty() || line.startsWith("#")) {
                return "";
            }
            if (!words[0].equals("new") && holder == null) {
                print("EXC there is no holder: begin with new N");
            } else {
                perform(words);
                if (automatic) {
                    mainThread.drain();
                }
            }
        } catch (Throwable throwable) {
            printThrown(throwable);
        }
        if (Exit.cause() != null) {
            print("EXC exit -17: " + described(Exit.cause()));
            Exit.forget();
            holder = null;
            mainThread = new MainThread();
        }
        return lines.toString();
    }

    private void perform(String[] words) throws Exception {
        switch (words[0]) {
            case "new" -> begin(Integer.parseInt(words[1]), words.length > 2 && words[2].equals("manual"));
            case "start" -> holder.start();
            case "auto" -> automatic = words[1].equals("1");
            case "drain" -> mainThread.drain();
            case "running" -> attempt(words[1]).run();
            case "finish" -> attempt(words[1]).end(Stage.FINISHED);
            case "fail" -> fail(attempt(words[1]));
            case "send" -> send(words[1] + " " + words[2], words[3]);
            case "sendack" -> sendack(words[1], words.length > 2);
            case "event" -> fromOperator(words, new Event(words[3]));
            case "ack" -> fromOperator(words, new AcknowledgeCheckpointEvent(Long.parseLong(words[3])));
            case "ckpt" -> checkpoint(Long.parseLong(words[1]));
            case "cdone" -> future(words[1]).complete(words[2].getBytes(StandardCharsets.UTF_8));
            case "cfail" -> future(words[1]).completeExceptionally(new Exception("asked to fail"));
            case "abort" -> holder.abortCurrentTriggering();
            case "complete" -> holder.notifyCheckpointComplete(Long.parseLong(words[1]));
            case "aborted" -> holder.notifyCheckpointAborted(Long.parseLong(words[1]));
            case "reset" -> {
                succeed(Integer.parseInt(words[1]));
                holder.subtaskReset(Integer.parseInt(words[1]), Long.parseLong(words[2]));
            }
            case "restore" -> {
                for (int subtask = 0; subtask < attempts.size(); subtask++) {
                    succeed(subtask);
                }
                byte[] state = words.length > 2 ? words[2].getBytes(StandardCharsets.UTF_8) : null;
                holder.resetToCheckpoint(Long.parseLong(words[1]), state);
            }
            default -> print("EXC unknown command " + words[0]);
        }
    }

    private void begin(int parallelism, boolean unacknowledged) throws Exception {
        manual = unacknowledged;
        automatic = true;
        mainThread = new MainThread();
        inFlight = new HashMap<>();
        gateways = new HashMap<>();
        futures = new HashMap<>();
        attempts = new ArrayList<>();
        for (int subtask = 0; subtask < parallelism; subtask++) {
            attempts.add(new Attempt(subtask, 0));
        }
        holder =
                OperatorCoordinatorHolder.create(
                        OPERATOR, new Provider(), new CoordinatorStoreImpl(), "oracle",
                        HolderOracle.class.getClassLoader(), parallelism, parallelism, new Attempts(), false,
                        new TaskInformation(VERTEX, "oracle", parallelism, parallelism, "none", new Configuration()),
                        METRICS);
        holder.lazyInitialize(this::printGlobal, mainThread, PRESENT);
    }

    private Attempt attempt(String subtask) {
        return attempts.get(Integer.parseInt(subtask));
    }

    private void succeed(int subtask) {
        Attempt before = attempts.get(subtask);
        before.end(Stage.FAILED);
        attempts.set(subtask, new Attempt(subtask, before.number + 1));
    }

    private void fail(Attempt attempt) {
        if (attempt.stage != Stage.FAILED) {
            attempt.end(Stage.FAILED);
            holder.executionAttemptFailed(attempt.subtask, attempt.number, new Exception("asked to fail"));
        }
    }

    private void send(String target, String name) {
        OperatorCoordinator.SubtaskGateway gateway = gateways.get(target);
        if (gateway == null) {
            print("EXC no gateway " + target);
            return;
        }
        gateway.sendEvent(new Event(name))
                .whenComplete((ok, failure) -> print("sent " + name + (failure == null ? " ok" : " FAILED")));
    }

    private void sendack(String name, boolean lost) {
        ArrayDeque<CompletableFuture<Acknowledge>> sends = inFlight.get(name);
        if (sends == null || sends.isEmpty()) {
            return;
        }
        if (lost) {
            sends.poll().completeExceptionally(new Exception("asked to be lost"));
        } else {
            sends.poll().complete(Acknowledge.get());
        }
    }

    private void fromOperator(String[] words, OperatorEvent event) {
        Attempt attempt = attempt(words[1]);
        int number = Integer.parseInt(words[2]);
        if (attempt.number != number || !attempt.isStillRunning()) {
            print("EXC TaskNotRunningException: " + words[1] + " " + words[2]);
            return;
        }
        try {
            holder.handleEventFromOperator(attempt.subtask, number, event);
        } catch (Throwable throwable) {
            printGlobal(throwable);
        }
    }

    private void checkpoint(long id) {
        CompletableFuture<byte[]> result = new CompletableFuture<>();
        result.whenComplete(
                (state, failure) -> {
                    String outcome = failure == null ? TalkingCoordinator.text(state) : "FAILED";
                    print("ckptfuture " + id + " " + outcome);
                });
        holder.checkpointCoordinator(id, result);
    }

    private CompletableFuture<byte[]> future(String id) {
        CompletableFuture<byte[]> future = futures.get(Long.parseLong(id));
        if (future == null) {
            throw new IllegalArgumentException("the coordinator was not asked for checkpoint " + id);
        }
        return future;
    }

    private void print(String line) {
        lines.append(line).append('\n');
    }

    private void printThrown(Throwable throwable) {
        if (Exit.cause() == null) {
            print("EXC " + described(throwable));
        }
    }

    private void printGlobal(Throwable throwable) {
        print("GLOBAL " + described(throwable));
    }

    private static String described(Throwable throwable) {
        String described = throwable.getClass().getSimpleName() + ": " + throwable.getMessage();
        return throwable.getCause() == null ? described : described + " / " + described(throwable.getCause());
    }

    private enum Stage {
        CREATED,
        RUNNING,
        FINISHED,
        FAILED
    }

    /** The job manager's main thread: what is posted waits until it is drained, in order. */
    private final class MainThread implements ComponentMainThreadExecutor {
        private final ArrayDeque<Runnable> queue = new ArrayDeque<>();

        void drain() {
            while (!queue.isEmpty() && Exit.cause() == null) {
                try {
                    queue.poll().run();
                } catch (Throwable throwable) {
                    printThrown(throwable);
                }
            }
        }

        @Override
        public void execute(Runnable runnable) {
            queue.add(runnable);
        }

        @Override
        public void assertRunningInMainThread() {}

        @Override
        public ScheduledFuture<?> schedule(Runnable runnable, long delay, TimeUnit unit) {
            throw new UnsupportedOperationException("the holder has no timers");
        }

        @Override
        public <V> ScheduledFuture<V> schedule(Callable<V> callable, long delay, TimeUnit unit) {
            throw new UnsupportedOperationException("the holder has no timers");
        }

        @Override
        public ScheduledFuture<?> scheduleAtFixedRate(Runnable runnable, long delay, long period, TimeUnit unit) {
            throw new UnsupportedOperationException("the holder has no timers");
        }

        @Override
        public ScheduledFuture<?> scheduleWithFixedDelay(Runnable runnable, long delay, long pause, TimeUnit unit) {
            throw new UnsupportedOperationException("the holder has no timers");
        }
    }

    private final class Attempts implements SubtaskAccess.SubtaskAccessFactory {
        @Override
        public Collection<SubtaskAccess> getAccessesForSubtask(int subtask) {
            return List.of(attempts.get(subtask));
        }

        @Override
        public SubtaskAccess getAccessForAttempt(int subtask, int attempt) {
            throw new UnsupportedOperationException("one attempt of a subtask at a time");
        }
    }

    /** One attempt of a subtask, with its connection to the task. */
    private final class Attempt implements SubtaskAccess {
        private final int subtask;
        private final int number;
        private final CompletableFuture<Void> running = new CompletableFuture<>();
        private final List<CompletableFuture<Acknowledge>> underWay = new ArrayList<>();
        private Stage stage = Stage.CREATED;

        Attempt(int subtask, int number) {
            this.subtask = subtask;
            this.number = number;
        }

        void run() {
            if (stage == Stage.CREATED) {
                stage = Stage.RUNNING;
            }
            running.complete(null);
        }

        void end(Stage end) {
            if (stage != Stage.FAILED) {
                stage = end;
                underWay.forEach(send -> send.completeExceptionally(new Exception("the attempt has ended")));
                underWay.clear();
            }
        }

        @Override
        public Callable<CompletableFuture<Acknowledge>> createEventSendAction(SerializedValue<OperatorEvent> event) {
            return () -> {
                ClassLoader loader = HolderOracle.class.getClassLoader();
                CompletableFuture<Acknowledge> result = put((Event) event.deserializeValue(loader));
                underWay.add(result);
                return result;
            };
        }

        private CompletableFuture<Acknowledge> put(Event event) {
            if (!isStillRunning()) {
                return CompletableFuture.failedFuture(new TaskNotRunningException("the attempt is " + stage));
            }
            print("deliver " + subtask + " " + number + " " + event.name());
            if (!manual) {
                return CompletableFuture.completedFuture(Acknowledge.get());
            }
            CompletableFuture<Acknowledge> result = new CompletableFuture<>();
            inFlight.computeIfAbsent(event.name(), name -> new ArrayDeque<>()).add(result);
            return result;
        }

        @Override
        public int getSubtaskIndex() {
            return subtask;
        }

        @Override
        public ExecutionAttemptID currentAttempt() {
            return new ExecutionAttemptID(GRAPH, new ExecutionVertexID(VERTEX, subtask), number);
        }

        @Override
        public String subtaskName() {
            return subtask + " " + number;
        }

        @Override
        public CompletableFuture<?> hasSwitchedToRunning() {
            return running;
        }

        @Override
        public boolean isStillRunning() {
            return stage == Stage.RUNNING;
        }

        @Override
        public void triggerTaskFailover(Throwable cause) {
            print("failover " + subtask + " " + number);
        }
    }

    private final class Provider implements OperatorCoordinator.Provider {
        private static final long serialVersionUID = 1L;

        @Override
        public OperatorID getOperatorId() {
            return OPERATOR;
        }

        @Override
        public OperatorCoordinator create(OperatorCoordinator.Context context) {
            return new TalkingCoordinator(HolderOracle.this::print, gateways, futures);
        }
    }
}
