package org.apache.flink.util;

import org.apache.flink.runtime.operators.coordination.Exit;

/**
 * Takes the place of Flink's handler of this name, which writes a thread dump and ends the process.
 *
 * <p>A process that ends with every such schedule would make thousands of them slow, so this one
 * remembers why it would have ended, and unwinds the call. Left off the class path, the process
 * ends as Flink's does.
 */
public final class FatalExitExceptionHandler implements Thread.UncaughtExceptionHandler {
    public static final FatalExitExceptionHandler INSTANCE = new FatalExitExceptionHandler();
    public static final int EXIT_CODE = -17;

    @Override
    public void uncaughtException(Thread thread, Throwable cause) {
        Exit.remember(cause);
        throw new Error("the process would have ended here", cause);
    }
}
