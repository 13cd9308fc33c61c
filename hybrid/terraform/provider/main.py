"""The program `terraform-provider-hybrid`; Terraform starts it."""

from __future__ import annotations

from hybrid.terraform.plugin import serve
from hybrid.terraform.provider.cloud import Cloud
from hybrid.terraform.provider.cluster import Cluster
from hybrid.terraform.provider.policy import BurstPolicy
from hybrid.terraform.provider.settings import Hybrid, Link
from hybrid.terraform.provider.sources import Offers, Status


def make() -> Hybrid:
    """Return the provider with all it offers."""
    link = Link()
    provider = Hybrid(
        {
            "hybrid_cluster": Cluster(link),
            "hybrid_cloud": Cloud(link),
            "hybrid_burst_policy": BurstPolicy(link),
        },
        {"hybrid_status": Status(link), "hybrid_offers": Offers(link)},
    )
    provider.link, link.stopping = link, provider.stopping
    return provider


def main() -> None:
    """Serve until Terraform is done."""
    serve(make())


if __name__ == "__main__":
    main()
