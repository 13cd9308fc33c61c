"""Buckets and their settings."""

from __future__ import annotations

import re
import uuid
from typing import Any

from tests.terraform.stub.aws.cloud import Cloud, Kind, Values, listed

_GENERATED = 12
_ENDING = re.compile(r"-[0-9a-f]{12}$")


class Bucket:
    def create(self, cloud: Cloud, planned: Values) -> dict[str, Any]:
        name = planned["bucket"]
        if not isinstance(name, str):
            name = f"{planned.get('bucket_prefix') or 'terraform-'}{uuid.uuid4().hex[:_GENERATED]}"
        place = (
            {}
            if cloud.region == "us-east-1"
            else {"CreateBucketConfiguration": {"LocationConstraint": cloud.region}}
        )
        cloud.s3.create_bucket(Bucket=name, **place)
        if tags := listed(planned):
            cloud.s3.put_bucket_tagging(Bucket=name, Tagging={"TagSet": tags})
        return {"id": name, "bucket": name, "arn": f"arn:aws:s3:::{name}"}

    def read(self, cloud: Cloud, state: Values) -> dict[str, Any] | None:
        name = state["id"]
        if cloud.found(lambda: cloud.s3.head_bucket(Bucket=name)) is None:
            return None
        tags = cloud.found(lambda: cloud.s3.get_bucket_tagging(Bucket=name)) or {"TagSet": []}
        found = {tag["Key"]: tag["Value"] for tag in tags["TagSet"]}
        return {
            "bucket": name,
            # The real provider takes a generated name apart, too.
            "bucket_prefix": name[:-_GENERATED] if _ENDING.search(name) else None,
            "force_destroy": bool(state.get("force_destroy")),
            "arn": f"arn:aws:s3:::{name}",
            "tags": found or None,
            "tags_all": found,
        }

    def delete(self, cloud: Cloud, state: Values) -> None:
        cloud.s3.delete_bucket(Bucket=state["id"])


class Setting:
    """One setting of a bucket: put, looked at, taken away by calls that are named alike."""

    def __init__(self, word: str, *, delete: str = "") -> None:
        self._word = word
        self._delete = delete

    def sent(self, planned: Values) -> dict[str, Any]:
        """Return the setting as the API takes it."""
        raise NotImplementedError

    def create(self, cloud: Cloud, planned: Values) -> dict[str, Any]:
        getattr(cloud.s3, f"put_{self._word}")(Bucket=planned["bucket"], **self.sent(planned))
        return {"id": planned["bucket"]}

    def read(self, cloud: Cloud, state: Values) -> dict[str, Any] | None:
        get = getattr(cloud.s3, f"get_{self._word}")
        return None if cloud.found(lambda: get(Bucket=state["bucket"])) is None else {}

    def delete(self, cloud: Cloud, state: Values) -> None:
        if self._delete:
            getattr(cloud.s3, self._delete)(Bucket=state["bucket"])


class PublicAccess(Setting):
    def sent(self, planned: Values) -> dict[str, Any]:
        block = {
            "BlockPublicAcls": bool(planned["block_public_acls"]),
            "IgnorePublicAcls": bool(planned["ignore_public_acls"]),
            "BlockPublicPolicy": bool(planned["block_public_policy"]),
            "RestrictPublicBuckets": bool(planned["restrict_public_buckets"]),
        }
        return {"PublicAccessBlockConfiguration": block}


class Versioning(Setting):
    def sent(self, planned: Values) -> dict[str, Any]:
        status = planned["versioning_configuration"][0]["status"]
        return {"VersioningConfiguration": {"Status": status}}


class Encryption(Setting):
    def sent(self, planned: Values) -> dict[str, Any]:
        rules = []
        for rule in planned["rule"]:
            default = rule["apply_server_side_encryption_by_default"][0]
            key = default.get("kms_master_key_id")
            rules.append(
                {
                    "ApplyServerSideEncryptionByDefault": {
                        "SSEAlgorithm": default["sse_algorithm"],
                        **({"KMSMasterKeyID": key} if isinstance(key, str) else {}),
                    },
                    "BucketKeyEnabled": bool(rule["bucket_key_enabled"]),
                }
            )
        return {"ServerSideEncryptionConfiguration": {"Rules": rules}}


class Lifecycle(Setting):
    def sent(self, planned: Values) -> dict[str, Any]:
        rules = []
        for rule in planned["rule"]:
            sent: dict[str, Any] = {
                "ID": rule["id"],
                "Status": rule["status"],
                "Filter": {"Prefix": rule["filter"][0]["prefix"] or ""},
            }
            for name, key, field, word in (
                ("expiration", "Expiration", "days", "Days"),
                (
                    "noncurrent_version_expiration",
                    "NoncurrentVersionExpiration",
                    "noncurrent_days",
                    "NoncurrentDays",
                ),
                (
                    "abort_incomplete_multipart_upload",
                    "AbortIncompleteMultipartUpload",
                    "days_after_initiation",
                    "DaysAfterInitiation",
                ),
            ):
                if rule.get(name):
                    sent[key] = {word: int(rule[name][0][field])}
            rules.append(sent)
        return {"LifecycleConfiguration": {"Rules": rules}}


class Policy(Setting):
    def sent(self, planned: Values) -> dict[str, Any]:
        return {"Policy": planned["policy"]}


KINDS: dict[str, Kind] = {
    "aws_s3_bucket": Bucket(),
    "aws_s3_bucket_lifecycle_configuration": Lifecycle(
        "bucket_lifecycle_configuration", delete="delete_bucket_lifecycle"
    ),
    "aws_s3_bucket_policy": Policy("bucket_policy", delete="delete_bucket_policy"),
    "aws_s3_bucket_public_access_block": PublicAccess(
        "public_access_block", delete="delete_public_access_block"
    ),
    "aws_s3_bucket_server_side_encryption_configuration": Encryption(
        "bucket_encryption", delete="delete_bucket_encryption"
    ),
    "aws_s3_bucket_versioning": Versioning("bucket_versioning"),
}
