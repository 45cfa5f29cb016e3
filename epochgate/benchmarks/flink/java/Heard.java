package headtohead;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** The moment of the last answer of each subtask, as System.nanoTime tells it. */
final class Heard {

    private static final long WAIT_S = 120;
    private final long[] moments;

    Heard(int subtasks) {
        moments = new long[subtasks];
    }

    synchronized void from(int subtask) {
        moments[subtask] = System.nanoTime();
        notifyAll();
    }

    /** Waits for an answer of the subtask after this moment, and returns its moment. */
    long since(int subtask, long begun) throws InterruptedException, TimeoutException {
        return last(subtask, subtask + 1, begun);
    }

    /** Waits for an answer of each subtask after this moment, and returns the last one's moment. */
    long allSince(long begun) throws InterruptedException, TimeoutException {
        return last(0, moments.length, begun);
    }

    private synchronized long last(int first, int end, long begun)
            throws InterruptedException, TimeoutException {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(WAIT_S);
        long last = begun;
        for (int subtask = first; subtask < end; subtask++) {
            while (moments[subtask] <= begun) {
                long left = deadline - System.nanoTime();
                if (left <= 0) {
                    throw new TimeoutException(
                            "subtask " + subtask + " did not answer within " + WAIT_S + " s");
                }
                TimeUnit.NANOSECONDS.timedWait(this, left);
            }
            last = Math.max(last, moments[subtask]);
        }
        return last;
    }
}
