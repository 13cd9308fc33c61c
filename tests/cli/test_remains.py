"""What is left of a cluster: node processes here, and what the ledger holds as rented."""

from __future__ import annotations

from pathlib import Path

import pytest

from hybrid.adapters.ledger import open_ledger, sqlite_url
from hybrid.cli import remains
from hybrid.core.models import Caps
from tests.adapters.ledger.builders import NOW_S, make_instance
from tests.cli.conftest import Run
from tests.cli.stand_in import start_node


def rent(path: Path) -> str:
    """Write a ledger with one rented instance, as a controller does; its id."""
    ledger = open_ledger(sqlite_url(path))
    ledger.acquire("test", now_s=NOW_S)
    instance = make_instance()
    ledger.request(instance, caps=Caps(), exit_s=0.0, now_s=NOW_S)
    ledger.close()
    return instance.instance_id


def test_nothing_is_left_of_what_never_was(tmp_path: Path) -> None:
    assert remains.report(tmp_path / "nope") == []


def test_a_live_row_of_the_ledger_is_reported(tmp_path: Path) -> None:
    instance_id = rent(tmp_path / "ledger.db")

    (line,) = remains.report(tmp_path)

    assert line.startswith(f"instance {instance_id} (")
    assert line.endswith("), requested")


def test_a_ledger_elsewhere_is_looked_at_too(tmp_path: Path) -> None:
    rent(tmp_path / "elsewhere.db")

    assert remains.report(tmp_path) == []
    assert remains.report(tmp_path, ledger_url=sqlite_url(tmp_path / "elsewhere.db")) != []


def test_a_ledger_that_cannot_be_read_is_unknown_not_empty(tmp_path: Path) -> None:
    (tmp_path / "ledger.db").write_bytes(b"this is no database" * 100)

    assert remains.report(tmp_path) == ["rented instances: unknown, the ledger cannot be read"]


def test_a_node_of_another_cluster_is_not_ours(tmp_path: Path) -> None:
    node = start_node(tmp_path / "ours")
    (tmp_path / "theirs").mkdir()

    assert remains.live_nodes(tmp_path / "theirs") == []
    assert remains.live_nodes(tmp_path / "ours") == [f"gpu-1: process {node.pid}"]
    node.kill()
    node.wait()
    assert remains.live_nodes(tmp_path / "ours") == []


def test_a_damaged_node_folder_is_unknown_not_empty(tmp_path: Path) -> None:
    folder = tmp_path / "nodes" / "gpu-1"
    folder.mkdir(parents=True)
    (folder / "node.json").write_text("{")

    (line,) = remains.report(tmp_path)

    assert line.startswith("node gpu-1: unknown (")


@pytest.mark.parametrize("is_known", [True, False])
def test_down_does_not_believe_in_an_end_while_the_ledger_holds_an_instance(
    home: Path, start: Run, tmp_path: Path, is_known: bool
) -> None:
    (home / "lab").mkdir(parents=True)
    instance_id = rent(home / "lab" / "ledger.db")
    (tmp_path / "lab.yaml").write_text("name: lab\n")
    if is_known:
        remains.remember(home / "lab", tmp_path / "lab.yaml", "")

    shown = start("down")

    assert shown.code == 2
    assert f"instance {instance_id} (" in shown.out
    assert ("pass -y" if is_known else "run `hybrid down FILE`") in shown.err
