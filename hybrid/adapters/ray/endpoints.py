"""Where each node of the cluster tells its metrics."""

from __future__ import annotations

from hybrid.adapters.ray.gcs import Gcs, _wire

_ALIVE = 0  # GcsNodeInfo.GcsNodeState


class MetricsEndpoints(Gcs):
    """The nodes' metrics pages, from Ray's own table of nodes. They need no token."""

    def urls(self) -> tuple[str, ...]:
        """Return the URL of every living node's page.

        Raises:
            ClusterError: The head does not answer.
        """
        wire = _wire("gcs_service_pb2")
        reply = self._call(
            "NodeInfoGcsService/GetAllNodeInfo",
            wire.GetAllNodeInfoRequest(),
            wire.GetAllNodeInfoReply,
        )
        return tuple(
            sorted(
                url_of(node.node_manager_address, node.metrics_export_port)
                for node in reply.node_info_list
                if node.state == _ALIVE and node.metrics_export_port > 0
            )
        )


def url_of(address: str, port: int) -> str:
    """Return the URL of a metrics page."""
    host = f"[{address}]" if ":" in address else address
    return f"http://{host}:{port}/metrics"
