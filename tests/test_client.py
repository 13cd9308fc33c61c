"""`hybrid.Client` and `hybrid.Job` against a real API server."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import hybrid
from hybrid.client import (
    NoClusterError,
    RefusedError,
    TokenError,
    UnknownError,
    UnreachableError,
    WaitTimeoutError,
)
from hybrid.core.errors import ConfigError, HybridError, JobError, LedgerError
from hybrid.core.models import JobState
from hybrid.core.views import CostView, EventsView, JobsView, NodesView, PlanView, StatusView
from tests.api.fake_service import FakeService
from tests.running import TOKEN, Running, dead_pid, write_record


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("HYBRID_ADDRESS", "HYBRID_TOKEN", "HYBRID_CLUSTER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HYBRID_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def lab(home: Path) -> Iterator[Running]:
    running = Running(home / "lab", FakeService())
    yield running
    running.stop()


@pytest.fixture
def client(lab: Running) -> Iterator[hybrid.Client]:
    with hybrid.Client() as found:
        yield found


def test_import_hybrid_loads_nothing_heavy() -> None:
    code = (
        "import sys, hybrid;"
        "print(','.join(m for m in ('httpx','pydantic','ray') if m in sys.modules))"
    )

    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    assert shown.stdout.strip() == ""


def test_the_client_module_loads_neither_http_nor_models() -> None:
    code = (
        "import sys, hybrid; hybrid.Client, hybrid.Job;"
        "print(','.join(m for m in ('httpx','pydantic','ray','typer') if m in sys.modules))"
    )

    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    assert (shown.stdout.strip(), shown.stderr) == ("", "")


# --- finding a cluster -------------------------------------------------------------------------


def test_client_finds_the_one_running_cluster(client: hybrid.Client, lab: Running) -> None:
    assert client.status().cluster.name == "lab"
    assert client.address == lab.server.url


def test_no_cluster_says_how_to_start_one(home: Path) -> None:
    with pytest.raises(NoClusterError, match=r"no hybrid cluster is running.*`hybrid up`"):
        hybrid.Client().status()


def test_a_dead_controller_is_no_cluster_and_is_named(home: Path) -> None:
    write_record(home / "old", url="http://127.0.0.1:1", pid=dead_pid())

    with pytest.raises(NoClusterError, match=r"controller of old died.*`hybrid down`"):
        hybrid.Client().status()


def test_several_clusters_are_listed_and_one_can_be_chosen(lab: Running, home: Path) -> None:
    other = Running(home / "prod", FakeService(cluster="prod"))

    with pytest.raises(ConfigError, match=r"lab, prod.*HYBRID_CLUSTER"):
        hybrid.Client().status()

    assert hybrid.Client(cluster="prod").status().cluster.name == "prod"
    other.stop()


def test_hybrid_cluster_chooses(lab: Running, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = Running(home / "prod", FakeService(cluster="prod"))
    monkeypatch.setenv("HYBRID_CLUSTER", "prod")

    assert hybrid.Client().status().cluster.name == "prod"
    other.stop()


def test_a_cluster_that_is_not_running_is_named_with_those_that_are(lab: Running) -> None:
    with pytest.raises(NoClusterError, match=r"'prod' is not running \(running: lab\)"):
        hybrid.Client(cluster="prod").status()


def test_a_state_folder_may_be_given_as_a_path(tmp_path: Path, home: Path) -> None:
    elsewhere = Running(tmp_path / "elsewhere", FakeService(cluster="elsewhere"))

    found = hybrid.Client(cluster=str(tmp_path / "elsewhere"))

    assert found.status().cluster.name == "elsewhere"
    elsewhere.stop()


@pytest.mark.parametrize("scheme", ["http://", ""])
def test_an_address_and_a_token_are_enough(lab: Running, home: Path, scheme: str) -> None:
    address = scheme + lab.server.url.removeprefix("http://")

    assert hybrid.Client(address, TOKEN).status().cluster.name == "lab"


def test_hybrid_address_and_token_come_from_the_environment(
    lab: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HYBRID_HOME", "/nonexistent")
    monkeypatch.setenv("HYBRID_ADDRESS", lab.server.url)
    monkeypatch.setenv("HYBRID_TOKEN", TOKEN)

    assert hybrid.Client().status().cluster.name == "lab"


def test_a_local_address_needs_no_token(lab: Running) -> None:
    assert hybrid.Client(lab.server.url).status().cluster.name == "lab"


def test_a_foreign_address_without_a_token_says_where_to_find_it(home: Path) -> None:
    with pytest.raises(ConfigError, match=r"10\.1\.2\.3:8000.*HYBRID_TOKEN.*api_token"):
        hybrid.Client("10.1.2.3:8000").status()


@pytest.mark.parametrize("address", ["ftp://x", "http://", "http://:80:90"])
def test_a_senseless_address_is_a_config_error(home: Path, address: str) -> None:
    with pytest.raises(ConfigError, match="address"):
        hybrid.Client(address, "t").status()


def test_a_wrong_token_is_a_config_error_that_names_the_file(lab: Running) -> None:
    with pytest.raises(TokenError, match="api_token") as caught:
        hybrid.Client(token="wrong").status()

    assert isinstance(caught.value, ConfigError)
    assert "wrong" not in str(caught.value).replace("missing or wrong", "")


def test_an_unreadable_token_file_is_a_config_error(lab: Running) -> None:
    (lab.state_dir / "api_token").unlink()

    with pytest.raises(ConfigError, match="api_token"):
        hybrid.Client().status()


def test_a_refused_connection_is_short_and_names_the_log(home: Path) -> None:
    write_record(home / "lab", url="http://127.0.0.1:1")
    (home / "lab" / "api_token").write_text(TOKEN)

    with pytest.raises(UnreachableError, match=r"127\.0\.0\.1:1.*controller\.log"):
        hybrid.Client().status()


def test_proxies_are_not_used_on_the_loopback(
    client: hybrid.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")

    assert client.status().cluster.name == "lab"


def test_a_controller_that_moved_to_another_port_is_found_again(
    client: hybrid.Client, lab: Running
) -> None:
    before = client.status()

    lab.stop()
    lab.start()

    assert client.status() == before


def test_something_else_on_the_port_is_told_apart(home: Path, lab: Running) -> None:
    with pytest.raises(UnreachableError, match="not as a hybrid controller"):
        hybrid.Client(f"{_plain_http_server()}", "t").status()


# --- reading -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "model"),
    [
        ("status", StatusView),
        ("nodes", NodesView),
        ("plan", PlanView),
        ("cost", CostView),
        ("events", EventsView),
        ("jobs", JobsView),
    ],
)
def test_reading_methods_return_the_models(client: hybrid.Client, method: str, model: type) -> None:
    assert type(getattr(client, method)()) is model


def test_fields_of_a_newer_controller_are_skipped(
    client: hybrid.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = client.read("status").decode()
    newer = text.replace('"alarms":', '"weather":{"sun":1},"alarms":').replace(
        '"phase":', '"mood":"good","phase":'
    )
    monkeypatch.setattr(client, "_http", _Canned(newer.encode()))

    assert client.status().cluster.name == "lab"


def test_events_can_be_filtered(client: hybrid.Client) -> None:
    found = client.events(after=5, subject="i-0000000001")

    assert [event.seq for event in found.events] == [6, 7]


def test_errors_of_the_controller_keep_their_meaning(client: hybrid.Client, lab: Running) -> None:
    with pytest.raises(RefusedError, match="the head cannot be drained"):
        client.drain("head")
    with pytest.raises(UnknownError, match="no job 'nope'"):
        client.job("nope").status()
    lab.service.problem = LedgerError("the disk is full")
    with pytest.raises(UnreachableError, match="the disk is full"):
        client.status()


def test_operating_reaches_the_controller(client: hybrid.Client, lab: Running) -> None:
    client.drain("i-1", deadline_s=60)
    client.pause("out")
    report = client.gc()
    client.resume("out")
    client.down(drain_s=5)

    target, deadline_s, owner = lab.service.drains[0]
    assert (target, deadline_s) == ("i-1", 60.0)
    assert "@" in owner
    assert report.is_dry_run
    assert not lab.service.mode.is_out_paused
    assert lab.service.drain_s == 5.0


# --- jobs --------------------------------------------------------------------------------------


def test_a_submit_that_got_no_answer_names_the_job_that_may_exist() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def hang_up() -> None:
            with suppress(OSError):
                while True:
                    listener.accept()[0].close()

        thread = threading.Thread(target=hang_up)
        thread.start()
        client = hybrid.Client(address=f"127.0.0.1:{listener.getsockname()[1]}", token="t")

        with pytest.raises(UnreachableError, match=r"took job j-mine is not known"):
            client.submit("true", job_id="j-mine")

        client.close()
        listener.shutdown(socket.SHUT_RDWR)
    thread.join()


def test_submit_sends_everything(client: hybrid.Client, lab: Running, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print('\u597d')")

    job = client.submit(
        "python train.py",
        working_dir=tmp_path,
        env={"A": "\u597d"},
        gpus=2,
        cpus=1.5,
        site="onprem",
        name="\u8bad\u7ec3",
        priority=80,
        tags={"team": "nlp"},
    )

    spec = job.details().spec
    assert (spec.entrypoint, spec.gpus, spec.cpus, spec.site) == (
        "python train.py",
        2,
        1.5,
        "onprem",
    )
    assert (spec.name, spec.priority) == ("\u8bad\u7ec3", 80)
    assert spec.env == {"A": "***"}
    assert lab.service.job(job.id).spec.env == {"A": "\u597d"}
    assert spec.package.startswith("pkg-")


def test_the_same_working_dir_is_stored_once(
    client: hybrid.Client, lab: Running, tmp_path: Path
) -> None:
    (tmp_path / "a.py").write_text("1")

    first = client.submit("python a.py", working_dir=tmp_path)
    second = client.submit("python a.py", working_dir=str(tmp_path))

    assert first.details().spec.package == second.details().spec.package
    assert list(lab.service.packages) == [first.details().spec.package]


def test_a_working_dir_is_sent_again_to_a_controller_that_dropped_it(
    client: hybrid.Client, lab: Running, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text("pass")
    first = client.submit("python train.py", working_dir=tmp_path).details()
    lab.service.packages.clear()

    client.submit("python train.py", working_dir=tmp_path)

    assert list(lab.service.packages) == [first.spec.package]


def test_values_out_of_bounds_are_config_errors_that_name_the_field(client: hybrid.Client) -> None:
    with pytest.raises(ConfigError, match=r"^gpus: input should"):
        client.submit("x", gpus=-1)
    with pytest.raises(ConfigError, match=r"^priority: input should"):
        client.submit("x", priority=101)
    with pytest.raises(ConfigError, match=r"^gpus: input should be a finite number"):
        client.submit("x", gpus=float("inf"))


def test_the_same_job_id_is_the_same_job(client: hybrid.Client, lab: Running) -> None:
    first = client.submit("x", job_id="j-mine")
    second = client.submit("x", job_id="j-mine")

    assert first.id == second.id == "j-mine"


def test_status_and_wait_follow_the_job(client: hybrid.Client, lab: Running) -> None:
    job = client.submit("x")
    assert job.status() is JobState.QUEUED

    threading.Timer(0.3, lab.service.finish, (job.id, JobState.SUCCEEDED)).start()

    assert job.wait(timeout=20) is JobState.SUCCEEDED


def test_wait_raises_when_time_is_over_and_the_job_goes_on(client: hybrid.Client) -> None:
    job = client.submit("x")

    with pytest.raises(WaitTimeoutError, match=job.id) as caught:
        job.wait(timeout=0.1)

    assert isinstance(caught.value, TimeoutError)
    assert job.status() is JobState.QUEUED


def test_wait_outlives_a_restart_of_the_controller(client: hybrid.Client, lab: Running) -> None:
    job = client.submit("x")

    def restart() -> None:
        lab.stop()
        lab.service.finish(job.id, JobState.FAILED)
        lab.start()

    restarting = threading.Timer(0.3, restart)
    restarting.start()

    assert job.wait(timeout=30) is JobState.FAILED
    restarting.join()


def test_cancel_ends_the_job(client: hybrid.Client) -> None:
    job = client.submit("x")

    assert job.cancel() is JobState.CANCELLED
    assert job.cancel() is JobState.CANCELLED


def test_logs_are_the_whole_text(client: hybrid.Client) -> None:
    assert client.job("j-running").logs() == "step 1\nstep 2 \u6b65\u9aa4\ndone\n"


def test_followed_logs_come_piece_by_piece(client: hybrid.Client, lab: Running) -> None:
    lab.service.log_gate.clear()
    pieces = client.job("j-running").logs(follow=True)

    first = next(pieces)
    lab.service.log_gate.set()

    assert (first, "".join(pieces)) == ("step 1\n", "step 2 \u6b65\u9aa4\ndone\n")


@pytest.mark.slow
def test_followed_logs_go_on_after_a_restart_with_nothing_twice(
    client: hybrid.Client, lab: Running
) -> None:
    lab.service.log_gate.clear()
    pieces = client.job("j-running").logs(follow=True)
    first = next(pieces)

    lab.stop()
    lab.service.log_gate.set()
    lab.start()

    assert first + "".join(pieces) == "".join(lab.service.log_pieces)


def test_following_what_always_breaks_tells_why(
    client: hybrid.Client, lab: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaking(_job_id: str, *, is_following: bool = False) -> Iterator[str]:
        if is_following:
            yield "step 1\n"
        raise JobError("the node of the driver has left")

    monkeypatch.setattr(lab.service, "job_logs", breaking)
    monkeypatch.setattr("hybrid.client.job._POLL_S", (0.0, 0.0))
    pieces = client.job("j-running").logs(follow=True)
    seen = [next(pieces)]

    with pytest.raises(HybridError, match="the node of the driver has left"):
        seen += pieces

    assert seen == ["step 1\n"]


def test_following_an_unknown_job_fails_at_once(client: hybrid.Client) -> None:
    with pytest.raises(UnknownError):
        next(client.job("nope").logs(follow=True))


class _Canned:
    """Answers every request with the same bytes."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def get(self, *_args: object) -> bytes:
        return self._content

    def close(self) -> None:
        pass


def _plain_http_server() -> str:
    """Start a server that is not ours and return its address."""
    from http.server import BaseHTTPRequestHandler, HTTPServer

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(404, "no such page")

        def log_message(self, *_args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)

    def once() -> None:
        server.handle_request()
        server.server_close()

    threading.Thread(target=once, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"


def test_hybrid_shows_its_public_names_only() -> None:
    assert dir(hybrid) == sorted(hybrid.__all__)
    assert all(getattr(hybrid, name) is not None for name in hybrid.__all__)


def test_every_error_of_the_client_is_in_one_documented_place() -> None:
    from hybrid.client import errors as client_errors

    raised = {
        name
        for name, thing in vars(client_errors).items()
        if isinstance(thing, type) and issubclass(thing, HybridError)
    }

    assert raised <= {*hybrid.errors.__all__}
    assert all(issubclass(getattr(hybrid.errors, n), HybridError) for n in hybrid.errors.__all__)
