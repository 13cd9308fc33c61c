"""What an offer truly costs for a job: a spot price with what its interruptions will cost."""

from __future__ import annotations

import math

from hybrid.core.models import Market, Offer
from hybrid.core.models.work import JobView
from hybrid.core.policy.jobs.params import JobParams
from hybrid.core.policy.jobs.terms import Terms

_HOUR_S = 3_600.0


def effective_usd_per_hour(offer: Offer, job: JobView, terms: Terms) -> float | None:
    """Return the price of useful work on an offer, or `None` if the offer does not suit the job.

    On-demand it is the price. Spot machines are taken back: a job saves now and then, loses on
    average half of the time between two saves, and loads again. With saves as often as is best,
    this is the surcharge of Young and Daly; its data is shipped anew
    each time, which takes time and costs egress. Spot suits only a job that can go on from a
    checkpoint, is narrow enough that one machine taken back does not stop many, and could still
    be in time after being taken back once.
    """
    if not is_spot(offer):
        return offer.usd_per_hour
    params = terms.params
    if job.checkpoint is None or job.gpus > params.spot_most_gpus:
        return None
    left_s = terms.deadline_s(job) - terms.now_s
    data_s = job.data_s or 0.0
    if left_s < job.trip_s + data_s + terms.reserve_s or not terms.may_interrupt(job, keep=1):
        return None
    saves = job.checkpoint
    surcharge = spot_surcharge(saves.save_s, saves.load_s + data_s, params)
    return offer.usd_per_hour * surcharge + job.data_usd * _HOUR_S / params.spot_mtbf_s


def is_spot(offer: Offer) -> bool:
    """Return whether the machine may be taken back at any time."""
    return offer.market is Market.SPOT


def spot_surcharge(save_s: float, load_s: float, params: JobParams) -> float:
    """Return by what factor work on spot machines takes longer, at least 1."""
    mean_s = params.spot_mtbf_s
    every_s = max(math.sqrt(2 * save_s * mean_s), params.spot_least_interval_s)
    return 1 + save_s / every_s + every_s / (2 * mean_s) + load_s / mean_s


def trip_usd(job: JobView, params: JobParams) -> float:
    """Return what shipping a job's checkpoint out of a cloud costs."""
    return job.checkpoint.size_gb * params.egress_usd_per_gb if job.checkpoint else 0.0
