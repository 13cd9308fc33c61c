"""Where the keys come from: this SDK has no chain of its own, as those of other clouds have.

A JSON file, or the environment variables that Baidu's Terraform provider reads. Both are read
anew for each call, so that temporary keys (STS) can be renewed under a running program.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hybrid.core.errors import AuthError

VARIABLES = ("BAIDUCLOUD_ACCESS_KEY", "BAIDUCLOUD_SECRET_KEY", "BAIDUCLOUD_SESSION_TOKEN")
"""Of the access key, of its secret, and of the token that comes with temporary ones."""

_OTHERS = 0o077


@dataclass(frozen=True)
class Keys:
    """An access key, its secret, and the token of temporary ones (`""` for lasting ones)."""

    access_key: str
    secret_key: str = field(repr=False)
    session_token: str = field(default="", repr=False)


def read(file: Path | None, *, provider: str) -> Keys:
    """Return the keys of the file, or without one those of the environment.

    Raises:
        AuthError: There are none, or they cannot be read.
    """
    if file is not None:
        return _from_file(file.expanduser(), provider)
    # Stands in for the chain that other SDKs bring, which reads the environment too.
    keys = Keys(*(os.environ.get(name, "").strip() for name in VARIABLES))  # noqa: TID251
    if not keys.access_key or not keys.secret_key:
        access_key, secret_key, session_token = VARIABLES
        message = (
            f"there are no keys for Baidu; set {access_key} and {secret_key} (and {session_token} "
            "for temporary ones), or write providers.baidu.credentials_file"
        )
        raise AuthError(message, provider=provider)
    return _checked(keys, "the environment", provider)


def _from_file(file: Path, provider: str) -> Keys:
    try:
        if file.stat().st_mode & _OTHERS:
            message = f"other users can read {file}, and it holds keys; run: chmod 600 {file}"
            raise AuthError(message, provider=provider)
        content = json.loads(file.read_bytes())
    except OSError as err:
        message = f"cannot read the keys for Baidu: {err}"
        raise AuthError(message, provider=provider) from err
    except ValueError:
        content = None  # the error's text may quote the file
    keys = _keys_in(content)
    if keys is None:
        message = (
            f'{file} holds no keys; write {{"accessKeyId": "...", "secretAccessKey": "..."}}, and '
            '"sessionToken" for temporary ones, as Baidu\'s STS answers'
        )
        raise AuthError(message, provider=provider)
    return _checked(keys, str(file), provider)


def _keys_in(content: object) -> Keys | None:
    if not isinstance(content, Mapping):
        return None
    words = [content.get(k, "") for k in ("accessKeyId", "secretAccessKey", "sessionToken")]
    if not all(isinstance(word, str) for word in words) or not all(words[:2]):
        return None
    return Keys(*words)


def _checked(keys: Keys, source: str, provider: str) -> Keys:
    words = (keys.access_key, keys.secret_key, keys.session_token)
    if not all(word.isascii() and word.isprintable() and " " not in word for word in words):
        message = f"the keys for Baidu in {source} hold spaces or odd characters; copy them anew"
        raise AuthError(message, provider=provider)
    return keys
