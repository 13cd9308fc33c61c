"""What a GPU of one's own costs, all in. It is never nothing: each part has a default."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pydantic import Field

from hybrid.core.models import Model

HOURS_PER_YEAR = 8_760.0


@dataclass(frozen=True)
class Assumption:
    """Where the default of one number of `OwnHardware` is from.

    Attributes:
        label: The number in words, with its unit.
        source: Who says so, or that it is our assumption.
    """

    label: str
    source: str


class OwnHardware(Model):
    """Prices of one's own GPUs, in US dollars. `ASSUMPTIONS` has the source of each default.

    Attributes:
        usd_per_gpu: Purchase of a server, divided by its GPUs.
        extras_ratio: Network, storage and racks, as a share of that.
        years: Written off over so long; worth nothing afterwards.
        interest_ratio: What the money would earn elsewhere, per year.
        upkeep_ratio: Support and spare parts per year, as a share of purchase and extras.
        watts_per_gpu: What the server draws, divided by its GPUs, busy or not.
        pue: Power of the whole site over that of its machines.
        usd_per_kwh: Electricity.
        usd_per_kw_month: Space with cooling, for each kW that the machines draw.
        usd_per_admin_year: Somebody who looks after it, with all that is paid on top of a wage.
        gpus_per_admin: So many GPUs keep one such person busy.
    """

    usd_per_gpu: float = Field(default=24_875.0, gt=0, allow_inf_nan=False)
    extras_ratio: float = Field(default=0.2, ge=0, allow_inf_nan=False)
    years: float = Field(default=4.0, gt=0, le=50, allow_inf_nan=False)
    interest_ratio: float = Field(default=0.05, ge=0, le=1, allow_inf_nan=False)
    upkeep_ratio: float = Field(default=0.05, ge=0, le=1, allow_inf_nan=False)
    watts_per_gpu: float = Field(default=812.5, gt=0, allow_inf_nan=False)
    pue: float = Field(default=1.58, ge=1, le=10, allow_inf_nan=False)
    usd_per_kwh: float = Field(default=0.127, gt=0, allow_inf_nan=False)
    usd_per_kw_month: float = Field(default=184.06, ge=0, allow_inf_nan=False)
    usd_per_admin_year: float = Field(default=130_000.0, ge=0, allow_inf_nan=False)
    gpus_per_admin: float = Field(default=250.0, gt=0, allow_inf_nan=False)

    @property
    def usd_per_gpu_year(self) -> float:
        """What one GPU costs a year, used or not."""
        return math.fsum(self.parts().values())

    @property
    def usd_per_gpu_hour(self) -> float:
        """The same for each hour of the year."""
        return self.usd_per_gpu_year / HOURS_PER_YEAR

    def parts(self) -> dict[str, float]:
        """Return the dollars per GPU and year, by what they are for."""
        bought = self.usd_per_gpu * (1 + self.extras_ratio)
        kw = self.watts_per_gpu / 1_000
        return {
            "capital": bought * _yearly_share(self.years, self.interest_ratio),
            "upkeep": bought * self.upkeep_ratio,
            "power": kw * self.pue * HOURS_PER_YEAR * self.usd_per_kwh,
            "space": kw * self.usd_per_kw_month * 12,
            "staff": self.usd_per_admin_year / self.gpus_per_admin,
        }


def _yearly_share(years: float, interest: float) -> float:
    """Return the equal payment per year that pays back 1 with interest."""
    if interest == 0:
        return 1 / years
    return interest / (1 - math.pow(1 + interest, -years))


_OURS = "our assumption"

ASSUMPTIONS: dict[str, Assumption] = {
    "usd_per_gpu": Assumption(
        "Purchase, $ per GPU",
        "NVIDIA DGX A100, 8 GPUs, list price $199,000 when it came out (May 2020)",
    ),
    "extras_ratio": Assumption("Network, storage and racks, share of the purchase", _OURS),
    "years": Assumption("Written off over, years", _OURS),
    "interest_ratio": Assumption("Interest per year, share", _OURS),
    "upkeep_ratio": Assumption("Support and spare parts per year, share of all bought", _OURS),
    "watts_per_gpu": Assumption(
        "Power, W per GPU",
        "NVIDIA DGX A100: at most 6.5 kW for 8 GPUs; charged all the time, so rather high",
    ),
    "pue": Assumption(
        "Power of the site over that of the machines (PUE)",
        "Uptime Institute, average of the industry in 2023",
    ),
    "usd_per_kwh": Assumption(
        "Electricity, $ per kWh",
        "our assumption, not looked up; differs much by place: give your own with --price-per-kwh",
    ),
    "usd_per_kw_month": Assumption(
        "Space with cooling, $ per kW and month",
        "CBRE, North America Data Center Trends H2 2024: average asked for 250 to 500 kW",
    ),
    "usd_per_admin_year": Assumption(
        "Staff, $ per person and year",
        "median wage of US system administrators, $90,520 (BLS, May 2022), plus what is paid on "
        "top, taken as 30 % of the whole",
    ),
    "gpus_per_admin": Assumption("GPUs that one person looks after", _OURS),
}
"""By the field's name, in the order in which they are shown."""
