"""The start-up script of a node. It installs nothing: what it starts is in the image.

Google's guest agent runs it as root at each boot (metadata key `startup-script`). Every value
goes through `shlex.quote`, and no shell reads what is inside.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Mapping

from hybrid.core.bootstrap import (
    Preflight,
    ray_drain_command,
    ray_node_command,
    ray_node_environment,
    ray_node_expected,
    rented_node,
)
from hybrid.core.models import LaunchSpec, Market, Offer

EXPIRY_KEY = "hybrid-expires-at"
"""Metadata key of the lease: seconds since the epoch. The node reads it, `extend` moves it."""

LIMIT_BYTES = 16_384
"""Google takes 256 KiB; the smallest of all clouds takes this, and one limit is simpler."""

FOLDER = "/run/hybrid"
_TEMP_DIR = "/tmp/hybrid-node/ray"  # noqa: S108  # the node program checks who owns it
_GRACE_S = 600

NOTICE_S = 30
"""From the moment that Google says `preempted` to the end of the machine."""

SPOT_LOOK_S = 2.0

GOOGLE = "https://compute.googleapis.com"

# /run is in memory: the join token never reaches a disk. Whatever ends the node program, for
# good or bad, ends the machine. The loop is the last resort if that program hangs.
_SCRIPT = """\
#!/bin/bash
set -u
umask 077
folder={folder}
mkdir -p "$folder"
write() {{ printf '%s' "$2" > "$folder/.$1" && mv "$folder/.$1" "$folder/$1"; }}
leave() {{
{delete}  poweroff
}}
{who}write lease {lease}
follow_lease() {{
  local url=http://metadata.google.internal/computeMetadata/v1/instance/attributes/{key}
  local lease last= deadline=0 uptime  # without any lease it is over
  while sleep {look_s}; do
    lease=$(curl -sf -m 10 -H 'Metadata-Flavor: Google' "$url") || lease=
    if [[ $lease =~ ^[0-9]+(\\.[0-9]+)?$ ]]; then write lease "$lease"; fi
    lease=$(<"$folder/lease")
    # Deadlines count in uptime, so that a jump of the clock ends nothing.
    read -r uptime _ < /proc/uptime
    if [[ $lease != "$last" ]]; then
      last=$lease
      deadline=$(( ${{uptime%.*}} + ${{lease%.*}} - $(date +%s) + {grace_s} ))
    fi
    if (( ${{uptime%.*}} > deadline )); then leave; fi
  done
}}
follow_lease &
{watch}{python} -P -m hybrid.node run "$folder"
leave
"""

# A machine that is only off keeps its disk, and `maxRunDuration` does not run for it. So it asks
# Google to delete it, with the token of its service account, and is off if that is refused. The
# token goes to curl over its standard input: a command line can be read by everybody.
_DELETE = """\
  local at=http://metadata.google.internal/computeMetadata/v1/instance told name
  local shape='"access_token" *: *"([A-Za-z0-9._~+/=-]+)"'
  for _ in 1 2 3; do
    told=$(curl -sf -m 10 -H 'Metadata-Flavor: Google' "$at/service-accounts/default/token") &&
      name=$(curl -sf -m 10 -H 'Metadata-Flavor: Google' "$at/name") &&
      [[ $told =~ $shape ]] &&
      printf 'header = "Authorization: Bearer %s"\\n' "${{BASH_REMATCH[1]}}" |
        curl -sf -m 20 -o /dev/null -K - -X DELETE {machines}/"$name" && break
    sleep 2
  done
