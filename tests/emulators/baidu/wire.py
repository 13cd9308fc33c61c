"""How BCC talks: errors as JSON, and which fields it knows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# Fields of `CreateInstanceBySpecArgs` in baidubce/bce-sdk-go at 69163104 (2026-08-04),
# services/bcc/api/model.go.
_CREATE = """
    imageId spec rootDiskSizeInGb rootDiskStorageType ephemeralDisks createCdsList
    networkCapacityInMbps eipName internetChargeType purchaseCount purchaseMinCount name hostname
    isOpenHostnameDomain autoSeqSuffix adminPass billing zoneName subnetId securityGroupId
    enterpriseSecurityGroupId securityGroupIds enterpriseSecurityGroupIds eniIds relationTag tags
    keypairId autoRenewTimeUnit autoRenewTime raidId enableNuma dataPartitionType
    rootPartitionType cdsAutoRenew aspId internalIps deployId userData requestToken deployIdList
    deletionProtection isOpenIpv6 specId isOpenHostEye bidModel bidPrice resGroupId
    enableJumboFrame ehcClusterId cpuThreadConfig numaConfig keepImageLogin
    isEipAutoRelatedDelete enableDeleteProtection
"""
CREATE_FIELDS = frozenset(_CREATE.split())
EXPIRY_FIELDS = frozenset({"releaseTime", "isEipAutoRelatedDelete"})
# Of the page "release a pay-as-you-go instance (POST)", nk0m0kvzd, 2025-12-05.
RELEASE_FIELDS = frozenset(
    {
        "relatedReleaseFlag",
        "deleteCdsSnapshotFlag",
        "deleteRelatedEnisFlag",
        "bccRecycleFlag",
        "cdsAttributeActive",
    }
)
_LIST = """
    marker maxKeys internalIp dedicatedHostId zoneName keypairId autoRenew instanceIds
    instanceNames cdsIds deploySetIds securityGroupIds paymentTiming status tags vpcId privateIps
    ipv6Addresses ehcClusterId showRdmaTopo fuzzyInstanceName
"""
LIST_PARAMETERS = frozenset(_LIST.split())


class ApiError(Exception):
    """An answer that is an error."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message


def check_fields(given: Mapping[str, Any], known: frozenset[str]) -> None:
    """Refuse fields that the API does not know. Baidu itself ignores them: here a slip shows."""
    if unknown := sorted(set(given) - known):
        raise ApiError(400, "InappropriateJSON", f"unknown fields: {', '.join(unknown)}")


def bad_request(message: str) -> ApiError:
    return ApiError(400, "BadRequest", message)


def no_such_object() -> ApiError:
    return ApiError(
        404, "NoSuchObject", "The specified object is not found or resource do not exist."
    )
