package org.apache.flink.runtime.operators.coordination;

import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;

/** Prints what it is told, and keeps the gateways that it is handed and the futures it is asked for. */
class TalkingCoordinator implements OperatorCoordinator {
    private final Consumer<String> printer;
    private final Map<String, SubtaskGateway> gateways;
    private final Map<Long, CompletableFuture<byte[]>> futures;

    /** Gateways are kept by "subtask attempt", futures by checkpoint. */
    TalkingCoordinator(
            Consumer<String> printer,
            Map<String, SubtaskGateway> gateways,
            Map<Long, CompletableFuture<byte[]>> futures) {
        this.printer = printer;
        this.gateways = gateways;
        this.futures = futures;
    }

    static String text(byte[] state) {
        return state == null ? "null" : new String(state, StandardCharsets.UTF_8);
    }

    private void print(String line) {
        printer.accept("coord " + line);
    }

    @Override
    public void start() {
        print("start");
    }

    @Override
    public void close() {}

    @Override
    public void handleEventFromOperator(int subtask, int attempt, OperatorEvent event) {
        print("event " + subtask + " " + attempt + " " + event);
    }

    @Override
    public void checkpointCoordinator(long id, CompletableFuture<byte[]> result) {
        futures.put(id, result);
        print("checkpoint " + id);
    }

    @Override
    public void notifyCheckpointComplete(long id) {
        print("complete " + id);
    }

    @Override
    public void notifyCheckpointAborted(long id) {
        print("aborted " + id);
    }

    @Override
    public void resetToCheckpoint(long id, byte[] state) {
        print("resetTo " + id + " " + text(state));
    }

    @Override
    public void subtaskReset(int subtask, long id) {
        print("subtaskReset " + subtask + " " + id);
    }

    @Override
    public void executionAttemptFailed(int subtask, int attempt, Throwable cause) {
        print("failed " + subtask + " " + attempt);
    }

    @Override
    public void executionAttemptReady(int subtask, int attempt, SubtaskGateway gateway) {
        gateways.put(subtask + " " + attempt, gateway);
        print("ready " + subtask + " " + attempt);
    }
}
