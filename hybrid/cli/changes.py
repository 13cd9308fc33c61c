"""What an edited file would change in a running cluster, and what it takes to apply it."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hybrid.cli import output, words
from hybrid.cli.exits import ExitCode, StopError
from hybrid.cli.table import Column, table, text

if TYPE_CHECKING:
    from pathlib import Path

    from hybrid.client.discover import Record
    from hybrid.settings import Settings

_FIXED = ("name", "head.", "ray.", "controller.ledger")
"""In force for as long as the head runs: its nodes were started with it."""
_NOT_COMPARED = ("state_dir",)  # it is the same folder, however it is written
_MONEY = ("budget.", "clouds", "providers.", "lease.")
_HOSTS = "onprem.hosts"
_THERE = "there"
_STOP_S = 60.0


@dataclass(frozen=True)
class Change:
    """One value that differs.

    Attributes:
        path: Where it is in the file.
        before: What is in force.
        after: What the file says.
        needs_down: A new controller alone does not apply it.
    """

    path: str
    before: str
    after: str
    needs_down: bool = False


def changes(
    running: Mapping[str, object],
    wanted: Mapping[str, object],
    defaults: Collection[str] = (),
) -> list[Change]:
    """Return what differs between two configurations, in the order of the second.

    Args:
        running: The one in force, as the controller shows it.
        wanted: The one of the file, as `hybrid config show` shows it.
        defaults: Paths that the file leaves to their defaults. One that `running` does not know
            came with a newer version, and is no change of the user's.
    """
    before, after = dict(_leaves(running, "")), dict(_leaves(wanted, ""))
    hosts = {path for path in before | after if path.startswith(_HOSTS) and path.endswith("]")}
    moved = {path for path in hosts if (path in before) is not (path in after)}
    found = []
    for path in dict.fromkeys([*after, *before]):
        host = path.partition("]")[0] + "]"
        if path.startswith(_NOT_COMPARED) or (host in moved and path != host):
            continue
        if path not in before and path in defaults:
            continue
        old, new = before.get(path, words.NONE), after.get(path, words.NONE)
        if old != new:
            is_of_host = path.startswith(_HOSTS) and path != host
            found.append(Change(path, old, new, path.startswith(_FIXED) or is_of_host))
    return found


def check_takeover(state_dir: Path, settings: Settings) -> None:
    """Refuse to take over nodes that were started with something else than `settings` say.

    Raises:
        StopError: What the head was started with differs, and some of its nodes still live.
    """
    from hybrid.cli import remains

    before = remains.last_values(state_dir)
    found = _changes_of(before, settings) if before else []
    fixed = [change for change in found if change.needs_down]
    if fixed and remains.live_nodes(state_dir):
        raise _fixed_error(fixed)


def values_of(settings: Settings) -> Mapping[str, object]:
    """Return settings as they are compared: as JSON, defaults filled in, secrets masked."""
    from hybrid.settings import dump

    values: Mapping[str, object] = json.loads(json.dumps(dump(settings)))
    return values


def _changes_of(running: Mapping[str, object], settings: Settings) -> list[Change]:
    from hybrid.settings import explain

    defaults = {item.path for item in explain(settings) if item.origin == "default"}
    return changes(running, values_of(settings), defaults)


def agreed(record: Record, settings: Settings, *, is_yes: bool) -> bool:
    """Return whether the controller is to be restarted with `settings`; `False`: no need.

    Raises:
        StopError: They cannot be applied to the running cluster, or the user said no.
        ConfigError: A new controller would refuse them.
    """
    from hybrid.cli.asking import confirm
    from hybrid.client import Client

    with Client(cluster=str(record.state_dir)) as client:
        found = _changes_of(client.config(), settings)
        if not found:
            return False
        rented = [item for item in client.status().instances if item.ended_at_s is None]
    output.show(
        text(f"{settings.source} differs from what cluster {record.cluster} runs with:"),
        table(("SETTING", "RUNS WITH", Column("FILE", is_long=True)), map(_row, found)),
    )
    if fixed := [change for change in found if change.needs_down]:
        raise _fixed_error(fixed)
    _check(settings, {item.provider for item in rented})
    if any(change.path.startswith(_MONEY) for change in found):
        _show_money(settings)
    confirm("Restart the controller with this? Nodes and running work stay.", is_yes=is_yes)
    return True


def stop_controller(record: Record) -> None:
    """End a controller and nothing else: the next one takes over its nodes.

    Raises:
        StopError: It does not end.
    """
    import os
    import signal
    from contextlib import suppress

    from hybrid.cli import controller
    from hybrid.cli.progress import Progress

    with suppress(ProcessLookupError):
        os.kill(record.pid, signal.SIGTERM)
    with Progress(f"Stopping the controller of {record.cluster}") as progress:
        is_gone = controller.wait_until_gone(
            record.pid, record.url, show=progress.show, timeout_s=_STOP_S
        )
    if not is_gone:
        raise StopError(
            f"the controller (process {record.pid}) does not end; it goes on as it was. See "
            f"{record.state_dir / controller.LOG_NAME}, then run `hybrid up` again",
            ExitCode.UNHEALTHY,
        )


def _fixed_error(fixed: Sequence[Change]) -> StopError:
    told = ", ".join(f"{change.path} ({change.before} -> {change.after})" for change in fixed)
    return StopError(
        f"cannot change while the cluster runs, since its nodes were started with it: {told}. "
        "Take that back, or run `hybrid down` and then `hybrid up`; nothing was changed",
        ExitCode.REFUSED,
    )


def _check(settings: Settings, rented_from: set[str]) -> None:
    """Refuse what a new controller would refuse, while the old one still runs."""
    from hybrid.adapters.clock import SystemClock
    from hybrid.app import offline
    from hybrid.settings.advice import unready_clouds

    offline.checked(settings, SystemClock())
    problems = list(unready_clouds(settings))
    if lost := sorted(rented_from - set(settings.provider_names)):
        problems.append(
            f"instances of {', '.join(lost)} are still rented, and without its entries nobody "
            "could return them; drain them first (`hybrid drain`)"
        )
    if problems:
        raise StopError(f"{settings.source}: {'; '.join(problems)}", ExitCode.USAGE)


def _show_money(settings: Settings) -> None:
    from hybrid.adapters.clock import SystemClock
    from hybrid.app import offline
    from hybrid.cli import up_plan

    if up_plan.may_rent(settings):
        views = [item.view for item in offline.checked(settings, SystemClock())]
        output.show(text(up_plan.worst_line(settings, views), "bold"))


def _row(change: Change) -> Sequence[str]:
    after = change.after
    if change.path.startswith(_HOSTS) and after == words.NONE:
        after = "taken out: its node is ended, with what runs on it"
    return change.path, change.before, after


def _leaves(value: object, path: str) -> Iterator[tuple[str, str]]:
    """Yield every single value with its path; hosts by their name, since their order is free."""
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            yield from _leaves(item, f"{path}.{key}" if path else str(key))
    elif path == _HOSTS and isinstance(value, Sequence):
        for host in value:
            place = f"{path}[{host['name']}]"
            yield place, _THERE
            yield from _leaves(host, place)
    elif isinstance(value, list) and value:
        for index, item in enumerate(value):
            yield from _leaves(item, f"{path}[{index}]")
    else:
        shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        yield path, words.safe(shown)
