package org.apache.flink.runtime.operators.coordination;

import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.flink.api.connector.sink2.Committer;
import org.apache.flink.runtime.operators.coordination.SinkOperators.Place;
import org.apache.flink.runtime.operators.coordination.SinkOperators.StateStore;
import org.apache.flink.streaming.api.connector.sink2.CommittableMessage;
import org.apache.flink.streaming.api.operators.AbstractStreamOperator;
import org.apache.flink.streaming.api.operators.BoundedMultiInput;
import org.apache.flink.streaming.api.operators.BoundedOneInput;
import org.apache.flink.streaming.api.operators.OneInputStreamOperator;
import org.apache.flink.streaming.runtime.io.DataInputStatus;
import org.apache.flink.streaming.runtime.io.PushingAsyncDataInput.DataOutput;
import org.apache.flink.streaming.runtime.io.StreamOneInputProcessor;
import org.apache.flink.streaming.runtime.io.StreamTaskInput;
import org.apache.flink.streaming.runtime.operators.sink.GlobalCommitterOperator;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;

/**
 * Drives Flink's own SinkWriterOperator, CommitterOperator and GlobalCommitterOperator by lines of
 * text.
 *
 * <p>It decides nothing about what is handed over, collected, committed, sent on, tried again, kept
 * or discarded: the operators do, their state goes through their serializers, and the global
 * committer's input is read by Flink's StreamOneInputProcessor. What it stands in for:
 *
 * <ul>
 *   <li>the tasks: one of each subtask, with its writer and, if the sink has them, its committer, and
 *       one of the global committer; what fails in one ends all until they are restarted, from the
 *       state of the last completed checkpoint, the global one first;
 *   <li>the channels: in order, at once, and behind a barrier only when all have brought it or the
 *       checkpoint is aborted (aligned checkpoints; Flink does not let any other overtake committables);
 *   <li>the sources: one that is restored behind its end ends again, with nothing more;
 *   <li>the sink's committers, which answer as they are told, and print.
 * </ul>
 */
public final class CommitterOracle {

    private static final PrintStream OUT =
            new PrintStream(new FileOutputStream(FileDescriptor.out), false, StandardCharsets.UTF_8);
    private static final Object END_OF_DATA = new Object();

    private final StringBuilder lines = new StringBuilder();
    private Map<String, ArrayDeque<String>> answers = new HashMap<>();
    private Map<String, ArrayDeque<String>> globalAnswers = new HashMap<>();
    private Map<Long, Snapshot> snapshots = new HashMap<>();
    private long completed;
    private long pending;
    private int tries;
    private boolean hasCommitters;
    private boolean failed;
    private Subtask[] subtasks;
    private GlobalTask global;

    private record Barrier(long checkpoint) {}

