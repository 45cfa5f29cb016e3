"""Credentials of Amazon's profiles, in the files that its own tools read.

Decides which values of a profile the clients of object stores are given, where the environment has
none: key, secret, token, region and endpoint. Leaves to the client what the environment says, and
roles of machines, containers and pods, which it asks for itself. A profile whose keys are made by
another program (single sign-on, a role to be assumed, `credential_process`) is refused with the
command that makes them. Used on the driver and in tasks.
"""

from __future__ import annotations

import configparser
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from epochgate.runtime.objects.errors import ObjectStoreUnusable

_KEYS: Final = {
    "aws_access_key_id": "AWS_ACCESS_KEY_ID",
    "aws_secret_access_key": "AWS_SECRET_ACCESS_KEY",
    "aws_session_token": "AWS_SESSION_TOKEN",
}
_PLACE: Final = {"region": "AWS_REGION", "endpoint_url": "AWS_ENDPOINT_URL"}
_OF_ROLES: Final = (
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
)


def settings_of_profile(url: str, environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return what the profile says and the environment does not, by the names of the latter.

    The profile is `AWS_PROFILE`, or "default" if there is one. Nothing of the keys is taken where
    the environment has some, or a role for the process. Raises ObjectStoreUnusable.
    """
    told = os.environ if environment is None else environment
    name = told.get("AWS_PROFILE", "default")
    kept = _read(told.get("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials"), url)
    config = _read(told.get("AWS_CONFIG_FILE", "~/.aws/config"), url)
    section = name if name == "default" else f"profile {name}"
    found = {**_section(config, section), **_section(kept, name)}
    wanted = dict(_PLACE)
    if not any(variable in told for variable in ("AWS_ACCESS_KEY_ID", *_OF_ROLES)):
        is_asked_for = "AWS_PROFILE" in told
        if is_asked_for and not found:
            raise ObjectStoreUnusable(url, f"there is no profile {name!r} in ~/.aws (AWS_PROFILE)")
        if is_asked_for and "aws_access_key_id" not in found:
            raise ObjectStoreUnusable(
                url,
                f"the profile {name!r} has no keys of its own (AWS_PROFILE); put them into the "
                'environment: eval "$(aws configure export-credentials --format env)"',
            )
        wanted |= _KEYS
    elsewhere = {"AWS_REGION": "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL": "AWS_ENDPOINT_URL_S3"}
    return {
        variable: found[key]
        for key, variable in wanted.items()
        if key in found and variable not in told and elsewhere.get(variable, variable) not in told
    }


def _read(path: str, url: str) -> configparser.RawConfigParser:
    parser = configparser.RawConfigParser()
    try:
        parser.read(Path(path).expanduser(), encoding="utf-8")
    except (configparser.Error, OSError, UnicodeDecodeError) as error:
        raise ObjectStoreUnusable(url, f"{path} cannot be read: {error}") from error
    return parser


def _section(parser: configparser.RawConfigParser, name: str) -> dict[str, str]:
    return dict(parser.items(name)) if parser.has_section(name) else {}
