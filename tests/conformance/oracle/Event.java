package org.apache.flink.runtime.operators.coordination;

/** An event with a name; it tolerates loss if that begins with ~. */
record Event(String name) implements OperatorEvent {
    @Override
    public boolean isLossTolerant() {
        return name.startsWith("~");
    }

    @Override
    public String toString() {
        return name;
    }
}