    private record Snapshot(List<byte[]> global, List<List<byte[]>> committers, boolean[] ended) {}

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
            case "new" -> begin(Integer.parseInt(words[1]), Integer.parseInt(words[2]), words.length > 3);
            case "barrier" ->
                    barrier(subtasks[Integer.parseInt(words[1])], Long.parseLong(words[2]), names(words[3]));
            case "end" -> subtasks[Integer.parseInt(words[1])].end(names(words[2]));
            case "answer" ->
                    (words.length > 3 ? globalAnswers : answers)
                            .computeIfAbsent(words[1], name -> new ArrayDeque<>())
                            .add(words[2]);
            case "complete" -> complete(Long.parseLong(words[1]), words.length == 2);
            case "told" -> told(Long.parseLong(words[1]), words.length == 2 ? -1 : Integer.parseInt(words[2]));
            case "abort" -> abort(Long.parseLong(words[1]));
            case "restart" -> open();
            default -> throw new AssertionError("unknown command " + words[0]);
        }
        if (global != null) {
            global.flow();
        }
    }

    private void begin(int count, int retries, boolean withCommitters) throws Exception {
        answers = new HashMap<>();
        globalAnswers = new HashMap<>();
        snapshots = new HashMap<>();
        subtasks = new Subtask[count];
        completed = 0;
        tries = retries;
        hasCommitters = withCommitters;
        open();
    }

    private void open() throws Exception {
        failed = false;
        pending = 0;
        global = new GlobalTask();
        for (int index = 0; index < subtasks.length; index++) {
            subtasks[index] = new Subtask(index);
            global.flow();
        }
        for (int index = 0; completed > 0 && index < subtasks.length; index++) {
            if (snapshots.get(completed).ended[index]) {
                subtasks[index].end(List.of());
            }
        }
    }

    private void barrier(Subtask subtask, long checkpoint, List<String> names) throws Exception {
        if (pending != checkpoint) {
            Arrays.fill(global.isBlocked, false);
            pending = checkpoint;
        }
        subtask.takeBarrier(names);
    }

    private void abort(long checkpoint) throws Exception {
        pending = 0;
        Arrays.fill(global.isBlocked, false);
        for (Subtask subtask : subtasks) {
            if (subtask.committer != null) {
                subtask.committer.notifyCheckpointAborted(checkpoint);
            }
        }
        global.operator.notifyCheckpointAborted(checkpoint);
    }

    private void complete(long checkpoint, boolean isTold) throws Exception {
        Snapshot snapshot = snapshots.get(checkpoint);
        Map<Integer, List<String>> held = new TreeMap<>(SinkOperators.held(snapshot.global, global.operator));
        for (List<byte[]> state : snapshot.committers) {
            SinkOperators.held(state, null).forEach((subtask, names) ->
                    held.computeIfAbsent(subtask, id -> new ArrayList<>()).addAll(names));
        }
        StringBuilder told = new StringBuilder("state " + checkpoint);
        held.forEach((subtask, names) ->
                told.append(names.isEmpty() ? "" : " " + subtask + ":" + String.join(",", names)));
        print(told.toString());
        completed = checkpoint;
        if (isTold) {
            told(checkpoint, -1);
        }
    }

    /** The notice reaches one subtask, or with -1 every task. */
    private void told(long checkpoint, int only) throws Exception {
        for (int index = 0; index < subtasks.length; index++) {
            if (subtasks[index].committer != null && (only < 0 || only == index)) {
                subtasks[index].committer.notifyCheckpointComplete(checkpoint);
                global.flow();
            }
        }
        if (only < 0) {
            global.operator.notifyCheckpointComplete(checkpoint);
        }
    }

    private void print(String line) {
        lines.append(line).append('\n');
    }

    private static List<String> names(String word) {
        return word.equals("-") ? List.of() : List.of(word.split(","));
    }

    /** A task with a writer, and a committer if the sink has them, chained. */
    private final class Subtask {
        private final StateStore state;
        private final AbstractStreamOperator<?> writer;
        private final AbstractStreamOperator<?> committer;
        private final ArrayDeque<Object> channel = new ArrayDeque<>();
        private List<String> ready = List.of();
        private List<byte[]> taken;
        private boolean isEnded;
        private boolean hadEnded;

        Subtask(int index) throws Exception {
            boolean isRestored = completed > 0 && hasCommitters;
            state = new StateStore(isRestored ? snapshots.get(completed).committers.get(index) : List.of());
            Place place = new Place(index, subtasks.length, completed, state);
            global.channels.add(channel);
            if (hasCommitters) {
                committer = SinkOperators.committer(place, tries, new Printing("commit " + index, answers), channel::add);
                writer = SinkOperators.writer(ofWriter(place), () -> ready, message -> process(committer, message));
            } else {
                committer = null;
                writer = SinkOperators.writer(ofWriter(place), () -> ready, channel::add);
            }
        }

        private Place ofWriter(Place place) {
            return new Place(place.subtask(), place.subtasks(), place.restored(), new StateStore(List.of()));
        }

        void takeBarrier(List<String> names) throws Exception {
            ready = names;
            writer.prepareSnapshotPreBarrier(pending);
            if (hasCommitters) {
                committer.snapshotState(null);
            }
            taken = state.values;
            hadEnded = isEnded;
            channel.add(new Barrier(pending));
        }

        void end(List<String> names) throws Exception {
            if (!isEnded) {
                isEnded = true;
                ready = names;
                ((BoundedOneInput) writer).endInput();
                if (hasCommitters) {
                    ((BoundedOneInput) committer).endInput();
                }
                channel.add(END_OF_DATA);
            }
        }
    }

    /** The task of the global committer, with its channels. */
    private final class GlobalTask {
        private final List<ArrayDeque<Object>> channels = new ArrayList<>();
        private final boolean[] isBlocked = new boolean[subtasks.length];
        private final StateStore state =
                new StateStore(completed == 0 ? List.of() : snapshots.get(completed).global);
        private final GlobalCommitterOperator<String, Object> operator;
        private final StreamOneInputProcessor<CommittableMessage<String>> processor;
        private Object next;
        private int ended;

        GlobalTask() throws Exception {
            Printing committer =
                    hasCommitters ? new Printing("global", globalAnswers) : new Printing("commit", answers);
            operator = SinkOperators.global(new Place(0, 1, completed, state), tries, committer, hasCommitters);
            StreamTaskInput<CommittableMessage<String>> input =
                    SinkOperators.proxy(StreamTaskInput.class, (method, arguments) ->
                            switch (method.getName()) {
                                case "emitNext" -> emitNext((DataOutput<CommittableMessage<String>>) arguments[0]);
                                case "getInputIndex" -> 0;
                                default -> SinkOperators.unsupported(method);
                            });
            DataOutput<CommittableMessage<String>> output =
                    SinkOperators.proxy(DataOutput.class, (method, arguments) -> {
                        if (!method.getName().equals("emitRecord")) {
                            return SinkOperators.unsupported(method);
                        }
                        process(operator, (StreamRecord<CommittableMessage<String>>) arguments[0]);
                        return null;
                    });
            BoundedMultiInput ending = inputIndex -> operator.finish();
            processor = new StreamOneInputProcessor<>(input, output, ending);
        }

        private DataInputStatus emitNext(DataOutput<CommittableMessage<String>> output) throws Exception {
            if (next == END_OF_DATA) {
                return ++ended == channels.size() ? DataInputStatus.END_OF_DATA : DataInputStatus.NOTHING_AVAILABLE;
            }
            output.emitRecord((StreamRecord<CommittableMessage<String>>) next);
            return DataInputStatus.NOTHING_AVAILABLE;
        }

        void flow() throws Exception {
            for (boolean hasAligned = true; hasAligned; hasAligned = snapshotIfAligned()) {
                for (int index = 0; index < channels.size(); index++) {
                    drain(index);
                }
            }
        }

        private void drain(int index) throws Exception {
            ArrayDeque<Object> channel = channels.get(index);
            while (!channel.isEmpty() && !isBlocked[index]) {
                next = channel.poll();
                if (next instanceof Barrier barrier) {
                    isBlocked[index] = barrier.checkpoint == pending;
                } else {
                    processor.processInput();
                }
            }
        }

        private boolean snapshotIfAligned() throws Exception {
            for (boolean is : isBlocked) {
                if (!is) {
                    return false;
                }
            }
            operator.snapshotState(null);
            List<List<byte[]>> committers = new ArrayList<>();
            boolean[] hadEnded = new boolean[subtasks.length];
            for (int index = 0; index < subtasks.length; index++) {
                committers.add(subtasks[index].taken);
                hadEnded[index] = subtasks[index].hadEnded;
            }
            snapshots.put(pending, new Snapshot(state.values, committers, hadEnded));
            Arrays.fill(isBlocked, false);
            return true;
        }
    }

    private static void process(Object operator, StreamRecord<CommittableMessage<String>> message) throws Exception {
        ((OneInputStreamOperator<CommittableMessage<String>, ?>) operator).processElement(message);
    }

    private final class Printing implements Committer<String> {
        private final String words;
        private final Map<String, ArrayDeque<String>> answers;

        Printing(String words, Map<String, ArrayDeque<String>> answers) {
            this.words = words;
            this.answers = answers;
        }

        @Override
        public void commit(Collection<CommitRequest<String>> requests) throws IOException {
            StringBuilder told = new StringBuilder(words);
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
}
