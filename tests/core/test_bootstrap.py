"""The commands that start Ray, read back by Ray's own command line."""

from __future__ import annotations

import json
import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from hybrid.core.bootstrap import (
    HeadPlan,
    NodePlan,
    Preflight,
    RayHealth,
    ray_drain_command,
    ray_head_command,
    ray_head_environment,
    ray_node_command,
    ray_node_environment,
    ray_node_expected,
)
from hybrid.core.models import LaunchSpec
from hybrid.core.nodeplan import clean_label
from hybrid.node.orders import Expected, parse


def make_node(**changes: Any) -> NodePlan:
    plan = {
        "python": "/opt/venv/bin/python",
        "temp_dir": "/tmp/hybrid-0/1234abcd/i1",
        "resources": {"CPU": 4, "GPU": 4, "memory": 2**31},
        "labels": {"site": "cloud", "provider": "local"},
        "object_store_bytes": 80_000_000,
        "head_address": "127.0.0.1:6379",
    }
    return NodePlan.model_validate(plan | changes)


def make_head(**changes: Any) -> HeadPlan:
    plan = {
        "python": "/opt/venv/bin/python",
        "temp_dir": "/tmp/hybrid-0/1234abcd/head",
        "resources": {"CPU": 1},
    }
    return HeadPlan.model_validate(plan | changes)


def read_by_ray(command: list[str]) -> dict[str, Any]:
    """Return the options as Ray's command line understands them."""
    from ray.scripts.scripts import start

    words = command[command.index("start") + 1 :]
    filled = [
        word.replace("{port:", "2").split("}")[0] if "{port:" in word else word for word in words
    ]
    numbers = [
        f"{w.partition('=')[0]}=20001" if "{port:" in o else w
        for w, o in zip(filled, words, strict=True)
    ]
    return dict(start.make_context("start", numbers).params)


def labels_by_ray(command: list[str]) -> dict[str, str]:
    from ray._private.label_utils import parse_node_labels_string

    labels: dict[str, str] = parse_node_labels_string(read_by_ray(command)["labels"])
    return labels


def test_a_node_command_says_all_of_its_plan() -> None:
    plan = make_node(
        resources={"CPU": 4, "GPU": 4, "memory": 2**31, "accelerator_type:A100": 1},
        node_ip="10.0.0.7",
    )

    command = ray_node_command(plan)

    options = read_by_ray(command)
    assert command[:5] == ["/opt/venv/bin/python", "-P", "-m", "ray.scripts.scripts", "start"]
    assert options["address"] == "127.0.0.1:6379"
    assert (options["num_cpus"], options["num_gpus"], options["memory"]) == (4, 4, 2**31)
    assert json.loads(options["resources"]) == {"accelerator_type:A100": 1.0}
    assert options["object_store_memory"] == 80_000_000
    assert options["temp_dir"] == plan.temp_dir
    assert options["node_ip_address"] == "10.0.0.7"
    assert options["include_log_monitor"] is False
    assert options["disable_usage_stats"] is True
    assert options["block"] is False
    assert labels_by_ray(command) == {"site": "cloud", "provider": "local"}


def test_a_drain_command_is_what_ray_reads_when_its_places_are_filled() -> None:
    from ray.scripts.scripts import drain_node

    command = ray_drain_command(make_node(head_address="10.0.0.1:6379"))

    assert command[:5] == ["/opt/venv/bin/python", "-P", "-m", "ray.scripts.scripts", "drain-node"]
    values = {"{node_id}": "ab", "{message}": "it leaves", "{left_s}": "90"}
    words = command[5:]
    for place, value in values.items():
        words = [word.replace(place, value) for word in words]
    assert drain_node.make_context("drain-node", words).params == {
        "address": "10.0.0.1:6379",
        "node_id": "ab",
        "reason": "DRAIN_NODE_REASON_PREEMPTION",
        "reason_message": "it leaves",
        "deadline_remaining_seconds": 90,
    }


def test_a_head_has_no_autoscaler_and_is_marked_as_head() -> None:
    command = ray_head_command(make_head(port=6379, dashboard_port=8265))

    options = read_by_ray(command)
    assert options["head"] is True
    assert options["no_monitor"] is True
    assert (options["port"], options["dashboard_port"]) == (6379, 8265)
    assert options["dashboard_host"] == "127.0.0.1"
    assert options["num_gpus"] == 0
    assert labels_by_ray(command) == {"site": "onprem", "role": "head", "provider": "onprem"}


