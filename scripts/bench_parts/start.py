"""How long `hybrid up` takes, against the same nodes started by hand."""

from __future__ import annotations

import statistics
import sys

from scripts.bench_parts.byhand import by_hand, recipes
from scripts.bench_parts.cluster import local_cluster
from scripts.bench_parts.figures import BenchError, Figure, shortened

_TARGET = 1.3


def measure(*, rounds: int = 3) -> list[Figure]:
    """Return the ratio of medians; `up` and by hand take turns."""
    with local_cluster() as cluster:  # warms the file cache, and shows how nodes are started
        found = recipes(cluster.state_dir)
        warm_s = cluster.up_s
    up_s, returned_s, seen_s = [], [], []
    for number in range(rounds):
        with by_hand(found) as started:
            returned_s.append(started.returned_s)
            seen_s.append(started.seen_s)
        with local_cluster() as cluster, cluster.client() as client:
            names = [node.name for node in client.nodes().nodes if node.node_id]
            if len(names) != len(found):
                raise BenchError(f"`hybrid up` ended with {names}, {len(found)} were expected")
            up_s.append(cluster.up_s)
        print(
            f"  round {number + 1}: by hand {returned_s[-1]:.1f} s, hybrid up {up_s[-1]:.1f} s",
            file=sys.stderr,
        )
    return [
        Figure(
            name="up_ratio",
            what="`hybrid up` on the local default against the same head and two nodes by hand",
            value=statistics.median(up_s) / statistics.median(returned_s),
            unit="ratio",
            target=_TARGET,
            details={
                "up_s": [shortened(s) for s in up_s],
                "by_hand_s": [shortened(s) for s in returned_s],
                "by_hand_until_ray_lists_all_s": [shortened(s) for s in seen_s],
                "ratio_of_best": shortened(min(up_s) / min(returned_s)),
                "warm_up_s": shortened(warm_s),
                "rounds": rounds,
            },
        )
    ]
