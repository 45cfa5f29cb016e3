"""Jobs that are refused because their key can be read on the network, and what they are told."""

from __future__ import annotations

import pytest

from epochgate.errors import UsageError
from epochgate.spark.errors import KeyExposed
from epochgate.spark.exposure import checked_wire, exposed_key, is_private

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
NEW, OLD = (4, 3), (3, 5)


@pytest.mark.parametrize("settings", UNENCRYPTED, ids=str)
@pytest.mark.parametrize("host", ["10.0.0.1", "driver.example", "fd00::2", "[fd00::2]"])
@pytest.mark.parametrize("wire", ["auto", "private"])
def test_a_driver_on_a_network_without_encryption_is_refused_with_the_settings(
    host: str, settings: dict[str, str], wire: str
) -> None:
    with pytest.raises(KeyExposed) as refused:
        exposed_key({"spark.driver.host": host, **settings}, wire, version=NEW)
    assert host.strip("[]") in str(refused.value)
    for step in (
        "spark.authenticate true",
        "spark.network.crypto.enabled true",
        "spark.authenticate.secret",
        "SPARK_CONF_DIR",
        "chmod 600",
        "spark.ssl.rpc.enabled",
        'wire="insecure"',
        "--wire insecure",
    ):
        assert step in str(refused.value)


@pytest.mark.parametrize("settings", UNENCRYPTED, ids=str)
def test_an_insecure_wire_is_warned_of_and_not_refused(settings: dict[str, str]) -> None:
    warning = exposed_key({"spark.driver.host": "10.0.0.1", **settings}, "insecure", version=NEW)
    assert warning is not None
    assert "a program that reads the traffic there could take part in the job" in warning


@pytest.mark.parametrize("settings", ENCRYPTED, ids=str)
def test_encrypted_rpc_is_not_refused(settings: dict[str, str]) -> None:
    found = {"spark.driver.host": "10.0.0.1", **settings}
    assert exposed_key(found, "auto", version=NEW) is None


def test_a_setting_that_an_older_spark_does_not_know_encrypts_nothing() -> None:
    found = {"spark.driver.host": "10.0.0.1", "spark.ssl.rpc.enabled": "true"}
    with pytest.raises(KeyExposed) as refused:
        exposed_key(found, "auto", version=OLD)
    assert "spark.ssl.rpc.enabled" not in str(refused.value)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.1.1", "localhost", "::1", "[::1]"])
def test_a_driver_on_the_loopback_address_is_not_refused(host: str) -> None:
    assert exposed_key({"spark.driver.host": host}, "auto", version=NEW) is None


@pytest.mark.parametrize(
    ("wire", "hosts", "expected"),
    [
        ("auto", ("127.0.0.1", "127.0.0.1"), False),
        ("auto", ("0.0.0.0", "127.0.0.1"), True),
        ("auto", ("10.0.0.1", "10.0.0.1"), True),
        ("auto", ("127.0.0.1", "driver"), True),
        ("private", ("127.0.0.1", "127.0.0.1"), True),
        ("insecure", ("10.0.0.1", "driver"), False),
    ],
)
def test_a_wire_is_private_where_anything_of_it_leaves_the_machine(
    wire: str, hosts: tuple[str, str], expected: bool
) -> None:
    assert is_private(wire, hosts) is expected


def test_another_word_for_the_wire_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match="'safe'; choose one of auto, private, insecure"):
        checked_wire("safe")
