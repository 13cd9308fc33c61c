"""The headline of a report: what it cost, what it would have cost otherwise, what was kept."""

from __future__ import annotations

from collections.abc import Iterator

from hybrid.sim.report import figures
from hybrid.sim.report.facts import Report, is_kept
from hybrid.sim.results import SimResult


def sentences(report: Report) -> Iterator[str]:
    """Yield the headline, a sentence at a time."""
    yield _cost(report)
    yield _comparison(report)
    yield _promises(report)
    yield _stops(report)


def tiles(report: Report) -> Iterator[tuple[str, str]]:
    """Yield the figures that matter most, each with what it says."""
    say, run = report.words, report.run
    yield figures.usd(run.usd), say("for rented GPUs ({policy})", policy=report.ours)
    if report.base is not None:
        base = report.runs[report.base]
        yield (
            figures.usd(base.usd),
            say("for rented GPUs with the best other policy ({policy})", policy=report.base),
        )
    yield figures.percent(run.promises.start_by_jobs, 2), say("of the jobs started in time")
    yield figures.usd(report.home_usd), say("for the GPUs at home in the same time, by assumption")
    if run.gpus:
        yield figures.percent(run.home_busy_share), say("of the time at home had work")


def saved_ratio(run: SimResult, base: SimResult) -> float | None:
    """Return which share of a bill is saved; below 0 where more is paid."""
    return 1 - run.usd / base.usd if base.usd > 0 else None


def _cost(report: Report) -> str:
    say, run = report.words, report.run
    hours = report.hours
    facts = {"gpus": figures.count(run.gpus), "policy": report.ours, "usd": figures.usd(run.usd)}
    if run.usd == 0:
        return say(
            "With {gpus} GPUs at home, the policy “{policy}” rented nothing: home was enough.",
            **facts,
        )
    if hours is None:
        return say(
            "With {gpus} GPUs at home, the policy “{policy}” spent {usd} on rented GPUs.", **facts
        )
    return say(
        "With {gpus} GPUs at home, the policy “{policy}” spent {usd} on rented GPUs "
        "in {days} days.",
        **facts,
        days=figures.count(hours / 24) if hours >= 240 else f"{hours / 24:.1f}",
    )


def _comparison(report: Report) -> str:
    say = report.words
    if report.base is None:
        return say("Nothing else was run that it could be compared with.")
    run, base = report.run, report.runs[report.base]
    facts = {"base": report.base, "usd": figures.usd(base.usd)}
    saved = saved_ratio(run, base)
    if saved is None:
        # A base that costs nothing can only be matched, or missed.
        return say("The best other policy, “{base}”, rented nothing.", **facts)
    if abs(saved) < 0.005:
        text = say("The best other policy, “{base}”, would have cost about the same.", **facts)
    elif saved > 0:
        text = say(
            "The best other policy, “{base}”, would have cost {usd}: {share} of that is saved.",
            **facts,
            share=figures.percent(saved, 0),
        )
    else:
        text = say(
            "The best other policy, “{base}”, would have cost {usd}, which is LESS.", **facts
        )
    if not is_kept(base):
        text += say(" It would not have kept its promises, though, and neither would any other.")
    return text


def _promises(report: Report) -> str:
    say, run = report.words, report.run
    facts = {
        "start": figures.percent(run.promises.start_by_jobs, 2),
        "work": figures.percent(run.promises.delay_by_gpu_time, 2),
    }
    if is_kept(run):
        return say(
            "Its promises were kept: {start} of the jobs started within their longest wait, and "
            "{work} of the work ended in time.",
            **facts,
        )
    return say(
        "Its promises were NOT kept: only {start} of the jobs started within their longest wait, "
        "and {work} of the work ended in time.",
        **facts,
    )


def _stops(report: Report) -> str:
    say, stops = report.words, report.run.interruptions
    if stops.job_share == 0:
        return say("No job was interrupted.")
    return say(
        "The price in comfort: {share} of the jobs were interrupted at least once, saved and "
        "continued; the most that one job had was {most}.",
        share=figures.percent(stops.job_share),
        most=figures.count(stops.most_of_one_job),
    )
