"""Errors of a Spark session, its cluster, or what a job wants of them."""

from __future__ import annotations

from epochgate.errors import EpochgateError, UsageError


class SparkConnectUnsupported(UsageError):
    """The session is a Spark Connect client, which has no driver in this process."""


class SessionStopped(UsageError):
    """The session or its SparkContext has been stopped."""


class NotASparkSession(UsageError):
    """The object that was given as the session is something else."""


class LocalMasterWithoutRetries(UsageError):
    """`local[N]` ends the job at the first lost task, whatever the settings say."""


class SettingBreaksGuarantees(UsageError):
    """A Spark setting under which the job could not keep its promises."""


class KeyExposed(UsageError):
    """The run's key could be read on the network, because Spark does not encrypt its RPC there."""


class SessionAlreadyRunning(UsageError):
    """A session was to be made, and this process has one already."""


class MasterInvalid(UsageError):
    """The master's name is none that Spark knows."""


class TooFewSlots(UsageError):
    """Spark can run fewer tasks at the same time than the job has subtasks."""


class ProgramNotPicklable(UsageError):
    """The program factory cannot be sent to the tasks."""


class SparkSessionFailed(EpochgateError):
    """Spark could not be started."""
