"""The environment that Ray's processes of a node get."""

from __future__ import annotations

from collections.abc import Mapping

TAG = "HYBRID_NODE_TAG"
"""Every process of a node carries `<cluster id>/<node id>` under this name."""

# Settings of another Ray or hybrid process must not reach this node, and neither must what opens
# the clouds' accounts or the ledger: whoever has that can rent machines, or write that a cap was
# never reached. A cloud's whole family of names goes, since SDKs learn new ways to sign in; what
# only says where to work stays. A job that needs access of its own gets it in its own `env`.
_DROPPED_PREFIXES = (
    "RAY_",
    "HYBRID_",
    "AWS_",
    "BOTO_",
    "BAIDUBCE_",
    "BAIDUCLOUD_",
    "BCE_",
    "CLOUDSDK_",
    "GOOGLE_",
)
_DROPPED = frozenset(
    {
        "NOTIFY_SOCKET",
        "PGPASSFILE",
        "PGPASSWORD",
        "PGSERVICE",
        "PGSERVICEFILE",
        "PGSSLCERT",
        "PGSSLKEY",
        "PGSSLPASSWORD",
        "PYTHONSAFEPATH",
    }
)
_KEPT = frozenset(
    {
        "AWS_CA_BUNDLE",
        "AWS_DEFAULT_REGION",
        "AWS_EC2_METADATA_DISABLED",
        "AWS_REGION",
        "GOOGLE_CLOUD_PROJECT",
        "GOOGLE_CLOUD_REGION",
    }
)


def node_environment(
    inherited: Mapping[str, str],
    settings: Mapping[str, str | None],
    *,
    tag: str,
    ray_token: str,
    python: str = "",
) -> dict[str, str]:
    """Return the environment of `ray start`.

    Args:
        inherited: Of this process.
        settings: From the node's file; `None` takes a variable away.
        tag: What marks every process of the node.
        ray_token: The cluster's token, `""` for none.
        python: The interpreter that runs Ray. Its folder comes first in PATH, so that `python`
            and the tools beside it in a job's command are the cluster's, not the system's.
    """
    env = {name: value for name, value in inherited.items() if not _is_dropped(name)}
    for name, value in settings.items():
        if value is None:
            env.pop(name, None)
        else:
            env[name] = value
    if "/" in python:
        folder = python.rpartition("/")[0]
        env["PATH"] = ":".join([folder, env.get("PATH") or "/usr/local/bin:/usr/bin:/bin"])
    env[TAG] = tag
    # Ray's processes rename themselves and would write over the environment that /proc shows,
    # and with it the tag (measured on Ray 2.60).
    env["SPT_NOENV"] = "1"
    if ray_token:
        env["RAY_AUTH_TOKEN"] = ray_token
    return env


def _is_dropped(name: str) -> bool:
    return name in _DROPPED or (name.startswith(_DROPPED_PREFIXES) and name not in _KEPT)
