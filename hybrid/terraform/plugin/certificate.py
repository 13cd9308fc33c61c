"""The certificate by which Terraform knows the provider it has started."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

_SKEW = timedelta(minutes=1)
_LENGTH = timedelta(days=30)
"""Longer than any apply; the key lives as long as this process and is written nowhere."""


@dataclass(frozen=True)
class Certificate:
    """A key and its self-signed certificate.

    Attributes:
        key: PEM.
        chain: PEM.
        encoded: DER, for the handshake.
    """

    key: bytes
    chain: bytes
    encoded: bytes


def make(now: datetime | None = None) -> Certificate:
    """Return a new certificate for `localhost`."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    now = now or datetime.now(UTC)  # noqa: TID251 - the time of a certificate is the wall's
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + _LENGTH)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        .sign(key, hashes.SHA256())
    )
    return Certificate(
        key=key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
        chain=signed.public_bytes(serialization.Encoding.PEM),
        encoded=signed.public_bytes(serialization.Encoding.DER),
    )
