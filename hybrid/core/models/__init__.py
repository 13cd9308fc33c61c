"""The values everything speaks in. Frozen, validated, and also the stored and logged form."""

from __future__ import annotations

from hybrid.core.models.base import Labels, Model, Shape
from hybrid.core.models.data import DataEntry
from hybrid.core.models.demand import Demand, Gang, LabelConstraint, Selector, Spread
from hybrid.core.models.instances import (
    Caps,
    Commitment,
    Event,
    Instance,
    InstanceState,
    OfferFailure,
    Reason,
    Spend,
)
from hybrid.core.models.jobs import Job, JobClass, JobSpec, JobState, SavedWork, Stop
from hybrid.core.models.nodes import ClusterView, Node, NodeStatus
from hybrid.core.models.offers import CloudInstance, CloudState, LaunchSpec, Market, Offer
from hybrid.core.models.ray_options import RayHealth, RayOptions

__all__ = [
    "Caps",
    "CloudInstance",
    "CloudState",
    "ClusterView",
    "Commitment",
    "DataEntry",
    "Demand",
    "Event",
    "Gang",
    "Instance",
    "InstanceState",
    "Job",
    "JobClass",
    "JobSpec",
    "JobState",
    "LabelConstraint",
    "Labels",
    "LaunchSpec",
    "Market",
    "Model",
    "Node",
    "NodeStatus",
    "Offer",
    "OfferFailure",
    "RayHealth",
    "RayOptions",
    "Reason",
    "SavedWork",
    "Selector",
    "Shape",
    "Spend",
    "Spread",
    "Stop",
]
