"""The account: its instances, its limits, and what the API does with them."""

from __future__ import annotations

import base64
import binascii
import calendar
import hashlib
import json
import re
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.emulators.baidu.wire import (
    CREATE_FIELDS,
    EXPIRY_FIELDS,
    LIST_PARAMETERS,
    RELEASE_FIELDS,
    ApiError,
    bad_request,
    check_fields,
    no_such_object,
)

IMAGES = frozenset({"m-gpu1", "m-gpu2"})
ZONES = ("cn-bj-a", "cn-bj-d")
SPECS = frozenset(
    {
        "bcc.hgn5IB.c116m978.8A100-80g",
        "bcc.lgn1.c12m40.1p40",
        "bcc.lgn1.c12m40.1p4",
        "bcc.g5.c2m8",
    }
)
SUBNETS = {"sbn-a": "cn-bj-a", "sbn-d": "cn-bj-d"}

_TIME = "%Y-%m-%dT%H:%M:%SZ"
_TAG = re.compile(r"[A-Za-z0-9\u4e00-\u9fff_/. -]{0,65}")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9\u4e00-\u9fff_/.-]{0,64}")
_PRICE = re.compile(r"[0-9]+(\.[0-9]+)?")
_USER_DATA_BYTES = 16 * 1024  # Baidu does not say; see docs/fidelity/baidu.md


@dataclass
class Instance:
    """One instance."""

    bcc_id: str
    body: Mapping[str, Any]
    created_at_s: float
    release_at_s: float | None = None
    ended_at_s: float | None = None
    status: str = ""
    hidden_lists: int = 0
    is_protected: bool = False

    @property
    def is_spot(self) -> bool:
        return bool(self.body["billing"]["paymentTiming"] == "bidding")

    @property
    def tags(self) -> dict[str, str]:
        return {tag["tagKey"]: tag["tagValue"] for tag in self.body.get("tags") or ()}


