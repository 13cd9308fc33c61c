"""What `hybrid_cloud` and `hybrid_burst_policy` share: each is a layer over a cluster's file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hybrid.terraform.provider.controller import Controller, UnreachableError
from hybrid.terraform.provider.settings import Link

_SOURCE = "terraform"
_RESTART_S = 90.0


def found(link: Link, cluster: str, name: str) -> Mapping[str, Any] | None:
    """Return a layer's content; `None` when the cluster has none of that name.

    Raises:
        NotRunningError: The cluster is not running.
    """
    layers = link.controller(cluster).get("layers")["layers"]
    return next((dict(layer["content"]) for layer in layers if layer["name"] == name), None)


def lay(link: Link, cluster: str, name: str, kind: str, content: Mapping[str, Any]) -> None:
    """Lay one over the cluster's file, and wait until the controller works with it."""
    body = {"source": f"{kind} {name} of {_SOURCE}", "content": content}
    _change(link, cluster, lambda controller: controller.put(f"layers/{name}", body))


def take_away(link: Link, cluster: str, name: str) -> None:
    """Take one away, and wait until the controller works without it."""
    _change(link, cluster, lambda controller: controller.delete(f"layers/{name}"))


def _change(link: Link, cluster: str, change: Callable[[Controller], Mapping[str, Any]]) -> None:
    with link.lock:
        controller = link.controller(cluster)
        before = controller.began_at_s()
        if not change(controller)["facts"].get("is_restarting"):
            return

        def is_back() -> bool:
            # looked for anew: should its port be taken meanwhile, it listens at another
            found = link.find(cluster)
            return found is not None and found.is_ready() and found.began_at_s() != before

        if not controller.wait(is_back, _RESTART_S):
            raise UnreachableError(
                f"the controller of {cluster} took the change, and is not ready again; see its log"
            )
