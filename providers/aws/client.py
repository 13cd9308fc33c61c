"""Calls to AWS through boto3, which is imported when the first one is made."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from typing import Any

from hybrid.core.errors import InvalidRequestError, TransientError
from providers.aws import errors
from providers.aws.once import Once

_CONNECT_LIMIT_S = 5
_READ_LIMIT_S = 30


class AwsClient:
    """One account. Thread-safe; no hidden retries: EC2 answers "no capacity" with HTTP 500."""

    def __init__(self, *, provider: str, profile: str | None = None, endpoint_url: str | None):
        self.provider = provider
        self._profile = profile
        self._endpoint_url = endpoint_url
        self._session: Any = None
        self._clients: dict[tuple[str, str], Any] = {}
        self._account: Once[str, str] = Once()
        self._lock = threading.Lock()

    def call(self, region: str, action: str, key: str = "", /, **params: Any) -> Mapping[str, Any]:
        """Make one call and return the answer.

        Args:
            region: Where.
            action: boto3's name of it with the service's: `ec2.run_instances`.
            key: What the answer must have: an answer without it is not AWS's.
            **params: Of the call.

        Raises:
            ProviderError: As `providers.aws.errors` has it.
        """
        service, _, method = action.partition(".")
        what = f"{service} {method} in {region}"
        exceptions = self._exceptions()
        try:
            client = self._client(service, region)
            answer: Mapping[str, Any] = getattr(client, method)(**params)
        except exceptions.answered as err:
            found = err.response.get("Error", {})
            status = err.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 400)
            code, message = str(found.get("Code", "")), str(found.get("Message", ""))
            raise errors.of_code(
                code, message, provider=self.provider, what=what, status=status
            ) from err
        except exceptions.raised as err:
            raise errors.of_exception(err, provider=self.provider, what=what) from err
        if _is_web_page(answer) or (key and key not in answer):
            raise TransientError(
                f"{what}: something between here and AWS answered in its place; look at the proxy",
                provider=self.provider,
            )
        return answer

    def pages(
        self, region: str, action: str, key: str, /, **params: Any
    ) -> Iterator[Mapping[str, Any]]:
        """Yield the items under `key` of all pages of the answer. Raises as `call`."""
        token = ""
        while True:
            more = {"NextToken": token} if token else {}
            answer = self.call(region, action, key, **params, **more)
            yield from answer[key]
            token = str(answer.get("NextToken") or "")
            if not token:
                return

    def account(self, region: str) -> str:
        """Return the number of the account that the credentials are for. Raises as `call`.

        Asked once; AWS answers it without any permission.
        """

        def ask() -> str:
            return str(self.call(region, "sts.get_caller_identity", "Account")["Account"])

        return self._account.get("", ask)

    def close(self) -> None:
        """Close all connections. A later call opens new ones."""
        with self._lock:
            for client in self._clients.values():
                client.close()
            self._clients.clear()

    def _exceptions(self) -> _Exceptions:
        try:
            return _Exceptions()
        except ImportError as err:
            raise InvalidRequestError(
                "boto3 is not installed; run: pip install 'hybrid-burst[aws]'",
                provider=self.provider,
            ) from err

    def _client(self, service: str, region: str) -> Any:
        # One at a time: boto3's sessions are not thread-safe, its clients are.
        with self._lock:
            client = self._clients.get((service, region))
            if client is None:
                client = self._make(service, region)
                self._clients[service, region] = client
            return client

    def _make(self, service: str, region: str) -> Any:
        import boto3
        from botocore.config import Config

        if self._session is None:
            self._session = boto3.Session(profile_name=self._profile)
        partitions = self._session.get_available_partitions()
        known = (self._session.get_available_regions("ec2", name) for name in partitions)
        if not any(region in names for names in known):
            raise InvalidRequestError(
                f"AWS has no region {region!r} that boto3 {boto3.__version__} knows; check the "
                "spelling in `infra`, or install a newer boto3",
                provider=self.provider,
            )
        return self._session.client(
            service,
            region_name=region,
            endpoint_url=self._endpoint_url,
            config=Config(
                retries={"mode": "standard", "total_max_attempts": 1},
                connect_timeout=_CONNECT_LIMIT_S,
                read_timeout=_READ_LIMIT_S,
                user_agent_extra="hybrid-burst",
            ),
        )


def _is_web_page(answer: Mapping[str, Any]) -> bool:
    """Return whether an answer came as HTML, which boto3 reads as one without content."""
    headers = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    return str(headers.get("content-type", "")).startswith("text/html")


class _Exceptions:
    """What a call can raise."""

    def __init__(self) -> None:
        from botocore.exceptions import BotoCoreError, ClientError
        from botocore.parsers import ResponseParserError

        self.answered: type[Any] = ClientError
        # The last one is an error page of some proxy instead of an answer.
        self.raised: tuple[type[Any], ...] = (BotoCoreError, ResponseParserError)
