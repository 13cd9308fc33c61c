"""A cluster that rents in three emulated clouds."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from hybrid.core.models import Instance
from tests.e2e.accounts import CLUSTER, Aws, Baidu, Cloud, Gcp, Machine
from tests.e2e.deployment import Deployment

_FOREIGN = ("AWS_", "GOOGLE_", "CLOUDSDK_", "BAIDUCLOUD_", "NO_GCE_CHECK")


class Clouds:
    """All three.

    Attributes:
        by_name: Each by its name.
    """

    def __init__(self, stack: ExitStack) -> None:
        self.aws, self.gcp, self.baidu = Aws(), Gcp(), Baidu()
        self.by_name: dict[str, Cloud] = {c.name: c for c in (self.aws, self.gcp, self.baidu)}
        for cloud in self.by_name.values():
            stack.callback(cloud.stop)

    def config(self, pools: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the part of a configuration that rents from `pools`, in this order."""
        names = dict.fromkeys(str(pool["infra"]).partition("/")[0] for pool in pools)
        return {
            "onprem": {"hosts": []},
            "budget": {"nodes": 20, "gpus": None, "usd_per_hour": None, "usd_per_day": None},
            # Machines with bodies have what this machine has, which is no GPU.
            "providers": {n: {**self.by_name[n].account(), "logical_gpus": True} for n in names},
            "clouds": {"any_of": None, "ordered": list(pools)},
        }

    def machines(self, cluster_id: str = "") -> dict[str, Machine]:
        """Return all machines of all clouds, or those that carry exactly a cluster's tag."""
        return {
            provider_id: machine
            for cloud in self.by_name.values()
            for provider_id, machine in cloud.machines().items()
            if cluster_id in ("", machine.tags.get(CLUSTER))
        }


class CloudDeployment(Deployment):
    """A cluster whose commands find the emulated accounts' credentials, and no others."""

    def __init__(self, clouds: Clouds, /, **changes: Any) -> None:
        self.emulated = clouds
        super().__init__(**changes)

    @property
    def env(self) -> dict[str, str]:
        """See `Deployment.env`."""
        kept = {k: v for k, v in super().env.items() if not k.startswith(_FOREIGN)}
        for cloud in self.emulated.by_name.values():
            kept |= cloud.env()
        return kept

    def cancel_all(self) -> None:
        """Cancel every job, so that nothing waits for a machine."""
        for job in self.jobs().values():
            if not job.state.is_ended:
                self.client.job(job.job_id).cancel()

    @property
    def cluster_id(self) -> str:
        """Whose machines are ours."""
        return self.status().cluster.cluster_id

    def json(self, *words: str) -> Any:
        """Return what `hybrid WORDS --json` says."""
        return json.loads(self.hybrid(*words, "--json").out)

    def live_by_provider(self) -> dict[str, list[Instance]]:
        """Return live rows, by the cloud that they are in."""
        found: dict[str, list[Instance]] = {}
        for row in self.live_rows():
            found.setdefault(row.offer.provider, []).append(row)
        return found


@contextmanager
def emulated() -> Iterator[Clouds]:
    """Yield the three clouds, empty."""
    with ExitStack() as stack:
        yield Clouds(stack)


@contextmanager
def deployed_in(clouds: Clouds, /, **changes: Any) -> Iterator[CloudDeployment]:
    """Yield a cluster that is not started; afterwards nothing of it is left, here or there."""
    deployment = CloudDeployment(clouds, **changes)
    try:
        yield deployment
        deployment.down()
        deployment.assert_nothing_left()
    finally:
        deployment.close()
