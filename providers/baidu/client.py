"""Calls to one region of BCC through the vendor's SDK; the only file that imports it.

What is done about the SDK (0.9.79): its own retries are off, its endpoint is always given (its
default is plain HTTP), temporary keys get the header that its BCC client leaves out, and its
debug log, which prints keys' signatures and user data, stays silent.
"""

from __future__ import annotations

import base64
import datetime as dt
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hybrid.core.errors import ProviderError, TransientError
from hybrid.core.models import Labels
from providers.baidu.credentials import Keys
from providers.baidu.errors import Failure, error_of
from providers.baidu.params import ErrorKind

_PAGE = 1000
_IDS_PER_CALL = 100
_PAGES_AT_MOST = 1000
_TIME = "%Y-%m-%dT%H:%M:%SZ"
_TOKEN_HEADER = b"x-bce-security-token"
_MESSAGE_CHARS = 500


@dataclass(frozen=True)
class Order:
    """One instance to be rented.

    Attributes:
        bid_cny_per_minute: For a spot instance; `""` for a pay-as-you-go one.
        user_data: As the machine will see it.
    """

    client_token: str
    name: str
    instance_type: str
    zone: str
    image: str
    subnet: str
    security_groups: Sequence[str]
    key_pair: str
    resource_group: str
    root_disk_gb: int
    tags: Labels
    user_data: str
    bid_cny_per_minute: str = ""


@dataclass(frozen=True)
class Machine:
    """An instance as Baidu describes it; times are seconds since the epoch, `None` if absent."""

    bcc_id: str
    status: str
    tags: Labels
    created_at_s: float | None = None
    release_at_s: float | None = None


class Bcc:
    """The calls that this program needs. Each raises `ProviderError` and tries once."""

    def __init__(
        self,
        provider: str,
        endpoint: str,
        keys: Keys,
        *,
        timeout_s: float,
        errors: Mapping[str, ErrorKind],
    ) -> None:
        self._provider = provider
        self._errors = errors
        self._sdk = _connect(provider, endpoint, keys, timeout_s)

    def create(self, order: Order) -> str:
        """Rent one instance and return Baidu's id for it; again, with the same token."""
        from baidubce.services.bcc.bcc_model import Billing, TagModel

        bid = order.bid_cny_per_minute
        answer = self._call(
            "create an instance",
            self._sdk.create_instance_by_spec,
            spec=order.instance_type,
            image_id=order.image,
            billing=Billing("bidding" if bid else "Postpaid"),
            bid_model="custom" if bid else None,
            bid_price=bid or None,
            purchase_count=1,
            name=order.name,
            zone_name=order.zone or None,
            subnet_id=order.subnet or None,
            security_group_ids=list(order.security_groups) or None,
            key_pair_id=order.key_pair or None,
            res_group_id=order.resource_group or None,
            root_disk_size_in_gb=order.root_disk_gb,
            # Sorted: the same token must come with the same body.
            tags=[TagModel(key, order.tags[key]) for key in sorted(order.tags)],
            relation_tag=False,
            user_data=base64.b64encode(order.user_data.encode()).decode(),
            client_token=order.client_token,
        )
        ids = answer.instance_ids
        if not isinstance(ids, list) or len(ids) != 1 or not isinstance(ids[0], str) or not ids[0]:
            raise self._odd("create an instance", "its answer names not exactly one instance")
        return ids[0]

    def list(self, *, tag: tuple[str, str]) -> Iterator[Machine]:
        """Yield all instances that carry a tag, as Baidu matches tags: check them."""
        return self._pages(tags=":".join(tag))

    def list_ids(self, bcc_ids: Sequence[str]) -> Iterator[Machine]:
        """Yield those of some instances that Baidu lists."""
        for start in range(0, len(bcc_ids), _IDS_PER_CALL):
            yield from self._pages(instance_ids=",".join(bcc_ids[start : start + _IDS_PER_CALL]))

    def get(self, bcc_id: str) -> Machine:
        """Return one instance. Raises `NotFoundError` for one that does not exist."""
        answer = self._call(f"read instance {bcc_id}", self._sdk.get_instance, instance_id=bcc_id)
        return self._machine(answer.instance)

    def set_release_time(self, bcc_id: str, at_s: float) -> None:
        """Let Baidu release an instance at a time, whatever becomes of us."""
        self._call(
            f"set the release time of {bcc_id}",
            self._sdk.auto_release_instance,
            instance_id=bcc_id,
            release_time=dt.datetime.fromtimestamp(round(at_s), dt.UTC).strftime(_TIME),
        )

    def release(self, bcc_id: str) -> None:
        """Begin to release an instance and what it was created with."""
        self._call(
            f"release {bcc_id}",
            self._sdk.release_instance_with_related_resources,
            instance_id=bcc_id,
            related_release_flag=True,
            delete_cds_snapshot_flag=True,
            delete_related_enis_flag=True,
            bcc_recycle_flag=False,
        )

    def _pages(self, **selection: str) -> Iterator[Machine]:
        action, marker = "list instances", None
        for _ in range(_PAGES_AT_MOST):
            answer = self._call(
                action, self._sdk.list_instances, marker=marker, max_keys=_PAGE, **selection
            )
            if not isinstance(answer.instances, list):
                raise self._odd(action, "its answer has no list of instances")
            yield from map(self._machine, answer.instances)
            if not answer.is_truncated:
                return
            if not answer.next_marker or answer.next_marker == marker:
                raise self._odd(action, "a page says that more follow, but not where")
            marker = answer.next_marker
        raise self._odd(action, f"it has more than {_PAGES_AT_MOST} pages")

    def _machine(self, item: Any) -> Machine:
        if item is None or not isinstance(item.id, str) or not isinstance(item.status, str):
            raise self._odd("read an instance", "it has no id or no status")
        tags = item.tags if isinstance(item.tags, list) else ()
        return Machine(
            bcc_id=item.id,
            status=item.status,
            tags={str(tag.tag_key): str(tag.tag_value) for tag in tags},
            created_at_s=_seconds(item.create_time),
            release_at_s=_seconds(item.release_time),
        )

    def _call(self, action: str, function: Callable[..., Any], **arguments: object) -> Any:
        from baidubce.exception import BceError

        try:
            return function(**arguments)
        except BceError as err:
            raise error_of(
                _failure_of(err), provider=self._provider, action=action, own=self._errors
            ) from err

    def _odd(self, action: str, what: str) -> TransientError:
        return TransientError(f"cannot {action}: {what}", provider=self._provider)


