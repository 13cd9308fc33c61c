"""Thresholds of the policy for jobs, and its three named profiles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from pydantic import Field

from hybrid.core.models import Model

ProfileName: TypeAlias = Literal["thrifty", "balanced", "fast"]

NEVER_EARLY = 10.0**9
"""Seconds; as a wait it means: not before the last responsible moment."""


class JobParams(Model):
    """What decides about jobs. Defaults are those of the `balanced` profile.

    The numbers were chosen on one case, the first 60 days of heavy load of the Philly trace on
    640 GPUs, and are the same for every other; docs/policy.md has the measurements.

    Attributes:
        late_share: A job may be late by its longest wait plus this share of its useful time.
        suspend_after_s: A new job that waited so long may suspend others for its place at home.
        rent_after_s, rent_after_gpu_s: A new job that waited so long, plus so long for each of
            its GPUs, may be rented for: a person waits alike for any job, but a wide one costs
            more to start early. Any job may be rented for at its last responsible moment: when
            a node rented now is ready just in time.
        wait_target_s, wait_target_share: This share of jobs, counted over some days, starts
            within the target. As long as more do, jobs are let wait to their last moment, the
            widest first; when fewer do, each is rented for at once.
        patient_from_s: Work whose longest wait is at least this long is never rented for, and
            stops no other, before its last moment: whoever may wait for hours is not in a hurry.
        fair_share: Among work of equal priority, that of users who hold fewer GPUs goes first.
        soon_share: Where the target for waits is out of reach (twice as many starts are late as
            may be) and at least this share of the jobs that found home full lately got a place
            there soon, new jobs wait for as long as a node takes before they are rented for.
            More than 1: never.
        soon_ratio: Soon is within this many times of what a node takes to come.
        futile_share: While at least this share of the jobs that were suspended lately had to be
            rented for in the end, none is suspended for work that can move: it only swaps who
            pays.
        guard_s: Safety margin in front of the last responsible moment.
        hold_s: A job is suspended only if it can stay away for so long, and still be late for
            nothing after a boot and two interruptions.
        min_run_s: And only after a useful stretch of this long.
        pinned_hold_s, pinned_run_s: The same when it makes room for a job without checkpoints,
            which would stay in the cloud to its end.
        suspensions: How often a job may be suspended, plus once per `suspension_earn_s` of
            useful time.
        stops_per_tick: At most so many jobs are stopped in one plan: they all save at once.
        interruptions: How often a job may be stopped for whatever reason (suspended, moved,
            exchanged, brought home), plus once per `interruption_earn_s` of useful time.
        exchange_gpus: Jobs of so many GPUs and more keep two of their interruptions for changing
            places with a job that cannot move, while there are such jobs of their size.
        move_after_s: A job is moved within the site only after a useful stretch of this long.
        home_ratio: A rented job comes home after this many times its save and load time.
        home_pack_ratio: And makes others move for it after this many times.
        home_wait_ratio: A job is not rented for before its last moment while home will probably
            have room within this share of the time that a node needs to come.
        idle_after_s: A rented node without work for this long is returned.
        node_size_margin: A node larger than a job needs is rented only if its price per GPU is
            lower by more than this share than that of one of the right size.
        pace_ratio: When today's money is more than so many times what is usually spent of a
            daily cap by this hour, jobs are rented for at their last moment only.
        pace_from_share: But not before this share of the cap is spent.
        gpu_speeds: How fast each type of GPU works, by our name of it, against any that is not
            named; prices are compared for the same work. Whoever measured it says so: none is
            assumed.
        spot_mtbf_s: Mean time until a spot machine is taken back. An assumption: public traces
            have an hour to a day. In a zone that took some back of late it is shorter: half of
            it after one, a third after two.
        spot_least_interval_s: Jobs on spot machines save no more often than this.
        spot_most_gpus: Wider jobs are not rented spot machines for.
        spot_margin: A spot machine is rented only if it is cheaper by more than this share, with
            what being taken back costs.
        egress_usd_per_gb: What a cloud asks for data that leaves it, per 10^9 bytes. Clouds
            asked $0.08 to $0.12 in 2026-08.
    """

    late_share: float = Field(default=0.02, ge=0, le=10)
    suspend_after_s: float = Field(default=0.0, ge=0)
    rent_after_s: float = Field(default=30.0, ge=0)
    rent_after_gpu_s: float = Field(default=0.0, ge=0)
    wait_target_s: float = Field(default=360.0, ge=0)
    wait_target_share: float = Field(default=0.95, ge=0, le=1)
    patient_from_s: float = Field(default=7_200.0, ge=0)
    fair_share: bool = False
    soon_share: float = Field(default=2.0, ge=0)
    soon_ratio: float = Field(default=1.5, ge=0)
    futile_share: float = Field(default=0.5, ge=0)
    guard_s: float = Field(default=60.0, ge=0)
    hold_s: float = Field(default=900.0, ge=0)
    min_run_s: float = Field(default=3_600.0, ge=0)
    pinned_hold_s: float = Field(default=0.0, ge=0)
    pinned_run_s: float = Field(default=900.0, ge=0)
    suspensions: int = Field(default=1, ge=0)
    suspension_earn_s: float = Field(default=86_400.0, gt=0)
    stops_per_tick: int = Field(default=64, ge=0)
    interruptions: int = Field(default=2, ge=0)
    interruption_earn_s: float = Field(default=43_200.0, gt=0)
    exchange_gpus: float = Field(default=2.0, ge=0)
    move_after_s: float = Field(default=300.0, ge=0)
    home_ratio: float = Field(default=1.0, ge=0)
    home_pack_ratio: float = Field(default=4.0, ge=0)
    home_wait_ratio: float = Field(default=0.5, ge=0)
    idle_after_s: float = Field(default=60.0, ge=0)
    node_size_margin: float = Field(default=0.1, ge=0, lt=1)
    pace_ratio: float = Field(default=1.1, gt=0)
    pace_from_share: float = Field(default=0.1, ge=0, le=1)
    gpu_speeds: Mapping[str, float] = Field(default_factory=dict)
    spot_mtbf_s: float = Field(default=21_600.0, gt=0)
    spot_least_interval_s: float = Field(default=300.0, gt=0)
    spot_most_gpus: float = Field(default=8.0, ge=0)
    spot_margin: float = Field(default=0.1, ge=0, lt=1)
    egress_usd_per_gb: float = Field(default=0.09, ge=0, allow_inf_nan=False)


PROFILES: dict[ProfileName, JobParams] = {
    # Spends the waiting time of the new job first, money last.
    "thrifty": JobParams(suspend_after_s=NEVER_EARLY, rent_after_s=NEVER_EARLY),
    # Spends the slack of running jobs at once, money soon after.
    "balanced": JobParams(),
    # Rents at once.
    "fast": JobParams(rent_after_s=0.0, wait_target_s=300.0),
}
"""What a team chooses between; each sets every threshold."""
