package headtohead;

import java.util.Arrays;
import org.apache.flink.runtime.operators.coordination.OperatorEvent;

/** What the coordinator sends and the operator answers with, of the same content as epochgate's. */
record Order(String kind, String path, int rowGroup, int rows, byte[] payload)
        implements OperatorEvent {

    static final String SPLIT = "split";
    static final String ANSWER = "answer";
    static final String RAISE = "raise";
    private static final int PAYLOAD_BYTES = 80;

    static Order of(String kind) {
        byte[] payload = new byte[PAYLOAD_BYTES];
        Arrays.fill(payload, (byte) 'x');
        return new Order(kind, "/data/part-00017.parquet", 12, 65_536, payload);
    }
}
