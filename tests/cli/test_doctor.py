"""`hybrid doctor`: each check in good and in bad health."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hybrid.cli import doctor_checks
from hybrid.cli.doctor_checks import Check, all_checks
from tests.cli.conftest import Lab, Run
from tests.running import dead_pid, write_record


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "lab.yaml"
    path.write_text("name: lab\nhead: {port: auto, dashboard_port: auto}\n")
    return path


def check(file: Path, name: str, cluster: str = "") -> Check:
    return next(item for item in all_checks(file, cluster) if item.name == name)


def test_every_finding_that_is_not_well_has_a_remedy(run: Run, config: Path) -> None:
    answer = json.loads(run("doctor", str(config), "--json").out)

    assert {item["name"] for item in answer["checks"]} == {
        "python",
        "ray",
        "configuration",
        "controller",
        "ports",
        "state folder",
        "secrets",
        "shared memory",
        "memory",
        "disk",
    }
    assert all(item["remedy"] for item in answer["checks"] if item["state"] in ("warn", "fail"))
    assert all(set(item) == {"name", "state", "found", "remedy"} for item in answer["checks"])


def test_doctor_is_quick_and_readable(lab: Lab, run: Run, config: Path) -> None:
    shown = run("doctor", str(config))

    assert shown.out.splitlines()[0].split() == ["CHECK", "RESULT", "FOUND", "REMEDY"]
    assert f"ready at {lab.server.url}" in shown.out


def test_a_broken_configuration_fails(run: Run, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("name: 7up\n")

    shown = run("doctor", "bad.yaml")

    assert shown.code == 1
    assert "1 problem to repair." in shown.out


def test_another_ray_than_the_pinned_one_fails(
    config: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor_checks, "installed", lambda _name: "2.58.0")

    found = check(config, "ray")

    assert found.state == "fail"
    assert "pip install 'ray[default]==2.60.0'" in found.remedy


def test_no_ray_fails(config: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor_checks, "installed", lambda _name: None)

    assert check(config, "ray").state == "fail"


def test_a_dead_controller_fails_and_says_what_to_do(home: Path, config: Path) -> None:
    write_record(home / "lab", url="http://127.0.0.1:1", pid=dead_pid())

    found = check(config, "controller")

    assert found.state == "fail"
    assert "`hybrid down` cleans up" in found.remedy


def test_a_controller_that_does_not_answer_fails(home: Path, config: Path) -> None:
    write_record(home / "lab", url="http://127.0.0.1:1")

    assert "does not answer" in check(config, "controller").found


@pytest.mark.parametrize(("state", "result"), [("starting", "warn"), ("stalled", "fail")])
def test_a_controller_that_is_not_ready_is_said_so(
    lab: Lab, config: Path, state: str, result: str
) -> None:
    lab.service.state = state

    assert check(config, "controller").state == result
    assert check(config, "controller", cluster="lab").state == result


def test_a_cluster_that_does_not_run_is_no_problem(home: Path, config: Path) -> None:
    assert check(config, "controller").state == "skip"


def test_secrets_that_others_can_read_fail(home: Path, config: Path) -> None:
    (home / "lab").mkdir(parents=True, mode=0o700)
    token = home / "lab" / "api_token"
    token.write_text("t")
    token.chmod(0o644)

    found = check(config, "secrets")

    assert found.state == "fail"
    assert found.remedy == f"chmod 600 {token}"
    token.chmod(0o600)
    assert check(config, "secrets").state == "ok"


def test_an_open_state_folder_is_a_warning(home: Path, config: Path) -> None:
    (home / "lab").mkdir(parents=True)
    (home / "lab").chmod(0o755)

    assert check(config, "state folder").state == "warn"


def test_more_object_stores_than_shared_memory_is_a_warning(home: Path, tmp_path: Path) -> None:
    (tmp_path / "big.yaml").write_text("name: lab\nray: {object_store: 900TB}\n")

    found = check(tmp_path / "big.yaml", "shared memory")

    assert found.state == "warn"
    assert "--shm-size" in found.remedy


def test_a_full_disk_fails(home: Path, config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor_checks, "_DISK_FAIL_GIB", 1e9)

    assert check(config, "disk").state == "fail"


@pytest.fixture
def foreign(home: Path, run: Run) -> Iterator[Path]:
    """Return a state folder of another user, seen as somebody who is not root."""
    run("doctor", "--json")  # loads all modules while they can be read
    run("down")
    folder = home / "lab"
    folder.mkdir(parents=True, mode=0o700)
    (folder / "api_token").write_text("secret")
    was = os.geteuid()
    above = {path: path.stat().st_mode for path in (home, *home.parents[:3])}
    if was == 0:
        for path in above:
            path.chmod(0o711)
        os.seteuid(65534)
    else:
        folder.chmod(0)
    yield folder
    if was == 0:
        os.seteuid(0)
        for path, mode in above.items():
            path.chmod(mode)
    folder.chmod(0o700)


@pytest.mark.parametrize("is_below", [False, True], ids=["the-folder", "the-folder-above"])
def test_a_state_folder_of_another_user_is_a_finding(
    run: Run, tmp_path: Path, home: Path, foreign: Path, is_below: bool
) -> None:
    if is_below:
        home_of = foreign / "home"
        text = f"name: lab\nstate_dir: {home_of}/lab\n"
    else:
        text = f"name: lab\nstate_dir: {foreign}\n"
    as_root(lambda: (tmp_path / "lab.yaml").write_text(text))

    shown = run("doctor", "--json", str(tmp_path / "lab.yaml"))

    checks = {check["name"]: check for check in json.loads(shown.out)["checks"]}
    assert shown.code == 1
    assert checks["state folder"]["state"] == "fail"
    assert checks["secrets"]["state"] == "fail"
    assert "Traceback" not in shown.err


def test_down_of_another_users_cluster_says_so(run: Run, tmp_path: Path, foreign: Path) -> None:
    as_root(lambda: (tmp_path / "lab.yaml").write_text(f"name: lab\nstate_dir: {foreign}\n"))

    for words in (("down", str(tmp_path / "lab.yaml")), ("down", "-c", str(foreign))):
        shown = run(*words, "-y")

        assert shown.code == 2
        assert f"{foreign} cannot be looked into" in shown.err


def as_root(call: Callable[[], int]) -> int:
    """Do something as the user who runs the tests."""
    was = os.geteuid()
    os.seteuid(os.getuid())
    try:
        return call()
    finally:
        os.seteuid(was)
