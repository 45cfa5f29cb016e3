package org.apache.flink.runtime.operators.coordination;

/** Remembers why Flink would have ended its process, where it is kept from it. */
public final class Exit {
    private static Throwable cause;

    private Exit() {}

    public static void remember(Throwable found) {
        cause = cause == null ? found : cause;
    }

    static Throwable cause() {
        return cause;
    }

    static void forget() {
        cause = null;
    }
}
