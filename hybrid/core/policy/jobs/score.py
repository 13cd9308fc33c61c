"""What an offer truly costs for a job: a spot price with what its interruptions will cost."""

from __future__ import annotations

import math

from hybrid.core.errors import Scope
from hybrid.core.gpu_names import ray_type
from hybrid.core.models import Market, Offer
from hybrid.core.models.work import JobView
from hybrid.core.policy.jobs.params import JobParams
from hybrid.core.policy.jobs.terms import Terms
from hybrid.core.scopes import scope_key

_HOUR_S = 3_600.0


def effective_usd_per_hour(offer: Offer, job: JobView, terms: Terms) -> float | None:
    """Return the price of useful work on an offer, or `None` if the offer does not suit the job.

    On-demand it is the price, for a GPU that works at the usual speed; a faster one is worth as
    much more. Spot machines are taken back: a job saves now and then, loses on
    average half of the time between two saves, and loads again. With saves as often as is best,
    this is the surcharge of Young and Daly; its data is shipped anew
    each time, which takes time and costs egress. Spot suits only a job that can go on from a
    checkpoint, is narrow enough that one machine taken back does not stop many, and could still
    be in time after being taken back once.
    """
    params = terms.params
    speed = gpu_speed(offer, params)
    if not is_spot(offer):
        return offer.usd_per_hour / speed
    if job.checkpoint is None or job.gpus > params.spot_most_gpus:
        return None
    left_s = terms.deadline_s(job) - terms.now_s
    data_s = job.data_s or 0.0
    if left_s < job.trip_s + data_s + terms.reserve_s or not terms.may_interrupt(job, keep=1):
        return None
    saves = job.checkpoint
    mean_s = zone_mtbf_s(offer, terms)
    surcharge = spot_surcharge(saves.save_s, saves.load_s + data_s, params, mean_s=mean_s)
    return offer.usd_per_hour * surcharge / speed + job.data_usd * _HOUR_S / mean_s


def is_spot(offer: Offer) -> bool:
    """Return whether the machine may be taken back at any time."""
    return offer.market is Market.SPOT


def gpu_speed(offer: Offer, params: JobParams) -> float:
    """Return how fast an offer's GPUs work; `A100` stands for those of each memory."""
    speeds = params.gpu_speeds
    if not speeds:
        return 1.0
    return speeds.get(offer.accelerator, speeds.get(ray_type(offer.accelerator), 1.0))


def zone_mtbf_s(offer: Offer, terms: Terms) -> float:
    """Return the mean time until a spot machine of a zone is taken back.

    What is assumed everywhere, and less where some were taken back of late. An offer for any
    zone of its region counts as the worst of them: the cloud chooses.
    """
    count = terms.takebacks.get(scope_key(offer, Scope.ZONE), 0.0)
    if not offer.zone and offer.region:
        within = f"zone:{offer.provider}/{offer.region}/"
        zones = (n for zone, n in terms.takebacks.items() if zone.startswith(within))
        count = max(count, *zones, 0.0)
    return terms.params.spot_mtbf_s / (1 + count)


def spot_surcharge(
    save_s: float, load_s: float, params: JobParams, *, mean_s: float | None = None
) -> float:
    """Return by what factor work on spot machines takes longer, at least 1.

    Args:
        save_s: What a save costs.
        load_s: What a new start costs.
        params: Thresholds.
        mean_s: Mean time until such a machine is taken back; as assumed everywhere if absent.
    """
    mean_s = params.spot_mtbf_s if mean_s is None else mean_s
    every_s = max(math.sqrt(2 * save_s * mean_s), params.spot_least_interval_s)
    return 1 + save_s / every_s + every_s / (2 * mean_s) + load_s / mean_s


def trip_usd(job: JobView, params: JobParams) -> float:
    """Return what shipping a job's checkpoint out of a cloud costs."""
    return job.checkpoint.size_gb * params.egress_usd_per_gb if job.checkpoint else 0.0
