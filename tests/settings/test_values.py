"""Tests of single values: each kind, what it accepts, and what it says when it does not."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from hybrid.core.quantity import CountRange, GpuRequest
from hybrid.settings import Settings, readers
from tests.settings.writing import load_text, problem


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("head: 5", "head: '5' is not a mapping; write `key: value` lines below it"),
        ("head: [a]", "head: a list is not a mapping"),
        ("head: {cpus: 1.5}", "head.cpus: '1.5' is not a whole number; write for example 4"),
        ("head: {cpus: true}", "head.cpus: 'true' is not a whole number"),
        ("head: {cpus: {a: 1}}", "head.cpus: a mapping is not a whole number"),
        ("head: {cpus: 99999999999999999999}", "is not a whole number"),
        ("head: {memory: 16}", "head.memory: '16' is not a size; write a number and B, KB"),
        ("head: {port: abc}", "head.port: 'abc' is not a port; write a number or auto"),
        ("head: {port: 0}", "0 is no usable port; write one within 1024..65535, or auto"),
        ("head: {port: 65536}", "65536 is no usable port"),
        ("head: {port: 10002}", "10002 lies in 10002..19999, which Ray's workers use"),
        ("head: {address: gpu-0}", "'gpu-0' is not an IP address; write local, or the address at"),
        ("head: {address: 127.0.0.1}", "cannot be reached from other machines; write local, or"),
        ("head: {address: 0.0.0.0}", "cannot be reached from other machines"),
        ("head: {address: 7}", "'7' is not an IP address; write local, or"),
        ("head: {client_port: 19999}", "19999 lies in 10002..19999"),
        ("head: {port: 8265}", "head.dashboard_port: 8265 is also head.port; write another"),
        ("controller: {port: 6379}", "controller.port: 6379 is also head.port"),
        ("ray: {object_store: 10MB}", "less than Ray accepts; write 80MB or more, or auto"),
        ("ray: {worker_ports: 20000}", "20000..20000 is too narrow"),
        ("ray: {worker_ports: 25000..31000}", "25000..31000 overlaps 20000..29999, where"),
        ("ray: {worker_ports: 6000..6999}", "head.port: 6379 lies in 6000..6999, which Ray's"),
        ("ray: {worker_ports: 80..99}", "leaves the usable ports"),
        ("ray: {worker_ports: 9..1}", "ends before it starts; write 1..9"),
        ("ray: {version: {a: 1}}", "a mapping is not text"),
        ("ray: {health: {keepalive_timeout: 1m}}", "it is longer than keepalive_time, 10s"),
        ("onprem: {hosts: gpu-0}", "'gpu-0' is not a list; begin each entry below it with `- `"),
        ("onprem: {hosts: [gpu-0]}", "onprem.hosts[0]: 'gpu-0' is not a mapping"),
        ("onprem: {hosts: [{cpus: 1}]}", "onprem.hosts[0].name: it is missing; add it"),
        ("onprem: {hosts: [{name: ../x}]}", "'../x' is not a host name"),
        ("onprem: {hosts: [{name: a..b}]}", "'a..b' is not a host name"),
        ("onprem: {hosts: [{name: head}]}", "'head' is the head's own name; write another"),
        ("onprem: {hosts: [{name: a, address: 10.0.0.2}]}", "since head.address is local; set"),
        ("onprem: {hosts: [{name: a, address: 10.0.0.2:22}]}", "a port; write ssh://10.0.0.2:22"),
        (
            "onprem: {hosts: [{name: a, address: -oProxyCommand=x}]}",
            "is not an address; write local",
        ),
        ("onprem: {hosts: [{name: a, address: 'a b'}]}", "'a b' is not an address; write local"),
        ("onprem: {hosts: [{name: a, address: 'a;b'}]}", "'a;b' is not an address; write local"),
        ("onprem: {hosts: [{name: a, address: Local}]}", "'Local' is not an address; write local"),
        ("onprem: {hosts: [{name: a, address: 'ssh://a:0'}]}", "no usable port; write one within"),
        ("onprem: {hosts: [{name: a, address: 'ssh://a:65536'}]}", "no usable port; write one"),
        (
            "head: {address: 10.0.0.5}\n"
            "onprem: {hosts: [{name: a, address: x}, {name: b, address: x}]}",
            "onprem.hosts[1].address: x is also the address of hosts[0]",
        ),
        (
            "onprem: {hosts: [{name: a, accelerators: auto}]}",
            "has the GPUs that you say; write for",
        ),
        ("onprem: {python: bin/python}", "'bin/python' is not an interpreter; write for example"),
        ("onprem: {python: '~/ray/'}", "'~/ray/' is not an interpreter; write for example python"),
        ("onprem: {python: '~'}", "is not an interpreter; write for example python3.11 or"),
        ("onprem: {python: -c}", "'-c' is not an interpreter; write for example python3.11 or"),
        ("onprem: {ssh: {options: [ProxyJump]}}", "'ProxyJump' is not an option of ssh; write N"),
        ("onprem: {ssh: {options: [BatchMode=no]}}", "BatchMode is set by this program; remove it"),
        ("onprem: {ssh: {options: {a: b}}}", "a mapping is not a list; write [ProxyJump=bastion]"),
        ("onprem: {ssh: {identity: x}}", "the key 'identity' is not known"),
        ("onprem: {hosts: [{name: a, accelerators: [A100]}]}", "a list is not a GPU request"),
        ("onprem: {hosts: [{name: a, labels: {site: x}}]}", "the label 'site' is set by this"),
        ("onprem: {hosts: [{name: a, labels: {ray.io/x: x}}]}", "set by this program or by Ray"),
        ("onprem: {hosts: [{name: a, labels: {hybrid-host: b}}]}", "set by this program or by Ray"),
        ("onprem: {hosts: [{name: a, labels: {role: head}}]}", "set by this program or by Ray"),
        ("onprem: {hosts: [{name: a, labels: {'a b': x}}]}", "'a b' is not a label"),
        ("onprem: {hosts: [{name: a, labels: {a: x y}}]}", "'x y' is not a value for the label"),
        ("onprem: {hosts: [{name: a, labels: [a]}]}", "a list is not a mapping"),
        ("burst: {stabilization: 1s}", "did you mean stabilisation?"),
        ("burst: {launches_per_tick: 0}", "0 is too small; write 1 or more"),
        ("burst: {queue: {max_wait: [5]}}", "a list is not a duration; write for example 5m"),
        ("burst: {queue: {max_wait: 9999d}}", "is more than a year"),
        ("burst: {queue: {pending_gpus: .inf}}", "'.inf' is not a number"),
        ("burst: {queue: {pending_gpus: -0.5}}", "-0.5 is negative; write 0 or more"),
        ("drain: {busy: kill}", "'kill' is not possible here; write 'keep' or 'come_home'"),
        ("idle: {unhealthy_ratio: 20}", "20 is not a share; write a number from 0 to 1"),
        ("budget: {usd_per_day: -1}", "budget.usd_per_day: -1 is negative; write 0 or more"),
        ("budget: {usd_per_day: $5}", "'$5' is not a number; write for example 2.40"),
        ("budget: {nodes: .nan}", "budget.nodes: '.nan' is not a whole number"),
        ("lease: {length: 0s}", "'0s' is too short; write 100ms or more"),
        ("lease: {length: 31s, renew: 30s}", "a tick of 5s can come too late to renew a lease of"),
        ("backoff: {first: 1h}", "backoff.longest: it is less than the first delay, 1h"),
        ("controller: {tick: 0ms}", "'0ms' is too short"),
        ("controller: {record: 7}", "controller.record: '7' is not a duration; "),
        ("controller: {record: never}", "controller.record: 'never' is not a duration; "),
        ("controller: {host: example.com}", "'example.com' is not an IP address; write 127.0.0.1"),
        ("controller: {ledger: mysql://h/d}", "this is not a ledger that we know; write postgres"),
        ("controller: {ledger: 'sqlite'}", "this is not a ledger that we know"),
        ("controller: {ledger: 'postgresql+psycopg://h:x/d'}", "host or port of the URL is malf"),
        ("providers: {local: 5}", "providers.local: '5' is not a mapping"),
        ("providers: {moon: {}}", "'moon' is not an installed provider; known are local, tide"),
        ("providers: {local: {pools: []}}", "pools stand under clouds.any_of or clouds.ordered"),
        ("providers: {tide: {secret_key: x}}", "a secret does not belong in this file"),
        ("state_dir: 7\nx: 1", ""),
        ("idle_timeout_minutes: 5", "did you mean idle.after?"),
        ("max_workers: 5", "did you mean budget.nodes?"),
        ("min_life: 5m", "did you mean idle.min_life?"),
        ("zzzz: 5", "the key 'zzzz' is not known; known here are name, state_dir, head, ray"),
        ("'z\\nz': 5", r"hybrid.yaml: 'z\\nz': the key"),
        ('"z\\ez": 5', r"hybrid.yaml: 'z\x1bz': the key"),
    ],
)
def test_a_bad_value_is_refused_in_one_line(tmp_path: Path, line: str, message: str) -> None:
    found = problem(tmp_path, f"name: a\n{line}\n")

    assert found.startswith("hybrid.yaml: ")
    assert message in found


@pytest.mark.parametrize("name", ["", "A", "1a", "a_b", "a" * 32, "../x", "a b", "名"])
def test_a_name_that_could_not_be_a_folder_or_tag_is_refused(tmp_path: Path, name: str) -> None:
    assert "name" in problem(tmp_path, f"name: '{name}'")


def test_values_are_read_into_plain_units(tmp_path: Path) -> None:
    settings = load_text(
        tmp_path,
        """
