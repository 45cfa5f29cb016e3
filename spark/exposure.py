"""The wires that others can read: a run's key, and what driver and tasks say to each other.

The key with which tasks and driver prove themselves to each other travels to the tasks inside
Spark's own, and so through Spark's RPC. Decides from a session's settings alone whether Spark
encrypts that, whether it leaves this machine, and whether the wire is then private or the job
refused. Source: Spark's security documentation; its RPC is encrypted by TLS (since Spark 4.0), or
by AES or SASL once it is authenticated. Pure.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from typing import Final, Literal, Protocol, TypeAlias, get_args

from epochgate.errors import UsageError
from epochgate.spark.errors import KeyExposed

Wire: TypeAlias = Literal["auto", "private", "insecure"]
"""auto: private unless all of it stays on the loopback address; a job whose key could be read on
the network is refused. private: on the loopback address too. insecure: never private, and nothing
is refused.
"""
RPC_TLS_SINCE: Final = (4, 0)


class Settings(Protocol):
    """A Spark configuration, or a dictionary of its settings."""

    def get(self, name: str, default: str, /) -> str | None:
        """The value of a setting."""


def checked_wire(wire: str) -> None:
    """Raise UsageError unless `wire` is one."""
    if wire not in get_args(Wire):
        raise UsageError(f"wire is {wire!r}; choose one of {', '.join(get_args(Wire))}")


def is_private(wire: str, hosts: Iterable[str]) -> bool:
    """Return whether a wire between `hosts` is encrypted.

    >>> [is_private("auto", hosts) for hosts in (["127.0.0.1", "localhost"], ["0.0.0.0"])]
    [False, True]
    """
    if wire == "auto":
        return not all(is_loopback(host) for host in hosts)
    return wire == "private"


def exposed_key(settings: Settings, wire: str, *, version: tuple[int, int]) -> str | None:
    """A warning, or None when the key cannot be read; `version`: of Spark.

    Raises KeyExposed, which names the settings to change, unless the wire may be insecure.
    """
    host = (settings.get("spark.driver.host", "localhost") or "").strip("[]")
    if is_loopback(host) or _is_rpc_encrypted(settings, version):
        return None
    exposure = (
        f"the key of this run would cross the network of {host} unencrypted, in Spark's RPC: a "
        "program that reads the traffic there could take part in the job"
    )
    if wire == "insecure":
        return f"{exposure}; the job runs all the same, because its wire is insecure"
    raise KeyExposed(f"{exposure}. {_remedy(version)}")


def _remedy(version: tuple[int, int]) -> str:
    settings = (
        "Let Spark encrypt it: put spark.authenticate true, spark.network.crypto.enabled true and, "
        "except on YARN and Kubernetes, spark.authenticate.secret with a long random value into "
        "spark-defaults.conf in a directory of your own, both for your eyes alone (chmod 600 and "
        "700), and name it in SPARK_CONF_DIR; a standalone cluster's master and workers need the "
        "same three. Do not set the secret by .config(...) or --conf, which put it on a command "
        "line that others can read"
    )
    if version >= RPC_TLS_SINCE:
        settings += ". Where Spark's RPC has TLS already (spark.ssl.rpc.enabled), that is enough"
    return (
        f"{settings}. docs/security.md shows each step. To run without, on a network in which "
        'every program is trusted: wire="insecure" (--wire insecure)'
    )


def is_loopback(host: str) -> bool:
    """Return whether what is sent to `host` stays on this machine; a name other machines may
    resolve counts as one that does not.

    >>> [is_loopback(host) for host in ("localhost", "127.0.1.1", "::1", "10.0.0.1", "driver")]
    [True, True, True, False, False]
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_rpc_encrypted(settings: Settings, version: tuple[int, int]) -> bool:
    def is_true(name: str) -> bool:
        return (settings.get(name, "false") or "").strip().lower() == "true"

    if version >= RPC_TLS_SINCE and is_true("spark.ssl.rpc.enabled"):
        return True
    return is_true("spark.authenticate") and (
        is_true("spark.network.crypto.enabled")
        or is_true("spark.authenticate.enableSaslEncryption")
    )