"""

# Not `wait_for_change`, which misses what changes between two questions, and asking costs nothing.
_WATCH_SPOT = """\
watch_preemption() {{
  local url=http://metadata.google.internal/computeMetadata/v1/instance/preempted told
  until [[ -e $folder/notice ]]; do
    told=$(curl -sf -m 2 -H 'Metadata-Flavor: Google' "$url") || told=
    if [[ $told == TRUE ]]; then
      write notice "$(( $(date +%s) + {notice_s} )) gcp-preempted"
    else
      sleep {spot_look_s}
    fi
  done
}}
watch_preemption &
"""

# Google presses the power button when it gives notice, so the system shuts down at once. It
# waits for this script, and until then the network and the node's program stay. A machine that
# is deleted as usual does not wait.
_SHUTDOWN = """\
#!/bin/bash
folder={folder}
told=$(curl -sf -m 2 -H 'Metadata-Flavor: Google' \\
  http://metadata.google.internal/computeMetadata/v1/instance/preempted)
[[ $told == TRUE ]] || exit 0
while (( SECONDS < {wait_s} )) && grep -q '"phase": "running"' "$folder/status.json"; do
  sleep 1
done
"""


def shutdown_script(folder: str = FOLDER, *, wait_s: int = NOTICE_S - 5) -> str:
    """Return what a spot machine runs when it shuts down (metadata key `shutdown-script`)."""
    return _SHUTDOWN.format(folder=shlex.quote(folder), wait_s=wait_s)


_ALONE = """\
write join_token {join_token}
write node.json {node}
"""

# All machines of a gang get the same script, so each looks up by its name which one it is.
_ONE_OF_A_GANG = """\
name=
for (( i = 0; i < {tries}; i++ )); do
  name=$(curl -sf -m 10 -H 'Metadata-Flavor: Google' \\
    http://metadata.google.internal/computeMetadata/v1/instance/name) && break
  sleep {pause_s}
done
case $name in
{table}
*) leave; exit 1;;
esac
node={node}
write join_token "$token"
write node.json "${{node//{stand_in}/"$id"}}"
"""
_TRIES = 60
_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")  # it is put into JSON as it is


def startup_script(
    offer: Offer,
    spec: LaunchSpec,
    *,
    join_token: str,
    python: str,
    preflight: Preflight | None = None,
    delete_at: str = "",
    folder: str = FOLDER,
    look_s: float = 20.0,
    spot_look_s: float = SPOT_LOOK_S,
) -> str:
    """Return the script.

    Args:
        offer: Its shape is what Ray will count on the node.
        spec: Whom the node belongs to and where its head is.
        join_token: Kept in a file that only root reads.
        python: Interpreter of the image.
        preflight: What the node looks at before it joins.
        delete_at: Where the machine asks to be deleted when its node has ended, see
            `machines_url`; `""` when it has no right to.
        folder: Where the node program's files go.
        look_s: How often the lease is looked at.
        spot_look_s: How often a spot machine asks whether it is taken back.

    Raises:
        ValueError: A value cannot be part of a node's start, or the script is too long.
    """
    parts = {"watch": _watch(offer, spot_look_s), "delete": _delete(delete_at)}
    who = _ALONE.format(
        join_token=shlex.quote(join_token),
        node=shlex.quote(json.dumps(_orders(offer, spec, python, folder, preflight))),
    )
    return _whole(who, spec, python=python, folder=folder, look_s=look_s, parts=parts)


def gang_script(
    offer: Offer,
    spec: LaunchSpec,
    *,
    names: Mapping[str, str],
    join_tokens: Mapping[str, str],
    python: str,
    preflight: Preflight | None = None,
    delete_at: str = "",
    folder: str = FOLDER,
    look_s: float = 20.0,
    spot_look_s: float = SPOT_LOOK_S,
    pause_s: float = 2.0,
) -> str:
    """Return the script that all machines of a gang run; see `startup_script`.

    Args:
        offer: As there.
        spec: Any of the gang's; they differ in the instance's id only.
        names: Names of the machines by our ids.
        join_tokens: By our ids. Every machine of the gang can read them all.
        python: As there.
        preflight: As there.
        delete_at: As there.
        folder: As there.
        look_s: As there.
        spot_look_s: As there.
        pause_s: How long it waits before it asks again for the machine's name.

    Raises:
        ValueError: As there.
    """
    for instance_id in names:
        if not _ID.fullmatch(instance_id):
            raise ValueError(f"{instance_id[:40]!r} cannot be the id of an instance")
    # Stands for the id in orders that are otherwise the same. Nothing else can look like it.
    stand_in = "gang-" + hashlib.sha256("/".join(names.values()).encode()).hexdigest()[:24]
    member = spec.model_copy(update={"instance_id": stand_in})
    orders = _orders(offer, member, python, folder, preflight)
    lines = (
        f"{shlex.quote(name)}) id={shlex.quote(i)} token={shlex.quote(join_tokens[i])};;"
        for i, name in names.items()
    )
    parts = {"watch": _watch(offer, spot_look_s), "delete": _delete(delete_at)}
    who = _ONE_OF_A_GANG.format(
        tries=_TRIES,
        pause_s=pause_s,
        table="\n".join(lines),
        node=shlex.quote(json.dumps(orders)),
        stand_in=stand_in,
    )
    return _whole(who, spec, python=python, folder=folder, look_s=look_s, parts=parts)


def machines_url(endpoint_url: str, *, project: str, zone: str) -> str:
    """Return where the machines of a zone are in Google's API, or at another address of it."""
    return f"{endpoint_url or GOOGLE}/compute/v1/projects/{project}/zones/{zone}/instances"


def _whole(
    who: str,
    spec: LaunchSpec,
    *,
    python: str,
    folder: str,
    look_s: float,
    parts: Mapping[str, str],
) -> str:
    script = _SCRIPT.format(
        folder=shlex.quote(folder),
        who=who,
        lease=shlex.quote(expiry_text(spec.expires_at_s)),
        key=EXPIRY_KEY,
        look_s=look_s,
        grace_s=_GRACE_S,
        **parts,
        python=shlex.quote(python),
    )
    if "\0" in script:
        raise ValueError("a value of the start-up script has a zero byte")
    size = len(script.encode())
    if size > LIMIT_BYTES:
        raise ValueError(
            f"the start-up script would have {size} bytes, more than {LIMIT_BYTES}; use fewer or "
            "shorter labels"
        )
    return script


def _watch(offer: Offer, look_s: float) -> str:
    """Return the part that waits for the notice; nothing for a machine that never gets one."""
    if offer.market is not Market.SPOT:
        return ""
    return _WATCH_SPOT.format(notice_s=NOTICE_S, spot_look_s=look_s)


def _delete(at: str) -> str:
    return _DELETE.format(machines=shlex.quote(at)) if at else ""


def expiry_text(at_s: float) -> str:
    """Return an expiry as the node reads it."""
    return f"{at_s:.3f}"


def _orders(
    offer: Offer, spec: LaunchSpec, python: str, folder: str, preflight: Preflight | None
) -> Mapping[str, object]:
    """Return the node.json of the node program."""
    preflight = preflight or Preflight()
    plan = rented_node(spec, offer.shape, python=python, temp_dir=_TEMP_DIR, preflight=preflight)
    return {
        "id": spec.instance_id,
        "cluster_id": spec.cluster_id,
        "role": "instance",
        "command": ray_node_command(plan),
        "env": ray_node_environment(plan),
        "temp_dir": plan.temp_dir,
        "join": {
            "url": spec.controller_url,
            "instance_id": spec.instance_id,
            "join_token_file": f"{folder}/join_token",
        },
        "lease_file": f"{folder}/lease",
        "expected": ray_node_expected(plan, spec, preflight),
        "drain_command": ray_drain_command(plan),
    }
