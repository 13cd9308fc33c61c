"""Google Cloud: Compute Engine instances behind the port `hybrid.core.ports.Provider`.

API: https://cloud.google.com/compute/docs/reference/rest/v1/instances. The SDK
(`google-cloud-compute`, extra `gcp`) is imported when the cloud is first called.
"""

from __future__ import annotations

from providers.gcp.provider import GcpProvider, make

__all__ = ["GcpProvider", "make"]
