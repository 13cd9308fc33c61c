"""The unit that has a node started again after a reboot, with a stand-in for systemctl."""

from __future__ import annotations

import configparser
import shlex
import sys
from pathlib import Path

import pytest

from hybrid.node.environment import TAG
from hybrid.node.unit import Unit
from tests.node.systemd import verified

SYSTEMCTL = """\
#!/bin/sh
echo "$*" >> {log}
exit {code}
"""


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return where the calls of systemctl and loginctl are noted, all of which go well."""
    tools = tmp_path / "tools"
    tools.mkdir()
    log = tmp_path / "calls"
    log.write_text("")
    for name in ("systemctl", "loginctl"):
        (tools / name).write_text(SYSTEMCTL.format(log=log, code=0))
        (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")
    return log


def unit(tmp_path: Path, kind: str = "system") -> Unit:
    return Unit(tmp_path / "n 1", "c0/gpu-1", "/p r/$x%h", kind, tmp_path / "units")


def told(calls: Path) -> list[str]:
    return calls.read_text().splitlines()


def test_it_is_written_enabled_and_started(tmp_path: Path, calls: Path) -> None:
    assert unit(tmp_path).start()

    name = "hybrid-c0-gpu-1.service"
    assert (tmp_path / "units" / name).exists()
    assert told(calls) == ["daemon-reload", f"enable {name}", f"restart {name}"]


def test_its_command_survives_spaces_and_what_systemd_would_expand(tmp_path: Path) -> None:
    parsed = configparser.ConfigParser(interpolation=None, strict=False)
    parsed.optionxform = str  # type: ignore[assignment,method-assign]  # as documented
    parsed.read_string(unit(tmp_path).text)

    words = shlex.split(parsed["Service"]["ExecStart"])

    program = "/p r/$$x%%h/hybrid/node/__main__.py"
    assert words == [sys.executable, "-P", program, "run", str(tmp_path / "n 1")]
    environment = dict(w.split("=", 1) for w in shlex.split(parsed["Service"]["Environment"]))
    assert environment[TAG] == "c0/gpu-1"
    assert environment["HOME"] == parsed["Service"]["WorkingDirectory"] == str(Path.home())
    assert parsed["Install"]["WantedBy"] == "multi-user.target"


def test_that_of_a_user_lives_on_without_a_login(tmp_path: Path, calls: Path) -> None:
    assert unit(tmp_path, "user").start()

    assert told(calls)[:2] == ["enable-linger", "--user daemon-reload"]
    assert "WantedBy=default.target" in unit(tmp_path, "user").text


def test_a_user_who_may_not_linger_has_none(tmp_path: Path, calls: Path) -> None:
    loginctl = tmp_path / "tools" / "loginctl"
    loginctl.write_text(SYSTEMCTL.format(log=calls, code=1))

    assert not unit(tmp_path, "user").start()
    assert not (tmp_path / "units").exists()


def test_where_systemctl_is_missing_it_does_not_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    assert not unit(tmp_path).start()


def test_it_is_taken_away_and_that_can_be_repeated(tmp_path: Path, calls: Path) -> None:
    unit(tmp_path).start()
    calls.write_text("")

    unit(tmp_path).remove()
    unit(tmp_path).remove()

    name = "hybrid-c0-gpu-1.service"
    assert told(calls) == [f"disable --now {name}", "daemon-reload", f"reset-failed {name}"]
    assert list((tmp_path / "units").iterdir()) == []


def test_root_has_units_of_the_machine_and_others_their_own(tmp_path: Path) -> None:
    assert Unit.of_system(tmp_path, "c/n", "/p").place == Path("/etc/systemd/system")
    assert Unit.of_user(tmp_path, "c/n", "/p").place.parts[-3:] == (".config", "systemd", "user")


# --- by systemd itself ----------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["system", "user"])
def test_systemd_finds_no_fault_with_it(tmp_path: Path, kind: str) -> None:
    made = Unit(tmp_path / "n 1%", "c0/gpu-1", "/p r/$x%h", kind, tmp_path / "units")
    file = tmp_path / made.name
    file.write_text(made.text)

    assert verified(file, f"--{kind}") == ""


def test_what_systemd_would_not_know_would_be_found(tmp_path: Path) -> None:
    """Else the test above would prove nothing."""
    made = unit(tmp_path)
    file = tmp_path / made.name
    file.write_text(made.text.replace("KillMode=mixed", "KillMode=mixt\nTasksMost=1"))

    said = verified(file)

    assert "kill mode" in said
    assert "TasksMost" in said


def test_a_systemd_that_hangs_is_asked_once(
    tmp_path: Path, calls: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hybrid.node.unit._LIMIT_S", 0.2)
    systemctl = tmp_path / "tools" / "systemctl"
    systemctl.write_text(f'#!/bin/sh\necho "$*" >> {calls}\nexec sleep 60\n')

    assert not unit(tmp_path).start()
    unit(tmp_path).remove()

    assert told(calls) == ["daemon-reload", "disable --now hybrid-c0-gpu-1.service"]
    assert list((tmp_path / "units").iterdir()) == []
