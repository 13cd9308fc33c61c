"""The head in AWS: made with the nodes' network, and what its machine runs at boot."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.emulators.aws import ACCESS_KEY, SECRET_KEY, AwsEmulator
from tests.terraform.clouds import head
from tests.terraform.workspace import ROOT, TERRAFORM, Mirror, Workspace

pytestmark = pytest.mark.slow

LEDGER = "postgresql+psycopg://db.example.com/hybrid"
FILES = TERRAFORM / "modules" / "head" / "files"
ROOT_MODULE = """
module "aws" {
  source             = "../modules/aws"
  name               = "burst"
  availability_zones = ["us-east-1a"]
  image              = "ami-0123456789abcdef0"
  pools              = [{ instance_type = "g5.xlarge", zone = "us-east-1a", max_nodes = 2 }]
}
module "head" {
  source                 = "../modules/head"
  name                   = "burst"
  config                 = "name: burst\\nhead: {cpus: 0}\\nbudget: {nodes: 4}\\n"
  hybrid_providers       = { aws = module.aws.hybrid_provider }
  image                  = "ami-0123456789abcdef0"
  vpc_id                 = module.aws.vpc_id
  subnet_id              = module.aws.private_subnet_ids["us-east-1a"]
  availability_zone      = "us-east-1a"
  node_security_group_id = module.aws.security_group_id
  launcher_policy_arn    = module.aws.launcher_policy_arn
  on_prem_cidrs          = ["192.168.0.0/24"]
  ledger_parameter       = "/hybrid/burst/ledger"
}
"""


@pytest.fixture
def emulator() -> Iterator[AwsEmulator]:
    emulator = AwsEmulator()
    yield emulator
    emulator.stop()


@pytest.fixture(scope="module")
def made(mirror: Mirror, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Return network and head, applied on the schemas alone."""
    folder = tmp_path_factory.mktemp("head")
    work = Workspace.of(folder, mirror, "with-head", files={"main.tf": ROOT_MODULE})
    work.env.update(head.KEYS)
    work.init().apply().ok()
    return work


def user_data(work: Workspace) -> str:
    """Return what the machine runs at its first boot."""
    shown = work.run("show", "-json").ok().read()["values"]["root_module"]["child_modules"]
    resources = [item for module in shown for item in module["resources"]]
    machine = next(item for item in resources if item["type"] == "aws_instance")
    return str(machine["values"]["user_data"])


def test_with_its_network_it_is_made_once_and_leaves_nothing(
    made: Workspace, tmp_path: Path
) -> None:
    work = made.copy(tmp_path / "copy")
    shutil.copytree(TERRAFORM / "modules", tmp_path / "modules")

    again = work.plan()
    ended = work.destroy()

    assert (again.code, again.errors()) == (0, []), "the second plan changes something"
    assert (ended.code, work.in_state()) == (0, [])


def test_the_first_boot_is_a_valid_script_and_service_without_a_secret(
    made: Workspace, tmp_path: Path
) -> None:
    script = tmp_path / "user-data.sh"
    script.write_text(user_data(made), encoding="utf-8")
    text = script.read_text(encoding="utf-8")

    subprocess.run(["bash", "-n", str(script)], check=True)

    assert "${" not in text, "the template left something out"
    assert (
        "pip install --quiet --disable-pip-version-check 'hybrid-burst[aws,postgres]==0.1.0'"
        in text
    )
    assert f"\n{(FILES / 'hybrid-head.sh').read_text(encoding='utf-8')}\nHYBRID_FILE\n" in text
    assert f"\n{(FILES / 'fetch.py').read_text(encoding='utf-8')}\nHYBRID_FILE\n" in text
    assert len(text) < 16_384, "EC2 takes no more"
    unit = re.search(r"hybrid\.service <<'HYBRID_FILE'\n(.*?)HYBRID_FILE", text, re.DOTALL)
    assert unit is not None
    verify = shutil.which("systemd-analyze")
    if verify is not None:
        service = tmp_path / "hybrid.service"
        runnable = unit[1].replace("/opt/hybrid/bin/hybrid-head", "/bin/true")
        service.write_text(runnable.replace("User=hybrid", "User=root"), encoding="utf-8")
        done = subprocess.run([verify, "verify", str(service)], capture_output=True, text=True)
        assert (
            done.returncode,
            [line for line in done.stderr.splitlines() if "hybrid" in line],
        ) == (
            0,
            [],
        )


def test_the_service_starts_hybrid_with_what_terraform_keeps_for_it(
    made: Workspace, emulator: AwsEmulator, tmp_path: Path
) -> None:
    """Its own scripts, the real boto3 and hybrid's real loader; only `up` is taken for `config`."""
    programs, run = tmp_path / "bin", tmp_path / "run"
    programs.mkdir()
    run.mkdir()
    (programs / "python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (programs / "hybrid-fetch").write_text((FILES / "fetch.py").read_text(encoding="utf-8"))
    (programs / "hybrid").write_text(
        f'#!/bin/bash\nset -e\n[ "$1 $3 $4" = "up --yes --foreground" ]\n'
        f'echo "ledger: $HYBRID_LEDGER_URL"\n'
        f'cd "{ROOT}" && exec "{sys.executable}" -m hybrid.cli.main '
        f'config show "{run}/$2" "${{@:5}}"\n'
    )
    start = (FILES / "hybrid-head.sh").read_text(encoding="utf-8")
    (programs / "hybrid-head").write_text(start.replace("/opt/hybrid/bin", str(programs)))
    for name in ("python", "hybrid", "hybrid-head"):
        (programs / name).chmod(0o755)
    shown = made.run("show", "-json").ok().read()["values"]["root_module"]["child_modules"]
    for item in (item for module in shown for item in module["resources"]):
        if item["type"] == "aws_ssm_parameter":
            emulator.controls.parameters[item["values"]["name"]] = item["values"]["value"]
    emulator.controls.parameters["/hybrid/burst/ledger"] = LEDGER
    variables = re.findall(r"^Environment=(.*)$", user_data(made), re.MULTILINE)
    unit = dict(pair.split("=", 1) for line in variables for pair in line.split())
    assert unit["HYBRID_HEAD__ADDRESS"].startswith("private_ip"), "the address of the interface"

    done = subprocess.run(
        [str(programs / "hybrid-head")],
        capture_output=True,
        text=True,
        env={
            "PATH": os.environ["PATH"],
            **unit,
            "HYBRID_HEAD__ADDRESS": "10.64.16.5",  # the stub has made one up
            "HYBRID_HOME": str(tmp_path / "state"),
            "RUNTIME_DIRECTORY": str(run),
            "AWS_ENDPOINT_URL": emulator.url,
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        },
    )

    assert done.returncode == 0, done.stderr
    assert f"ledger: {LEDGER}" in done.stdout
    assert "address: 10.64.16.5" in done.stdout
    assert "infra: aws/us-east-1/us-east-1a" in done.stdout
    assert "image: ami-0123456789abcdef0" in done.stdout
