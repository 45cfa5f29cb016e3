"""Who is warned that the run's key can be read on the network."""

from __future__ import annotations

import pytest

from epochgate.spark.exposure import exposed_key

UNENCRYPTED = [
    {},
    {"spark.authenticate": "true"},
    {"spark.network.crypto.enabled": "true"},
    {"spark.authenticate.enableSaslEncryption": "true"},
    {"spark.authenticate": "false", "spark.network.crypto.enabled": "true"},
    {"spark.ssl.rpc.enabled": "false"},
    {"spark.ssl.enabled": "true"},
]
ENCRYPTED = [
    {"spark.authenticate": "true", "spark.network.crypto.enabled": "TRUE"},
    {"spark.authenticate": "true", "spark.authenticate.enableSaslEncryption": "true"},
    {"spark.ssl.rpc.enabled": "true"},
]


@pytest.mark.parametrize("settings", UNENCRYPTED, ids=str)
@pytest.mark.parametrize("host", ["10.0.0.1", "driver.example", "fd00::2", "[fd00::2]"])
def test_a_driver_on_a_network_without_encryption_is_warned_with_the_settings(
    host: str, settings: dict[str, str]
) -> None:
    warning = exposed_key({"spark.driver.host": host, **settings})
    assert warning is not None
    assert host.strip("[]") in warning
    for setting in (
        "spark.authenticate=true",
        "spark.network.crypto.enabled=true",
        "spark.ssl.rpc.enabled=true",
    ):
        assert setting in warning


@pytest.mark.parametrize("settings", ENCRYPTED, ids=str)
def test_encrypted_rpc_is_not_warned_about(settings: dict[str, str]) -> None:
    assert exposed_key({"spark.driver.host": "10.0.0.1", **settings}) is None


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.1.1", "localhost", "::1", "[::1]"])
def test_a_driver_on_the_loopback_address_is_not_warned(host: str) -> None:
    assert exposed_key({"spark.driver.host": host}) is None
