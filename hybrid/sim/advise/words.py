"""Advice in sentences, with money in the reader's currency."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hybrid.sim.advise.advice import AdvicePoint, AdviceView
from hybrid.sim.report import figures
from hybrid.sim.report.lang import Words

NAMES = {
    "capital": "purchase and interest",
    "upkeep": "support and spare parts",
    "power": "electricity",
    "space": "space with cooling",
    "staff": "staff",
}
"""What the parts of the cost of a GPU are called."""

LIMITS = (
    "A year is taken to go on like the time that was looked at; the work does not grow.",
    "The estimate lets every job start at once, and moves work home at once and for nothing.",
    "A rented GPU is as fast as one at home, and one can be had whenever it is asked for, but for "
    "the refusals and start-up times of the simulation.",
    "Rented GPUs are paid by the second at one price: no reservation, no discount, no spot.",
    "Own GPUs never break; what they are worth after the last year is not counted.",
)
"""What the advice takes for granted besides the numbers."""


@dataclass(frozen=True)
class Money:
    """Says dollars in a currency.

    Attributes:
        currency: `USD` or `CNY`.
        per_usd: So many of it are one dollar.
    """

    currency: str = "USD"
    per_usd: float = 1.0

    def __call__(self, usd: float | None) -> str:
        """Return an amount with its sign."""
        if usd is None:
            return figures.UNKNOWN
        return self._signed(figures.usd(usd * self.per_usd))

    def on_axis(self, amount: float) -> str:
        """Return an amount of this currency for an axis, whose unit is said beside it."""
        text = figures.short_usd(amount)
        return text if self.currency == "USD" else text.replace("$", "¥")

    def _signed(self, text: str) -> str:
        return text if self.currency == "USD" else text.replace("$", "CN¥")


def sentences(view: AdviceView, say: Words, money: Money) -> Iterator[str]:
    """Yield the answer, a sentence at a time."""
    yield _answer(view, say, money)
    yield _instead(view, say, money)
    yield _break_even(view, say, money)
    yield from _checks(view, say, money)


def _answer(view: AdviceView, say: Words, money: Money) -> str:
    best = view.best
    facts = {
        "gpus": figures.count(best.own_gpus),
        "own": money(best.own_usd),
        "rented": money(best.rented_usd),
        "total": money(best.total_usd),
    }
    if best.own_gpus == 0:
        return say("Own none and rent all: {total} a year.", **facts)
    if best.rented_usd == 0:
        return say("Own {gpus} GPUs and rent none: {total} a year.", **facts)
    return say(
        "Own {gpus} GPUs and rent what goes beyond: {own} a year for your own and {rented} for "
        "rented ones, {total} in all.",
        **facts,
    )


def _instead(view: AdviceView, say: Words, money: Money) -> str:
    none, peak = view.points[0], _at(view, view.peak_gpus)
    return say(
        "Renting all would cost about {none} a year, owning enough for the peak of {peak_gpus} "
        "GPUs {peak}.",
        none=money(none.total_usd),
        peak_gpus=figures.count(view.peak_gpus),
        peak=money(peak.total_usd),
    )


def _break_even(view: AdviceView, say: Words, money: Money) -> str:
    facts = {
        "own": money(view.own_usd_per_gpu_hour),
        "rented": money(view.rented_usd_per_gpu_hour),
        "share": figures.percent(view.break_even_ratio, 0),
    }
    if view.break_even_ratio >= 1:
        return say(
            "A GPU of your own costs {own} an hour, used or not, and a rented one {rented}: at "
            "these prices owning never pays.",
            **facts,
        )
    return say(
        "A GPU of your own costs {own} an hour, used or not, and a rented one {rented}: owning "
        "pays for a GPU that is needed more than {share} of the time.",
        **facts,
    )


def _checks(view: AdviceView, say: Words, money: Money) -> Iterator[str]:
    if view.policy is None:
        yield say("This is an estimate; no run was simulated.")
        return
    if not view.best.is_kept:
        yield say("No size that was simulated kept its promises, so take this with care.")
    if view.without_checkpoints_usd is not None:
        extra = view.without_checkpoints_usd - view.best.total_usd
        if extra > 0.005 * view.best.total_usd:
            yield say(
                "If no job could be stopped and continued elsewhere, that would cost {extra} "
                "more a year.",
                extra=money(extra),
            )
        elif extra < -0.005 * view.best.total_usd:
            yield say(
                "Stopping and moving jobs does not pay here: without it that would cost {less} "
                "less a year.",
                less=money(-extra),
            )


def _at(view: AdviceView, gpus: int) -> AdvicePoint:
    return next(point for point in view.points if point.own_gpus == gpus)
