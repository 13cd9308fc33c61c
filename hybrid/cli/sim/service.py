"""`hybrid sim service`: an inference service, the policy against autoscalers."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from hybrid.cli import output, words
from hybrid.cli.options import Json
from hybrid.cli.progress import Progress
from hybrid.cli.table import Column, table, text

if TYPE_CHECKING:
    from hybrid.cli.table import Part
    from hybrid.sim.services.compare import Baseline, ServiceComparison
    from hybrid.sim.services.outcome import ServiceOutcome
    from hybrid.sim.traces.rates import RateTrace

_DAYS = re.compile(r"([0-9]+(?:\.[0-9]+)?)-([0-9]+(?:\.[0-9]+)?)")


class Shape(StrEnum):
    """How the rate goes from one window of the trace to the next."""

    LINE = "line"
    STEPS = "steps"


def register(group: typer.Typer) -> None:
    """Add the command."""
    group.command("service")(service)


def _is_days(value: str) -> str:
    parts = _DAYS.fullmatch(value)
    if value and (parts is None or float(parts[1]) >= float(parts[2])):
        raise typer.BadParameter(f"{value!r} is not FROM-TO, such as 0-7")
    return value


def _is_above_zero(value: float) -> float:
    if not 0 < value < float("inf"):
        raise typer.BadParameter(f"{value:g} is not above 0")
    return value


def service(
    trace: Annotated[
        str,
        typer.Option(
            "--trace",
            metavar="TRACE",
            help="A file of rates or of requests, or servegen or azure-llm from HYBRID_TRACES.",
        ),
    ] = "servegen",
    local: Annotated[
        int, typer.Option("--local", metavar="N", min=0, help="The service's own replicas at home.")
    ] = 48,
    borrow: Annotated[
        int,
        typer.Option(
            "--borrow", metavar="K", min=0, help="GPUs of local batch work that it may borrow."
        ),
    ] = 64,
    replica_rps: Annotated[
        float,
        typer.Option(
            "--replica-rps",
            metavar="RATE",
            help="Requests per second that one replica serves.",
            callback=_is_above_zero,
        ),
    ] = 4.0,
    scale: Annotated[
        float,
        typer.Option(
            "--scale",
            metavar="TIMES",
            help="Times the rates of the trace.",
            callback=_is_above_zero,
        ),
    ] = 1.0,
    shape: Annotated[
        Shape, typer.Option("--shape", help="Between windows: a line, or steps (harder).")
    ] = Shape.LINE,
    days: Annotated[
        str,
        typer.Option(
            "--days",
            metavar="FROM-TO",
            help="Only these days, such as 0-7.",
            callback=_is_days,
            show_default=False,
        ),
    ] = "",
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Of every random draw.")] = 0,
    with_baselines: Annotated[
        bool,
        typer.Option(
            "--baselines/--no-baselines",
            help="Try every point of the autoscalers' grids; takes minutes.",
        ),
    ] = True,
    json: Json = False,
) -> None:
    """Simulate an inference service: the policy, and tuned autoscalers."""
    rates = _rates(trace, days)
    from hybrid.core.policy.services import ServiceParams
    from hybrid.sim.services.compare import compare
    from hybrid.sim.services.params import ServiceSimParams

    params = ServiceSimParams(
        home=local,
        borrowable=borrow,
        replica_rps=replica_rps,
        scale=scale,
        shape=shape.value,
        seed=seed,
    )
    with Progress(f"Simulating {words.safe(rates.name)}") as progress:
        view = compare(
            rates,
            params,
            ServiceParams(),
            with_baselines=with_baselines,
            on_phase=progress.show,
        )
    if json:
        output.write(view.model_dump_json().encode())
        return
    output.show(*page(view))


def _rates(trace: str, days: str) -> RateTrace:
    from hybrid import settings
    from hybrid.sim.services.opening import days_of, open_rates

    with Progress(f"Reading {words.safe(trace)}"):
        rates = open_rates(trace, settings.traces(settings.environment()))
    if parts := _DAYS.fullmatch(days):
        return days_of(rates, float(parts[1]), float(parts[2]))
    return rates


def page(view: ServiceComparison) -> list[Part]:
    """Return the page of one comparison."""
    names = (
        "COST",
        "RATIO",
        "IN TIME",
        "AT ONCE",
        "P99 WAIT",
        "BORROWED",
        "RENTED",
        "LAUNCHES",
        "LOANS",
    )
    columns: list[Column | str] = ["WHO"]
    columns += [Column(name, is_number=True) for name in names]
    rows = [_row("policy", view.policy, None)]
    rows += [_baseline(each) for each in view.baselines]
    params = view.params
    return [
        text(
            f"{view.trace}: {words.duration(view.days * 86_400)}, {view.mean_rps:.1f} requests/s, "
            f"{params.home} replicas at home of {params.replica_rps:g} requests/s, "
            f"{params.borrowable} GPUs to borrow, seed {params.seed}"
        ),
        text(""),
        table(columns, rows),
        text(""),
        text(
            f"RATIO: the policy over this one. IN TIME: started within {params.wait_slo_s:g} s. "
            f"GPU-hours at {words.rate(params.usd_per_gpu_hour)}, borrowed ones too; a loan costs "
            f"{params.loan_overhead_s:g} s on top."
        ),
        text(f"Who knows the future and boots in no time pays {words.money(view.bound_usd)}."),
    ]


def _baseline(each: Baseline) -> tuple[str, ...]:
    name = f"{each.name}, best with {each.goal_ratio:.1%}"
    if each.outcome is None:
        return (name, words.NONE, words.NONE, f"<= {each.most_slo_ratio:.3%}", *[words.NONE] * 6)
    return _row(name, each.outcome, each.policy_usd_ratio)


def _row(name: str, each: ServiceOutcome, ratio: float | None) -> tuple[str, ...]:
    return (
        name,
        words.money(each.usd),
        words.NONE if ratio is None else f"{ratio:.3f}",
        f"{each.slo_ratio:.3%}",
        f"{each.prompt_ratio:.1%}",
        words.duration(each.wait_p99_s),
        f"{each.borrowed_gpu_h:,.0f} h",
        f"{each.rented_gpu_h:,.0f} h",
        f"{each.launches:,}",
        f"{each.loans:,}",
    )
