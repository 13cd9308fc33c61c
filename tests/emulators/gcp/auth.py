"""Service accounts: the key file a client signs its tokens with, and the check of a token."""

from __future__ import annotations

import base64
import binascii
import json
from functools import cache
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

HOST = "https://compute.googleapis.com/"
_SCOPES = (
    "https://www.googleapis.com/auth/cloud-platform",
    "https://www.googleapis.com/auth/compute",
)
_SKEW_S = 300.0
_LONGEST_S = 3600.0


class TokenError(ValueError):
    """The token is not accepted."""


class ServiceAccount:
    """A user that is a program. Its tokens are JWTs signed by itself (AIP-4111)."""

    def __init__(self, project: str, name: str = "hybrid-launcher") -> None:
        self.project = project
        self.email = f"{name}@{project}.iam.gserviceaccount.com"
        self._key = _private_key(name)
        self._key_id = f"key-of-{name}"

    def write_key(self, path: Path) -> Path:
        """Write the key file, as the cloud's console gives it out."""
        pem = self._key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        content = {
            "type": "service_account",
            "project_id": self.project,
            "private_key_id": self._key_id,
            "private_key": pem.decode(),
            "client_email": self.email,
            "client_id": "104000000000000000000",
            "auth_uri": "https://accounts.google.com/o/oauth2/auth",
            # Not there: tokens are signed by the client, so nothing is ever asked for one.
            "token_uri": "http://127.0.0.1:9/token",
        }
        path.touch(mode=0o600)
        path.write_text(json.dumps(content))
        return path

    def check(self, token: str, *, now_s: float) -> None:
        """Raise `TokenError` unless the token is this account's and valid now."""
        try:
            header_text, claims_text, signature_text = token.split(".")
            header, claims = _json(header_text), _json(claims_text)
            signed = f"{header_text}.{claims_text}".encode()
            self._key.public_key().verify(
                _bytes(signature_text), signed, padding.PKCS1v15(), hashes.SHA256()
            )
        except (ValueError, InvalidSignature, binascii.Error) as err:
            raise TokenError("the signature is wrong") from err
        if header.get("alg") != "RS256" or header.get("kid") != self._key_id:
            raise TokenError("the key is unknown")
        if {claims.get("iss"), claims.get("sub")} != {self.email}:
            raise TokenError("the account is unknown")
        scopes = str(claims.get("scope", "")).split()
        if claims.get("aud") != HOST and not set(scopes) & set(_SCOPES):
            raise TokenError("it is for another service")
        issued_s, ends_s = float(claims.get("iat", 0)), float(claims.get("exp", 0))
        if issued_s > now_s + _SKEW_S or ends_s < now_s or ends_s - issued_s > _LONGEST_S:
            raise TokenError("it is not valid at this time")


@cache
def _private_key(name: str) -> rsa.RSAPrivateKey:
    """Return the key of an account, made once: it takes a moment."""
    return rsa.generate_private_key(public_exponent=65_537, key_size=2048)


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _json(text: str) -> dict[str, Any]:
    content = json.loads(_bytes(text))
    if not isinstance(content, dict):
        raise TypeError("not an object")
    return content
