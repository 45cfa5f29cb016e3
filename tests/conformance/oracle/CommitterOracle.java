package org.apache.flink.runtime.operators.coordination;

import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Set;
import java.util.TreeMap;
import org.apache.flink.api.common.TaskInfo;
import org.apache.flink.api.common.TaskInfoImpl;
import org.apache.flink.api.common.functions.util.AbstractRuntimeUDFContext;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.OperatorStateStore;
import org.apache.flink.api.connector.sink2.Committer;
import org.apache.flink.core.io.SimpleVersionedSerializer;
import org.apache.flink.runtime.metrics.groups.InternalSinkCommitterMetricGroup;
import org.apache.flink.runtime.metrics.groups.UnregisteredMetricGroups;
import org.apache.flink.runtime.state.StateInitializationContext;
import org.apache.flink.streaming.api.connector.sink2.CommittableMessage;
import org.apache.flink.streaming.api.connector.sink2.CommittableSummary;
import org.apache.flink.streaming.api.connector.sink2.CommittableWithLineage;
import org.apache.flink.streaming.api.operators.AbstractStreamOperator;
import org.apache.flink.streaming.api.operators.StreamOperatorStateHandler;
import org.apache.flink.streaming.api.operators.StreamingRuntimeContext;
import org.apache.flink.streaming.api.operators.util.SimpleVersionedListState;
import org.apache.flink.streaming.runtime.operators.sink.GlobalCommitterOperator;
import org.apache.flink.streaming.runtime.operators.sink.committables.CommittableCollector;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;

/**
 * Drives Flink's own GlobalCommitterOperator, behind the writers, by lines of text.
 *
 * <p>It decides nothing about what is collected, committed, tried again or kept: the operator and
 * its collector do, and its state goes through their serializers. What it stands in for:
 *
 * <ul>
 *   <li>the writers, as SinkWriterOperator has them: at a barrier a summary and the committables,
 *       at the end of the input the last ones, under the checkpoint behind the last known, and from
 *       then on nothing; a writer that is restored behind the end of its input stays there;
 *   <li>the task: an exception of the operator ends it until it is restarted, from the state of the
 *       last completed checkpoint;
 *   <li>the sink's committer, which answers as it is told, and prints.
 * </ul>
 */
public final class CommitterOracle {

    private static final PrintStream OUT =
            new PrintStream(new FileOutputStream(FileDescriptor.out), false, StandardCharsets.UTF_8);

    private final StringBuilder lines = new StringBuilder();
    private Map<String, ArrayDeque<String>> answers = new HashMap<>();
    private Map<Long, Snapshot> snapshots = new HashMap<>();
    private Set<Integer> ended = new HashSet<>();
    private Set<Integer> taken = new HashSet<>();
    private long[] lastKnown;
    private long completed;
    private long pending;
    private int tries;
    private boolean failed;
    private GlobalCommitterOperator<String, Object> operator;
    private StateStore live;

