"""What a node is told to run: the content of its node.json."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

DEFAULT_PORTS = (20_000, 29_999)
"""Clear of Ray's workers (10002-19999) and of the kernel's own choices (from 32768)."""

_VERSION = re.compile(r"([0-9]{1,6}(\.[0-9]{1,6}){0,3})?")


class Role(StrEnum):
    """What a node is for."""

    HEAD = "head"
    HOST = "host"
    INSTANCE = "instance"


@dataclass(frozen=True)
class Join:
    """Where an instance trades its one-time token for the cluster's."""

    url: str
    instance_id: str
    join_token_file: Path


@dataclass(frozen=True)
class Expected:
    """What this machine must be before it joins, see `hybrid.node.preflight`.

    Attributes:
        ray: Exact version; `""` for any.
        python: Minor version, such as `3.11`; `""` for any.
        gpus: How many nvidia-smi must show at least; with 0 it is not asked.
        gpus_within_s: How long the driver may take to show them.
        min_driver: Oldest NVIDIA driver; `""` for any.
        min_cuda: Oldest CUDA that the driver must serve; `""` for any.
        install: The command that installs Ray; empty when that is not allowed.
        install_limit_s: How long it may take.
    """

    ray: str = ""
    python: str = ""
    gpus: int = 0
    gpus_within_s: float = 60.0
    min_driver: str = ""
    min_cuda: str = ""
    install: tuple[str, ...] = ()
    install_limit_s: float = 900.0


@dataclass(frozen=True)
class Takeback:
    """When a pretended machine is taken back.

    Attributes:
        after_s: How long after Ray runs on it.
        notice_s: How long before that it is told.
    """

    after_s: float
    notice_s: float


@dataclass(frozen=True)
class Orders:
    """The content of node.json.

    Attributes:
        command: Exact `ray start` command; `{port:NAME}` inside becomes a free port.
        env: Added to the environment; `None` takes a variable away.
        temp_dir: Ray's folder of this node, removed at the end.
        boot_delay_s: How long a pretended machine needs to boot.
        start_limit_s: How long the command may take.
        ports: First and last port that may be chosen.
        drain_command: Asks Ray to empty this node when its cloud takes the machine back, or its
            lease is over, see `hybrid.node.notice`; empty for a node that just ends.
        leave_s: How long Ray may take to empty a node whose lease is over. A cloud's own switch,
            which ends a machine whose node hangs, must come later.
        takeback: When a pretended machine is taken back.
        mps: The program that controls NVIDIA's MPS, started before Ray; `""` for none.
        expected: What is looked at before anything else; `None` for nothing.
    """

    id: str
    cluster_id: str
    role: Role
    command: tuple[str, ...]
    temp_dir: Path
    env: Mapping[str, str | None] = field(default_factory=dict)
    ray_token_file: Path | None = None
    join: Join | None = None
    boot_delay_s: float = 0.0
    start_limit_s: float = 300.0
    lease_file: Path | None = None
    ports: tuple[int, int] = DEFAULT_PORTS
    drain_command: tuple[str, ...] = ()
    leave_s: float = 30.0
    takeback: Takeback | None = None
    mps: str = ""
    expected: Expected | None = None

    @property
    def tag(self) -> str:
        """What marks every process of this node, see `environment.TAG`."""
        return f"{self.cluster_id}/{self.id}"


def parse(content: Mapping[str, object]) -> Orders:
    """Return the orders in a node.json.

    Raises:
        ValueError: It is wrong; the message says where.
    """
    return Orders(
        id=_text(content, "id"),
        cluster_id=_text(content, "cluster_id"),
        role=Role(_text(content, "role")),
        command=_texts(content, "command"),
        temp_dir=Path(_text(content, "temp_dir")),
        env=_env(content.get("env") or {}),
        ray_token_file=_path(content.get("ray_token_file")),
        join=_join(content.get("join")),
        boot_delay_s=_number(content, "boot_delay_s", 0.0),
        start_limit_s=_number(content, "start_limit_s", Orders.start_limit_s),
        lease_file=_path(content.get("lease_file")),
        ports=_ports(content.get("ports")),
        drain_command=_texts(content, "drain_command") if content.get("drain_command") else (),
        leave_s=_number(content, "leave_s", Orders.leave_s),
        takeback=_takeback(content.get("takeback")),
        mps=_text(content, "mps") if content.get("mps") else "",
        expected=_expected(content.get("expected")),
    )


