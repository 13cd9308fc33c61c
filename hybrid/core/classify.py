"""What the world says about one instance: ledger x cloud x Ray -> at most one fact.

Pure. The loop applies the fact through `lifecycle.advance` and asks again until none is left.
"""

from __future__ import annotations

from hybrid.core.lifecycle import Fact, overdue_fact
from hybrid.core.models import CloudInstance, CloudState, Instance, InstanceState, Model, Node
from hybrid.core.models import NodeStatus as Status

_S = InstanceState
_NODE_STATES = (_S.RUNNING, _S.DRAINING)


class Patience(Model):
    """How much evidence a conclusion needs.

    Attributes:
        miss_count: Cloud lists in a row without the instance before it may be missing.
        list_lag_s: Longest time the provider's list may lack a launched instance.
        proof_s: How long a lost instance must stay absent from every list before that counts
            as the cloud's word, when the cloud never gave us an id to ask for. Five times the
            list's lag is enough when that is less; the lag itself is always waited for.
        node_absent_s: How long a node may be absent from Ray before its instance is given up.
    """

    miss_count: int = 3
    list_lag_s: float = 120.0
    proof_s: float = 600.0
    node_absent_s: float = 60.0


class Sight(Model):
    """What was seen of one instance in this tick.

    Attributes:
        is_listed: The provider's list was read; only then does absence mean anything.
        cloud: Its entry in that list.
        is_ray_up: Ray answered.
        node: Its node in Ray, dead ones included.
        node_absent_s: For how long Ray, while it answered, had no such node.
        node_problem: Why its node will never work, as the node itself said.
        is_mass_trouble: Much looks dead at once: that Ray calls its node dead, or lacks it, is
            no reason to end it. Its own word, the cloud's, or a passed deadline is.
    """

    is_listed: bool
    cloud: CloudInstance | None = None
    is_ray_up: bool
    node: Node | None = None
    node_absent_s: float = 0.0
    node_problem: str = ""
    is_mass_trouble: bool = False


def classify(
    instance: Instance, sight: Sight, *, now_s: float, patience: Patience
) -> tuple[Fact, str] | None:
    """Return the next fact about an instance and the words for it, or `None`.

    Args:
        instance: The ledger's row; its `missing_*` fields count this tick's list already.
        sight: What was seen.
        now_s: Now.
        patience: How much evidence is enough.
    """
    cloud = sight.cloud
    if cloud is not None and cloud.state is CloudState.GONE:
        # Of a node that was drained, that Ray ended on it is no problem any more.
        is_drained = instance.state is _S.TERMINATING and instance.drain_reason is not None
        said = "" if is_drained else cloud.problem or sight.node_problem
        return Fact.GONE, said or ("" if has_reason(instance) else "the cloud says it is gone")
    if cloud is not None and instance.state in (_S.REQUESTED, _S.LOST):
        return Fact.FOUND_IN_CLOUD, ""
    if instance.state is _S.REQUESTED and _is_alive(sight):
        # It traded its join token: the machine exists, whatever became of the create call.
        return Fact.LAUNCH_ACCEPTED, "its node is in Ray"
    if cloud is None and _is_proved_absent(instance, sight, now_s, patience):
        return Fact.GONE, "absent from every list for long enough; the cloud never gave it an id"
    if cloud is None and _is_missing(instance, sight, now_s, patience):
        return Fact.MISSING, f"missing from {instance.missing_count} lists of the cloud in a row"
    return _from_node(instance, sight, patience) or _from_deadline(instance, sight, now_s)


def has_reason(instance: Instance) -> bool:
    """Return whether its row says why it is being ended before it was ever of use.

    That it is gone in the end is then no news, and must not take the place of the reason.
    """
    never_joined = instance.joined_at_s is None and instance.drain_reason is None
    return instance.state is _S.TERMINATING and never_joined and bool(instance.problem)


def count_miss(instance: Instance, sight: Sight, *, now_s: float) -> Instance:
    """Return the instance with this tick's look at the cloud's list counted."""
    if not sight.is_listed:
        return instance
    if sight.cloud is not None:
        changes: dict[str, object] = {}
        if instance.first_listed_at_s is None:
            changes["first_listed_at_s"] = now_s
        if instance.missing_count:
            changes |= {"missing_count": 0, "missing_since_s": None}
        if not instance.provider_id:
            changes["provider_id"] = sight.cloud.provider_id
        return instance.model_copy(update=changes) if changes else instance
    since_s = now_s if instance.missing_since_s is None else instance.missing_since_s
    return instance.model_copy(
        update={"missing_count": instance.missing_count + 1, "missing_since_s": since_s}
    )


