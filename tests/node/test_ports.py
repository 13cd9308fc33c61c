"""Ports are free, and two choosers never choose the same."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from hybrid.node.holders import holder
from hybrid.node.ports import NoPortError, PortChooser, fill, is_free, places

FIRST = 22_900


def test_places_are_found_once_and_filled_everywhere() -> None:
    command = ["ray", "--port={port:gcs}", "--x={port:agent}", "--y={port:gcs}", "--z={other}"]

    assert places(command) == ["gcs", "agent"]
    assert fill(command, {"gcs": 1, "agent": 2})[1:] == [
        "--port=1",
        "--x=2",
        "--y=1",
        "--z={other}",
    ]


def test_a_port_in_use_is_not_chosen_and_its_holder_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", FIRST)):
        chooser = PortChooser(tmp_path / "lock", (FIRST, FIRST + 1))

        chosen = chooser.choose(["a"], before={"a": FIRST}, seed="x")

        assert chosen == {"a": FIRST + 1}
        assert not is_free(FIRST)
        assert f"(pid {os.getpid()})" in str(holder(FIRST))
    assert is_free(FIRST)
    assert holder(FIRST) is None


@pytest.mark.parametrize("place", ["nodes/head", "providers/local/instances/i-1"])
def test_the_cluster_that_holds_a_port_is_named_also_by_a_child_of_its_node(
    tmp_path: Path, place: str
) -> None:
    state_dir = tmp_path / "proj"
    serve = (
        "import socket, sys; s = socket.create_server(('127.0.0.1', int(sys.argv[1]))); "
        "print('up', flush=True); sys.stdin.read()"
    )
    program = tmp_path / "hybrid" / "node" / "__main__.py"
    program.parent.mkdir(parents=True)
    program.write_text(
        "import subprocess, sys\n"
        f"subprocess.run([sys.executable, '-c', {serve!r}, '{FIRST}', 'x' * 300])\n"
    )
    words = [sys.executable, str(program), "start", str(state_dir / place)]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        found = holder(FIRST)
        process.communicate("")

    assert found is not None
    assert (found.cluster, found.state_dir) == ("proj", str(state_dir))
    assert str(found) == f"cluster proj (its state folder is {state_dir})"
    assert len(found.program) < 70


def test_a_full_range_is_an_error(tmp_path: Path) -> None:
    chooser = PortChooser(tmp_path / "lock", (FIRST, FIRST + 1))

    with pytest.raises(NoPortError, match="no free port from 22900 to 22901"):
        chooser.choose(["a", "b", "c"], before={}, seed="x")


def test_an_earlier_port_outside_of_the_range_is_not_taken_again(tmp_path: Path) -> None:
    chooser = PortChooser(tmp_path / "lock", (FIRST, FIRST + 5))

    chosen = chooser.choose(["a", "b"], before={"a": 80, "b": FIRST + 2}, seed="x")

    assert chosen["a"] != 80
    assert chosen["b"] == FIRST + 2


def test_ports_chosen_by_a_living_process_are_kept_from_others(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from hybrid.node.ports import PortChooser\n"
        f"c = PortChooser(Path(sys.argv[1]), ({FIRST}, {FIRST + 1}))\n"
        "print(c.choose(['a'], before={}, seed='x')['a'], flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "lock")]
    with subprocess.Popen(command, stdin=-1, stdout=-1, text=True, cwd=Path.cwd()) as other:
        assert other.stdout is not None
        taken = int(other.stdout.readline())
        chooser = PortChooser(tmp_path / "lock", (FIRST, FIRST + 1))

        mine = chooser.choose(["a"], before={"a": taken}, seed="x")["a"]

        assert {mine, taken} == {FIRST, FIRST + 1}
        other.kill()
        other.wait()
    again = PortChooser(tmp_path / "lock2", (FIRST, FIRST + 1))
    assert set(again.choose(["a", "b"], before={}, seed="x").values()) == {FIRST, FIRST + 1}
