"""Every private call to Ray: its control service (GCS), over plain gRPC.

Ray's own `GcsClient` is not used, for three measured reasons (Ray 2.60): its constructor waits
40 s for a head that is away; 60 s after the head died it ends the whole calling process; and its
token comes from the environment, one for the process. Its protobuf messages are loaded without
`import ray`, which saves 40 MB.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path
from threading import Lock
from types import ModuleType
from typing import Any

from hybrid.core.errors import ClusterError
from hybrid.core.ports import DrainKind, DrainReply

_WIRE = "hybrid_ray_wire"
_NOTES = b"hybrid"  # namespace of notes between the controller and jobs
_NODE_ID_BYTES = 28
_NOT_FOUND = 17  # GcsStatus code of an actor that does not exist
_OPTIONS = (
    ("grpc.enable_http_proxy", 0),  # the head is on a private network
    ("grpc.use_local_subchannel_pool", 1),  # a new channel really connects anew
    ("grpc.max_receive_message_length", -1),  # 1,000 nodes can pass gRPC's 4 MB
)
_DRAIN_REASONS: Mapping[DrainKind, str] = {
    DrainKind.IDLE: "DRAIN_NODE_REASON_IDLE_TERMINATION",
    DrainKind.BUSY: "DRAIN_NODE_REASON_PREEMPTION",
}


class Gcs:
    """The control service of one cluster. Thread-safe; connects when first used.

    Every method raises `ClusterError` within about `timeout_s` when the head does not answer.
    """

    def __init__(self, address: str, token: str, *, timeout_s: float = 5.0) -> None:
        self._address = address
        self._metadata = (("authorization", f"Bearer {token}"),) if token else ()
        self._timeout_s = timeout_s
        self._lock = Lock()
        self._channel: Any = None

    def state(self) -> Any:
        """Return Ray's `ClusterResourceState` message: nodes and all waiting work."""
        wire = _wire("autoscaler_pb2")
        reply = self._call(
            "autoscaler.AutoscalerStateService/GetClusterResourceState",
            wire.GetClusterResourceStateRequest(),
            wire.GetClusterResourceStateReply,
        )
        return reply.cluster_resource_state

    def drain(
        self, node_id: str, *, kind: DrainKind, deadline_at_s: float, message: str
    ) -> DrainReply:
        """Ask for a drain; see `Cluster.drain`.

        Ray also says yes for a node that is dead or that it never knew.
        """
        wire = _wire("autoscaler_pb2")
        is_busy = kind is DrainKind.BUSY
        request = wire.DrainNodeRequest(
            node_id=_node_id_bytes(node_id),
            reason=wire.DrainNodeReason.Value(_DRAIN_REASONS[kind]),
            reason_message=message,
            deadline_timestamp_ms=max(0, round(deadline_at_s * 1000)) if is_busy else 0,
        )
        reply = self._call(
            "autoscaler.AutoscalerStateService/DrainNode", request, wire.DrainNodeReply
        )
        return DrainReply(is_accepted=reply.is_accepted, message=reply.rejection_reason_message)

    def end_job_supervisor(self, job_id: str) -> bool:
        """End a Ray job that has not started yet, and return whether it was there.

        Ray's own stop call waits behind the start of the job, so it never ends one that waits
        for resources, and the job's demand would stay for ever.
        """
        wire = _wire("gcs_service_pb2")
        found = self._call(
            "ActorInfoGcsService/GetNamedActorInfo",
            wire.GetNamedActorInfoRequest(
                name=f"_ray_internal_job_actor_{job_id}",
                ray_namespace="SUPERVISOR_ACTOR_RAY_NAMESPACE",
            ),
            wire.GetNamedActorInfoReply,
        )
        if found.status.code == _NOT_FOUND:
            return False
        request = wire.KillActorViaGcsRequest(
            actor_id=found.actor_table_data.actor_id, force_kill=True, no_restart=True
        )
        self._call("ActorInfoGcsService/KillActorViaGcs", request, wire.KillActorViaGcsReply)
        return True

    def put(self, key: str, value: bytes) -> None:
        """Store a value that every process of the cluster can read."""
        wire = _wire("gcs_service_pb2")
        request = wire.InternalKVPutRequest(
            key=key.encode(), value=value, overwrite=True, namespace=_NOTES
        )
        self._call("InternalKVGcsService/InternalKVPut", request, wire.InternalKVPutReply)

    def get(self, key: str) -> bytes | None:
        """Return such a value, or `None` when there is none."""
        wire = _wire("gcs_service_pb2")
        request = wire.InternalKVGetRequest(key=key.encode(), namespace=_NOTES)
        reply = self._call("InternalKVGcsService/InternalKVGet", request, wire.InternalKVGetReply)
        return bytes(reply.value) if reply.status.code != _NOT_FOUND and reply.value else None

    def close(self) -> None:
        """Close the connection; the next call opens a new one."""
        with self._lock:
            channel, self._channel = self._channel, None
        if channel is not None:
            channel.close()

    def _call(self, method: str, request: Any, reply_type: Any) -> Any:
        import grpc

        call = self._open().unary_unary(
            f"/ray.rpc.{method}",
            request_serializer=type(request).SerializeToString,
            response_deserializer=reply_type.FromString,
        )
        try:
            return call(request, timeout=self._timeout_s, metadata=self._metadata)
        except grpc.RpcError as err:
            # A new channel next time: this one may wait minutes before it tries again, or
            # hold on to a connection to a head that was replaced.
            self.close()
            raise self._translate(err) from err
        except ValueError as err:
            # The same failure of another thread's call has closed the channel just now.
            self.close()
            raise ClusterError(
                f"the connection to Ray's head at {self._address} was closed meanwhile ({err}); "
                "the next call opens a new one"
            ) from err

    def _open(self) -> Any:
        import grpc

        with self._lock:
            if self._channel is None:
                self._channel = grpc.insecure_channel(self._address, options=_OPTIONS)
            return self._channel

    def _translate(self, err: Any) -> ClusterError:
        code, details, head = err.code().name, err.details(), f"Ray's head at {self._address}"
        match code:
            case "UNAUTHENTICATED":
                return ClusterError(
                    f"{head} refused our token: it was started with another one; "
                    "restart the head, or the controller, with the same token"
                )
            case "DEADLINE_EXCEEDED":
                return ClusterError(
                    f"{head} did not answer within {self._timeout_s:g} s; check that the host is "
                    "up, that its port is open from here, and how loaded it is"
                )
            case "UNAVAILABLE" | "CANCELLED":
                return ClusterError(
                    f"{head} cannot be reached ({details}); check that the head runs and that "
                    "its port is open from here"
                )
            case _:
                return ClusterError(
                    f"{head} answered with {code} ({details}); check that the address is that of "
                    "a Ray head of the same version as ours"
                )


def _node_id_bytes(node_id: str) -> bytes:
    """Return Ray's binary id; a wrong length would abort the head's control service."""
    try:
        raw = bytes.fromhex(node_id)
    except ValueError:
        raw = b""
    if len(raw) != _NODE_ID_BYTES:
        raise ClusterError(
            f"{node_id!r} is not a Ray node id; give the {2 * _NODE_ID_BYTES} hex digits that "
            "`hybrid nodes` prints"
        )
    return raw


def _wire(name: str) -> Any:
    """Return one of Ray's generated protobuf modules, without running `import ray`."""
    if _WIRE not in sys.modules:
        spec = importlib.util.find_spec("ray")
        if spec is None or not spec.submodule_search_locations:
            raise ClusterError("Ray is not installed in this Python; install `ray[default]`")
        package = ModuleType(_WIRE)
        package.__path__ = [
            str(Path(folder) / "core" / "generated") for folder in spec.submodule_search_locations
        ]
        sys.modules[_WIRE] = package
    try:
        return importlib.import_module(f"{_WIRE}.{name}")
    except ImportError as err:
        raise ClusterError(
            f"this Ray installation has no usable {name} ({err}); install the version of Ray that "
            "hybrid asks for"
        ) from err
