"""Tests of warnings."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.settings.writing import CLOUD, load_text

HOSTS = "onprem: {hosts: [{name: gpu-0}]}\n"


def test_an_ordinary_configuration_has_no_warnings(tmp_path: Path) -> None:
    assert load_text(tmp_path, f"name: a\n{HOSTS}{CLOUD}").warnings() == ()


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        ("", "there are no onprem.hosts and no clouds: only the head can run work"),
        (HOSTS + "controller: {host: 0.0.0.0}", "controller.host is 0.0.0.0: the API can be"),
        (CLOUD + "lease: {length: 10m, renew: 6m}", "lease.renew (6m) is more than half of"),
        (
            CLOUD.replace(", usd_per_day: 20", ""),
            "budget has no cap in dollars: nodes and gpus limit how much is rented at a time",
        ),
        (
            CLOUD.replace("nodes: 2", "gpus: 3"),
            "clouds.any_of[0] is never rented: budget.gpus is 3 and one instance needs 4",
        ),
        (
            CLOUD.replace("nodes: 2", "usd_per_hour: 2"),
            "clouds.any_of[0] is never rented: budget.usd_per_hour is 2 and one instance needs 2.4",
        ),
        (CLOUD.replace("usd_per_day: 20", "usd_per_day: 0"), "never rented: budget.usd_per_day is"),
        (CLOUD.replace("nodes: 2", "nodes: 0"), "never rented: budget.nodes is 0"),
        (CLOUD.replace("2.40}", "2.40, max_nodes: 0}"), "never rented: its max_nodes is 0"),
    ],
)
def test_what_is_probably_not_meant_is_said(tmp_path: Path, text: str, warning: str) -> None:
    found = load_text(tmp_path, f"name: a\n{text}").warnings()

    assert len(found) == 1
    assert warning in found[0]


def test_a_cloud_whose_machines_could_not_join_is_said_to_cost_for_nothing(tmp_path: Path) -> None:
    text = f"name: a\n{HOSTS}{CLOUD.replace('infra: local', 'infra: tide/north')}"

    [warning] = load_text(tmp_path, text).warnings()

    assert "machines of tide cannot join, since head.address is local" in warning
    assert "`hybrid up` refuses" in warning


def test_an_emulated_cloud_is_no_warning(tmp_path: Path) -> None:
    text = f"name: a\n{HOSTS}{CLOUD.replace('infra: local', 'infra: tide/north')}"
    text += "providers: {tide: {endpoint_url: 'http://127.0.0.1:1'}}\n"

    assert load_text(tmp_path, text).warnings() == ()
