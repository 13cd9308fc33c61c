"""Which policies are meant, on which site: options of the commands that simulate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from hybrid.cli.exits import ExitCode, StopError
from hybrid.cli.options import duration_option, seconds
from hybrid.cli.sim.choosing import is_not_below_zero

if TYPE_CHECKING:
    from hybrid.sim.named import Named
    from hybrid.sim.params import SimParams
    from hybrid.sim.traces.trace import Trace

MaxWait = Annotated[
    str, duration_option("--max-wait", help="How long a job may wait.", default="30m")
]
LateShare = Annotated[
    float,
    typer.Option(
        "--late-share",
        metavar="SHARE",
        help="How much later a job may end beside that, in shares of its run time.",
        callback=is_not_below_zero,
    ),
]


def _is_share(value: float | None) -> float | None:
    # Written so that NaN fails it.
    if value is not None and not 0 <= value <= 1:
        raise typer.BadParameter(f"{value:g} is not from 0 to 1")
    return value


Checkpointable = Annotated[
    float | None,
    typer.Option(
        "--checkpointable",
        metavar="SHARE",
        help="Share of the jobs that can be stopped, drawn at random. Default: as the trace says.",
        callback=_is_share,
        show_default=False,
    ),
]
Seed = Annotated[
    int, typer.Option("--seed", metavar="N", min=0, help="Of boots, failures and that share.")
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Change a parameter, such as rent_after=30s or sim.boot.median=4m; repeatable.",
        show_default=False,
    ),
]


def settings_of(pairs: list[str] | None) -> dict[str, str]:
    """Return what `--set` says, by name.

    Raises:
        StopError: It is not `NAME=VALUE`, or a name is there twice.
    """
    found: dict[str, str] = {}
    for pair in pairs or ():
        name, sign, value = (word.strip() for word in pair.partition("="))
        if not (name and sign and value):
            raise StopError(f"--set {pair!r}: write NAME=VALUE, such as rent_after=30s", _USAGE)
        if name in found:
            raise StopError(f"--set {name} is there twice; drop one of them", _USAGE)
        found[name] = value
    return found


def policies_of(names: list[str], settings: dict[str, str]) -> list[Named]:
    """Return the policies that are meant, each with those settings that it has.

    Raises:
        ConfigError: There is no such policy, or no policy has such a setting.
    """
    from hybrid.sim.named import SITE, named, takes

    if len(set(names)) < len(names):
        raise StopError("a policy is named twice; name each once", _USAGE)
    found = []
    for name in names:
        # With several policies a setting is for those that have it.
        mine = {
            key: value
            for key, value in settings.items()
            if key.startswith(SITE) or len(names) == 1 or takes(name, key)
        }
        found.append(named(name, mine))
    for key in settings:
        if not key.startswith(SITE) and not any(takes(name, key) for name in names):
            raise StopError(f"--set {key}: none of {', '.join(names)} has it", _USAGE)
    return found


def site_of(
    gpus: int,
    settings: dict[str, str],
    *,
    max_wait: str,
    late_share: float,
    price: float,
    seed: int,
) -> SimParams:
    """Return the simulated site and cloud.

    Raises:
        ConfigError: A setting does not fit.
    """
    from hybrid.sim.named import changed
    from hybrid.sim.params import SimParams

    if price <= 0:
        raise StopError("--price must be above 0: rented GPUs that cost nothing", _USAGE)
    params = SimParams(
        gpus=gpus,
        max_wait_s=seconds(max_wait) or 0.0,
        late_share=late_share,
        usd_per_gpu_hour=price,
        seed=seed,
    )
    return changed(params, settings)


def shared_out(trace: Trace, share: float | None, seed: int) -> Trace:
    """Return the trace with that share of its jobs checkpointable."""
    return trace if share is None else trace.with_share(share, seed)


_USAGE = ExitCode.USAGE
