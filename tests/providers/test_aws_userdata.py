"""The script a new instance runs: nothing in it can be more than a value; the lease in a tag."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.core.models import LaunchSpec
from hybrid.node.orders import Role, parse
from providers.aws.userdata import LIMIT_BYTES, SHUTDOWN_AFTER_S, user_data
from tests.node.box import wait_until
from tests.node.controller import FakeController
from tests.node.systemd import verified
from tests.providers.aws_cloud import ACCOUNT, AwsCloud
from tests.providers.contract import launch, make_spec

SHAPE = {"CPU": 96, "GPU": 8, "memory": 600 * 2**30, "accelerator_type:A100": 1}


def spec(**changes: object) -> LaunchSpec:
    return LaunchSpec(
        cluster_id="c-1",
        instance_id="i-0a1b",
        epoch=1,
        head_address="10.0.0.1:6379",
        controller_url="http://10.0.0.1:8700",
        labels={"site": "cloud", "empty": ""},
        expires_at_s=4_000_000_000.4,
        ray_version="2.60.0",
        python_version="3.11",
    ).model_copy(update=changes)


def script(given: LaunchSpec, *, is_spot: bool = False, **changes: str) -> str:
    words: dict[str, Any] = {
        "join_token": "join-once",
        "python": "/opt/hybrid/bin/python",
        **changes,
    }
    return user_data(given, SHAPE, every_s=1, is_spot=is_spot, **words)


def boot(
    tmp_path: Path, given: LaunchSpec, *, is_spot: bool = False, **changes: str
) -> tuple[Path, Path]:
    """Run the script; return the folders of the node and of stand-ins for what it starts."""
    folder, path = tmp_path / "node", tmp_path / "bin"
    where = {"folder": str(folder), "units": str(path), "python": str(path / "python")}
    text = script(given, is_spot=is_spot, **{**where, **changes})
    path.mkdir()
    for name in ("systemctl", "python", "shutdown"):
        program = path / name
        program.write_text(f'#!/bin/bash\necho "$@" >> {path}/{name}.called\n')
        program.chmod(0o755)
    env = {**os.environ, "PATH": f"{path}:{os.environ['PATH']}"}
    subprocess.run(["bash", "-c", text], env=env, check=True, capture_output=True, cwd="/")
    return folder, path


@contextmanager
def watching(folder: Path, fakes: Path) -> Iterator[None]:
    """Run the script's second half, which looks after the lease."""
    env = {**os.environ, "PATH": f"{fakes}:{os.environ['PATH']}"}
    process = subprocess.Popen(["bash", "watch"], cwd=folder, env=env)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def test_the_script_leaves_a_node_that_can_be_started(tmp_path: Path) -> None:
    folder, fakes = boot(tmp_path, spec())

    orders = parse(json.loads((folder / "node.json").read_text()))
    assert (orders.role, orders.tag) == (Role.INSTANCE, "c-1/i-0a1b")
    assert orders.join is not None
    assert orders.join.join_token_file.read_text() == "join-once"
    assert orders.lease_file is not None
    assert orders.lease_file.read_text() == "4000000000"
    assert "--address=10.0.0.1:6379" in orders.command
    assert "--labels=site=cloud" in orders.command
    assert {"--num-cpus=96", "--num-gpus=8", f"--memory={600 * 2**30}"} <= set(orders.command)
    assert orders.env["RAY_CLOUD_INSTANCE_ID"] == "i-0a1b"
    assert (fakes / "python.called").read_text() == f"-P -m hybrid.node start {folder}\n"
    assert (
        "enable --now --no-block hybrid-lease.service" in (fakes / "systemctl.called").read_text()
    )
    unit = (fakes / "hybrid-lease.service").read_text()
    assert f"WorkingDirectory={folder}\nExecStart=/bin/bash watch\nRestart=always\n" in unit


def test_a_python_that_is_not_there_is_told_at_once_and_ends_the_machine(tmp_path: Path) -> None:
    with FakeController() as controller:
        told = spec(controller_url=controller.url)
        folder, fakes = boot(tmp_path, told, python="/opt/none/bin/python")

        ((phase, problem),) = controller.reports

    assert phase == "failed"
    assert problem.startswith("/opt/none/bin/python of this image does not run this program: use")
    assert "No such file or directory" in problem
    assert (fakes / "shutdown.called").read_text() == "-h now\n"
    assert (folder / "join_token").exists()


@pytest.mark.parametrize("fault", ["folder", "service"])
def test_a_machine_whose_lease_nobody_can_follow_ends_itself(tmp_path: Path, fault: str) -> None:
    fakes = tmp_path / "bin"
    fakes.mkdir()
    (fakes / "systemctl").write_text("#!/bin/sh\nexit 1\n" if fault == "service" else "")
    (fakes / "shutdown").write_text(f"#!/bin/sh\necho $@ > {fakes}/shutdown.called\n")
    for program in fakes.iterdir():
        program.chmod(0o755)
    folder = fakes / "systemctl" if fault == "folder" else tmp_path / "node"
    text = script(spec(), folder=str(folder), units=str(fakes), python="/bin/true")
    env = {**os.environ, "PATH": f"{fakes}:{os.environ['PATH']}"}

    done = subprocess.run(["bash", "-c", text], env=env, capture_output=True, cwd="/")

    assert done.returncode == 1
    assert (fakes / "shutdown.called").read_text() == "-h now\n"


def test_systemd_finds_no_fault_with_the_service_of_the_lease(tmp_path: Path) -> None:
    _, fakes = boot(tmp_path, spec())

    assert verified(fakes / "hybrid-lease.service") == ""


