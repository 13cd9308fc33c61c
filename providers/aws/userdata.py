"""The script that a new instance runs once: it installs nothing, and starts what the image has.

Every value stands in a JSON document or between single quotes, and no shell reads either.
"""

from __future__ import annotations

import json
import re
from string import Template

from hybrid.core.bootstrap import (
    Preflight,
    ray_drain_command,
    ray_node_command,
    ray_node_environment,
    ray_node_expected,
    rented_node,
    shell_report,
)
from hybrid.core.models import LaunchSpec, Shape

LIMIT_BYTES = 16_384
"""EC2 takes no more, before base64."""

FOLDER = "/var/lib/hybrid/node"
UNITS = "/etc/systemd/system"
METADATA = "http://169.254.169.254"
EVERY_S = 15
SPOT_EVERY_S = 3
"""AWS advises to look every 5 seconds, and two questions come with it."""

SHUTDOWN_AFTER_S = 60
"""How long after the end of its lease a machine ends itself: its node has ended by then."""

_PLAIN = re.compile(r"[A-Za-z0-9_.:/=+-]+")
_TEMP_DIR = "/tmp/hybrid-ray/node"  # noqa: S108  # short: Ray's sockets lie below it

_SCRIPT = Template("""\
#!/bin/bash
# Instance $instance_id of cluster $cluster_id.
# Without what follows its lease nobody would end it: it must not stay on then.
trap 'shutdown -h now; exit 1' ERR
umask 077
mkdir -p '$folder'
cd '$folder'
printf '%s' '$join_token' > join_token
printf '%s' '$expires_at_s' > lease
cat > node.json <<'HYBRID_END'
$node
HYBRID_END
cat > watch <<'HYBRID_END'
#!/bin/bash
# The controller renews this machine's lease in a tag. Copy it for the node's own program, and
# turn the machine off, which ends it, when the lease is over: whoever else is dead by then.
# Deadlines count in uptime, so that a jump of the clock ends nothing.
${also}metadata='$metadata/latest'
last=''
while :; do
  token=$$(curl -sf -m 5 -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 60' \\
    "$$metadata/api/token")
  lease=$$(curl -sf -m 5 -H "X-aws-ec2-metadata-token: $$token" \\
    "$$metadata/meta-data/tags/instance/hybrid-expires-at")
  case "$$lease" in '' | *[!0-9]*) lease=$$(cat lease) ;; esac
  read -r uptime _ < /proc/uptime
  if [ "$$lease" != "$$last" ]; then
    last=$$lease
    deadline=$$(( $${uptime%.*} + lease - $$(date +%s) ))
    printf '%s' "$$lease" > .lease && mv .lease lease
  fi
  [ "$${uptime%.*}" -ge $$(( deadline + $shutdown_after_s )) ] && shutdown -h now
${look}  sleep $every_s
done
HYBRID_END
cat > '$units/hybrid-lease.service' <<'HYBRID_END'
[Unit]
Description=Turns this machine off when its lease is over
[Service]
WorkingDirectory=$folder
ExecStart=/bin/bash watch
Restart=always
[Install]
WantedBy=multi-user.target
HYBRID_END
# A service, so that neither its own death nor a reboot ends the watch.
systemctl daemon-reload
systemctl enable --now --no-block hybrid-lease.service
trap - ERR
${tell}'$python' -P -m hybrid.node start '$folder' > start.out 2>&1
case $$? in 0 | 3) ;; *) tell; shutdown -h now ;; esac
""")

# A spot instance is told two minutes before it is taken. Nothing of the answer is used unless it
# has exactly the form that AWS documents.
_SPOT_ALSO = "# Tell the node's own program when AWS takes this machine back.\n"
_SPOT_LOOK = """\
  if [ ! -e notice ]; then
    told=$(curl -sf -m 2 -H "X-aws-ec2-metadata-token: $token" \\
      "$metadata/meta-data/spot/instance-action") || told=''
    action='"action" *: *"(terminate|stop|hibernate)"'
    time='"time" *: *"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z)"'
    if [[ $told =~ $action ]] && action=${BASH_REMATCH[1]} && [[ $told =~ $time ]]; then
      at=$(date -u -d "${BASH_REMATCH[1]}" +%s) || at=''
      [[ $at =~ ^[0-9]{10}$ ]] && printf '%s aws-%s' "$at" "$action" > .notice && mv .notice notice
    fi
  fi
"""


def user_data(
    spec: LaunchSpec,
    shape: Shape,
    *,
    join_token: str,
    python: str,
    is_spot: bool = False,
    preflight: Preflight | None = None,
    folder: str = FOLDER,
    units: str = UNITS,
    metadata: str = METADATA,
    every_s: int | None = None,
) -> str:
    """Return the script.

    Args:
        spec: What the node must know.
        shape: Ray resources it brings.
        join_token: One-time secret; the script keeps it in a file that only root can read.
        python: Interpreter of the image that has Ray and this program.
        is_spot: Whether AWS may take the machine back, so that it is to watch for the notice.
        preflight: What the node looks at before it joins.
        folder: Where the node's files lie.
        units: Where systemd's files lie.
        metadata: The instance metadata service.
        every_s: Pause between two looks at the metadata.

    Raises:
        ValueError: A value cannot stand in a script, or the script is too long.
    """
    for text in (join_token, python, folder, units, metadata, spec.instance_id, spec.cluster_id):
        if not _PLAIN.fullmatch(text):
            raise ValueError(f"{text[:40]!r} cannot be part of user data")
    orders = _node(
        spec,
        shape,
        python=python,
        folder=folder,
        preflight=preflight or Preflight(),
    )
    node = json.dumps(orders, separators=(",", ":"))
    pause_s = every_s or (SPOT_EVERY_S if is_spot else EVERY_S)
    report = shell_report(spec, join_token=join_token, python=python, output="start.out")
    script = _SCRIPT.substitute(
        tell=report,
        instance_id=spec.instance_id,
        cluster_id=spec.cluster_id,
        folder=folder,
        units=units,
        join_token=join_token,
        expires_at_s=f"{spec.expires_at_s:.0f}",
        node=node,
        metadata=metadata,
        shutdown_after_s=SHUTDOWN_AFTER_S,
        also=_SPOT_ALSO if is_spot else "",
        look=_SPOT_LOOK if is_spot else "",
        every_s=pause_s,
        python=python,
    )
    if len(script.encode()) > LIMIT_BYTES:
        raise ValueError(
            f"user data would have {len(script.encode())} bytes, and EC2 takes {LIMIT_BYTES}; use "
            "fewer or shorter labels"
        )
    return script


def _node(
    spec: LaunchSpec,
    shape: Shape,
    *,
    python: str,
    folder: str,
    preflight: Preflight,
) -> dict[str, object]:
    """Return the content of node.json; see `hybrid.node.orders`."""
    plan = rented_node(spec, shape, python=python, temp_dir=_TEMP_DIR, preflight=preflight)
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