def _connect(provider: str, endpoint: str, keys: Keys, timeout_s: float) -> Any:
    """Return the SDK's client. Raises `ProviderError` when the SDK cannot be loaded."""
    try:
        from baidubce import protocol
        from baidubce.auth.bce_credentials import BceCredentials
        from baidubce.bce_client_configuration import BceClientConfiguration
        from baidubce.retry.retry_policy import NoRetryPolicy
        from baidubce.services.bcc.bcc_client import BccClient
    except ImportError as err:
        message = (
            f"Baidu's SDK cannot be loaded ({err}); run: pip install 'hybrid-burst[baidu]'. The "
            "old package `baidubce` takes its place and does not work: uninstall it first"
        )
        raise ProviderError(message, provider=provider) from err

    class Client(BccClient):  # type: ignore[misc]  # the SDK has no types
        """Adds what the SDK's own client leaves out: the token of temporary keys."""

        def _compute_service_id(self) -> str:
            return "bcc"  # it would be read from this module's name

        def _send_request(self, http_method: bytes, path: bytes, *args: Any, **options: Any) -> Any:
            # Each call makes a connection of its own, which the SDK does not close.
            headers = {**(options.get("headers") or {}), b"connection": b"close"}
            if keys.session_token:
                headers[_TOKEN_HEADER] = keys.session_token.encode()
            options["headers"] = headers
            return super()._send_request(http_method, path, *args, **options)

    # Below this it prints signatures, and bodies with user data in them.
    logger = logging.getLogger("baidubce")
    logger.setLevel(max(logger.level, logging.INFO))
    is_tls = endpoint.startswith("https:")
    return Client(
        BceClientConfiguration(
            credentials=BceCredentials(keys.access_key, keys.secret_key),
            endpoint=endpoint,
            protocol=protocol.HTTPS if is_tls else protocol.HTTP,
            connection_timeout_in_mills=max(1, round(timeout_s * 1000)),
            retry_policy=NoRetryPolicy(),
        )
    )


def _failure_of(err: Any) -> Failure:
    """Return what an exception of the SDK says; its own text is a traceback."""
    from baidubce.exception import BceServerError

    last = getattr(err, "last_error", err)
    if isinstance(last, BceServerError):
        return Failure(
            status=last.status_code,
            code=str(last.code or ""),
            message=_words(last),
            request_id=str(last.request_id or ""),
        )
    if isinstance(last, OSError):
        return Failure(message=f"the network: {_words(last) or type(last).__name__}")
    # JSONDecodeError and the like: a proxy's page, or half an answer.
    return Failure(message=f"the answer is not one of Baidu's ({type(last).__name__})")


def _words(err: BaseException) -> str:
    return " ".join(str(err).split())[:_MESSAGE_CHARS]


def _seconds(text: object) -> float | None:
    """Return a time of Baidu's as seconds since the epoch; `None` when there is none."""
    if not isinstance(text, str):
        return None
    try:
        return dt.datetime.strptime(text, _TIME).replace(tzinfo=dt.UTC).timestamp()
    except ValueError:
        return None