def test_the_join_token_is_readable_by_root_only(tmp_path: Path) -> None:
    folder, _ = boot(tmp_path, spec())

    assert (folder / "join_token").stat().st_mode & 0o777 == 0o600
    assert "join-once" not in (folder / "node.json").read_text()


@pytest.mark.parametrize(
    "changes",
    [
        {"instance_id": "i-1'; reboot; '"},
        {"cluster_id": "c\nreboot"},
        {"cluster_id": "$(reboot)"},
        {"labels": {"a": "$(reboot)"}},
        {"head_address": "10.0.0.1:6379; reboot"},
    ],
)
def test_what_is_no_plain_value_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"cannot be part|not a value|not an address"):
        script(spec(**changes))


@pytest.mark.parametrize("token", ["", "a b", "a'b", "a$b", "a`b`", "a\nb", 'a"b', "é"])
def test_a_join_token_cannot_end_its_quotes(token: str) -> None:
    with pytest.raises(ValueError, match="cannot be part of user data"):
        script(spec(), join_token=token)


@given(url=st.text(min_size=1, max_size=60))
def test_a_document_is_one_line_that_no_shell_reads(url: str) -> None:
    """The controller's address may be anything: it stands in JSON, in a quoted block."""
    text = script(spec(controller_url=url))

    block = text.partition("<<'HYBRID_END'\n")[2].partition("\nHYBRID_END\n")[0]
    assert "\n" not in block
    assert block.isascii()
    assert json.loads(block)["join"]["url"] == url


def test_commands_in_a_url_are_not_run(tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    url = f"http://x/$(touch {canary})`touch {canary}`'; touch {canary}; '\nHYBRID_END\n"

    folder, _ = boot(tmp_path, spec(controller_url=url))

    assert not canary.exists()
    assert json.loads((folder / "node.json").read_text())["join"]["url"] == url


def test_the_script_is_small_and_never_too_long() -> None:
    assert len(script(spec())) < LIMIT_BYTES / 4
    many = {f"label-{number}": "x" * 63 for number in range(250)}

    with pytest.raises(ValueError, match="fewer or shorter labels"):
        script(spec(labels=many))


def test_a_script_is_the_same_again() -> None:
    """The token of a launch stands for these very bytes."""
    assert script(spec()) == script(spec())


# --- the lease, through the metadata of an emulated instance -----------------------------------


@pytest.fixture
def ec2_id(aws: AwsCloud) -> str:
    return launch(aws.provider(), make_spec(aws)).rpartition("/")[2]


def prepared(aws: AwsCloud, ec2_id: str, tmp_path: Path, *, lease_s: float = 600.0) -> Path:
    """Run the script on "instance" `ec2_id`; return its folder."""
    given = spec(expires_at_s=time.time() + lease_s)
    return boot(tmp_path, given, metadata=f"{aws.emulator.url}/imds/{ec2_id}")[0]


@pytest.mark.slow
def test_a_renewed_lease_reaches_the_node(aws: AwsCloud, ec2_id: str, tmp_path: Path) -> None:
    folder = prepared(aws, ec2_id, tmp_path)
    until_s = time.time() + 7200

    with watching(folder, tmp_path / "bin"):
        aws.provider().extend([f"{ACCOUNT}/us-east-1/{ec2_id}"], until_s=until_s)

        wait_until(lambda: (folder / "lease").read_text() == f"{until_s:.0f}", "the lease")

    assert not (tmp_path / "bin" / "shutdown.called").exists()


@pytest.mark.slow
def test_a_machine_whose_lease_is_over_turns_itself_off(
    aws: AwsCloud, ec2_id: str, tmp_path: Path
) -> None:
    folder = prepared(aws, ec2_id, tmp_path)
    past_s = time.time() - SHUTDOWN_AFTER_S - 5
    aws.provider().extend([f"{ACCOUNT}/us-east-1/{ec2_id}"], until_s=past_s)

    with watching(folder, tmp_path / "bin"):
        wait_until((tmp_path / "bin" / "shutdown.called").exists, "the shutdown")

    assert (tmp_path / "bin" / "shutdown.called").read_text().startswith("-h now")


@pytest.mark.slow
def test_the_first_lease_holds_when_metadata_cannot_be_read(
    aws: AwsCloud, ec2_id: str, tmp_path: Path
) -> None:
    long_over = prepared(aws, "i-none", tmp_path, lease_s=-SHUTDOWN_AFTER_S - 5)

    with watching(long_over, tmp_path / "bin"):
        wait_until((tmp_path / "bin" / "shutdown.called").exists, "the shutdown")


@pytest.mark.slow
def test_the_last_lease_holds_after_a_reboot_without_metadata(
    aws: AwsCloud, ec2_id: str, tmp_path: Path
) -> None:
    """The watch begins anew, and the first lease is long over."""
    folder = prepared(aws, "i-none", tmp_path, lease_s=-SHUTDOWN_AFTER_S - 5)
    renewed = f"{time.time() + 600:.0f}"
    (folder / "lease").write_text(renewed)

    with watching(folder, tmp_path / "bin"):
        time.sleep(1.5)

    assert (folder / "lease").read_text() == renewed
    assert not (tmp_path / "bin" / "shutdown.called").exists()


@pytest.mark.slow
def test_a_tag_that_is_no_number_changes_nothing(
    aws: AwsCloud, ec2_id: str, tmp_path: Path
) -> None:
    folder = prepared(aws, ec2_id, tmp_path)
    before = (folder / "lease").read_text()
    aws.emulator.moto.find(ec2_id).add_tags({"hybrid-expires-at": "$(reboot)"})

    with watching(folder, tmp_path / "bin"):
        wait_until((folder / "lease").exists, "a look")
        time.sleep(1.5)

    assert (folder / "lease").read_text() == before
    assert not (tmp_path / "bin" / "shutdown.called").exists()
