package org.apache.flink.runtime.operators.coordination;

import java.io.IOException;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.TreeMap;
import java.util.function.Supplier;
import org.apache.flink.api.common.TaskInfoImpl;
import org.apache.flink.api.common.functions.util.AbstractRuntimeUDFContext;
import org.apache.flink.api.common.operators.MailboxExecutor;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.OperatorStateStore;
import org.apache.flink.api.connector.sink2.Committer;
import org.apache.flink.api.connector.sink2.CommitterInitContext;
import org.apache.flink.api.connector.sink2.CommittingSinkWriter;
import org.apache.flink.api.connector.sink2.Sink;
import org.apache.flink.api.connector.sink2.SupportsCommitter;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.core.io.SimpleVersionedSerializer;
import org.apache.flink.runtime.metrics.groups.InternalSinkCommitterMetricGroup;
import org.apache.flink.runtime.metrics.groups.UnregisteredMetricGroups;
import org.apache.flink.runtime.state.StateInitializationContext;
import org.apache.flink.streaming.api.connector.sink2.CommittableMessage;
import org.apache.flink.streaming.api.graph.StreamConfig;
import org.apache.flink.streaming.api.operators.AbstractStreamOperator;
import org.apache.flink.streaming.api.operators.Output;
import org.apache.flink.streaming.api.operators.StreamOperatorParameters;
import org.apache.flink.streaming.api.operators.StreamOperatorStateHandler;
import org.apache.flink.streaming.api.operators.StreamingRuntimeContext;
import org.apache.flink.streaming.api.operators.util.SimpleVersionedListState;
import org.apache.flink.streaming.runtime.operators.sink.GlobalCommitterOperator;
import org.apache.flink.streaming.runtime.operators.sink.committables.CommittableCollector;
import org.apache.flink.streaming.runtime.operators.sink.committables.CommittableCollectorSerializer;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.apache.flink.streaming.runtime.tasks.ProcessingTimeService;
import org.apache.flink.util.function.FunctionWithException;

/**
 * Flink's own operators of a sink, each by its constructor and its initializeState(), with what
 * setup() takes from a task put in its place.
 */
final class SinkOperators {

    private static final String PACKAGE = "org.apache.flink.streaming.runtime.operators.sink.";

    private SinkOperators() {}

    /** Where an operator runs, and what its task is restored from; 0 is no checkpoint. */
    record Place(int subtask, int subtasks, long restored, StateStore state) {}

    /** Where an operator's output goes. */
    interface Sending {
        void send(StreamRecord<CommittableMessage<String>> message) throws Exception;
    }

    /** The operator state of one task. */
    static final class StateStore {
        List<byte[]> values;

        StateStore(List<byte[]> values) {
            this.values = new ArrayList<>(values);
        }

        ListState<byte[]> asListState() {
            return proxy(ListState.class, (method, arguments) ->
                    switch (method.getName()) {
                        case "get" -> values;
                        case "update" -> {
                            values = new ArrayList<>((List<byte[]>) arguments[0]);
                            yield null;
                        }
                        case "clear" -> {
                            values = new ArrayList<>();
                            yield null;
                        }
                        default -> unsupported(method);
                    });
        }
    }

    /** SinkWriterOperator, of a writer that hands over what it is told to. */
    static AbstractStreamOperator<?> writer(
            Place place, Supplier<List<String>> names, Sending output) throws Exception {
        Object writer = proxy(CommittingSinkWriter.class, (method, arguments) ->
                method.getName().equals("prepareCommit") ? names.get() : null);
        Object sink = Proxy.newProxyInstance(
                SinkOperators.class.getClassLoader(),
                new Class<?>[] {Sink.class, SupportsCommitter.class},
                (self, method, arguments) ->
                        switch (method.getName()) {
                            case "createWriter" -> writer;
                            case "getCommittableSerializer" -> new Names();
                            default -> unsupported(method);
                        });
        return ready(place, output, construct(
                "SinkWriterOperator",
                List.of(StreamOperatorParameters.class, Sink.class, ProcessingTimeService.class, MailboxExecutor.class),
                null, sink, nothing(ProcessingTimeService.class), nothing(MailboxExecutor.class)));
    }

    /** CommitterOperator, which sends on what it has committed. */
    static AbstractStreamOperator<?> committer(
            Place place, int tries, Committer<String> committer, Sending output) throws Exception {
        FunctionWithException<CommitterInitContext, Committer<String>, IOException> supplier = context -> committer;
        AbstractStreamOperator<?> operator = construct(
                "CommitterOperator",
                List.of(StreamOperatorParameters.class, ProcessingTimeService.class, SimpleVersionedSerializer.class,
                        FunctionWithException.class, boolean.class, boolean.class, boolean.class),
                null, nothing(ProcessingTimeService.class), new Names(), supplier, true, false, true);
        collects(operator, tries);
        return ready(place, output, operator);
    }