def test_ports_left_open_become_places_for_the_node_program() -> None:
    command = ray_head_command(make_head(client_port="auto"))

    for option, place in {
        "port": "gcs",
        "dashboard-port": "dashboard",
        "ray-client-server-port": "client",
        "node-manager-port": "node_manager",
        "metrics-export-port": "metrics",
    }.items():
        assert f"--{option}={{port:{place}}}" in command


def test_without_a_client_server_the_start_hook_takes_its_port_away() -> None:
    command = ray_head_command(make_head())

    assert command[1:3] == ["-P", "-c"]
    assert "params.ray_client_server_port = None" in command[3]
    compile(command[3], "command", "exec")
    assert not [word for word in command if word.startswith("--ray-client-server-port")]


def test_workers_have_the_ports_that_a_firewall_was_told() -> None:
    options = read_by_ray(ray_node_command(make_node(worker_ports=(30_000, 30_999))))

    assert (options["min_worker_port"], options["max_worker_port"]) == (30_000, 30_999)


def test_the_environment_is_explicit_and_holds_no_secret() -> None:
    node = ray_node_environment(make_node(instance_id="i-1", are_gpus_logical=True))
    head = ray_head_environment(make_head(health=RayHealth(period_s=0.5), max_shapes=7))

    assert node["RAY_AUTH_MODE"] == head["RAY_AUTH_MODE"] == "token"
    assert node["RAY_CLOUD_INSTANCE_ID"] == "i-1"
    assert "RAY_CLOUD_INSTANCE_ID" not in head
    assert node["CUDA_VISIBLE_DEVICES"] is None
    assert "CUDA_VISIBLE_DEVICES" not in head
    assert node["RAY_health_check_timeout_ms"] == "3000"
    assert node["RAY_grpc_client_keepalive_time_ms"] == "10000"
    assert head["RAY_health_check_period_ms"] == "500"
    assert head["RAY_max_resource_shapes_per_load_report"] == "7"
    assert "RAY_AUTH_TOKEN" not in node | head


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("labels", {"site": "a,b=c"}, "label site: 'a,b=c' is not a value for Ray"),
        ("labels", {"site": "-x"}, "beginning and ending with a letter"),
        ("labels", {"a=b": "c"}, "'a=b' is not a label name for Ray"),
        ("labels", {"ray.io/node-id": "c"}, "and not ray.io/"),
        ("resources", {"CPU": 0.5}, "resource CPU: Ray takes whole numbers here, not 0.5"),
        ("resources", {"GPU": -1}, "resource GPU: -1.0 is not an amount"),
        ("resources", {"x": float("nan")}, "not an amount"),
        ("resources", {"node:1.2.3.4": 1}, "is not a resource that a node can be given"),
        (
            "temp_dir",
            "/tmp/hybrid-0/" + "x" * 40,
            "at most 41 bytes, because socket paths are short",
        ),
        ("temp_dir", "relative", "it must be absolute"),
        ("head_address", "127.0.0.1", "write HOST:PORT"),
        ("head_address", "127.0.0.1:99999", "write HOST:PORT"),
        ("head_address", "-x:1", "write HOST:PORT"),
        ("object_store_bytes", 1_000, "greater than or equal to 78643200"),
        ("python", "-c", "cannot be a path"),
    ],
)
def test_a_wrong_value_is_refused_with_its_reason(field: str, value: object, words: str) -> None:
    with pytest.raises(ValidationError, match=r"(?s).") as caught:
        make_node(**{field: value})

    assert words in str(caught.value)


def test_the_longest_folder_of_ours_fits_into_rays_socket_paths() -> None:
    longest = f"/tmp/hybrid-{2**32 - 2}/12345678/123456"

    assert make_node(temp_dir=longest).temp_dir == longest


ODD = string.printable + "\0\u2013\u00e9"
ANYTHING = st.text(max_size=30) | st.text(alphabet=ODD, max_size=80)