name: a
ray: {version: 2.60, object_store: auto, worker_ports: 30000..31999}
head: {port: 9999, client_port: off, memory: 1GiB}
onprem:
  hosts:
    - {name: GPU-0.lab, accelerators: A100:8, cpus: "64", labels: {rack: 7, spare: , ok: yes}}
burst: {queue: {max_wait: 1h30m, pending_gpus: 2.5}}
idle: {unhealthy_ratio: .5}
controller: {host: localhost}
""",
    )

    assert settings.ray.version == "2.60"
    assert settings.ray.object_store_bytes == "auto"
    assert settings.ray.worker_ports == CountRange(low=30_000, high=31_999)
    assert settings.head.port == 9_999
    assert settings.head.dashboard_port == 8265
    assert settings.head.client_port == "off"
    assert settings.head.memory_bytes == 2**30
    host = settings.onprem.hosts[0]
    assert host.accelerators == GpuRequest(accelerator="A100", count=8)
    assert (host.gpu_count, host.cpus) == (8, 64)
    assert host.labels == {"rack": "7", "spare": "", "ok": "yes"}
    assert settings.burst.queue.max_wait_s == 5_400.0
    assert settings.burst.queue.pending_gpus == 2.5
    assert settings.idle.unhealthy_ratio == 0.5
    assert settings.controller.host == "127.0.0.1"


@pytest.mark.parametrize(("word", "is_spot"), [("true", True), ("no", False), ("On", True)])
def test_a_flag_is_read_from_the_words_people_use(tmp_path: Path, word: str, is_spot: bool) -> None:
    text = f"name: a\nclouds: {{any_of: [{{infra: local, use_spot: {word}}}]}}\nbudget: {{gpus: 1}}"

    settings = load_text(tmp_path, text)

    assert settings.clouds is not None
    assert settings.clouds.pools[0].use_spot is is_spot


def test_values_may_also_come_from_python() -> None:
    settings = Settings.model_validate(
        {
            "name": "a",
            "head": {"cpus": 4, "client_port": False},
            "ray": {"worker_ports": CountRange(low=30_000, high=31_999)},
            "onprem": {"hosts": [{"name": "b", "accelerators": GpuRequest("A100", 8)}]},
            "clouds": {"any_of": [{"infra": "local", "use_spot": True, "usd_per_hour": 2}]},
            "budget": {"usd_per_day": 20, "gpus": "8"},
        }
    )

    assert settings.head.client_port == "off"
    assert settings.caps.usd_per_day == 20.0
    assert settings.clouds is not None
    assert settings.clouds.pools[0].usd_per_hour == 2.0


@pytest.mark.parametrize("value", [math.nan, math.inf, -1, 10**400, True, None, [], "1e3"])
def test_no_python_value_becomes_an_amount_by_mistake(value: object) -> None:
    with pytest.raises(ValueError, match=r"write"):
        readers.amount(value)


@pytest.mark.parametrize("value", [5, 5.0, True, None, [], {}])
def test_a_python_number_has_no_unit(value: object) -> None:
    for read in (readers.duration, readers.size, readers.gpus):
        with pytest.raises(ValueError, match=r"write"):
            read(value)


@pytest.mark.parametrize(
    ("line", "kept_s", "shown"),
    [
        ("{}", 604_800.0, "7d"),
        ("{record: 12h}", 43_200.0, "12h"),
        ("{record: off}", "off", "off"),
        ("{record: 'off'}", "off", "off"),
    ],
)
def test_a_record_is_kept_for_a_time_or_not_at_all(
    tmp_path: Path, line: str, kept_s: object, shown: str
) -> None:
    controller = load_text(tmp_path, f"name: a\ncontroller: {line}\n").controller

    assert controller.record == kept_s
    assert controller.model_dump(mode="json")["record"] == shown