    /** GlobalCommitterOperator. */
    static GlobalCommitterOperator<String, Object> global(
            Place place, int tries, Committer<String> committer, boolean commitOnInput) throws Exception {
        GlobalCommitterOperator<String, Object> operator =
                new GlobalCommitterOperator<>(context -> committer, Names::new, commitOnInput);
        set(GlobalCommitterOperator.class, operator, "committableSerializer", new Names());
        collects(operator, tries);
        return ready(place, message -> {}, operator);
    }

    /** What a state holds by subtask, read by Flink's own serializers and without the operator. */
    static Map<Integer, List<String>> held(List<byte[]> state, GlobalCommitterOperator<?, ?> ofGlobal)
            throws Exception {
        SimpleVersionedSerializer<?> serializer = ofGlobal == null
                ? new CommittableCollectorSerializer<>(new Names(), 0, 1, metrics())
                : (SimpleVersionedSerializer<?>) call(ofGlobal, "getCommitterStateSerializer");
        Map<Integer, List<String>> bySubtask = new TreeMap<>();
        for (Object kept : new SimpleVersionedListState<>(new StateStore(state).asListState(), serializer).get()) {
            Object collector = ofGlobal == null ? kept : call(kept, "getCommittableCollector");
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
        return bySubtask;
    }

    private static void collects(AbstractStreamOperator<?> operator, int tries) throws ReflectiveOperationException {
        set(operator.getClass(), operator, "metricGroup", metrics());
        set(operator.getClass(), operator, "committableCollector", CommittableCollector.of(metrics()));
        set(operator.getClass(), operator, "maxRetries", tries);
    }

    private static InternalSinkCommitterMetricGroup metrics() {
        return InternalSinkCommitterMetricGroup.wrap(UnregisteredMetricGroups.createUnregisteredOperatorMetricGroup());
    }

    private static <T extends AbstractStreamOperator<?>> T ready(Place place, Sending output, T operator)
            throws Exception {
        StreamingRuntimeContext context = withoutConstruction(StreamingRuntimeContext.class);
        set(AbstractRuntimeUDFContext.class, context, "taskInfo",
                new TaskInfoImpl("sink", place.subtasks, place.subtask, place.subtasks, 0));
        set(AbstractStreamOperator.class, operator, "runtimeContext", context);
        set(AbstractStreamOperator.class, operator, "stateHandler", withoutConstruction(StreamOperatorStateHandler.class));
        set(AbstractStreamOperator.class, operator, "config", new StreamConfig(new Configuration()));
        set(AbstractStreamOperator.class, operator, "metrics",
                UnregisteredMetricGroups.createUnregisteredOperatorMetricGroup());
        set(AbstractStreamOperator.class, operator, "output", proxy(Output.class, (method, arguments) -> {
            if (!method.getName().equals("collect")) {
                return unsupported(method);
            }
            output.send((StreamRecord<CommittableMessage<String>>) arguments[0]);
            return null;
        }));
        operator.initializeState(initialization(place));
        return operator;
    }

    private static StateInitializationContext initialization(Place place) {
        ListState<byte[]> state = place.state.asListState();
        OperatorStateStore store =
                proxy(OperatorStateStore.class, (method, arguments) ->
                        method.getName().equals("getListState") ? state : unsupported(method));
        return proxy(StateInitializationContext.class, (method, arguments) ->
                switch (method.getName()) {
                    case "isRestored" -> place.restored > 0;
                    case "getRestoredCheckpointId" ->
                            place.restored > 0 ? OptionalLong.of(place.restored) : OptionalLong.empty();
                    case "getOperatorStateStore" -> store;
                    default -> unsupported(method);
                });
    }

    static final class Names implements SimpleVersionedSerializer<String> {
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

    interface Answering {
        Object answer(Method method, Object[] arguments) throws Exception;
    }

    static <T> T proxy(Class<?> type, Answering answering) {
        return (T) Proxy.newProxyInstance(
                type.getClassLoader(), new Class<?>[] {type}, (self, method, arguments) -> answering.answer(method, arguments));
    }

    private static <T> T nothing(Class<T> type) {
        return proxy(type, (method, arguments) -> unsupported(method));
    }

    static Object unsupported(Method method) {
        throw new AssertionError("nothing stands in for " + method);
    }

    private static AbstractStreamOperator<?> construct(String name, List<Class<?>> types, Object... arguments)
            throws ReflectiveOperationException {
        Constructor<?> constructor = Class.forName(PACKAGE + name).getDeclaredConstructor(types.toArray(Class<?>[]::new));
        constructor.setAccessible(true);
        return (AbstractStreamOperator<?>) constructor.newInstance(arguments);
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
