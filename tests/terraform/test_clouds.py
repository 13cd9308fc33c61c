"""Google Cloud, Baidu and a head in AWS, in the real Terraform on the real providers' schemas."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.terraform.clouds import baidu, gcp, head
from tests.terraform.clouds.planned import Law, Mistake, Planned, broken, seed, sentence
from tests.terraform.clouds.settings import accepted
from tests.terraform.tools import checkov
from tests.terraform.workspace import TERRAFORM, Mirror, Workspace

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Cloud:
    """A module, and what is known of it."""

    name: str
    given: Mapping[str, Any]
    laws: Mapping[str, Law]
    breaking: Sequence[Mistake]
    invalid: Sequence[Mistake]
    env: dict[str, str] = field(default_factory=dict)


CLOUDS = (
    Cloud("gcp", gcp.GIVEN, gcp.LAWS, gcp.BREAKING, gcp.INVALID),
    Cloud("baidu", baidu.GIVEN, baidu.LAWS, baidu.BREAKING, baidu.INVALID, baidu.KEYS),
    Cloud("head", head.GIVEN, head.LAWS, head.BREAKING, head.INVALID, head.KEYS),
)


@pytest.fixture(scope="module", params=CLOUDS, ids=lambda cloud: cloud.name)
def cloud(request: pytest.FixtureRequest) -> Cloud:
    found: Cloud = request.param
    return found


@pytest.fixture(scope="module")
def module(cloud: Cloud, mirror: Mirror, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Return the module, initialised; tests that change it take a copy."""
    folder = tmp_path_factory.mktemp(cloud.name)
    workspace = Workspace.of(folder, mirror, f"modules/{cloud.name}")
    workspace.env.update(cloud.env)
    return workspace.init()


def test_it_is_valid_and_written_as_terraform_writes(module: Workspace) -> None:
    assert module.validate() == []
    assert module.run("fmt", "-check", "-recursive").ok().out == ""


def test_its_own_tests_pass(module: Workspace) -> None:
    done = module.test().ok()

    assert "0 failed" in done.out


def test_it_is_made_once_accepted_by_hybrid_and_leaves_nothing(
    cloud: Cloud, module: Workspace, tmp_path: Path
) -> None:
    if cloud.name == "head":
        pytest.skip("it is no cloud of hybrid's; test_head.py makes one")
    work = module.copy(tmp_path / "work")

    made = work.apply(cloud.given)
    again = work.plan(cloud.given)
    settings = accepted(work.outputs()["hybrid_provider"], tmp_path)
    state = (work.folder / "terraform.tfstate").read_text(encoding="utf-8")
    ended = work.destroy(cloud.given)

    assert (made.code, made.errors()) == (0, [])
    assert (again.code, again.errors()) == (0, []), "the second plan changes something"
    assert [pool.get("max_nodes") for pool in settings["pools"]] == [4, None]
    # Google's secret is write-only; Baidu's provider has no such argument, as its README says.
    assert (cloud.given["vpn_secret"] in state) is (cloud.name == "baidu")
    assert (ended.code, work.in_state()) == (0, [])


def test_its_plan_keeps_every_law_and_each_mistake_breaks_its_own(
    cloud: Cloud, module: Workspace, tmp_path: Path
) -> None:
    wrong = module.copy(tmp_path / "wrong")
    seed(wrong.folder, cloud.breaking)

    right, mistaken = Planned.of(module, cloud.given), Planned.of(wrong, cloud.given)

    assert broken(cloud.laws, right) == set()
    assert len({m.noticed for m in cloud.breaking}) == len(cloud.breaking) >= 12
    # All at once, so that it costs one plan: each law is broken by one mistake, and by no other.
    assert broken(cloud.laws, mistaken) == {m.noticed for m in cloud.breaking} == set(cloud.laws)


def test_what_the_provider_does_not_take_is_found_without_a_plan(
    cloud: Cloud, module: Workspace, tmp_path: Path
) -> None:
    wrong = module.copy(tmp_path / "wrong")
    seed(wrong.folder, cloud.invalid)

    errors = wrong.validate()

    for mistake in cloud.invalid:
        assert sentence(errors, mistake.noticed)
    assert len(errors) == len(cloud.invalid)


def test_checkov_finds_nothing_that_is_not_explained_there() -> None:
    """Of Baidu it knows nothing; its module is scanned for what holds everywhere, secrets too."""
    folders = [TERRAFORM / "modules" / name for name in ("gcp", "head", "baidu")]
    done = subprocess.run(
        [
            checkov(),
            *(f"--directory={folder}" for folder in folders),
            *("--framework", "terraform", "--skip-download", "--compact", "--output", "json"),
        ],
        capture_output=True,
        text=True,
        timeout=240,
    )

    # One document for each folder; that of Baidu may have counts only.
    reports, text = [], done.stdout.strip()
    while text:
        report, end = json.JSONDecoder().raw_decode(text)
        reports.append(report)
        text = text[end:].strip()
    results = [report["results"] for report in reports if "results" in report]
    assert [item["resource"] for part in results for item in part["failed_checks"]] == []
    summaries = [report.get("summary", report) for report in reports]
    assert sum(summary["parsing_errors"] for summary in summaries) == 0
    assert sum(summary["passed"] for summary in summaries) > 90
    for path in (path for folder in folders for path in folder.glob("*.tf")):
        for line in path.read_text(encoding="utf-8").splitlines():
            if "checkov:skip" in line:
                assert len(line.partition(":skip=")[2].partition(":")[2].split()) >= 5, line
