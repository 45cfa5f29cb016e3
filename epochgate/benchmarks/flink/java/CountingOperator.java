package headtohead;

import java.util.List;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.runtime.jobgraph.OperatorID;
import org.apache.flink.runtime.operators.coordination.OperatorCoordinator;
import org.apache.flink.runtime.operators.coordination.OperatorEvent;
import org.apache.flink.runtime.operators.coordination.OperatorEventGateway;
import org.apache.flink.runtime.operators.coordination.OperatorEventHandler;
import org.apache.flink.runtime.state.StateInitializationContext;
import org.apache.flink.runtime.state.StateSnapshotContext;
import org.apache.flink.streaming.api.operators.AbstractStreamOperator;
import org.apache.flink.streaming.api.operators.AbstractStreamOperatorFactory;
import org.apache.flink.streaming.api.operators.CoordinatedOperatorFactory;
import org.apache.flink.streaming.api.operators.OneInputStreamOperator;
import org.apache.flink.streaming.api.operators.OneInputStreamOperatorFactory;
import org.apache.flink.streaming.api.operators.StreamOperator;
import org.apache.flink.streaming.api.operators.StreamOperatorParameters;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;

/** Counts its events, which is its state; answers those that ask for it, or throws. */
final class CountingOperator extends AbstractStreamOperator<Long>
        implements OneInputStreamOperator<Long, Long>, OperatorEventHandler {

    private final transient OperatorEventGateway coordinator;
    private transient ListState<Long> state;
    private transient long events;

    private CountingOperator(StreamOperatorParameters<Long> parameters, OperatorID operator) {
        super(parameters);
        coordinator = parameters.getOperatorEventDispatcher().getOperatorEventGateway(operator);
        parameters.getOperatorEventDispatcher().registerEventHandler(operator, this);
    }

    @Override
    public void handleOperatorEvent(OperatorEvent event) {
        events++;
        Order order = (Order) event;
        if (order.kind().equals(Order.RAISE)) {
            throw new IllegalStateException("the operator was told to throw");
        }
        if (order.kind().equals(Order.ANSWER)) {
            coordinator.sendEventToCoordinator(order);
        }
    }

    @Override
    public void initializeState(StateInitializationContext context) throws Exception {
        super.initializeState(context);
        ListStateDescriptor<Long> descriptor = new ListStateDescriptor<>("events", Long.class);
        state = context.getOperatorStateStore().getListState(descriptor);
        for (long counted : state.get()) {
            events += counted;
        }
    }

    @Override
    public void snapshotState(StateSnapshotContext context) throws Exception {
        super.snapshotState(context);
        state.update(List.of(events));
    }

    @Override
    public void processElement(StreamRecord<Long> element) {
        throw new IllegalStateException("the source emits no records");
    }

    /** Makes the operator in its task, and its coordinator in the job manager. */
    static final class Factory extends AbstractStreamOperatorFactory<Long>
            implements OneInputStreamOperatorFactory<Long, Long>, CoordinatedOperatorFactory<Long> {

        private final int controlPort;
        private final int inFlight;

        Factory(int controlPort, int inFlight) {
            this.controlPort = controlPort;
            this.inFlight = inFlight;
        }

        @Override
        @SuppressWarnings("unchecked")
        public <T extends StreamOperator<Long>> T createStreamOperator(
                StreamOperatorParameters<Long> parameters) {
            OperatorID operator = parameters.getStreamConfig().getOperatorID();
            return (T) new CountingOperator(parameters, operator);
        }

        @Override
        @SuppressWarnings("rawtypes")
        public Class<? extends StreamOperator> getStreamOperatorClass(ClassLoader loader) {
            return CountingOperator.class;
        }

        @Override
        public OperatorCoordinator.Provider getCoordinatorProvider(
                String name, OperatorID operator) {
            return new MeasuringCoordinator.Provider(operator, controlPort, inFlight);
        }
    }
}
