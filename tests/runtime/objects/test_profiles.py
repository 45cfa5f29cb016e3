"""Profiles of Amazon's tools: what the client is given, and that it works on a real server."""

from __future__ import annotations

from pathlib import Path

import pytest

from epochgate.runtime.objects.client import open_url, settings_of_library
from epochgate.runtime.objects.errors import ObjectStoreUnusable
from epochgate.runtime.objects.profiles import settings_of_profile
from tests.runtime.objects.servers import BUCKET, seaweedfs

URL = "s3://bucket/place"


@pytest.fixture
def told(tmp_path: Path) -> dict[str, str]:
    """The environment that names these files, and nothing else."""
    (tmp_path / "credentials").write_text(
        "[default]\naws_access_key_id = D\naws_secret_access_key = d\n"
        "[lake]\naws_access_key_id = L\naws_secret_access_key = l%1\naws_session_token = t\n"
    )
    (tmp_path / "config").write_text(
        "[default]\nregion = eu-west-1\n"
        "[profile lake]\nregion = eu-north-1\nendpoint_url = http://host:1\n"
        "[profile sso]\nsso_session = s\nregion = x\n"
    )
    return {
        "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "credentials"),
        "AWS_CONFIG_FILE": str(tmp_path / "config"),
    }


def test_the_default_profile_is_taken_where_the_environment_says_nothing(
    told: dict[str, str],
) -> None:
    assert settings_of_profile(URL, told) == {
        "AWS_ACCESS_KEY_ID": "D",
        "AWS_SECRET_ACCESS_KEY": "d",
        "AWS_REGION": "eu-west-1",
    }
    assert settings_of_profile(URL, {**told, "AWS_ACCESS_KEY_ID": "E"}) == {
        "AWS_REGION": "eu-west-1"
    }
    of_a_pod = {**told, "AWS_WEB_IDENTITY_TOKEN_FILE": "/token", "AWS_DEFAULT_REGION": "r"}
    assert settings_of_profile(URL, of_a_pod) == {}


def test_a_named_profile_is_taken_from_both_files(told: dict[str, str]) -> None:
    assert settings_of_profile(URL, {**told, "AWS_PROFILE": "lake", "AWS_REGION": "r"}) == {
        "AWS_ACCESS_KEY_ID": "L",
        "AWS_SECRET_ACCESS_KEY": "l%1",
        "AWS_SESSION_TOKEN": "t",
        "AWS_ENDPOINT_URL": "http://host:1",
    }


def test_a_profile_that_gives_no_keys_is_refused(told: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(ObjectStoreUnusable, match="no profile 'none'"):
        settings_of_profile(URL, {**told, "AWS_PROFILE": "none"})
    with pytest.raises(ObjectStoreUnusable, match=r"'sso' has no keys.*export-credentials"):
        settings_of_profile(URL, {**told, "AWS_PROFILE": "sso"})
    (tmp_path / "config").write_text("no section")
    with pytest.raises(ObjectStoreUnusable, match="config cannot be read"):
        settings_of_profile(URL, told)
    with_keys = {"AWS_PROFILE": "none", "AWS_ACCESS_KEY_ID": "E"}
    nowhere = {name: str(tmp_path / "none") for name in told}
    assert settings_of_profile(URL, nowhere) == {}
    assert settings_of_profile(URL, {**nowhere, **with_keys}) == {}


def test_a_server_takes_what_a_profile_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with seaweedfs(tmp_path) as variables:
        for name in variables:
            monkeypatch.delenv(name, raising=False)
        names = ("aws_access_key_id", "aws_secret_access_key")
        keys = "\n".join(f"{name} = {variables[name.upper()]}" for name in names)
        (tmp_path / "credentials").write_text(f"[lake]\n{keys}\n")
        (tmp_path / "config").write_text(
            f"[profile lake]\nregion = us-east-1\nendpoint_url = {variables['AWS_ENDPOINT_URL']}\n"
        )
        monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
        monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
        monkeypatch.setenv("AWS_PROFILE", "lake")
        url = f"s3://{BUCKET}/profile"
        open_url(url).put("one", b"1")
        assert open_url(url).get("one") == b"1"
        deltalake = pytest.importorskip("deltalake", reason="the extra `delta` is not installed")
        settings = settings_of_library(url)
        assert not deltalake.DeltaTable.is_deltatable(url, storage_options=settings)
