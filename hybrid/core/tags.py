"""The owner tags inside every create call: whose a machine is, and what it was rented as. Pure."""

from __future__ import annotations

import hashlib

CLUSTER = "hybrid-cluster"
CLUSTER_NAME = "hybrid-cluster-name"
INSTANCE = "hybrid-instance"
EPOCH = "hybrid-epoch"
OFFER = "hybrid-offer"


def owner_tags(
    *, cluster_id: str, cluster_name: str, instance_id: str, epoch: int, offer_id: str
) -> dict[str, str]:
    """Return the tags of one instance."""
    return {
        CLUSTER: cluster_id,
        CLUSTER_NAME: cluster_name,
        INSTANCE: instance_id,
        EPOCH: str(epoch),
        OFFER: offer_mark(offer_id),
    }


def offer_mark(offer_id: str) -> str:
    """Return 20 hex digits that stand for an offer where a cloud takes few characters."""
    return hashlib.sha256(offer_id.encode()).hexdigest()[:20]
