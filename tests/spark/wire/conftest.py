"""Claims on channels and servers are made of private ones too; `make check-deep` runs those."""

from __future__ import annotations

import pytest

from tests.spark.wire.harness import Wire

ON_BOTH = ("test_channel", "test_incoming", "test_server")
PLAIN = ("test_a_server_without_the_key_is_refused_by_the_task",)
"""A relay of bytes between two connections, of which TLS leaves nothing."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if metafunc.module.__name__.endswith(ON_BOTH) and metafunc.function.__name__ not in PLAIN:
        kinds = [pytest.param(False, id="plain")]
        kinds += [pytest.param(True, id="private", marks=pytest.mark.deep)]
        metafunc.parametrize("_kind_of_wire", kinds, indirect=True)


@pytest.fixture(autouse=True)
def _kind_of_wire(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Wire, "is_private", getattr(request, "param", False))
