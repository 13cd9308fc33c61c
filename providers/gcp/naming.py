"""Names and labels: how our ids and tags are written where Google allows little.

Instance names are RFC 1035: 63 of `[a-z0-9-]`, a letter first. Label keys and values are 63 of
`[a-z0-9_-]`, and a key begins with a letter
(https://cloud.google.com/compute/docs/labeling-resources#requirements).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass

from hybrid.core.models import Labels, LaunchSpec

CLUSTER_TAG = "hybrid-cluster"
INSTANCE_TAG = "hybrid-instance"
ATTEMPT_LABEL = "hybrid-attempt"
TOKEN_LABEL = "hybrid-token"  # noqa: S105  # a label's key
GANG_LABEL = "hybrid-gang"
NAME_PREFIX = "hybrid-"

_LONGEST = 63
_LONGEST_READABLE = 32
_DIGEST_LENGTH = 12
_MOST_LABELS = 64
_SAFE = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")
_ENCODED = re.compile(r"(?:[a-z0-9-]|_[0-9a-f]{2})*")
_MARK = "x__"  # never made by `encoded`, where two hex digits follow each `_`
ZONE = r"[a-z]+-[a-z]+[0-9]+-[a-z][a-z0-9]*"
_PROJECT = r"[a-z0-9.:-]{1,100}"
_NAME = r"[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?"
_PROVIDER_ID = re.compile(rf"projects/({_PROJECT})/zones/({ZONE})/instances/({_NAME})")


@dataclass(frozen=True)
class Place:
    """Where an instance is. As text it is the provider's id of the instance.

    The project is part of it: when the configuration moves to another project, an old instance
    is still asked for where it is, and never taken for gone because it is not in the new one.
    """

    project: str
    zone: str
    name: str

    def __str__(self) -> str:
        """Return the provider's id: the resource's name in Google's own form."""
        return f"projects/{self.project}/zones/{self.zone}/instances/{self.name}"

    @classmethod
    def of(cls, provider_id: str) -> Place | None:
        """Return the place of a provider's id, or `None` when it cannot be one of ours."""
        match = _PROVIDER_ID.fullmatch(provider_id)
        return None if match is None else cls(match[1], match[2], match[3])


def instance_name(cluster_id: str, instance_id: str, attempt: int) -> str:
    """Return the one name that an attempt's machine can have, readable where that is possible.

    The same attempt always has the same name, so Google itself refuses a second machine.
    """
    text = f"{cluster_id}/{instance_id}/{attempt}"
    digest = hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_LENGTH]
    plain = re.sub(r"[^a-z0-9]+", "-", instance_id.lower()).strip("-")
    readable = plain[:_LONGEST_READABLE].strip("-")
    return NAME_PREFIX + "-".join(filter(None, (readable, digest)))


def id_in_name(name: str) -> str:
    """Return the instance id that a name shows, or `""`. Whether it is the whole id is not said."""
    end = len(name) - _DIGEST_LENGTH - 1
    return name[len(NAME_PREFIX) : end] if name.startswith(NAME_PREFIX) else ""


def labels_of(spec: LaunchSpec, *, token: str, extra: Labels) -> dict[str, str]:
    """Return all labels of an instance: owner tags, what tells attempts apart, and `extra`.

    Raises:
        ValueError: One of them does not fit into a label.
    """
    return _labels({**spec.tags, INSTANCE_TAG: spec.instance_id}, spec, token=token, extra=extra)


def gang_labels_of(spec: LaunchSpec, *, token: str, extra: Labels) -> dict[str, str]:
    """Return the labels that all instances of a gang have.

    They are the same for all, so what tells the members apart is their names only.

    Args:
        spec: Any of the gang's.
        token: Of the whole gang.
        extra: More labels.

    Raises:
        ValueError: A label does not fit, or an id of the gang cannot be read back from a name.
    """
    for instance_id in spec.gang:
        if id_in_name(instance_name(spec.cluster_id, instance_id, spec.attempt)) != instance_id:
            raise ValueError(
                f"{instance_id!r} cannot be a member of a gang: its machine is known by its name "
                f"alone, so the id needs 1 to {_LONGEST_READABLE} of a-z, 0-9 and single -"
            )
    tags = {key: value for key, value in spec.tags.items() if key != INSTANCE_TAG}
    tags[GANG_LABEL] = str(len(spec.gang))
    return _labels(tags, spec, token=token, extra=extra)


def _labels(owner: Labels, spec: LaunchSpec, *, token: str, extra: Labels) -> dict[str, str]:
    tags = {
        **owner,
        CLUSTER_TAG: spec.cluster_id,
        ATTEMPT_LABEL: str(spec.attempt),
        TOKEN_LABEL: token_mark(token),
    }
    labels = {**extra, **{encoded_key(key): encoded(value) for key, value in tags.items()}}
    for key, value in labels.items():
        if len(key) > _LONGEST or len(value) > _LONGEST:
            raise ValueError(
                f"tag {decoded_key(key)!r} does not fit into a label of Google Cloud "
                f"({_LONGEST} characters, others than a-z 0-9 - count three); make it shorter"
            )
    if len(labels) > _MOST_LABELS:
        raise ValueError(f"{len(labels)} labels are too many for Google Cloud ({_MOST_LABELS})")
    return labels


def token_mark(token: str) -> str:
    """Return what tells the launches of two tokens apart, without giving the token away."""
    return hashlib.sha256(token.encode()).hexdigest()[:16]


def encoded(text: str) -> str:
    """Return `text` as a label's value; each byte beside `[a-z0-9-]` becomes `_` and two digits.

    No two texts become the same.
    """
    return "".join(chr(byte) if chr(byte) in _SAFE else f"_{byte:02x}" for byte in text.encode())


def decoded(value: str) -> str | None:
    """Return the text that `encoded` gave, or `None` when it never gives this."""
    if not _ENCODED.fullmatch(value):
        return None
    parts = re.findall(r"_[0-9a-f]{2}|[a-z0-9-]", value)
    content = bytes(int(p[1:], 16) if p.startswith("_") else ord(p) for p in parts)
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return None
    return text if encoded(text) == value else None


def encoded_key(key: str) -> str:
    """Return `key` as a label's key, which begins with a letter."""
    text = encoded(key)
    return text if text[:1].isalpha() else _MARK + text


def decoded_key(key: str) -> str | None:
    """Return the key that `encoded_key` gave, or `None` when it never gives this."""
    return decoded(key.removeprefix(_MARK))


def owned_instance_id(labels: Mapping[str, str], name: str, *, cluster_id: str) -> str | None:
    """Return our id of an instance, or `None` when it is not this cluster's.

    A machine that somebody copied in the console has our labels too, but never our name.
    """
    if labels.get(CLUSTER_TAG) != encoded(cluster_id):
        return None
    instance_id = (
        id_in_name(name) if GANG_LABEL in labels else decoded(labels.get(INSTANCE_TAG, ""))
    )
    attempt = labels.get(ATTEMPT_LABEL, "")
    if not instance_id or not re.fullmatch(r"[0-9]{1,9}", attempt):
        return None
    is_our_name = name == instance_name(cluster_id, instance_id, int(attempt))
    return instance_id if is_our_name else None
