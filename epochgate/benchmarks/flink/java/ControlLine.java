package headtohead;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintWriter;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.stream.Collectors;

/**
 * The connection to the benchmark: for each line with a command and a number, a line of numbers.
 *
 * <p>What goes wrong is answered as a line that begins with `error`.
 */
final class ControlLine extends Thread {

    private final int port;
    private final MeasuringCoordinator coordinator;
    private volatile Socket socket;

    ControlLine(int port, MeasuringCoordinator coordinator) {
        super("control line");
        this.port = port;
        this.coordinator = coordinator;
        setDaemon(true);
    }

    /** Lets the thread end. */
    void end() {
        try {
            if (socket != null) {
                socket.close();
            }
        } catch (IOException ignored) {
            // The benchmark has left before.
        }
    }

    @Override
    public void run() {
        try (Socket connected = new Socket(InetAddress.getLoopbackAddress(), port);
                BufferedReader lines = new BufferedReader(new InputStreamReader(
                        connected.getInputStream(), StandardCharsets.UTF_8));
                PrintWriter answers = new PrintWriter(
                        connected.getOutputStream(), true, StandardCharsets.UTF_8)) {
            socket = connected;
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                answers.println(answer(line));
            }
        } catch (IOException gone) {
            System.err.println("the benchmark is gone: " + gone);
        }
    }

    private String answer(String line) {
        String[] words = line.split(" ");
        try {
            return Arrays.stream(numbers(words[0], Long.parseLong(words[1])))
                    .mapToObj(Double::toString)
                    .collect(Collectors.joining(" "));
        } catch (Exception error) {
            return "error " + causes(error);
        }
    }

    private static String causes(Throwable error) {
        StringBuilder text = new StringBuilder(error.toString());
        for (Throwable cause = error.getCause(); cause != null; cause = cause.getCause()) {
            text.append("; caused by ").append(cause);
        }
        return text.toString().replace('\n', ' ');
    }

    private double[] numbers(String command, long number) throws Exception {
        switch (command) {
            case "ready":
                coordinator.ready();
                return new double[0];
            case "event-bytes":
                return new double[] {coordinator.eventBytes()};
            case "stream-in-calls":
                return coordinator.streamInCalls(number);
            case "stream-by-thread":
                return coordinator.streamByThread(number);
            case "confirmed-trips":
                return coordinator.confirmedTrips((int) number);
            case "answered-trips":
                return coordinator.answeredTrips((int) number);
            case "checkpoints":
                return coordinator.checkpoints((int) number);
            case "begin-load":
                coordinator.beginLoad();
                return new double[0];
            case "end-load":
                return new double[] {coordinator.endLoad()};
            case "raise":
                return new double[] {coordinator.raise((int) number)};
            case "fail-all":
                return new double[] {coordinator.failAll()};
            default:
                throw new IllegalArgumentException("unknown command " + command);
        }
    }
}
