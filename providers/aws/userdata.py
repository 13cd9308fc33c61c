"""The script that a new instance runs once: it installs nothing, and starts what the image has.

Every value stands in a JSON document or between single quotes, and no shell reads either.
"""

from __future__ import annotations

import json
import re
from string import Template

from hybrid.core.bootstrap import NodePlan, ray_node_command, ray_node_environment
from hybrid.core.models import LaunchSpec, Shape

LIMIT_BYTES = 16_384
"""EC2 takes no more, before base64."""

FOLDER = "/var/lib/hybrid/node"
UNITS = "/etc/systemd/system"
METADATA = "http://169.254.169.254"
SHUTDOWN_AFTER_S = 60
"""How long after the end of its lease a machine ends itself: its node has ended by then."""

_PLAIN = re.compile(r"[A-Za-z0-9_.:/=+-]+")
_TEMP_DIR = "/tmp/hybrid-ray/node"  # noqa: S108  # short: Ray's sockets lie below it

_SCRIPT = Template("""\
#!/bin/bash
# Instance $instance_id of cluster $cluster_id.
umask 077
mkdir -p '$folder' && cd '$folder' || exit 1
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
metadata='$metadata/latest'
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
  sleep $every_s
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
'$python' -P -m hybrid.node start '$folder'
""")


def user_data(
    spec: LaunchSpec,
    shape: Shape,
    *,
    join_token: str,
    python: str,
    folder: str = FOLDER,
    units: str = UNITS,
    metadata: str = METADATA,
    every_s: int = 15,
) -> str:
    """Return the script.

    Args:
        spec: What the node must know.
        shape: Ray resources it brings.
        join_token: One-time secret; the script keeps it in a file that only root can read.
        python: Interpreter of the image that has Ray and this program.
        folder: Where the node's files lie.
        units: Where systemd's files lie.
        metadata: The instance metadata service.
        every_s: Pause between two looks at the lease.

    Raises:
        ValueError: A value cannot stand in a script, or the script is too long.
    """
    for text in (join_token, python, folder, units, metadata, spec.instance_id, spec.cluster_id):
        if not _PLAIN.fullmatch(text):
            raise ValueError(f"{text[:40]!r} cannot be part of user data")
    node = json.dumps(_node(spec, shape, python=python, folder=folder), separators=(",", ":"))
    script = _SCRIPT.substitute(
        instance_id=spec.instance_id,
        cluster_id=spec.cluster_id,
        folder=folder,
        units=units,
        join_token=join_token,
        expires_at_s=f"{spec.expires_at_s:.0f}",
        node=node,
        metadata=metadata,
        shutdown_after_s=SHUTDOWN_AFTER_S,
        every_s=every_s,
        python=python,
    )
    if len(script.encode()) > LIMIT_BYTES:
        raise ValueError(
            f"user data would have {len(script.encode())} bytes, and EC2 takes {LIMIT_BYTES}; use "
            "fewer or shorter labels"
        )
    return script


def _node(spec: LaunchSpec, shape: Shape, *, python: str, folder: str) -> dict[str, object]:
    """Return the content of node.json; see `hybrid.node.orders`."""
    plan = NodePlan(
        python=python,
        temp_dir=_TEMP_DIR,
        resources=shape,
        labels={key: value for key, value in spec.labels.items() if value},
        instance_id=spec.instance_id,
        head_address=spec.head_address,
        is_machine_shared=False,
    )
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
    }
