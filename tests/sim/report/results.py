"""Results of runs that never were, with round numbers."""

from __future__ import annotations

from typing import Any

from hybrid.sim.results import Interruptions, Point, Promises, Quantiles, SimResult

DAY_S = 86_400.0
KEPT = Promises(start_by_jobs=1.0, delay_by_jobs=1.0, delay_by_gpu_time=0.9999, start_of_wide=1.0)
BROKEN = KEPT.model_copy(update={"start_by_jobs": 0.9})


def result(policy: str, usd: float, **changes: Any) -> SimResult:
    """Return a run of ten days with 16 GPUs at home."""
    waits = Quantiles(p50=0.0, p95=300.0, p99=600.0)
    stops = Interruptions(
        suspended=5,
        packed=0,
        brought_home=2,
        exchanged=0,
        most_of_one_job=3,
        over_quota_count=0,
        job_share=0.05,
    )
    values: dict[str, Any] = {
        "trace": "lab",
        "policy": policy,
        "gpus": 16,
        "seed": 0,
        "job_count": 1_000,
        "usd": usd,
        "usd_by_reason": {"job_waits": usd},
        "rented_gpu_h": usd / 4,
        "idle_gpu_h": usd / 40,
        "lock_in_gpu_h": usd / 80,
        "launches": 12,
        "failed": 0,
        "cancelled": 0,
        "flaps": 1,
        "wait_s": waits,
        "wide_wait_s": waits,
        "promises": KEPT,
        "interruptions": stops,
        "bounded_slowdown": 1.1,
        "home_busy_share": 0.75,
        "decide_p50_s": 0.001,
        "decide_p99_s": 0.002,
        "decide_count": 100,
        "wall_s": 1.0,
        "series": tuple(
            Point(
                at_s=day * DAY_S,
                home_busy=12.0,
                rented=4.0,
                rented_busy=3.0,
                queued=float(day % 3),
                usd=usd * day / 10,
            )
            for day in range(11)
        ),
    }
    return SimResult(**{**values, **changes})