def _text(content: Mapping[str, object], key: str) -> str:
    value = content.get(key)
    if not isinstance(value, str) or not value or "\0" in value:
        raise ValueError(f"{key!r} must be a text that is not empty")
    return value


def _texts(content: Mapping[str, object], key: str) -> tuple[str, ...]:
    value = content.get(key)
    if not isinstance(value, list) or not value or not all(isinstance(x, str) for x in value):
        raise ValueError(f"{key!r} must be a list of texts that is not empty")
    return tuple(value)


def _number(content: Mapping[str, object], key: str, default: float) -> float:
    value = content.get(key, default)
    if not isinstance(value, int | float) or not 0 <= value < 1e9:
        raise ValueError(f"{key!r} must be a number of seconds")
    return float(value)


def _path(value: object) -> Path | None:
    if value is None:
        return None
    if not isinstance(value, str) or not value:
        raise ValueError(f"{value!r} is not a path")
    return Path(value)


def _env(value: object) -> dict[str, str | None]:
    if not isinstance(value, dict) or not all(
        isinstance(k, str) and (v is None or isinstance(v, str)) for k, v in value.items()
    ):
        raise ValueError("'env' must map names to texts or null")
    return value


def _join(value: object) -> Join | None:
    if value is None:
        return None
    if not isinstance(value, dict):
        raise ValueError("'join' must be an object or null")  # noqa: TRY004  # as all the others
    return Join(
        url=_text(value, "url"),
        instance_id=_text(value, "instance_id"),
        join_token_file=Path(_text(value, "join_token_file")),
    )


def _takeback(value: object) -> Takeback | None:
    if value is None:
        return None
    if not isinstance(value, dict):
        raise ValueError("'takeback' must be an object or null")  # noqa: TRY004  # as all the others
    return Takeback(_number(value, "after_s", 0.0), _number(value, "notice_s", 0.0))


def _expected(value: object) -> Expected | None:
    if value is None:
        return None
    if not isinstance(value, dict):
        raise ValueError("'expected' must be an object or null")  # noqa: TRY004  # as all the others
    gpus = value.get("gpus", 0)
    if type(gpus) is not int or gpus < 0:
        raise ValueError("'gpus' must be a number of GPUs")
    min_driver = _text(value, "min_driver") if value.get("min_driver") else ""
    if not _VERSION.fullmatch(min_driver):
        raise ValueError("'min_driver' must be a version, such as 535.104")
    min_cuda = _text(value, "min_cuda") if value.get("min_cuda") else ""
    if not _VERSION.fullmatch(min_cuda):
        raise ValueError("'min_cuda' must be a version, such as 12.4")
    return Expected(
        ray=_text(value, "ray") if value.get("ray") else "",
        python=_text(value, "python") if value.get("python") else "",
        gpus=gpus,
        gpus_within_s=_number(value, "gpus_within_s", Expected.gpus_within_s),
        min_driver=min_driver,
        min_cuda=min_cuda,
        install=_texts(value, "install") if value.get("install") else (),
        install_limit_s=_number(value, "install_limit_s", Expected.install_limit_s),
    )


def _ports(value: object) -> tuple[int, int]:
    if value is None:
        return DEFAULT_PORTS
    if not isinstance(value, list) or [type(port) for port in value] != [int, int]:
        raise ValueError("'ports' must be a list of the first and the last port")
    first, last = value
    if not 1024 <= first <= last <= 65_535:
        raise ValueError("'ports' must lie within 1024 and 65535")
    return first, last
