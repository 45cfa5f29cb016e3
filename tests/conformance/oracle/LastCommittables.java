package org.apache.flink.runtime.operators.coordination;

import static org.apache.flink.runtime.operators.coordination.HazardJob.print;

import java.io.Serializable;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.connector.sink2.Committer;
import org.apache.flink.api.connector.sink2.CommitterInitContext;
import org.apache.flink.api.connector.sink2.CommittingSinkWriter;
import org.apache.flink.api.connector.sink2.Sink;
import org.apache.flink.api.connector.sink2.SupportsCommitter;
import org.apache.flink.api.connector.sink2.WriterInitContext;
import org.apache.flink.api.connector.source.lib.NumberSequenceSource;
import org.apache.flink.api.connector.source.util.ratelimit.RateLimiter;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.core.io.SimpleVersionedSerializer;
import org.apache.flink.streaming.api.connector.sink2.CommittableMessage;
import org.apache.flink.streaming.api.connector.sink2.StandardSinkTopologies;
import org.apache.flink.streaming.api.connector.sink2.SupportsPostCommitTopology;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/**
 * D10: a bounded job, whose sink has a committer and a global committer, ends by itself.
 *
 * <p>What is led is when the last number comes: once the one before it is committed globally, right
 * after a checkpoint. The source ends with it, and a pause between checkpoints, far longer than that
 * takes, keeps another one from coming in between: the last number belongs to the final checkpoint.
 * The sink is ours, too, and prints what is committed. All else is Flink's own.
 */
final class LastCommittables {

    private static final long NUMBERS = 3;
    private static final long PAUSE_MS = 1_500;

    private LastCommittables() {}

    static void run(Configuration configuration) throws Exception {
        StreamExecutionEnvironment environment =
                StreamExecutionEnvironment.createLocalEnvironment(1, configuration);
        environment.enableCheckpointing(PAUSE_MS);
        environment.getCheckpointConfig().setMinPauseBetweenCheckpoints(PAUSE_MS);
        DataGeneratorSource<Long> numbers =
                new DataGeneratorSource<>(
                        number -> number, NUMBERS, parallelism -> new LastOneLater(), Types.LONG);
        environment
                .fromSource(numbers, WatermarkStrategy.noWatermarks(), "numbers")
                .sinkTo(new TwoStages());
        environment.execute("last committables");
        print("job finished");
        for (long number = 0; number < NUMBERS; number++) {
            if (!HazardJob.has("committed globally " + number)) {
                print("never committed globally " + number);
            }
        }
    }

    /** Lets the last number pass with the notice of a checkpoint, and all others at once. */
    private static final class LastOneLater
            implements RateLimiter<NumberSequenceSource.NumberSequenceSplit> {
        private final CompletableFuture<Void> gate = new CompletableFuture<>();
        private long asked;

        @Override
        public CompletionStage<Void> acquire(int permits) {
            asked++;
            return asked == NUMBERS ? gate : CompletableFuture.completedFuture(null);
        }

        @Override
        public void notifyCheckpointComplete(long checkpoint) {
            if (HazardJob.has("committed globally " + (NUMBERS - 2))) {
                gate.complete(null);
            }
        }
    }

    static final class TwoStages
            implements Sink<Long>, SupportsCommitter<Long>, SupportsPostCommitTopology<Long> {
        private static final long serialVersionUID = 1;

        @Override
        public CommittingSinkWriter<Long, Long> createWriter(WriterInitContext context) {
            return new Writer();
        }

        @Override
        public Committer<Long> createCommitter(CommitterInitContext context) {
            return new Printing("committed ");
        }

        @Override
        public SimpleVersionedSerializer<Long> getCommittableSerializer() {
            return new Numbers();
        }

        @Override
        public void addPostCommitTopology(DataStream<CommittableMessage<Long>> committables) {
            StandardSinkTopologies.addGlobalCommitter(
                    committables, () -> new Printing("committed globally "), Numbers::new);
        }
    }

    /** Each number that was written since the last checkpoint is a committable. */
    private static final class Writer implements CommittingSinkWriter<Long, Long> {
        private List<Long> written = new ArrayList<>();

        @Override
        public void write(Long number, Context context) {
            written.add(number);
        }

        @Override
        public void flush(boolean isEndOfInput) {
            if (isEndOfInput) {
                print("end of input with " + written);
            }
        }

        @Override
        public Collection<Long> prepareCommit() {
            List<Long> committables = written;
            written = new ArrayList<>();
            return committables;
        }

        @Override
        public void close() {}
    }

    private static final class Printing implements Committer<Long>, Serializable {
        private static final long serialVersionUID = 1;
        private final String words;

        Printing(String words) {
            this.words = words;
        }

        @Override
        public void commit(Collection<CommitRequest<Long>> requests) {
            requests.forEach(request -> print(words + request.getCommittable()));
        }

        @Override
        public void close() {}
    }

    private static final class Numbers implements SimpleVersionedSerializer<Long> {
        @Override
        public int getVersion() {
            return 1;
        }

        @Override
        public byte[] serialize(Long number) {
            return ByteBuffer.allocate(Long.BYTES).putLong(number).array();
        }

        @Override
        public Long deserialize(int version, byte[] bytes) {
            return ByteBuffer.wrap(bytes).getLong();
        }
    }
}
