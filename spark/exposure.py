"""Whether the run's key can be read on the network.

The key with which tasks and driver prove themselves to each other travels to the tasks inside
Spark's own, and so through Spark's RPC. Decides from a session's settings alone whether Spark
encrypts that, and whether it leaves this machine. Source: Spark's security documentation; its RPC
is encrypted by TLS, or by AES or SASL once it is authenticated. Pure.
"""

from __future__ import annotations

import ipaddress
from typing import Protocol


class Settings(Protocol):
    """A Spark configuration, or a dictionary of its settings."""

    def get(self, name: str, default: str, /) -> str | None:
        """The value of a setting."""


def exposed_key(settings: Settings) -> str | None:
    """A warning that names the settings to change, or None when the key cannot be read."""
    host = (settings.get("spark.driver.host", "localhost") or "").strip("[]")
    if is_loopback(host) or _is_rpc_encrypted(settings):
        return None
    return (
        f"the key of this run crosses the network of {host} unencrypted, in Spark's RPC: a program "
        "that reads the traffic there can take part in the job. Set spark.authenticate=true, "
        "spark.authenticate.secret (not on YARN) and spark.network.crypto.enabled=true, or "
        "spark.ssl.rpc.enabled=true with spark.ssl.rpc.keyStore and its password"
    )


def is_loopback(host: str) -> bool:
    """Whether what is sent to `host` stays on this machine; a name other machines may resolve
    counts as one that does not.

    >>> [is_loopback(host) for host in ("localhost", "127.0.1.1", "::1", "10.0.0.1", "driver")]
    [True, True, True, False, False]
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_rpc_encrypted(settings: Settings) -> bool:
    def is_true(name: str) -> bool:
        return (settings.get(name, "false") or "").strip().lower() == "true"

    if is_true("spark.ssl.rpc.enabled"):
        return True
    return is_true("spark.authenticate") and (
        is_true("spark.network.crypto.enabled")
        or is_true("spark.authenticate.enableSaslEncryption")
    )