@dataclass
class Cloud:
    """One account in one region.

    Attributes:
        ahead_s: Added to this machine's clock.
        boot_s: From `Starting` to `Running`.
        ending_s: From the release to `Deleted`.
        deleted_listed_s: How long a deleted one can still be seen.
        list_lag_s, get_lag_s: How long a new one is missing from the list, or not found by id.
        stock: How many are left, by type; a missing type has plenty.
        market_cny_per_minute: What spot costs now.
        is_filter_loose: The tag filter also lets through what only begins alike.
        refuses_expiry_of_spot, refuses_expiry_while_creating: What is not known of Baidu.
    """

    ahead_s: float = 0.0
    boot_s: float = 0.0
    ending_s: float = 0.1
    deleted_listed_s: float = 0.1
    list_lag_s: float = 0.0
    get_lag_s: float = 0.0
    page_size: int = 1000
    stock: dict[str, int] = field(default_factory=dict)
    quota: int = 100
    balance_cny: float = 10_000.0
    market_cny_per_minute: float = 0.0
    is_filter_loose: bool = False
    refuses_expiry_of_spot: bool = False
    refuses_expiry_while_creating: bool = False
    instances: dict[str, Instance] = field(default_factory=dict)
    _orders: dict[str, tuple[str, dict[str, Any]]] = field(default_factory=dict)

    # --- what a test does to it -------------------------------------------------------------

    def interrupt(self, bcc_id: str) -> None:
        """Take a spot instance back."""
        instance = self.instances[bcc_id]
        assert instance.is_spot, f"{bcc_id} is no spot instance"
        instance.ended_at_s = self._now_s()

    def stop(self, bcc_id: str) -> None:
        """Shut an instance down, as by hand or from inside; it goes on to cost."""
        self.instances[bcc_id].status = "Stopped"

    def delete_by_hand(self, bcc_id: str) -> None:
        """Delete it in the console, for good."""
        del self.instances[bcc_id]

    def recycle_by_hand(self, bcc_id: str) -> None:
        """Delete it in the console, into the recycle bin."""
        self.instances[bcc_id].status = "Recycled"

    def living(self) -> list[str]:
        """Return the ids of what costs money."""
        self._settle()
        return [i for i in self.instances if self._status(self.instances[i]) not in _FREE]

    # --- the API ----------------------------------------------------------------------------

    def create(self, query: Mapping[str, str], body: Mapping[str, Any]) -> dict[str, Any]:
        """POST /v2/instanceBySpec."""
        check_fields(body, CREATE_FIELDS)
        token = query.get("clientToken", "")
        if not token or len(token) > 64 or not token.isascii():
            raise bad_request("clientToken must have 1 to 64 ASCII characters")
        digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
        if token in self._orders:
            known, answer = self._orders[token]
            if known != digest:
                raise ApiError(
                    403,
                    "IdempotentParameterMismatch",
                    "The request uses the same client token as a previous, "
                    "but non-identical request.",
                )
            return answer
        self._check(body)
        self._take(body)
        bcc_id = f"i-{uuid.uuid4().hex[:8]}"
        self.instances[bcc_id] = Instance(bcc_id, body, self._now_s())
        answer = {"orderId": uuid.uuid4().hex, "instanceIds": [bcc_id]}
        self._orders[token] = digest, answer
        return answer

    def list(self, query: Mapping[str, str]) -> dict[str, Any]:
        """GET /v2/instance."""
        check_fields(query, LIST_PARAMETERS)
        self._settle()
        now_s = self._now_s()
        found = []
        for instance in sorted(self.instances.values(), key=lambda i: i.bcc_id):
            if now_s - instance.created_at_s < self.list_lag_s:
                continue
            if instance.hidden_lists > 0:
                instance.hidden_lists -= 1
                continue
            if self._is_selected(instance, query):
                found.append(instance)
        if marker := query.get("marker"):
            found = [instance for instance in found if instance.bcc_id >= marker]
        size = min(int(query.get("maxKeys", 1000)), self.page_size, 1000)
        page, rest = found[:size], found[size:]
        return {
            "marker": marker or "",
            "isTruncated": bool(rest),
            "maxKeys": size,
            "instances": [self._shown(instance) for instance in page],
            **({"nextMarker": rest[0].bcc_id} if rest else {}),
        }

    def get(self, bcc_id: str) -> dict[str, Any]:
        """GET /v2/instance/ID."""
        return {"instance": self._shown(self._find(bcc_id))}

    def set_expiry(self, bcc_id: str, body: Mapping[str, Any]) -> None:
        """PUT /v2/instance/ID?autorelease."""
        check_fields(body, EXPIRY_FIELDS)
        instance = self._find(bcc_id)
        if self.refuses_expiry_of_spot and instance.is_spot:
            raise ApiError(403, "Instance.NotSupportAutoRelease", "not postpaid")  # invented
        if self.refuses_expiry_while_creating and self._status(instance) == "Starting":
            raise ApiError(403, "OperationDenied", "the instance is being created")
        text = body.get("releaseTime")
        at_s = None if text is None else calendar.timegm(time.strptime(text, _TIME))
        if at_s is not None and at_s <= self._now_s():
            raise bad_request("releaseTime is over")
        instance.release_at_s = at_s

    def release(self, bcc_id: str, body: Mapping[str, Any]) -> None:
        """POST /v2/instance/ID."""
        check_fields(body, RELEASE_FIELDS)
        if not isinstance(body.get("relatedReleaseFlag"), bool):
            raise ApiError(400, "InappropriateJSON", "relatedReleaseFlag is missing")
        instance = self._find(bcc_id)
        if self._status(instance) == "Starting":
            raise ApiError(
                403, "Instance.ReleaseWhileCreating", "Instance can not release during creating."
            )
        if instance.is_protected:
            raise ApiError(403, "OperationDenied", "the instance is protected")
        if instance.ended_at_s is not None:
            return
        if body.get("bccRecycleFlag") is False or instance.release_at_s or instance.is_spot:
            instance.ended_at_s = self._now_s()
        else:
            instance.status = "Recycled"

    # --- inside -----------------------------------------------------------------------------

    def _now_s(self) -> float:
        return time.time() + self.ahead_s

    def _settle(self) -> None:
        now_s = self._now_s()
        for bcc_id, instance in list(self.instances.items()):
            if instance.release_at_s and now_s >= instance.release_at_s:
                instance.ended_at_s = instance.ended_at_s or instance.release_at_s
            shown_s = self.ending_s + self.deleted_listed_s
            if instance.ended_at_s is not None and now_s >= instance.ended_at_s + shown_s:
                del self.instances[bcc_id]

    def _find(self, bcc_id: str) -> Instance:
        self._settle()
        instance = self.instances.get(bcc_id)
        if instance is None or self._now_s() - instance.created_at_s < self.get_lag_s:
            raise no_such_object()
        return instance

    def _status(self, instance: Instance) -> str:
        now_s = self._now_s()
        if instance.ended_at_s is not None:
            return "Stopping" if now_s < instance.ended_at_s + self.ending_s else "Deleted"
        if instance.status:
            return instance.status
        return "Starting" if now_s < instance.created_at_s + self.boot_s else "Running"

    def _shown(self, instance: Instance) -> dict[str, Any]:
        body = instance.body
        release_at_s = instance.release_at_s
        return {
            "id": instance.bcc_id,
            "name": body.get("name", instance.bcc_id),
            "spec": body["spec"],
            "status": self._status(instance),
            "paymentTiming": body["billing"]["paymentTiming"],
            "createTime": _text(instance.created_at_s),
            "expireTime": "",
            "releaseTime": "" if release_at_s is None else _text(release_at_s),
            "imageId": body["imageId"],
            "zoneName": body.get("zoneName", ZONES[0]),
            "subnetId": body.get("subnetId", "sbn-default"),
            "internalIp": "192.168.0.2",
            "publicIp": "",
            "deletionProtection": int(instance.is_protected),
            "tags": body.get("tags"),
        }

    def _is_selected(self, instance: Instance, query: Mapping[str, str]) -> bool:
        if (ids := query.get("instanceIds")) and instance.bcc_id not in ids.split(","):
            return False
        if (zone := query.get("zoneName")) and instance.body.get("zoneName") != zone:
            return False
        if not (wanted := query.get("tags")):
            return True
        tags = [f"{key}:{value}" for key, value in instance.tags.items()]
        if self.is_filter_loose:
            return any(tag.startswith(word) for word in wanted.split(",") for tag in tags)
        return any(word in tags for word in wanted.split(","))

    def _check(self, body: Mapping[str, Any]) -> None:
        if body.get("spec") not in SPECS:
            raise ApiError(
                403, "Instance.NotSupportInstanceTypeException", "not support the instance type."
            )
        if body.get("imageId") not in IMAGES:
            raise ApiError(404, "Image.NotFound", "no such image")  # invented
        if (zone := body.get("zoneName")) and zone not in ZONES:
            raise bad_request(f"no zone {zone}")
        if bool(body.get("subnetId")) != bool(body.get("securityGroupIds")):
            raise bad_request("subnet and security groups must be given together")
        if (subnet := body.get("subnetId")) and SUBNETS.get(subnet) != (zone or ZONES[0]):
            raise ApiError(404, "NoSuchObject", f"no subnet {subnet} there")
        if not _NAME.fullmatch(body.get("name", "x")):
            raise bad_request("name")
        if not 40 <= body.get("rootDiskSizeInGb", 40) <= 2048:
            raise bad_request("rootDiskSizeInGb")
        self._check_tags(body)
        self._check_billing(body)
        try:
            data = base64.b64decode(body.get("userData", ""), validate=True)
        except binascii.Error as err:
            raise bad_request("userData must be base64") from err
        if len(data) > _USER_DATA_BYTES:
            raise bad_request("userData is too long")

    @staticmethod
    def _check_tags(body: Mapping[str, Any]) -> None:
        for tag in body.get("tags") or ():
            for part, code in (("tagKey", "TagKeyInvalid"), ("tagValue", "TagValueInvalid")):
                if not _TAG.fullmatch(tag[part]):
                    message = "contains invalid characters or length exceeds limit."
                    raise ApiError(400, f"TagExceptions.{code}", message)

    def _check_billing(self, body: Mapping[str, Any]) -> None:
        timing = (body.get("billing") or {}).get("paymentTiming")
        if timing not in ("Postpaid", "Prepaid", "bidding"):
            raise bad_request("billing.paymentTiming")
        if timing != "bidding":
            return
        bid = body.get("bidPrice", "")
        if body.get("bidModel") == "custom":
            if not isinstance(bid, str) or not _PRICE.fullmatch(bid) or float(bid) <= 0:
                raise bad_request("bidPrice is CNY per minute, as text")
            if float(bid) < self.market_cny_per_minute:
                raise ApiError(403, "Instance.StockNotEnough", "below the market's price")
        elif body.get("bidModel") != "market":
            raise bad_request("bidModel")

    def _take(self, body: Mapping[str, Any]) -> None:
        self._settle()
        if body["billing"]["paymentTiming"] == "Postpaid" and self.balance_cny <= 100:
            raise ApiError(403, "PaymentFailed", "the balance must exceed 100 CNY")  # invented
        if len(self.living()) >= self.quota:
            raise ApiError(403, "Instance.QuotaLimitExceeded", "quota exceeded")  # invented
        left = self.stock.get(body["spec"])
        if left is not None:
            if left < 1:
                raise ApiError(403, "Instance.StockNotEnough", "sold out")  # invented
            self.stock[body["spec"]] = left - 1


_FREE = ("Deleted", "Recycled")


def _text(at_s: float) -> str:
    return time.strftime(_TIME, time.gmtime(at_s))