def is_absence_believable(instance: Instance, *, now_s: float, patience: Patience) -> bool:
    """Return whether "not found" can be taken for the end, and not for a list that lags."""
    if instance.first_listed_at_s is not None:
        return True
    return now_s - instance.created_at_s >= patience.list_lag_s


def _is_missing(instance: Instance, sight: Sight, now_s: float, patience: Patience) -> bool:
    """Return whether the instance may be given up as lost: a state that still costs a place."""
    if instance.state not in (_S.BOOTING, _S.RUNNING, _S.DRAINING):
        return False
    if not sight.is_listed or not sight.is_ray_up or _is_alive(sight):
        return False
    since_s = now_s if instance.missing_since_s is None else instance.missing_since_s
    return instance.missing_count >= patience.miss_count and now_s - since_s >= patience.list_lag_s


def _is_proved_absent(instance: Instance, sight: Sight, now_s: float, patience: Patience) -> bool:
    """Return whether an instance that cannot be asked for can be written off."""
    if instance.state not in (_S.LOST, _S.TERMINATING) or instance.provider_id:
        return False
    if not sight.is_listed or _is_alive(sight):
        return False
    since_s = now_s if instance.missing_since_s is None else instance.missing_since_s
    # The create call is repeated until the row is LOST: the last one may have worked.
    waited_s = now_s - max(since_s, instance.state_at_s)
    return (
        instance.missing_count >= patience.miss_count
        and waited_s >= min(patience.proof_s, 5 * patience.list_lag_s)
        and waited_s >= patience.list_lag_s
    )


def _is_alive(sight: Sight) -> bool:
    return sight.node is not None and sight.node.status is not Status.DEAD


def _from_node(instance: Instance, sight: Sight, patience: Patience) -> tuple[Fact, str] | None:
    is_alive = _is_alive(sight)
    is_dead = sight.node is not None and not is_alive
    problem = sight.cloud.problem if sight.cloud is not None else ""
    if instance.state is _S.BOOTING:
        if is_alive:
            return Fact.NODE_JOINED, ""
        if problem or sight.node_problem or is_dead:
            words = sight.node_problem or problem or "its node joined Ray and died at once"
            return Fact.NODE_FAILED, words
        return None
    if instance.state is _S.RUNNING and sight.node and sight.node.status is Status.DRAINING:
        return Fact.DRAIN_STARTED, "it drains, though nobody here asked for it"
    # A node that Ray sees alive is at work, whatever the cloud says of its trouble.
    if instance.state not in _NODE_STATES or not sight.is_ray_up or is_alive:
        return None
    is_absent = sight.node is None and sight.node_absent_s >= patience.node_absent_s
    if not (is_dead or is_absent or problem):
        return None
    is_seen_by_ray_only = not (problem or sight.node_problem)
    if sight.is_mass_trouble and is_seen_by_ray_only and instance.drain_kind != "idle":
        return None
    if instance.state is _S.DRAINING:
        return Fact.DRAINED, "its node left the cluster"
    words = "Ray says its node is dead" if is_dead else "its node is no longer in Ray"
    return Fact.NODE_FAILED, sight.node_problem or problem or words


def _from_deadline(instance: Instance, sight: Sight, now_s: float) -> tuple[Fact, str] | None:
    fact = overdue_fact(instance, now_s=now_s)
    if fact is None or (fact is Fact.JOIN_OVERDUE and not sight.is_ray_up):
        # Nobody can be seen to join while Ray does not answer: unknown, not missing.
        return None
    if fact is Fact.DRAIN_OVERDUE and instance.drain_kind == "idle":
        return _from_idle_drain(sight)
    words = {
        Fact.LAUNCH_OVERDUE: "the cloud never confirmed the launch in time",
        Fact.JOIN_OVERDUE: "its node did not join in time",
        Fact.DRAIN_OVERDUE: "the drain's deadline has passed",
    }
    return fact, words[fact]


def _from_idle_drain(sight: Sight) -> tuple[Fact, str] | None:
    """Return what an overdue drain of an idle node means.

    Ray ends an idle node at once, or refuses: only its word says that no work came meanwhile.
    """
    if sight.node is None:
        return None
    if sight.node.status is Status.DRAINING:
        return Fact.DRAIN_OVERDUE, "Ray took the drain of the idle node, and it is still there"
    return Fact.DRAIN_REFUSED, "Ray did not take the drain of the idle node in time"
