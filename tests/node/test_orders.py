"""node.json and the environment that is made of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hybrid.node.environment import node_environment
from hybrid.node.folder import BadFolderError, Folder, Phase, Status
from hybrid.node.orders import Expected, Role, Takeback, parse

GOOD: dict[str, object] = {
    "id": "i-1",
    "cluster_id": "c",
    "role": "instance",
    "command": ["python", "start"],
    "temp_dir": "/tmp/hybrid-0/x/y",
}


def test_what_is_left_out_has_a_default() -> None:
    orders = parse(GOOD)

    assert orders.tag == "c/i-1"
    assert orders.role is Role.INSTANCE
    assert (orders.boot_delay_s, orders.start_limit_s) == (0.0, 300.0)
    assert (orders.join, orders.lease_file, orders.ray_token_file) == (None, None, None)
    assert (orders.drain_command, orders.takeback) == ((), None)


def test_everything_can_be_said() -> None:
    join = {"url": "http://x", "instance_id": "i-1", "join_token_file": "/t"}

    orders = parse(
        GOOD
        | {"env": {"A": "b", "C": None}, "ray_token_file": "/r", "join": join}
        | {
            "boot_delay_s": 3,
            "start_limit_s": 9.5,
            "lease_file": "/l",
            "leave_s": 7,
            "ports": [2000, 3000],
        }
        | {"drain_command": ["a", "b"], "takeback": {"after_s": 60, "notice_s": 30}}
        | {"expected": {"ray": "2.60.0", "python": "3.11", "gpus": 8, "install": ["pip"]}}
    )

    assert orders.env == {"A": "b", "C": None}
    assert orders.ray_token_file == Path("/r")
    assert orders.join is not None
    assert orders.join.join_token_file == Path("/t")
    assert (orders.boot_delay_s, orders.start_limit_s, orders.leave_s) == (3.0, 9.5, 7.0)
    assert orders.ports == (2000, 3000)
    assert orders.drain_command == ("a", "b")
    assert orders.takeback == Takeback(after_s=60.0, notice_s=30.0)
    assert orders.expected == Expected(ray="2.60.0", python="3.11", gpus=8, install=("pip",))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("id", ""),
        ("id", 5),
        ("cluster_id", "a\0b"),
        ("role", "king"),
        ("command", []),
        ("command", "python"),
        ("command", ["a", 1]),
        ("env", {"A": 1}),
        ("env", ["A"]),
        ("join", "http://x"),
        ("expected", "2.60.0"),
        ("expected", {"ray": 2.6}),
        ("expected", {"gpus": -1}),
        ("expected", {"gpus": True}),
        ("expected", {"gpus": "8"}),
        ("expected", {"min_driver": "new"}),
        ("expected", {"install": "pip install"}),
        ("expected", {"gpus_within_s": "1m"}),
        ("join", {"url": "http://x"}),
        ("boot_delay_s", -1),
        ("boot_delay_s", "3s"),
        ("lease_file", ""),
        ("ports", [1, 2, 3]),
        ("ports", [3000, 2000]),
        ("ports", [80, 90]),
        ("ports", ["2000", "3000"]),
        ("expected", {"min_cuda": "twelve"}),
        ("drain_command", "ray"),
        ("drain_command", ["ray", 1]),
        ("takeback", 60),
        ("takeback", {"after_s": "60s"}),
    ],
)
def test_a_wrong_value_is_refused(tmp_path: Path, key: str, value: object) -> None:
    (tmp_path / "node.json").write_text(json.dumps(GOOD | {key: value}))

    with pytest.raises(BadFolderError, match=r"node\.json: "):
        Folder(tmp_path).orders()


@pytest.mark.parametrize("content", ["", "[]", "{", '"x"'])
def test_rubbish_is_refused_and_reads_as_nothing_known(tmp_path: Path, content: str) -> None:
    for name in ("node.json", "pid.json", "status.json", "ports.json"):
        (tmp_path / name).write_text(content)
    folder = Folder(tmp_path)

    with pytest.raises(BadFolderError):
        folder.orders()
    with pytest.raises(BadFolderError):
        folder.tag()
    assert (folder.supervisor(), folder.status(), folder.ports()) == (None, None, {})


def test_the_tag_is_known_while_one_of_two_files_is_readable(tmp_path: Path) -> None:
    (tmp_path / "pid.json").write_text(json.dumps({"pid": 1, "tag": "c/i-1"}))

    assert Folder(tmp_path).tag() == "c/i-1"


def test_a_process_of_another_boot_is_not_ours(tmp_path: Path) -> None:
    (tmp_path / "pid.json").write_text(
        json.dumps({"pid": 1, "start_time": 1, "boot_id": "another"})
    )

    assert Folder(tmp_path).supervisor() is None


def test_a_status_is_read_as_it_was_written(tmp_path: Path) -> None:
    status = Status(Phase.FAILED, "why", at_s=5.0, raylet_pid=7)

    Folder(tmp_path).write_status(status)

    assert Folder(tmp_path).status() == status
    assert [path.name for path in tmp_path.iterdir()] == ["status.json"]


def test_the_environment_is_inherited_but_for_foreign_settings_and_keys() -> None:
    inherited = {
        "PATH": "/bin",
        "RAY_ADDRESS": "x",
        "RAY_AUTH_TOKEN": "old",
        "HYBRID_API_TOKEN": "x",
        "AWS_ACCESS_KEY_ID": "x",
        "AWS_REGION": "eu-west-1",
        "GOOGLE_APPLICATION_CREDENTIALS": "x",
        "BCE_SECRET_ACCESS_KEY": "x",
        "CUDA_VISIBLE_DEVICES": "0",
    }

    env = node_environment(
        inherited, {"RAY_AUTH_MODE": "token", "CUDA_VISIBLE_DEVICES": None}, tag="c/x", ray_token=""
    )

    assert env == {
        "PATH": "/bin",
        "AWS_REGION": "eu-west-1",
        "RAY_AUTH_MODE": "token",
        "HYBRID_NODE_TAG": "c/x",
        "SPT_NOENV": "1",
    }
    with_token = node_environment({}, {}, tag="c/x", ray_token="t")
    assert with_token["RAY_AUTH_TOKEN"] == "t"


@pytest.mark.parametrize(
    "name",
    [
        "PGPASSWORD",
        "PGPASSFILE",
        "PGSERVICEFILE",
        "PGSSLKEY",
        "HYBRID_CONTROLLER__LEDGER",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
        "AWS_PROFILE",
        "AWS_SESSION_TOKEN",
        "AWS_SHARED_CREDENTIALS_FILE",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "BAIDUCLOUD_ACCESS_KEY",
        "BAIDUCLOUD_SECRET_KEY",
        "CLOUDSDK_AUTH_ACCESS_TOKEN",
        "CLOUDSDK_CONFIG",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "GOOGLE_OAUTH_ACCESS_TOKEN",
    ],
)
def test_what_opens_the_ledger_or_a_cloud_account_reaches_no_job(name: str) -> None:
    env = node_environment({name: "canary", "HF_TOKEN": "mine"}, {}, tag="c/x", ray_token="")

    assert "canary" not in env.values()
    assert env["HF_TOKEN"] == "mine"
