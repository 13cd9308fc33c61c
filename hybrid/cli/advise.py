"""`hybrid advise`: what to own and what to rent."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hybrid.cli import output
from hybrid.cli.exits import ExitCode, StopError
from hybrid.cli.options import Json
from hybrid.cli.sim import reporting
from hybrid.cli.sim.choosing import A100_USD_PER_HOUR, Days, Users
from hybrid.cli.sim.meter import Meter
from hybrid.cli.sim.naming import Checkpointable, LateShare, MaxWait, Seed, site_of
from hybrid.cli.sim.reporting import Html, Language, Png

if TYPE_CHECKING:
    from hybrid.core.policy.jobs.params import ProfileName
    from hybrid.sim.advise.advice import AdviceView, Case
    from hybrid.sim.advise.hardware import OwnHardware
    from hybrid.sim.advise.words import Money
    from hybrid.sim.params import SimParams
    from hybrid.sim.traces.trace import Trace

_MONEY = ("usd_per_gpu", "usd_per_kwh", "usd_per_kw_month", "usd_per_admin_year")


def _is_finite(value: float | None) -> float | None:
    if value is not None and not (math.isfinite(value) and value >= 0):
        raise typer.BadParameter(f"{value:g} is not 0 or more")
    return value


def _is_above_zero(value: float | None) -> float | None:
    if value is not None and not (math.isfinite(value) and value > 0):
        raise typer.BadParameter(f"{value:g} is not above 0")
    return value


def _number(name: str, what: str, *, is_above: bool = False) -> Any:
    return typer.Option(
        name,
        metavar="N",
        help=what,
        callback=_is_above_zero if is_above else _is_finite,
        show_default=False,
    )


def _count(name: str, what: str, least: int, most: int | None = None) -> Any:
    return typer.Option(
        name,
        metavar="N",
        min=least,
        max=most,
        help=what,
        show_default=False,
    )


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("advise")(advise)


def advise(
    trace: Annotated[
        str,
        typer.Option(
            "--trace",
            metavar="TRACE",
            show_default=False,
            help="As for `hybrid sim run`: a file, sample, philly. Or describe the demand.",
        ),
    ] = "",
    steady_gpus: Annotated[int | None, _count("--steady-gpus", "Needed at every hour.", 0)] = None,
    peak_gpus: Annotated[
        int | None, _count("--peak-gpus", "Needed in all during the peak.", 1)
    ] = None,
    peak_hours_per_day: Annotated[
        float | None,
        _number("--peak-hours-per-day", "How long the peak is. Default: 4.", is_above=True),
    ] = None,
    peak_days_per_week: Annotated[
        int | None, _count("--peak-days-per-week", "From Monday on. Default: 7.", 1, 7)
    ] = None,
    job_gpus: Annotated[int | None, _count("--job-gpus", "Of one job. Default: 4.", 1)] = None,
    job_hours: Annotated[
        float | None, _number("--job-hours", "Of one job, on average. Default: 6.", is_above=True)
    ] = None,
    days: Days = "",
    users: Users = "",
    checkpointable: Checkpointable = None,
    price_per_gpu: Annotated[
        float | None,
        _number("--price-per-gpu", "A server, by its GPUs. Default: $24,875.", is_above=True),
    ] = None,
    extras: Annotated[
        float | None, _number("--extras", "Network, storage, racks: share of it. Default: 0.2.")
    ] = None,
    years: Annotated[
        float | None, _number("--years", "Written off over. Default: 4.", is_above=True)
    ] = None,
    interest: Annotated[
        float | None, _number("--interest", "Per year, a share. Default: 0.05.")
    ] = None,
    upkeep: Annotated[
        float | None,
        _number("--upkeep", "Support and spares per year, a share of all bought. Default: 0.05."),
    ] = None,
    watts: Annotated[
        float | None,
        _number("--watts-per-gpu", "The server's draw by its GPUs. Default: 812.5.", is_above=True),
    ] = None,
    pue: Annotated[
        float | None,
        _number("--pue", "Power of the site over its machines'. Default: 1.58.", is_above=True),
    ] = None,
    kwh: Annotated[
        float | None, _number("--price-per-kwh", "Electricity. Default: $0.127.", is_above=True)
    ] = None,
    space: Annotated[
        float | None,
        _number("--space-per-kw-month", "Space with cooling. Default: $184.06."),
    ] = None,
    staff: Annotated[
        float | None, _number("--staff-per-year", "One person. Default: $130,000.")
    ] = None,
    gpus_per_admin: Annotated[
        float | None,
        _number("--gpus-per-person", "GPUs one person looks after. Default: 250.", is_above=True),
    ] = None,
    cloud_price: Annotated[
        float | None,
        _number(
            "--cloud-price",
            f"A rented GPU for an hour. Default: ${A100_USD_PER_HOUR:.2f}, A100 on Google Cloud.",
            is_above=True,
        ),
    ] = None,
    cny_per_usd: Annotated[
        float | None,
        _number("--cny-per-usd", "All prices above and the answer are in CNY.", is_above=True),
    ] = None,
    policy: Annotated[
        str, typer.Option("--policy", metavar="NAME", help="thrifty, balanced or fast.")
    ] = "balanced",
    max_wait: MaxWait = "30m",
    late_share: LateShare = 0.02,
    seed: Seed = 0,
    quick: Annotated[
        bool, typer.Option("--quick", help="Only estimate; simulate nothing.")
    ] = False,
    html: Html = None,
    png: Png = None,
    lang: Language = "en",
    json: Json = False,
) -> None:
    """Say how many GPUs to own and how many to rent, from a trace or a few numbers.

    Where the defaults come from is in docs/simulator.md and in each page that --html writes.
    """
    from hybrid.sim.advise.advice import Case
    from hybrid.sim.advise.words import Money

    reporting.check(html, png)
    money = Money("CNY", cny_per_usd) if cny_per_usd else Money()
    own = _own(
        {
            "usd_per_gpu": price_per_gpu,
            "extras_ratio": extras,
            "years": years,
            "interest_ratio": interest,
            "upkeep_ratio": upkeep,
            "watts_per_gpu": watts,
            "pue": pue,
            "usd_per_kwh": kwh,
            "usd_per_kw_month": space,
            "usd_per_admin_year": staff,
            "gpus_per_admin": gpus_per_admin,
        },
        money,
    )
    price = A100_USD_PER_HOUR if cloud_price is None else cloud_price / money.per_usd
    site = site_of(0, {}, max_wait=max_wait, late_share=late_share, price=price, seed=seed)
    about = {
        "steady_gpus": steady_gpus,
        "peak_gpus": peak_gpus,
        "peak_hours_per_day": peak_hours_per_day,
        "peak_days_per_week": peak_days_per_week,
        "job_gpus": job_gpus,
        "job_hours": job_hours,
    }
    jobs, period_s = _demand(about, trace, days, users, checkpointable, site)
    case = Case(own=own, site=site, policy=None if quick else _profile(policy))
    view = _advice(jobs, case, period_s)
    if html is not None or png is not None:
        _write(view, jobs, money, html, png, lang)
    if json:
        output.write(view.model_dump_json().encode())
    else:
        from hybrid.cli.advise_page import advice_page

        output.show(*advice_page(view, money))


def _own(given: dict[str, float | None], money: Money) -> OwnHardware:
    from pydantic import ValidationError

    from hybrid.sim.advise.hardware import OwnHardware

    values = {name: value for name, value in given.items() if value is not None}
    values |= {name: values[name] / money.per_usd for name in _MONEY if name in values}
    try:
        return OwnHardware(**values)
    except ValidationError as error:
        raise _refused(error) from None


def _demand(
    about: dict[str, float | None],
    trace: str,
    days: str,
    users: str,
    share: float | None,
    site: SimParams,
) -> tuple[Trace, float | None]:
    """Return the jobs that are meant, and the time they stand for where that is known."""
    from pydantic import ValidationError

    from hybrid.cli.sim.simulating import chosen_jobs
    from hybrid.sim.advise.described import Description, described

    given = {name: value for name, value in about.items() if value is not None}
    if trace:
        if given:
            name = f"--{next(iter(given)).replace('_', '-')}"
            raise StopError(f"--trace and {name} exclude one another; drop one", ExitCode.USAGE)
        return chosen_jobs(trace, days, users, share, site), None
    if days or users:
        raise StopError("--days and --users choose from a trace; add --trace", ExitCode.USAGE)
    if "steady_gpus" not in given or "peak_gpus" not in given:
        raise StopError(
            "say what is needed: --trace TRACE, or --steady-gpus N and --peak-gpus N",
            ExitCode.USAGE,
        )
    try:
        description = Description(
            **given, checkpointable=1.0 if share is None else share, seed=site.seed
        )
        return described(description), description.period_s
    except ValidationError as error:
        raise _refused(error) from None
    except ValueError as error:
        raise StopError(str(error), ExitCode.USAGE) from None


def _refused(error: Any) -> StopError:
    first = error.errors()[0]
    where = ".".join(map(str, first["loc"]))
    return StopError(f"{where} is {first['input']}: {first['msg'].lower()}", ExitCode.USAGE)


def _profile(name: str) -> ProfileName:
    from hybrid.core.policy.jobs.params import PROFILES

    for profile in PROFILES:
        if profile == name:
            return profile
    raise StopError(
        f"there is no profile {name!r}; take one of {', '.join(PROFILES)}", ExitCode.USAGE
    )


def _advice(jobs: Trace, case: Case, period_s: float | None) -> AdviceView:
    from hybrid.sim.advise.advice import advise as ask

    with Meter("Simulating sizes") as meter:
        try:
            return ask(jobs, case, period_s=period_s, on_run=meter.show)
        except ValueError as error:
            raise StopError(str(error), ExitCode.USAGE) from None


def _write(
    view: AdviceView, jobs: Trace, money: Money, html: Path | None, png: Path | None, lang: str
) -> None:
    from hybrid.sim.advise.demand import DemandCurve
    from hybrid.sim.advise.page import write_advice

    write_advice(
        view,
        DemandCurve.of(jobs, view.days * 86_400),
        html=html,
        picture=png,
        money=money,
        command=reporting.command(),
        lang="zh" if lang == "zh" else "en",
    )
    for path in (html, png):
        if path is not None:
            output.say(f"wrote {path}")
