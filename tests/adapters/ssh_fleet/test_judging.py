"""What is found about a host, whether it blocks, and what to do."""

from __future__ import annotations

from typing import Any

import pytest

from hybrid.adapters.ssh_fleet.judging import CHECKS, judge, reached, unjudged
from hybrid.adapters.ssh_fleet.refusals import HostUnreachableError, NoPythonError
from hybrid.adapters.ssh_fleet.twins import twins
from hybrid.core.quantity import gpu_request
from tests.adapters.ssh_fleet.make import A100, RTX3070, RTX4090, facts, finding, wanted


def test_a_healthy_host_has_nothing_to_repair() -> None:
    found = [reached(facts()), *judge(facts(), wanted()), *dict(twins({"a": facts()})).values()]

    assert [item.check for item in found] == list(CHECKS)
    assert {item.state for item in found} == {"ok"}
    assert all(item.found and not item.remedy for item in found)


@pytest.mark.parametrize(
    ("check", "changes", "state", "is_blocking", "words", "remedy"),
    [
        ("python", {"python_version": "3.12.1"}, "fail", True, "3.12.1", "uv venv --python 3.11"),
        ("python", {"python_version": "3.11.9"}, "ok", False, "3.11.9", ""),
        ("ray", {"ray_version": "2.60.1"}, "fail", True, "2.60.1, but", "'ray[default]==2.60.0'"),
        ("ray", {"ray_version": ""}, "fail", True, "not installed", "/opt/ray/bin/python -m pip"),
        (
            "disk",
            {"is_home_writable": False},
            "fail",
            True,
            "cannot write /home/ops",
            "home folder",
        ),
        ("disk", {"disk_free_bytes": {"/tmp": 10**8}}, "fail", True, "0.1 GiB free", "make room"),
        ("disk", {"disk_free_bytes": {"/tmp": 10**9}}, "warn", False, "0.9 GiB", "make room"),
        ("disk", {"files_free": {"/tmp": 7}}, "fail", True, "7 more files only in /tmp", "df -i"),
        ("disk", {"is_tmp_writable": False}, "fail", True, "ops cannot write /tmp", "chmod 1777"),
        ("disk", {"is_tmp_noexec": True}, "warn", False, "nothing in /tmp can be run", "noexec"),
        ("memory", {"memory_available_bytes": 10**8}, "warn", False, "0.1 GiB", "end other"),
        ("memory", {"memory_available_bytes": None}, "warn", False, "unknown", "/proc"),
        ("clock", {"clock_ahead_s": 600.0}, "warn", False, "600 s ahead of", "timedatectl"),
        ("clock", {"clock_ahead_s": -600.0}, "warn", False, "600 s behind", "timedatectl"),
        ("clock", {"clock_ahead_s": None}, "skip", False, "not measured", ""),
        ("out", {"dials": {"gcs": "no answer"}}, "fail", True, "10.0.0.5:6379: no", "head.address"),
        ("out", {"dials": {"controller": "refused"}}, "fail", False, "controller", "firewall"),
        ("out", {"dials": {}}, "skip", False, "nothing", ""),
        ("in", {"unreached": {"workers' ports": "no answer (port 7)"}}, "fail", False, "7", "open"),
        ("in", {"unopened": ["Ray's ports"]}, "fail", False, "no free port", "20000-29999"),
        ("in", {"node_ip": ""}, "fail", False, "no way to the head", "ip route"),
        ("gpus", {"gpus": {"found": [A100]}}, "warn", False, "gives it none", "auto"),
        ("gpus", {}, "ok", False, "none, as configured", ""),
    ],
)
def test_each_fault_is_named_with_its_remedy(
    check: str, changes: dict[str, Any], state: str, is_blocking: bool, words: str, remedy: str
) -> None:
    found = finding(check, **changes)

    assert (found.state, found.is_blocking) == (state, is_blocking)
    assert words in found.found
    assert remedy in found.remedy
    assert bool(found.remedy) is (state in ("fail", "warn"))


