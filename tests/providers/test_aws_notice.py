"""AWS takes a spot instance back: the notice goes from the emulated metadata to the node's file.

The watcher is the one of the user data, run by a real bash.
"""

from __future__ import annotations

import base64
import json
import random
import time
from pathlib import Path

import pytest

from hybrid.node import notice
from hybrid.node.notice import Notice
from hybrid.node.orders import parse
from providers.aws.userdata import LIMIT_BYTES, SPOT_EVERY_S, user_data
from tests.node.box import wait_until
from tests.providers.aws_cloud import POOL, AwsCloud
from tests.providers.contract import launch, make_spec
from tests.providers.test_aws_userdata import SHAPE, boot, spec, watching

SPOT_POOL = {**POOL, "use_spot": True}


@pytest.fixture
def ec2_id(aws: AwsCloud) -> str:
    aws.pools = [SPOT_POOL]
    return launch(aws.provider(), make_spec(aws)).rpartition("/")[2]


def prepared(aws: AwsCloud, ec2_id: str, tmp_path: Path, *, is_spot: bool = True) -> Path:
    metadata = f"{aws.emulator.url}/imds/{ec2_id}"
    given = spec(expires_at_s=time.time() + 600)
    return boot(tmp_path, given, is_spot=is_spot, metadata=metadata)[0]


def test_a_spot_pool_gets_orders_for_the_notice_and_no_other_does(aws: AwsCloud) -> None:
    scripts = []
    for pool in (POOL, SPOT_POOL):
        aws.pools = [pool]
        machine = aws.machine(launch(aws.provider(), make_spec(aws)))
        scripts.append(base64.b64decode(str(machine.user_data)).decode())
    on_demand, spot = scripts

    assert "spot/instance-action" in spot
    assert "drain-node" in spot
    assert "notice" not in on_demand
    # At the end of its lease too.
    assert "drain-node" in on_demand


def test_the_orders_name_the_command_that_drains(aws: AwsCloud, tmp_path: Path) -> None:
    folder = prepared(aws, "i-none", tmp_path)

    orders = parse(json.loads((folder / "node.json").read_text()))

    assert orders.drain_command[-4:-2] == (
        "--node-id={node_id}",
        "--reason=DRAIN_NODE_REASON_PREEMPTION",
    )
    assert "--address=10.0.0.1:6379" in orders.drain_command


def test_the_script_of_a_spot_instance_is_small_and_looks_often_enough() -> None:
    script = user_data(
        spec(), SHAPE, join_token="x" * 64, python="/opt/hybrid/bin/python", is_spot=True
    )

    assert len(script.encode()) < LIMIT_BYTES / 3
    assert SPOT_EVERY_S <= 5
    assert f"  sleep {SPOT_EVERY_S}\n" in script


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_an_interruption_at_any_time_is_written_down(
    aws: AwsCloud, ec2_id: str, tmp_path: Path, seed: int
) -> None:
    rng = random.Random(seed)
    folder = prepared(aws, ec2_id, tmp_path)
    if rng.random() < 0.3:
        aws.emulator.metadata.failing = 3  # the service is away for a moment
    with watching(folder, tmp_path / "bin"):
        time.sleep(rng.uniform(0.0, 2.5))
        assert not (folder / "notice").exists()

        aws.emulator.interrupt(ec2_id, notice_s=rng.uniform(60, 120))

        told = wait_until(lambda: notice.read(folder / "notice"), "the notice", 12.0)

    at_s = aws.emulator.metadata.notices[ec2_id]
    assert told == Notice(float(int(at_s)), "aws-terminate")
    assert (folder / "lease").exists()
    assert not (tmp_path / "bin" / "shutdown.called").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "written"),
    [
        ('{"time": "2030-01-02T03:04:05Z", "action": "stop"}', "1893553445 aws-stop"),
        ('{"action":"hibernate","time":"2030-01-02T03:04:05Z"}', "1893553445 aws-hibernate"),
        ('{"action": "terminate"}', ""),
        ('{"action": "terminate", "time": "soon"}', ""),
        ('{"action": "terminate", "time": "2030-99-99T03:04:05Z"}', ""),
        ('{"action": "terminate", "time": "1970-01-01T00:00:00Z"}', ""),
        ('{"action": "dance", "time": "2030-01-02T03:04:05Z"}', ""),
        ('{"action": "stop", "time": "$(touch pwned)2030-01-02T03:04:05Z"}', ""),
        ("<html>502</html>", ""),
    ],
    ids=["stop", "hibernate", "no-time", "word", "no-date", "1970", "dance", "command", "html"],
)
def test_only_what_aws_documents_is_a_notice(
    aws: AwsCloud, ec2_id: str, tmp_path: Path, answer: str, written: str
) -> None:
    folder = prepared(aws, ec2_id, tmp_path)
    aws.emulator.metadata.raw[ec2_id] = answer

    with watching(folder, tmp_path / "bin"):
        if written:
            wait_until((folder / "notice").exists, "the notice")
            assert (folder / "notice").read_text() == written
        else:
            asked = aws.emulator.metadata.asked
            wait_until(lambda: aws.emulator.metadata.asked > asked + 1, "two looks")

    assert (folder / "notice").exists() == bool(written)
    assert not list(tmp_path.rglob("pwned"))


@pytest.mark.slow
def test_a_machine_that_is_no_spot_instance_never_asks(
    aws: AwsCloud, ec2_id: str, tmp_path: Path
) -> None:
    folder = prepared(aws, ec2_id, tmp_path, is_spot=False)
    aws.emulator.interrupt(ec2_id, notice_s=60)

    with watching(folder, tmp_path / "bin"):
        time.sleep(1.5)

    assert aws.emulator.metadata.asked == 0
    assert not (folder / "notice").exists()
