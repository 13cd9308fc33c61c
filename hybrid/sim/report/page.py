"""The page of a report, from its headline down to the parameters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hybrid.core.models import Model
from hybrid.sim.advise.hardware import ASSUMPTIONS, OwnHardware
from hybrid.sim.report import figures, story
from hybrid.sim.report.drawing import Plot, needed, svg
from hybrid.sim.report.facts import Report, is_kept, is_ours
from hybrid.sim.report.lang import Words
from hybrid.sim.report.plots import plots_of
from hybrid.sim.report.theme import document, esc, figure, key, table, tiles
from hybrid.sim.results import SimResult

_LIMITS = (
    "Simulated, not measured: the jobs, when they came and how long they ran are from the trace; "
    "the policy sees only what it would see in life, neither run times nor anything to come.",
    "Rented GPUs are as fast as those at home, and run times do not change with the place.",
    "Start-up of rented machines, refusals and what an interruption costs are modelled; see the "
    "parameters.",
    "The cluster is empty at the start. Traffic between the sites, disks, taxes and discounts are "
    "not in the price.",
    "The other policies run as their names in the parameters say. Unless the title says that they "
    "were tuned to this trace, better settings of them may exist.",
    "Money is price times billed time: an estimate, not a bill.",
)


def page(report: Report) -> str:
    """Return the whole page.

    Raises:
        ConfigError: Matplotlib is missing.
    """
    needed()
    return document(report.title, report.words.lang, _body(report))


def plot_figure(plot: Plot) -> str:
    """Return a plot with everything around it."""
    return figure(plot.title, plot.unit, key(plot.entries), svg(plot), plot.note)


def own_table(own: OwnHardware, say: Words) -> str:
    """Return what own hardware is taken to cost, with the source of each default."""
    default = OwnHardware()
    rows = []
    for name, about in ASSUMPTIONS.items():
        value = getattr(own, name)
        is_default = value == getattr(default, name)
        source = say(about.source) if is_default else say("given")
        rows.append((say(about.label), figures.number(value), source))
    return table((say("Number"), say("Value"), say("Source")), rows, numbers_from=9)


def _body(report: Report) -> Iterator[str]:
    say = report.words
    run = report.run
    yield f"<h1>{esc(report.title)}</h1>"
    yield (
        '<p class="sub">'
        + esc(
            say(
                "Trace {trace}: {jobs} jobs. A simulation, not a bill.",
                trace=run.trace,
                jobs=figures.count(run.job_count),
            )
        )
        + "</p>"
    )
    yield f'<p class="lead">{esc(_joined(story.sentences(report), say))}</p>'
    yield tiles(story.tiles(report))
    yield f"<h2>{esc(say('Money and promises'))}</h2>"
    yield _money(report)
    yield f'<p class="note">{esc(_home_note(report))}</p>'
    yield from _bounds(report)
    yield f"<h2>{esc(say('How it went'))}</h2>"
    yield from map(plot_figure, plots_of(report))
    yield f"<h2>{esc(say('What it took'))}</h2>"
    yield _effort(report)
    yield f"<h2>{esc(say('Assumptions'))}</h2>"
    yield "<ul>" + "".join(f"<li>{esc(say(text))}</li>" for text in _LIMITS) + "</ul>"
    yield f"<h3>{esc(say('What the GPUs at home are taken to cost'))}</h3>"
    yield own_table(report.own, say)
    yield f"<h3>{esc(say('Parameters'))}</h3>"
    yield _parameters(report)
    if report.command:
        yield f"<h3>{esc(say('Made by'))}</h3><pre>{esc(report.command)}</pre>"


def _joined(sentences: Iterator[str], say: Words) -> str:
    return ("" if say.lang == "zh" else " ").join(sentences)


def _money(report: Report) -> str:
    say = report.words
    lower = report.bound_usd("LB-M")
    base = report.runs[report.base] if report.base is not None else None
    head = [
        say("Policy"),
        say("Rented"),
        say("With the GPUs at home"),
        say("Saved on {base}", base=report.base) if base else "",
        say("Captured") if lower is not None and base else "",
        say("Promises kept"),
        say("Jobs started in time"),
        say("Work ended in time"),
        say("Wait, minutes: 50 %"),
        "95 %",
        "99 %",
    ]
    rows = []
    for name, run in report.runs.items():
        saved = story.saved_ratio(run, base) if base else None
        rows.append(
            [
                name,
                figures.usd(run.usd),
                figures.usd(None if report.home_usd is None else report.home_usd + run.usd),
                _signed(saved) if base else "",
                _captured(run, base, lower),
                say("yes") if is_kept(run) else say("NO"),
                figures.percent(run.promises.start_by_jobs, 2),
                figures.percent(run.promises.delay_by_gpu_time, 2),
                *(figures.minutes(s) for s in (run.wait_s.p50, run.wait_s.p95, run.wait_s.p99)),
            ]
        )
    shown = [place for place, title in enumerate(head) if title]
    ours = [name for name, run in report.runs.items() if is_ours(run)]
    return table(
        [head[place] for place in shown],
        [[row[place] for place in shown] for row in rows],
        marked=ours or [report.ours],
    )


def _captured(run: SimResult, base: SimResult | None, lower: float | None) -> str:
    if base is None or lower is None or base.usd <= lower:
        return figures.UNKNOWN
    return figures.percent((base.usd - run.usd) / (base.usd - lower))


def _signed(share: float | None) -> str:
    if share is None:
        return figures.UNKNOWN
    return f"-{figures.percent(-share)}" if share < 0 else figures.percent(share)


def _home_note(report: Report) -> str:
    say, run, own = report.words, report.run, report.own
    return say(
        "The {gpus} GPUs at home cost the same under every policy: about {rate} per GPU and hour "
        "whether used or not, {total} in this time. That is an assumption, listed below.",
        gpus=figures.count(run.gpus),
        rate=figures.usd(own.usd_per_gpu_hour),
        total=figures.usd(report.home_usd),
    )


def _bounds(report: Report) -> Iterator[str]:
    if report.bounds is None:
        return
    say = report.words
    rows = [
        (
            bound.name,
            figures.usd(bound.usd),
            say("at least") if bound.is_lower else say("at most"),
            say(_HOLDS_FOR.get(bound.name, bound.holds_for)),
        )
        for bound in report.bounds.bounds
    ]
    yield f"<h3>{esc(say('What somebody who knows the future would pay'))}</h3>"
    yield table((say("Bound"), say("Rented"), "", say("Holds for")), rows, numbers_from=9)
    yield (
        '<p class="note">'
        + esc(
            say(
                "A policy that a bound does not hold for may pay less. “Captured” is the share of "
                "what could be saved, from the best other policy (0 %) down to LB-M (100 %); since "
                "ours may also be late by a share of the run time, it can go above 100 %."
            )
        )
        + "</p>"
    )


_HOLDS_FOR = {
    "LB-N": "policies that never interrupt a job",
    "LB-M": "policies that may move jobs, and end none later than its longest wait",
    "LB-M(phi)": "the same, and a share of the run time later: also true for ours",
    "UB": "a plan that somebody who knows the future could carry out; jobs are not moved",
}


def _effort(report: Report) -> str:
    say = report.words
    head = (
        say("Policy"),
        say("Rented GPU-hours"),
        say("of them idle"),
        say("of them locked in"),
        say("Nodes asked for"),
        say("Rented again within minutes"),
        say("Jobs interrupted"),
        say("Suspended"),
        say("Moved at home"),
        say("Brought home"),
        say("Exchanged"),
        say("Most of one job"),
    )
    rows = [
        (
            name,
            figures.count(run.rented_gpu_h),
            figures.percent(_of(run.idle_gpu_h, run)),
            figures.percent(_of(run.lock_in_gpu_h, run)),
            figures.count(run.launches),
            figures.count(run.flaps),
            figures.percent(run.interruptions.job_share),
            figures.count(run.interruptions.suspended),
            figures.count(run.interruptions.packed),
            figures.count(run.interruptions.brought_home),
            figures.count(run.interruptions.exchanged),
            figures.count(run.interruptions.most_of_one_job),
        )
        for name, run in report.runs.items()
    ]
    ours = [name for name, run in report.runs.items() if is_ours(run)]
    return table(head, rows, marked=ours or [report.ours])


def _of(hours: float, run: SimResult) -> float | None:
    return hours / run.rented_gpu_h if run.rented_gpu_h else None


def _parameters(report: Report) -> str:
    say, run = report.words, report.run
    rows: list[tuple[str, str]] = [("trace", run.trace), ("gpus", str(run.gpus))]
    rows += [
        (say("policy {name}", name=name), each.policy)
        for name, each in report.runs.items()
        if each.policy != name
    ]
    if report.params is None:
        rows.append(("seed", str(run.seed)))
        rows.append((say("all others"), say("not known to this page")))
    else:
        rows += [
            (name, value) for name, value in flat(report.params) if name not in ("gpus", "trace")
        ]
    return table((say("Parameter"), say("Value")), rows, numbers_from=9)


def flat(model: Model, before: str = "") -> Iterator[tuple[str, str]]:
    """Yield the values of a model, those of models inside it too, by their names."""
    for name in type(model).model_fields:
        value: Any = getattr(model, name)
        if isinstance(value, Model):
            yield from flat(value, f"{before}{name}.")
        elif isinstance(value, dict):
            yield f"{before}{name}", figures.number([f"{k}: {v}" for k, v in value.items()])
        else:
            yield f"{before}{name}", figures.number(value)
