"""The emulated account that the AWS stub works in, and what an object of each kind must tell."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol
from urllib.parse import urlsplit

Values = Mapping[str, Any]
ACCOUNT = "123456789012"

_LOOPBACK = ("127.0.0.1", "localhost")
_GONE = ("NotFound", "NoSuch", "404", "Malformed")


class Kind(Protocol):
    """How one type of resource lives in the account."""

    def create(self, cloud: Cloud, planned: Values) -> dict[str, Any]:
        """Make one; return what the account decided."""
        ...

    def read(self, cloud: Cloud, state: Values) -> dict[str, Any] | None:
        """Return what the account has of it now, as far as we look; `None` when it is gone."""
        ...

    def delete(self, cloud: Cloud, state: Values) -> None:
        """Remove it."""
        ...


class Cloud:
    """Clients of one region of an emulator. Nothing but loopback is ever spoken to."""

    def __init__(self, *, endpoint: str, region: str, key: str, secret: str) -> None:
        if urlsplit(endpoint).hostname not in _LOOPBACK:
            raise ValueError(f"{endpoint} is not an emulator on this machine")
        self.region = region
        self._endpoint, self._key, self._secret = endpoint, key, secret
        self._clients: dict[str, Any] = {}

    def __getattr__(self, service: str) -> Any:
        """Return the client of a service, such as `cloud.ec2`."""
        if service.startswith("_"):
            raise AttributeError(service)
        if service not in self._clients:
            import boto3
            from botocore.config import Config

            self._clients[service] = boto3.client(
                service,
                endpoint_url=self._endpoint,
                region_name=self.region,
                aws_access_key_id=self._key,
                aws_secret_access_key=self._secret,
                config=Config(s3={"addressing_style": "path"}, retries={"total_max_attempts": 1}),
            )
        return self._clients[service]

    def arn(self, kind: str, name: str) -> str:
        """Return the ARN of an object of EC2."""
        return f"arn:aws:ec2:{self.region}:{ACCOUNT}:{kind}/{name}"

    @staticmethod
    def found(ask: Callable[[], Any]) -> Any:
        """Return an answer; `None` when what is asked for does not exist."""
        from botocore.exceptions import ClientError

        try:
            return ask()
        except ClientError as err:
            code = str(err.response["Error"]["Code"])
            if any(word in code for word in _GONE):
                return None
            raise


def listed(planned: Values) -> list[dict[str, str]]:
    """Return an object's tags as the API takes them."""
    return [{"Key": k, "Value": v} for k, v in (planned.get("tags_all") or {}).items()]


def tagged(kind: str, planned: Values) -> dict[str, Any]:
    """Return the tags of what EC2 makes, as a parameter; none for an object without tags."""
    tags = listed(planned)
    return {"TagSpecifications": [{"ResourceType": kind, "Tags": tags}]} if tags else {}


def tags_read(item: Mapping[str, Any], key: str = "Tags") -> dict[str, Any]:
    """Return the attributes about tags of what the API shows."""
    tags = {tag["Key"]: tag["Value"] for tag in item.get(key) or []}
    return {"tags": tags or None, "tags_all": tags}


def one(items: Any) -> Any:
    """Return the only item of an answer; `None` of an empty one, and of none."""
    return items[0] if items else None
