package org.apache.flink.runtime.operators.coordination;

import static org.apache.flink.runtime.operators.coordination.HazardJob.print;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.connector.source.lib.NumberSequenceSource.NumberSequenceSplit;
import org.apache.flink.api.connector.source.util.ratelimit.RateLimiter;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/**
 * D11 and D12: the two subtasks of a sink with committers and a global committer take part unevenly.
 *
 * <p>D11: a barrier waits behind slow records on the way to one subtask until its checkpoint has
 * expired; the other subtask has taken it. D12: one subtask comes to the end of its input before the
 * other.
 *
 * <p>What is led is which numbers come when: a few with the notice of each checkpoint, many slow ones
 * at once in D11, and all that one subtask has in D12. The sink is ours, too, and prints what is
 * committed. All else is Flink's own.
 */
final class UnevenCommittables {

    private static final long PAUSE_MS = 300;
    private static final long EXPIRES_MS = 3_000;
    private static final long SLOW_MS = 150;
    private static final long FIRST_SLOW = 4;
    private static final long SLOW_ONES = 40;
    private static final long BEHIND_THEM = FIRST_SLOW + SLOW_ONES;
    private static final long OF_EACH = 6;

    private UnevenCommittables() {}

    /** Numbers go to the subtasks by turns, and the slow ones all to the second. */
    static void runExpiring(Configuration configuration) throws Exception {
        StreamExecutionEnvironment environment = environment(configuration);
        environment.getCheckpointConfig().setCheckpointTimeout(EXPIRES_MS);
        environment.getCheckpointConfig().setTolerableCheckpointFailureNumber(100);
        long count = BEHIND_THEM + 6;
        DataStream<Long> numbers =
                environment
                        .fromSource(source(count, AtNotices::new), WatermarkStrategy.noWatermarks(), "numbers")
                        .setParallelism(1)
                        .partitionCustom((number, subtasks) -> isSlow(number) ? 1 : (int) (number % 2), number -> number)
                        .map(UnevenCommittables::handled)
                        .returns(Types.LONG);
        finish(environment, numbers, count);
    }

    /** The first half of the numbers belongs to one subtask, the other to the other. */
    static void runEndingEarly(Configuration configuration) throws Exception {
        StreamExecutionEnvironment environment = environment(configuration);
        long count = 2 * OF_EACH;
        DataStream<Long> numbers =
                environment.fromSource(
                        source(count, FirstHalfAtOnce::new), WatermarkStrategy.noWatermarks(), "numbers");
        finish(environment, numbers, count);
    }

    private static StreamExecutionEnvironment environment(Configuration configuration) {
        StreamExecutionEnvironment environment =
                StreamExecutionEnvironment.createLocalEnvironment(2, configuration);
        environment.enableCheckpointing(PAUSE_MS);
        environment.getCheckpointConfig().setMinPauseBetweenCheckpoints(PAUSE_MS);
        return environment;
    }

    private interface Limiting extends java.io.Serializable {
        RateLimiter<NumberSequenceSplit> limiter();
    }

    private static DataGeneratorSource<Long> source(long count, Limiting limiting) {
        return new DataGeneratorSource<>(
                FirstHalfAtOnce::seen, count, parallelism -> limiting.limiter(), Types.LONG);
    }

    private static void finish(StreamExecutionEnvironment environment, DataStream<Long> numbers, long count)
            throws Exception {
        numbers.sinkTo(new LastCommittables.TwoStages());
        environment.execute("uneven committables");
        print("job finished");
        for (long number = 0; number < count; number++) {
            if (!HazardJob.has("committed globally " + number)) {
                print("never committed globally " + number);
            }
        }
    }

    private static boolean isSlow(long number) {
        return number >= FIRST_SLOW && number < BEHIND_THEM;
    }

    private static Long handled(Long number) throws InterruptedException {
        if (isSlow(number)) {
            Thread.sleep(SLOW_MS);
        }
        return number;
    }

    /** Lets two numbers pass with the notice of a checkpoint, and the slow ones with the second. */
    private static class AtNotices implements RateLimiter<NumberSequenceSplit> {
        private long asked;
        private long allowed;
        private CompletableFuture<Void> gate = new CompletableFuture<>();

        @Override
        public CompletionStage<Void> acquire(int permits) {
            gate = new CompletableFuture<>();
            asked++;
            if (asked <= allowed) {
                gate.complete(null);
            }
            return gate;
        }

        @Override
        public void notifyCheckpointComplete(long checkpoint) {
            allowed += 2 + (allowed == FIRST_SLOW - 2 ? SLOW_ONES : 0);
            gate.complete(null);
        }
    }

    /** Lets one number pass with the notice of a checkpoint, and all of the first half at once. */
    private static final class FirstHalfAtOnce implements RateLimiter<NumberSequenceSplit> {
        private static final ThreadLocal<Boolean> OF_FIRST_HALF = ThreadLocal.withInitial(() -> false);
        private CompletableFuture<Void> gate = new CompletableFuture<>();

        /** On the thread of the source's task, which asks for the next number, too. */
        static Long seen(Long number) {
            OF_FIRST_HALF.set(number < OF_EACH);
            return number;
        }

        @Override
        public CompletionStage<Void> acquire(int permits) {
            gate = new CompletableFuture<>();
            if (OF_FIRST_HALF.get()) {
                gate.complete(null);
            }
            return gate;
        }

        @Override
        public void notifyCheckpointComplete(long checkpoint) {
            gate.complete(null);
        }
    }
}