@given(key=ANYTHING, value=ANYTHING, name=ANYTHING, instance_id=ANYTHING, path=ANYTHING)
def test_no_text_becomes_another_option(
    key: str, value: str, name: str, instance_id: str, path: str
) -> None:
    plain = ray_node_command(make_node(resources={"x": 1}))
    changes: dict[str, object] = {
        "labels": {"site": "cloud", key: value},
        "resources": {name: 1},
        "instance_id": instance_id,
        "temp_dir": "/" + path,
    }
    for field, wild in changes.items():
        try:
            plan = (
                make_node(resources={"x": 1}, **{field: wild})
                if field != "resources"
                else (make_node(resources=wild))
            )
        except ValidationError:
            continue

        command = ray_node_command(plan)

        options = [word.partition("=")[0] for word in command]
        special = {"CPU", "GPU", "memory"} & plan.resources.keys()
        assert special or options == [word.partition("=")[0] for word in plain]
        assert not any(ord(c) < 32 or ord(c) == 127 for word in command for c in word)
        read = read_by_ray(command)
        assert read["temp_dir"] == plan.temp_dir
        assert labels_by_ray(command) == dict(plan.labels)
        assert all("\0" not in (v or "") for v in ray_node_environment(plan).values())


@given(text=ANYTHING)
def test_a_cleaned_label_is_always_accepted(text: str) -> None:
    cleaned = clean_label(text)

    assert make_node(labels={"x": cleaned}).labels["x"] == cleaned


def test_a_clean_label_keeps_what_it_can() -> None:
    assert clean_label("NVIDIA A100 80GB (SXM)") == "NVIDIA-A100-80GB-SXM"
    assert clean_label("p5.48xlarge") == "p5.48xlarge"
    assert clean_label("——") == ""


# --- what a rented node must find on its machine --------------------------------------------------


def make_spec(**changes: Any) -> LaunchSpec:
    spec = {
        "cluster_id": "c",
        "instance_id": "i-1",
        "epoch": 1,
        "head_address": "127.0.0.1:6379",
        "controller_url": "http://127.0.0.1:1",
        "labels": {},
        "expires_at_s": 0.0,
        "ray_version": "2.60.0",
        "python_version": "3.11.9",
    }
    return LaunchSpec.model_validate(spec | changes)


def expected(plan: NodePlan, spec: LaunchSpec, preflight: Preflight) -> Expected:
    """Return what the node's own program reads in it."""
    content = {
        "id": "i-1",
        "cluster_id": "c",
        "role": "instance",
        "command": ray_node_command(plan),
        "temp_dir": plan.temp_dir,
        "expected": json.loads(json.dumps(ray_node_expected(plan, spec, preflight))),
    }
    found = parse(content).expected
    assert found is not None
    return found


def test_a_node_expects_the_clusters_versions_and_the_offers_gpus() -> None:
    assert expected(make_node(), make_spec(), Preflight()) == Expected(
        ray="2.60.0", python="3.11", gpus=4
    )


def test_a_driver_and_an_install_are_expected_where_the_configuration_says_so() -> None:
    preflight = Preflight(install_ray=True, min_driver="535.104")

    found = expected(make_node(), make_spec(), preflight)

    assert found.min_driver == "535.104"
    assert found.install == (
        *("/opt/venv/bin/python", "-P", "-m", "pip", "install", "--no-input"),
        "ray[default]==2.60.0",
    )


@pytest.mark.parametrize("changes", [{"are_gpus_logical": True}, {"resources": {"CPU": 4}}])
def test_gpus_that_no_device_decides_are_not_looked_for(changes: dict[str, Any]) -> None:
    found = expected(make_node(**changes), make_spec(), Preflight(min_driver="535"))

    assert (found.gpus, found.min_driver) == (0, "")


def test_a_version_that_nobody_knows_is_not_looked_at() -> None:
    spec = make_spec(ray_version="", python_version="")

    assert expected(make_node(), spec, Preflight(install_ray=True)) == Expected(gpus=4)


@pytest.mark.parametrize("version", ["-r /etc/passwd", "2.60; reboot", "x", "1\n", "2" * 50])
def test_what_is_no_version_never_becomes_a_word_of_pip(version: str) -> None:
    for changes in ({"ray_version": version}, {"python_version": version}):
        with pytest.raises(ValueError, match="is not a version"):
            ray_node_expected(make_node(), make_spec(**changes))


@pytest.mark.parametrize("driver", ["new", "535.", "1.2.3.4.5", "-1", "535 "])
def test_a_driver_that_is_no_version_is_refused(driver: str) -> None:
    with pytest.raises(ValidationError):
        Preflight(min_driver=driver)