    private record Snapshot(List<byte[]> state, Set<Integer> ended) {}

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        CommitterOracle oracle = new CommitterOracle();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            OUT.append(oracle.answer(line.trim())).append(".\n");
            if (!in.ready()) {
                OUT.flush();
            }
        }
        OUT.flush();
    }

    private String answer(String line) throws Exception {
        lines.setLength(0);
        String[] words = line.split(" +");
        boolean begins = words[0].equals("new") || words[0].equals("restart");
        if (!failed || begins) {
            try {
                perform(words);
            } catch (IOException | RuntimeException exception) {
                failed = true;
                print("failed");
            }
        }
        return lines.toString();
    }

    private void perform(String[] words) throws Exception {
        switch (words[0]) {
            case "new" -> begin(Integer.parseInt(words[1]), Integer.parseInt(words[2]));
            case "barrier" -> barrier(Integer.parseInt(words[1]), Long.parseLong(words[2]), names(words[3]));
            case "end" -> end(Integer.parseInt(words[1]), names(words[2]));
            case "answer" -> answers.computeIfAbsent(words[1], name -> new ArrayDeque<>()).add(words[2]);
            case "complete" -> complete(Long.parseLong(words[1]), words.length == 2);
            case "told" -> operator.notifyCheckpointComplete(Long.parseLong(words[1]));
            case "abort" -> {
                pending = 0;
                operator.notifyCheckpointAborted(Long.parseLong(words[1]));
            }
            case "restart" -> restart();
            default -> throw new AssertionError("unknown command " + words[0]);
        }
    }

    private void begin(int subtasks, int retries) throws Exception {
        answers = new HashMap<>();
        snapshots = new HashMap<>();
        ended = new HashSet<>();
        lastKnown = new long[subtasks];
        completed = 0;
        pending = 0;
        tries = retries;
        open();
    }

    private void restart() throws Exception {
        ended = completed == 0 ? new HashSet<>() : new HashSet<>(snapshots.get(completed).ended);
        Arrays.fill(lastKnown, completed);
        pending = 0;
        open();
    }

    private void barrier(int subtask, long checkpoint, List<String> names) throws Exception {
        if (pending != checkpoint) {
            pending = checkpoint;
            taken = new HashSet<>();
        }
        if (!ended.contains(subtask)) {
            emit(subtask, checkpoint, names);
        }
        taken.add(subtask);
        if (taken.size() == lastKnown.length) {
            operator.snapshotState(null);
            snapshots.put(checkpoint, new Snapshot(live.values, new HashSet<>(ended)));
        }
    }

    private void end(int subtask, List<String> names) throws Exception {
        if (ended.add(subtask)) {
            emit(subtask, lastKnown[subtask] + 1, names);
        }
    }

    private void emit(int subtask, long checkpoint, List<String> names) throws Exception {
        lastKnown[subtask] = checkpoint;
        send(new CommittableSummary<>(subtask, lastKnown.length, checkpoint, names.size(), 0));
        for (String name : names) {
            send(new CommittableWithLineage<>(name, checkpoint, subtask));
        }
    }

    private void send(CommittableMessage<String> message) throws Exception {
        operator.processElement(new StreamRecord<>(message));
    }

    private void complete(long checkpoint, boolean isTold) throws Exception {
        completed = checkpoint;
        pending = 0;
        print("state " + checkpoint + held(snapshots.get(checkpoint).state));
        if (isTold) {
            operator.notifyCheckpointComplete(checkpoint);
        }
    }

    /** The operator as its task sets it up, with what setup() takes from a task put in its place. */
    private void open() throws Exception {
        failed = false;
        operator = new GlobalCommitterOperator<>(context -> new Printing(), Names::new, false);
        TaskInfo task = new TaskInfoImpl("global committer", 1, 0, 1, 0);
        StreamingRuntimeContext context = withoutConstruction(StreamingRuntimeContext.class);
        set(AbstractRuntimeUDFContext.class, context, "taskInfo", task);
        set(AbstractStreamOperator.class, operator, "runtimeContext", context);
        set(AbstractStreamOperator.class, operator, "stateHandler", withoutConstruction(StreamOperatorStateHandler.class));
        InternalSinkCommitterMetricGroup metrics =
                InternalSinkCommitterMetricGroup.wrap(UnregisteredMetricGroups.createUnregisteredOperatorMetricGroup());
        set(GlobalCommitterOperator.class, operator, "metricGroup", metrics);
        set(GlobalCommitterOperator.class, operator, "committer", new Printing());
        set(GlobalCommitterOperator.class, operator, "committableCollector", CommittableCollector.of(metrics));
        set(GlobalCommitterOperator.class, operator, "committableSerializer", new Names());
        set(GlobalCommitterOperator.class, operator, "maxRetries", tries);
        operator.initializeState(initialization());
    }

    private StateInitializationContext initialization() {
        live = new StateStore(completed == 0 ? List.of() : snapshots.get(completed).state);
        ListState<byte[]> state = proxyOf(live);
        OperatorStateStore store =
                proxy(OperatorStateStore.class, (method, arguments) ->
                        method.getName().equals("getListState") ? state : unsupported(method));
        return proxy(StateInitializationContext.class, (method, arguments) ->
                switch (method.getName()) {
                    case "isRestored" -> completed > 0;
                    case "getRestoredCheckpointId" ->
                            completed > 0 ? OptionalLong.of(completed) : OptionalLong.empty();
                    case "getOperatorStateStore" -> store;
                    default -> unsupported(method);
                });
    }

    private ListState<?> read(StateStore store) throws ReflectiveOperationException {
        return new SimpleVersionedListState<>(
                proxyOf(store), (SimpleVersionedSerializer<?>) call(operator, "getCommitterStateSerializer"));
    }

    /** What a state holds, read by Flink's own serializer and without the operator. */
    private String held(List<byte[]> state) throws Exception {
        Map<Integer, List<String>> bySubtask = new TreeMap<>();
        for (Object wrapper : read(new StateStore(state)).get()) {
            Object collector = call(wrapper, "getCommittableCollector");
            for (Object manager : (Collection<?>) call(collector, "getCheckpointCommittables")) {
                for (Object ofSubtask : (Collection<?>) call(manager, "getSubtaskCommittableManagers")) {
                    List<String> names =
                            bySubtask.computeIfAbsent((Integer) call(ofSubtask, "getSubtaskId"), id -> new ArrayList<>());
                    for (Object request : (Collection<?>) call(ofSubtask, "getRequests")) {
                        names.add((String) call(request, "getCommittable"));
                    }
                }
            }
        }
        StringBuilder told = new StringBuilder();
        bySubtask.forEach((subtask, names) ->
                told.append(names.isEmpty() ? "" : " " + subtask + ":" + String.join(",", names)));
        return told.toString();
    }

    private void print(String line) {
        lines.append(line).append('\n');
    }

    private static List<String> names(String word) {
        return word.equals("-") ? List.of() : List.of(word.split(","));
    }

    private final class Printing implements Committer<String> {
        @Override
        public void commit(Collection<CommitRequest<String>> requests) throws IOException {
            StringBuilder told = new StringBuilder("commit");
            try {
                for (CommitRequest<String> request : requests) {
                    ArrayDeque<String> said = answers.get(request.getCommittable());
                    String answer = said == null || said.isEmpty() ? "ok" : said.poll();
                    told.append(' ').append(request.getCommittable()).append(' ').append(answer);
                    switch (answer) {
                        case "retry" -> request.retryLater();
                        case "again" -> request.signalAlreadyCommitted();
                        case "known" -> request.signalFailedWithKnownReason(new IOException("as told"));
                        case "error" -> throw new IOException("as told");
                        default -> {}
                    }
                }
            } finally {
                print(told.toString());
            }
        }

        @Override
        public void close() {}
    }

    private static final class StateStore {
        private List<byte[]> values;

        StateStore(List<byte[]> values) {
            this.values = new ArrayList<>(values);
        }
    }

    private static ListState<byte[]> proxyOf(StateStore store) {
        return CommitterOracle.<ListState<byte[]>>proxy(ListState.class, (method, arguments) ->
                switch (method.getName()) {
                    case "get" -> store.values;
                    case "update" -> {
                        store.values = new ArrayList<>((List<byte[]>) arguments[0]);
                        yield null;
                    }
                    default -> unsupported(method);
                });
    }

    private static final class Names implements SimpleVersionedSerializer<String> {
        @Override
        public int getVersion() {
            return 1;
        }

        @Override
        public byte[] serialize(String name) {
            return name.getBytes(StandardCharsets.UTF_8);
        }

        @Override
        public String deserialize(int version, byte[] bytes) {
            return new String(bytes, StandardCharsets.UTF_8);
        }
    }

    private interface Answering {
        Object answer(Method method, Object[] arguments) throws Exception;
    }

    private static <T> T proxy(Class<?> type, Answering answering) {
        return (T) Proxy.newProxyInstance(
                type.getClassLoader(), new Class<?>[] {type}, (self, method, arguments) -> answering.answer(method, arguments));
    }

    private static Object unsupported(Method method) {
        throw new UnsupportedOperationException(method.toString());
    }

    private static <T> T withoutConstruction(Class<T> type) throws ReflectiveOperationException {
        Field field = sun.misc.Unsafe.class.getDeclaredField("theUnsafe");
        field.setAccessible(true);
        return type.cast(((sun.misc.Unsafe) field.get(null)).allocateInstance(type));
    }

    private static void set(Class<?> owner, Object target, String name, Object value)
            throws ReflectiveOperationException {
        Field field = owner.getDeclaredField(name);
        field.setAccessible(true);
        field.set(target, value);
    }

    private static Object call(Object target, String name) throws ReflectiveOperationException {
        for (Class<?> type = target.getClass(); type != null; type = type.getSuperclass()) {
            for (Method method : type.getDeclaredMethods()) {
                if (method.getName().equals(name) && method.getParameterCount() == 0) {
                    method.setAccessible(true);
                    return method.invoke(target);
                }
            }
        }
        throw new NoSuchMethodException(target.getClass() + "." + name);
    }
}
