"""Which cluster `hybrid down` ends, and which it leaves alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hybrid.adapters.ledger import sqlite_url
from hybrid.cli import closing, remains
from hybrid.core.models import JobSpec, JobState
from tests.cli.conftest import Lab, Run
from tests.cli.stand_in import start_node
from tests.cli.test_remains import rent
from tests.running import TOKEN, dead_pid, write_record


@pytest.fixture
def other(lab: Lab, home: Path) -> Path:
    """Rename the running cluster: `other` runs, and `lab` has ended."""
    (home / "lab").rename(home / "other")
    write_record(home / "other", url=lab.server.url)
    (home / "other" / "api_token").write_text(TOKEN)
    (home / "lab").mkdir()
    (home / "lab" / "controller.log").touch()
    return home / "other"


def dead(folder: Path, config: Path | None = None) -> None:
    """Leave what a controller that died leaves."""
    write_record(folder, url="http://127.0.0.1:1", pid=dead_pid())
    if config is not None:
        remains.remember(folder, config, "")


def test_the_file_of_this_folder_says_which_cluster(
    run: Run, lab: Lab, other: Path, tmp_path: Path
) -> None:
    (tmp_path / "hybrid.yaml").write_text("name: lab\n")

    shown = run("down", "-y")

    assert shown.code == 2
    assert "lab is not running; running: other" in shown.err
    assert "`hybrid down -c other`" in shown.err
    assert not lab.service.closed.is_set()


def test_the_file_of_the_variable_says_which_cluster(
    run: Run, lab: Lab, other: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.yaml").write_text("name: lab\n")
    monkeypatch.setenv("HYBRID_CONFIG", str(tmp_path / "mine.yaml"))

    shown = run("down", "-y")

    assert shown.code == 2
    assert not lab.service.closed.is_set()


def test_a_broken_file_of_this_folder_does_not_hide_how_to_go_on(
    run: Run, lab: Lab, tmp_path: Path
) -> None:
    (tmp_path / "hybrid.yaml").write_text("nam: lab\n")

    shown = run("down", "-y")

    assert shown.code == 2
    assert "`hybrid down -c NAME`" in shown.err
    assert not lab.service.closed.is_set()


def test_a_name_and_a_file_of_another_cluster_are_refused(
    run: Run, lab: Lab, tmp_path: Path
) -> None:
    (tmp_path / "other.yaml").write_text("name: other\n")

    shown = run("down", "-c", "lab", "other.yaml", "-y")

    assert shown.code == 2
    assert "--cluster lab and `name: other`" in shown.err
    assert not lab.service.closed.is_set()


@pytest.mark.parametrize("word", ["labb", "./nowhere"])
def test_a_mistyped_name_is_not_a_clean_end(run: Run, lab: Lab, word: str) -> None:
    shown = run("down", "-c", word, "-y")

    assert shown.code == 1
    assert f"there is no cluster '{word}'" in shown.err
    assert ": lab" in shown.err


def test_a_mistyped_variable_is_not_a_clean_end(
    run: Run, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HYBRID_CLUSTER", "labb")

    assert run("down", "-y").code == 1


def test_a_folder_of_something_else_is_no_cluster(run: Run, home: Path) -> None:
    (home / "notes").mkdir(parents=True)

    assert run("down", "-c", "notes", "-y").code == 1


def test_a_relative_state_folder_is_the_same_cluster(run: Run, lab: Lab, home: Path) -> None:
    named = run("down", "-c", f"./{home.name}/lab")

    assert named.code == 2
    assert "Closing cluster lab ends:" in named.out


@pytest.mark.slow
def test_a_dead_cluster_is_closed_by_its_relative_folder(
    start: Run, home: Path, tmp_path: Path
) -> None:
    (tmp_path / "lab.yaml").write_text("name: lab\n")
    dead(home / "lab", tmp_path / "lab.yaml")

    shown = start("down", "-c", f"./{home.name}/lab", "-y")

    assert shown.code == 0
    assert "Cluster lab is closed" in shown.out


@pytest.mark.parametrize("how", ["relative", "link", "dots"])
def test_a_controller_that_starts_is_known_however_its_folder_was_written(
    home: Path, tmp_path: Path, how: str
) -> None:
    folder = home / "lab"
    folder.mkdir(parents=True)
    (tmp_path / "link").symlink_to(home)
    word = {"relative": "home/lab", "link": f"{tmp_path}/link/lab", "dots": f"{home}/x/../lab"}[how]
    (home / "x").mkdir()
    program = "import time; print(flush=True); time.sleep(60)"
    process = subprocess.Popen(
        [sys.executable, "-c", program, "--state-dir", word], cwd=tmp_path, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.readline()
    (folder / "controller.lock").write_text(str(process.pid))

    found = closing._is_starting(folder)

    process.kill()
    process.communicate()
    assert found
    assert not closing._is_starting(folder)


def test_a_long_job_behind_many_short_ones_is_listed(run: Run, lab: Lab) -> None:
    for number in range(250):
        short = lab.service.submit(JobSpec(entrypoint="true"), job_id=f"j-short-{number}")
        lab.service.finish(short.job_id, JobState.SUCCEEDED)

    shown = run("down")

    assert "job j-running (train), running" in shown.out
    assert "j-short" not in shown.out


class TestLedgerElsewhere:
    """The ledger is not in the state folder."""

    @pytest.fixture
    def url(self, tmp_path: Path) -> str:
        rent(tmp_path / "elsewhere.db")
        return sqlite_url(tmp_path / "elsewhere.db")

    @pytest.fixture
    def config(self, tmp_path: Path) -> Path:
        (tmp_path / "lab.yaml").write_text("name: lab\n")
        return tmp_path / "lab.yaml"

    def test_of_the_file_is_looked_at(self, run: Run, home: Path, url: str, config: Path) -> None:
        config.write_text(f"name: lab\ncontroller: {{ledger: '{url}'}}\n")
        dead(home / "lab", config)
        remains.remember(home / "lab", config, url)

        shown = run("down", "-c", "lab")

        assert shown.code == 2
        assert "instance i-" in shown.out

    def test_of_the_variable_is_looked_at(
        self, run: Run, home: Path, url: str, config: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HYBRID_LEDGER_URL", url)
        dead(home / "lab")
        remains.remember(home / "lab", config, url)

        assert "instance i-" in run("down").out

    def test_that_this_environment_no_longer_names_is_not_replaced_by_an_empty_one(
        self, run: Run, home: Path, url: str, config: Path
    ) -> None:
        dead(home / "lab", config)
        remains.remember(home / "lab", config, url)

        shown = run("down", "-y")
        started = run("up", str(config), "-y")

        assert "instance i-" in shown.out
        assert (shown.code, started.code) == (2, 2)
        assert "set HYBRID_LEDGER_URL" in shown.err
        assert "set HYBRID_LEDGER_URL" in started.err

    def test_whose_password_is_not_known_here_is_unknown_not_empty(
        self, run: Run, home: Path, config: Path
    ) -> None:
        (home / "lab").mkdir(parents=True)
        (home / "lab" / "controller.log").touch()
        remains.remember(home / "lab", config, "postgresql+psycopg://me:***@db/hybrid")

        shown = run("down", "-c", "lab", "-y")

        assert shown.code == 2
        assert "rented instances: unknown" in shown.out

    def test_is_counted_by_doctor(
        self, run: Run, home: Path, url: str, config: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HYBRID_LEDGER_URL", url)
        dead(home / "lab")
        remains.remember(home / "lab", config, url)

        assert "1 thing of it left here" in run("doctor", str(config)).out


def test_what_is_left_of_a_cluster_without_a_record_is_not_hidden_by_another(
    run: Run, home: Path
) -> None:
    dead(home / "prod")
    node = start_node(home / "lab")

    shown = run("down", "-y")

    node.kill()
    node.wait()
    assert shown.code == 2
    assert "lab, prod; choose one" in shown.err


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_state_folders_that_cannot_be_read_are_not_an_empty_place(run: Run, home: Path) -> None:
    home.mkdir(mode=0o000)

    shown = run("down", "-y")

    home.chmod(0o700)
    assert shown.code == 2
    assert "cannot be looked into" in shown.err