def test_a_clock_that_is_wrong_does_not_keep_a_host_out_and_says_so() -> None:
    assert "joins all the same" in finding("clock", clock_ahead_s=600.0).found


def test_a_head_that_is_not_up_yet_refuses_and_that_says_nothing() -> None:
    found = finding("out", want=wanted(is_head_up=False), dials={"gcs": "refused"})

    assert found.state == "ok"


def test_a_store_that_does_not_fit_into_shared_memory_is_a_warning() -> None:
    want = wanted(object_store_bytes=2**31)

    assert finding("memory", want=want, shm_free_bytes=2**26).state == "warn"


@pytest.mark.parametrize(
    ("has", "want", "words", "is_blocking"),
    [
        ({}, {"min_driver": "999"}, "at least driver 999 is expected", True),
        ({}, {"min_cuda": "12.9"}, "serves CUDA up to 12.8, and 12.9 is expected", True),
        ({"cuda": ""}, {"min_cuda": "12.9"}, "does not say which CUDA", True),
        ({"compiler": "13.0"}, {}, "it brings CUDA 13.0, and its NVIDIA driver serves", False),
    ],
)
def test_a_driver_that_is_too_old_for_the_cluster_or_for_its_cuda_is_told(
    has: dict[str, Any], want: dict[str, Any], words: str, is_blocking: bool
) -> None:
    gpus = {"found": [A100], "cuda": "12.8", **has}

    told = finding("gpus", want=wanted(is_auto=True, **want), gpus=gpus)

    assert words in told.found
    assert told.is_blocking is is_blocking
    assert "newer driver" in told.remedy


def test_gpus_are_told_with_driver_and_cuda() -> None:
    gpus = {"found": [A100], "cuda": "12.8"}
    want = wanted(gpus=gpu_request("A100:1"))

    assert finding("gpus", want=want, gpus=gpus).found == "1 x A100-80GB; driver 570.1, CUDA 12.8"


def test_missing_gpus_keep_a_host_out() -> None:
    found = finding("gpus", want=wanted(gpus=gpu_request("A100:8")), gpus={"found": [A100]})

    assert (found.state, found.is_blocking) == ("fail", True)


def test_mixed_gpus_join_with_a_warning() -> None:
    gpus = {"found": [RTX3070, RTX4090, RTX4090 | {"uuid": "GPU-e"}]}
    found = finding("gpus", want=wanted(is_auto=True), gpus=gpus)

    assert (found.state, found.is_blocking) == ("warn", False)
    assert "accelerators: RTX-4090:2" in found.remedy


def test_one_machine_under_two_names_is_found_out() -> None:
    found = dict(twins({"a": facts(), "b": facts(), "c": facts(machine_id="m2", hostname="c")}))

    assert [found[name].state for name in "abc"] == ["fail", "fail", "ok"]
    assert "the same machine as host b" in found["a"].found
    assert found["a"].is_blocking


def test_gpus_that_two_hosts_have_are_found_out() -> None:
    gpus = {"found": [A100]}
    found = dict(twins({"a": facts(gpus=gpus), "b": facts(gpus=gpus, network="net:[2]")}))

    assert "1 GPUs that are host b's too" in found["a"].found


def test_two_machines_of_one_name_or_one_image_are_only_warned_about() -> None:
    found = dict(twins({"a": facts(), "b": facts(boot_id="b2")}))

    assert found["a"].state == "warn"
    assert "hostnamectl set-hostname a" in found["a"].remedy


def test_a_host_that_was_not_reached_has_a_finding_for_each_check() -> None:
    found = unjudged(HostUnreachableError("it is off", "switch it on"))

    assert [item.check for item in found] == list(CHECKS)
    assert [item.state for item in found] == ["fail"] + ["skip"] * 9


def test_a_host_without_the_interpreter_was_reached() -> None:
    found = unjudged(NoPythonError("there is none", "install it"))

    assert [item.state for item in found] == ["ok", "fail"] + ["skip"] * 8
