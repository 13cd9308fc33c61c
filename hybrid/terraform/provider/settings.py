"""The provider block, and which controller it leads to."""

from __future__ import annotations

import os
import threading

from hybrid.core.errors import HybridError
from hybrid.terraform.plugin import Diagnostics, Provider, attribute, block, make_schema
from hybrid.terraform.plugin.schema import Values
from hybrid.terraform.provider import machine
from hybrid.terraform.provider.controller import Controller

_LOOK_S, _LOOK_COUNT = 0.25, 240


class NotRunningError(HybridError):
    """A cluster has no controller."""


class Link:
    """What resources share: the way to controllers.

    Attributes:
        address: Of a controller elsewhere; `""`: clusters of this machine.
        stopping: Terraform wants to end.
        lock: One change of a cluster at a time; each restarts its controller.
    """

    def __init__(self) -> None:
        self.address = ""
        self._token = ""
        self.stopping = threading.Event()
        self.lock = threading.Lock()

    @property
    def is_remote(self) -> bool:
        """Whether the controller is another machine's, or at least not ours to start."""
        return bool(self.address)

    def configure(self, address: str | None, token: str | None) -> None:
        """Take the provider's block; the environment fills what it leaves open."""
        self.address = address or os.environ.get("HYBRID_ADDRESS", "")
        self._token = token or os.environ.get("HYBRID_TOKEN", "")
        if self.address and "://" not in self.address:
            self.address = f"http://{self.address}"

    def controller(self, cluster: str) -> Controller:
        """Return a cluster's controller.

        Raises:
            NotRunningError: There is none.
        """
        found = self.find(cluster)
        for _ in range(_LOOK_COUNT):
            # it leaves its note only while it works, and it may just start again
            if found or not machine.is_starting(cluster) or self.stopping.wait(_LOOK_S):
                break
            found = self.find(cluster)
        if found is None:
            raise NotRunningError(
                f"cluster {cluster!r} is not running here; create it by a hybrid_cluster, start "
                "it with `hybrid up`, or give the provider the address of its controller"
            )
        return found

    def find(self, cluster: str) -> Controller | None:
        """Return a cluster's controller as it is now; `None` when there is none."""
        if self.address:
            return Controller(self.address, self._token, self.stopping)
        record = machine.running(cluster)
        if record is None:
            return None
        return Controller(record.url, self._token or machine.token_of(record), self.stopping)


class Hybrid(Provider):
    """The provider itself."""

    schema = make_schema(
        block(
            {
                "address": attribute(
                    "string",
                    "Address of a controller that runs already, such as `http://head:8700`. "
                    "Without it, and without `HYBRID_ADDRESS`, clusters run on this machine, and "
                    "`hybrid_cluster` starts them.",
                    optional=True,
                ),
                "token": attribute(
                    "string",
                    "The API token; better `HYBRID_TOKEN`, or an ephemeral value. A provider's "
                    "block is in no state file. For clusters of this machine it is read from the "
                    "state folder.",
                    optional=True,
                    sensitive=True,
                ),
            }
        )
    )
    link: Link

    def configure(self, diagnostics: Diagnostics, config: Values, terraform_version: str) -> None:
        """See `Provider.configure`."""
        self.link.configure(config["address"], config["token"])
        if self.link.is_remote and not (config["token"] or os.environ.get("HYBRID_TOKEN")):
            diagnostics.error(
                "The address of a controller needs its token",
                "Set HYBRID_TOKEN to the content of the file api_token in that cluster's state "
                "folder, or `token` in the provider block.",
                at=("token",),
            )
