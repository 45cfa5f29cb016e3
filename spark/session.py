"""The Spark session: one made for the command line, and the checks of a user's own.

Decides which settings epochgate needs, and which it cannot live with; the reasons stand beside
them. Leaves the Java to `epochgate.spark.java`. Runs on the driver; pyspark is imported when a
function is called.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from epochgate.environment import set_in_environment
from epochgate.runtime.filesystem import FILE_MODE
from epochgate.spark.errors import (
    LocalMasterWithoutRetries,
    MasterInvalid,
    NotASparkSession,
    SessionAlreadyRunning,
    SessionStopped,
    SettingBreaksGuarantees,
    SparkConnectUnsupported,
    SparkSessionFailed,
)
from epochgate.spark.exposure import Wire, checked_wire, exposed_key
from epochgate.spark.failing_jobs import FailingJobs
from epochgate.spark.home import make_spark_home, write_log_settings
from epochgate.spark.java import archive_settings, use_java
from epochgate.spark.scratch import scratch_folder
from epochgate.spark.versions import version_of, version_warnings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TASK_FAILURES_MAX: Final = 1_000_000
_LOOPBACK: Final = "127.0.0.1"
_JVM_EXIT_PATIENCE_S: Final = 10.0
_MASTERS: Final = "local[4], local-cluster[2,2,1024], spark://host:7077, yarn, k8s://https://host"
_LOCAL: Final = re.compile(r"local(?:\[\s*(\d+|\*)\s*(?:,\s*(\d+)\s*)?\])?")
_LOCAL_CLUSTER: Final = re.compile(r"local-cluster\[\s*\d+\s*,\s*\d+\s*,\s*\d+\s*\]")
_REMOTE: Final = re.compile(r"(spark|k8s|mesos)://.+|yarn")
QUICK_JVM: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For short-lived JVMs that move little: starting quickly is worth more than peak speed."""
SETTINGS: Final[Mapping[str, str]] = {
    # The restart strategy decides how often a subtask is tried again, not Spark.
    "spark.task.maxFailures": str(TASK_FAILURES_MAX),
    # A second attempt of a healthy task would take its place.
    "spark.speculation": "false",
    # A host whose worker was killed is no worse than the others.
    "spark.excludeOnFailure.enabled": "false",
    "spark.dynamicAllocation.enabled": "false",
    # Processes that do not leave by themselves are killed this long after.
    "spark.python.task.killTimeout": "100ms",
    # A lost host is noticed in 20 s instead of 120; the three belong together.
    "spark.network.timeout": "20s",
    "spark.network.timeoutInterval": "5s",
    "spark.executor.heartbeatInterval": "2s",
    "spark.master.rest.enabled": "false",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def local_master(master: str) -> str:
    """Return `master` as epochgate starts it: `local[N]` gets the retries that it lacks.

    Raises MasterInvalid.

    >>> local_master("local[4]")
    'local[4,1000000]'
    >>> local_master("local-cluster[2,2,1024]")
    'local-cluster[2,2,1024]'
    """
    master = master.strip()
    if local := _LOCAL.fullmatch(master):
        cores, failures = local.groups()
        return f"local[{cores or 1},{failures or TASK_FAILURES_MAX}]"
    if _LOCAL_CLUSTER.fullmatch(master) or _REMOTE.fullmatch(master):
        return master
    raise MasterInvalid(f"the master {master!r} is none that Spark knows; examples are {_MASTERS}")


def _require_known_host(master: str) -> None:
    """Raise MasterInvalid where no host of a standalone master has an address: Spark would try for
    a minute, and not say so.
    """
    if not master.startswith("spark://"):
        return
    errors = []
    for place in master.removeprefix("spark://").split(","):
        host = place.rpartition(":")[0].strip("[]") or place
        try:
            socket.getaddrinfo(host, None)
        except OSError as error:
            errors.append(f"{host}: {error.strerror}")
        else:
            return
    raise MasterInvalid(f"no host of the master {master!r} has an address ({'; '.join(errors)})")


@contextlib.contextmanager
def local_session(
    master: str = "local[4]",
    *,
    app_name: str = "epochgate",
    settings: Mapping[str, str] | None = None,
    log_level: str = "error",
    class_archive: str | Path | None = None,
) -> Iterator[SparkSession]:
    """Make a session with what epochgate needs, and stop it and its JVM afterwards.

    `settings` go over ours; `log_level` is Spark's ("error", "warn", "info"). JVMs that map
    `class_archive`, a file of `epochgate class-archive`, start in two thirds of the time. Local
    masters stay on the loopback address. A Spark job of yours ends once a task of it has failed
    eight times. Everything that Spark writes goes into a folder that is
    removed at the end, or by the next session if this process is killed. Call it in the main
    thread. Raises MasterInvalid, SessionAlreadyRunning, ClassArchiveMissing, SparkSessionFailed,
    and what `use_java` raises.
    """
    from pyspark import SparkContext

    master = local_master(master)
    _require_known_host(master)
    if SparkContext._active_spark_context is not None:
        raise SessionAlreadyRunning(
            "this process has a Spark session already; pass it to run_job, or stop it first"
        )
    given = {} if class_archive is None else archive_settings(class_archive)
    given.update(settings or {})
    use_java()
    with scratch_folder() as folder:
        home = make_spark_home(folder)
        session = start_session(master, app_name, home, folder, given, log_level)
        watch = FailingJobs(session.sparkContext)
        watch.start()
        try:
            yield session
        finally:
            watch.stop()
            stop_session(session)


def start_session(
    master: str,
    app_name: str,
    home: Path,
    folder: Path,
    settings: Mapping[str, str],
    log_level: str,
) -> SparkSession:
    """Start a session that writes into `folder`; `local_session` says what the rest is. Raises
    SparkSessionFailed.
    """
    from pyspark.sql import SparkSession

    log_settings = write_log_settings(folder, log_level)
    java_options = f"{QUICK_JVM} -Dlog4j2.configurationFile={log_settings.as_uri()}"
    everything = {
        **SETTINGS,
        "spark.driver.extraJavaOptions": java_options,
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    variables = {"SPARK_HOME": str(home)}
    if master.startswith("local"):
        variables["PYSPARK_PYTHON"] = os.environ.get("PYSPARK_PYTHON", sys.executable)
        everything["spark.executor.extraJavaOptions"] = java_options
        everything["spark.driver.host"] = everything["spark.driver.bindAddress"] = _LOOPBACK
        variables["SPARK_LOCAL_IP"] = _LOOPBACK
        if variables["PYSPARK_PYTHON"] == sys.executable:  # another may lack the package
            everything["spark.python.daemon.module"] = "epochgate.spark.worker_daemon"
    if FILE_MODE in os.environ:
        everything[f"spark.executorEnv.{FILE_MODE}"] = os.environ[FILE_MODE]
    everything.update(settings)
    builder = SparkSession.Builder().master(master).appName(app_name)
    for name, value in everything.items():
        builder = builder.config(name, value)
    try:
        with set_in_environment(variables), _own_interrupt_handler():
            return builder.getOrCreate()
    except Exception as error:  # noqa: BLE001  py4j wraps whatever the JVM raised
        reason = _reason(error)
        _end_jvm()
        raise SparkSessionFailed(
            f"Spark did not start with the master {master!r}: {reason}. --log-level info "
            "(log_level in Python) makes it say everything"
        ) from None


def stop_session(session: SparkSession, patience_s: float = _JVM_EXIT_PATIENCE_S) -> bool:
    """Stop the session and its JVM; return whether the JVM has ended without being killed."""
    # A JVM that has died already cannot be asked to stop.
    with contextlib.suppress(Exception):
        session.stop()
    return _end_jvm(patience_s)


def _end_jvm(patience_s: float = _JVM_EXIT_PATIENCE_S) -> bool:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    gateway: Any = SparkContext._gateway
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = SparkSession._activeSession = None
    if gateway is None:
        return True
    with contextlib.suppress(Exception):
        gateway.shutdown()
    process: subprocess.Popen[bytes] | None = getattr(gateway, "proc", None)
    if process is None:
        return True
    if process.stdin is not None:
        with contextlib.suppress(OSError):
            process.stdin.close()
    try:
        process.wait(patience_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return False
    return True


@contextlib.contextmanager
def _own_interrupt_handler() -> Iterator[None]:
    """Keep the handler of Ctrl-C: pyspark's would cancel the jobs before a last checkpoint."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def validate_session(
    spark: Any, *, concurrent_attempts_max: int = 1, wire: Wire = "auto"
) -> list[str]:
    """Check a session; returns warnings, each naming the setting it is about. Speculation is for
    jobs that allow a subtask more than one attempt at once.

    Raises SparkConnectUnsupported, NotASparkSession, SessionStopped, SparkTooOld,
    LocalMasterWithoutRetries, SettingBreaksGuarantees, KeyExposed, and UsageError for another wire.
    """
    checked_wire(wire)
    context = _live_context(spark)
    settings = context.getConf()
    master = settings.get("spark.master", context.master)
    local = _LOCAL.fullmatch(master)
    if local is not None:
        _check_local(master, local)
    is_speculating = settings.get("spark.speculation", "false").lower() == "true"
    if is_speculating and concurrent_attempts_max == 1:
        raise SettingBreaksGuarantees(
            "spark.speculation is true: Spark would start second attempts of healthy tasks, each "
            "of which takes the place of the first. Start the session with "
            "spark.speculation=false, or a job without checkpointing with "
            "concurrent_attempts_max=2"
        )
    untested = version_warnings(context.version, sys.version_info[:2])
    warnings = [*untested, *_warnings(settings, is_local=local is not None)]
    if not master.startswith("local"):  # nor does local-cluster leave this machine
        exposed = exposed_key(settings, wire, version=version_of(context.version))
        warnings += [] if exposed is None else [exposed]
    return warnings


def _live_context(spark: Any) -> Any:
    if any(kind.__module__.startswith("pyspark.sql.connect") for kind in type(spark).__mro__):
        raise SparkConnectUnsupported(
            "this is a Spark Connect session: its driver runs in another process, and epochgate "
            "must run inside the driver. Start the session with .master(...) instead of "
            ".remote(...), and without SPARK_REMOTE or spark.api.mode=connect"
        )
    from pyspark.sql import SparkSession

    if not isinstance(spark, SparkSession):
        raise NotASparkSession(
            f"a pyspark.sql.SparkSession is needed, and this is a {type(spark).__name__}: {spark!r}"
        )
    context = spark.sparkContext
    try:
        is_stopped = context._jsc is None or bool(context._jsc.sc().isStopped())
    except Exception:  # noqa: BLE001  whatever py4j raises means that the JVM is gone
        is_stopped = True
    if is_stopped:
        raise SessionStopped(
            "this Spark session has been stopped, or its JVM has ended; make a new one and pass "
            "that"
        )
    return context


def _check_local(master: str, local: re.Match[str]) -> None:
    cores, failures = local.groups()
    if failures is None or int(failures) < 2:
        raise LocalMasterWithoutRetries(
            f"with the master {master!r} Spark ends the job at the first lost task, whatever "
            f"spark.task.maxFailures says. Start the session with "
            f"local[{cores or 1},{TASK_FAILURES_MAX}]: the second number is how often a task may "
            "fail"
        )


def _warnings(settings: Any, *, is_local: bool) -> list[str]:
    warnings = []
    failures = int(settings.get("spark.task.maxFailures", "4"))
    if not is_local and failures < 1000:
        warnings.append(
            f"spark.task.maxFailures is {failures}: Spark ends the job when one subtask was lost "
            f"{failures} times, whatever the restart strategy allows; set it to {TASK_FAILURES_MAX}"
        )
    if settings.get("spark.dynamicAllocation.enabled", "false").lower() == "true":
        warnings.append(
            "spark.dynamicAllocation.enabled is true: subtasks wait while Spark asks for "
            "executors; set it to false for a job that keeps its executors"
        )
    if settings.get("spark.excludeOnFailure.enabled", "false").lower() == "true":
        warnings.append(
            "spark.excludeOnFailure.enabled is true: hosts on which a task was lost are not used "
            "again, so that the job may run out of them; set it to false"
        )
    return warnings


def _reason(error: Exception) -> str:
    # While the JVM lives: py4j asks it for the text.
    with contextlib.suppress(Exception):
        java = getattr(error, "java_exception", None)
        text = str(error if java is None else java.getMessage()).strip()
        if "stopped SparkContext" in text:  # what remains when no master has taken the application
            return "no master has answered, or it has refused the application"
        return text.splitlines()[0].rstrip(".")
    return repr(type(error))
