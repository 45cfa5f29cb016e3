package headtohead;

import java.util.concurrent.CountDownLatch;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.GlobalConfiguration;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.source.legacy.ParallelSourceFunction;

/**
 * The job that is measured: a source that emits nothing, chained to an operator with a coordinator.
 *
 * <p>Run by the job manager, in a cluster; by itself, it runs a whole Flink in its own process.
 * Arguments: the folder of the configuration, the port of the benchmark, the parallelism, and how
 * many events may be in flight.
 */
public final class EventJob {

    private EventJob() {}

    public static void main(String[] arguments) throws Exception {
        Configuration configuration = GlobalConfiguration.loadConfiguration(arguments[0]);
        StreamExecutionEnvironment environment =
                StreamExecutionEnvironment.getExecutionEnvironment(configuration);
        environment.setParallelism(Integer.parseInt(arguments[2]));
        environment
                .addSource(new SilentSource(), "silence", Types.LONG)
                .transform(
                        "events",
                        Types.LONG,
                        new CountingOperator.Factory(
                                Integer.parseInt(arguments[1]), Integer.parseInt(arguments[3])))
                .uid("events");
        environment.execute("head to head");
    }

    /** Emits nothing until it is canceled. */
    public static final class SilentSource implements ParallelSourceFunction<Long> {
        private transient CountDownLatch end;
        private volatile boolean isCanceled;

        @Override
        public void run(SourceContext<Long> context) throws Exception {
            synchronized (this) {
                end = new CountDownLatch(1);
            }
            if (!isCanceled) {
                end.await();
            }
        }

        @Override
        public void cancel() {
            isCanceled = true;
            synchronized (this) {
                if (end != null) {
                    end.countDown();
                }
            }
        }
    }
}
