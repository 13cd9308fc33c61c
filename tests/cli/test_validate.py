"""`hybrid config validate` with the adapters: what they refuse, and what was not looked at."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from hybrid.core.models import Offer
from tests.cli.conftest import Run
from tests.cli.test_speed import loaded

HEAD = "name: lab\nbudget: {nodes: 2}\n"
AWS = (
    "providers:\n  aws:\n    regions:\n      us-east-1:\n        image: ami-0123456789abcdef0\n"
    "        subnets: {us-east-1a: subnet-0123456789abcdef0}\n"
)
GOOD_POOL = "infra: aws/us-east-1/us-east-1a, instance_type: g5.12xlarge, usd_per_hour: 5"


def write(tmp_path: Path, *pools: str, more: str = AWS) -> None:
    lines = "".join(f"    - {{{pool}}}\n" for pool in pools)
    text = f"{HEAD}{more}clouds:\n  any_of:\n{lines}"
    (tmp_path / "hybrid.yaml").write_text(text, encoding="utf-8")


def package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, needs: str = "no-such-sdk>=1"
) -> None:
    """Put a package before the installed one whose AWS provider needs an SDK."""
    folder = tmp_path / "elsewhere" / "hybrid_burst-0.1.0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: hybrid-burst\nVersion: 0.1.0\n"
        f'Requires-Dist: {needs}; extra == "aws"\n'
        "Requires-Dist: other-sdk; extra == 'gcp'\nRequires-Dist: pydantic>=2\n"
    )
    (folder / "entry_points.txt").write_text("[hybrid.providers]\naws = providers.aws:make\n")
    monkeypatch.syspath_prepend(folder.parent)


@pytest.mark.parametrize(
    ("pool", "where", "what"),
    [
        (
            "infra: aws/us-east-1/eu-west-1a, instance_type: g5.12xlarge",
            "clouds.any_of[0].infra:",
            "'aws/us-east-1/eu-west-1a' is not a place of AWS; write",
        ),
        ("infra: aws/us-east-1/us-east-1a", "clouds.any_of[0].instance_type:", "missing; add it"),
        (f"{GOOD_POOL}, stock: 1", "clouds.any_of[0].stock:", "not known here; remove it"),
        (
            f"{GOOD_POOL}, image: ubuntu",
            "clouds.any_of[0].image:",
            "write for example ami-",
        ),
        (f"{GOOD_POOL}, image: [1]", "clouds.any_of[0].image:", "a list is not text; write"),
        (f"{GOOD_POOL}, accelerators: T4:1", "clouds.any_of[0]:", "g5.12xlarge has A10G:4"),
        (
            "infra: gcp/us-central1/us-central1-a, instance_type: a2-highgpu-1g, usd_per_hour: 3",
            "providers.gcp:",
            "project is missing; write the id",
        ),
        (
            "infra: gcp/us-central1, instance_type: a2-highgpu-1g, usd_per_hour: 3",
            "clouds.any_of[0].infra:",
            "names no zone; write gcp/REGION/ZONE",
        ),
        (
            "infra: baidu/xx, instance_type: bcc.lgn1.c12m40.1p40, usd_per_hour: 3",
            "providers.baidu:",
            "there is no region 'xx'; known are",
        ),
        ("infra: local, accelerators: GPU:4", "clouds.any_of[0].usd_per_hour:", "missing; add it"),
    ],
)
def test_what_an_adapter_refuses_is_told_with_its_place(
    run: Run, tmp_path: Path, pool: str, where: str, what: str
) -> None:
    write(tmp_path, pool)

    shown = run("config", "validate")

    assert shown.code == 2
    assert f"hybrid.yaml: {where} " in shown.err
    assert what in shown.err
    assert "Traceback" not in shown.err


def test_a_wrong_word_and_a_number_without_quotes_are_told_without_any_pattern(
    run: Run, tmp_path: Path
) -> None:
    account = (
        "providers:\n  aws:\n    profile: 42\n    regions:\n      us-east-1:\n"
        "        image: ami-0123456789abcdef0\n        security_groups: [sg-XYZ]\n"
    )
    write(tmp_path, GOOD_POOL, more=account)

    shown = run("config", "validate")

    assert shown.code == 2
    lines = shown.err.removeprefix("Error: ").splitlines()
    assert [line.strip() for line in lines] == [
        "hybrid.yaml: providers.aws.profile: 42 is a number and text is wanted; put it in quotes: "
        '"42" (line 5)',
        "hybrid.yaml: providers.aws.regions.us-east-1.security_groups[0]: 'sg-XYZ' is not the id "
        "of a security group; write for example sg-0123456789abcdef0 (line 9)",
    ]


def test_all_adapters_are_asked_before_it_stops(run: Run, tmp_path: Path) -> None:
    write(
        tmp_path,
        "infra: aws/us-east-1/us-east-1a",
        "infra: local, accelerators: GPU:4",
        "infra: gcp/us-central1/us-central1-a, instance_type: a2-highgpu-1g, usd_per_hour: 3",
    )

    answer = json.loads(run("config", "validate", "--json").out)

    assert answer["is_valid"] is False
    assert {problem["path"] for problem in answer["problems"]} == {
        "clouds.any_of[0].instance_type",
        "clouds.any_of[1].usd_per_hour",
        "providers.gcp",
    }
    assert all(problem["message"] for problem in answer["problems"])


def test_it_says_what_was_checked_and_what_was_not(run: Run, tmp_path: Path) -> None:
    write(tmp_path, GOOD_POOL)

    shown = run("config", "validate")
    answer = json.loads(run("config", "validate", "--json").out)

    assert shown.code == 0
    assert "the settings of aws, by their adapters, which made no call" in shown.out
    assert "Not checked, only a running controller knows: credentials" in shown.out
    assert "quota and stock" in answer["not_checked"]
    assert "that the SDKs are installed here" in answer["checked"]


def test_what_the_price_list_does_not_know_is_a_doubt_and_no_error(
    run: Run, tmp_path: Path
) -> None:
    region = AWS.replace("us-east-1", "us-east-9")
    kind = "instance_type: g5.13xlarge, accelerators: A10G:4, cpus: 8, usd_per_hour: 5"
    write(tmp_path, f"infra: aws/us-east-9/us-east-9a, {kind}", more=region)

    shown = run("config", "validate")

    assert shown.code == 0
    assert "Warning: clouds.any_of[0].infra: the catalog has nothing at" in shown.out
    assert "Warning: clouds.any_of[0].instance_type: the catalog has no g5.13xlarge;" in shown.out


def test_a_spot_pool_whose_price_nobody_knows_is_told(run: Run, tmp_path: Path) -> None:
    write(tmp_path, "infra: aws/us-east-1/us-east-1a, instance_type: g5.12xlarge, use_spot: true")

    shown = run("config", "validate")

    assert shown.code == 0
    assert "clouds.any_of[0] is no offer by what is known here: it costs what" in shown.out


UNPRICED = (
    (
        "infra: aws/us-east-9/us-east-9a, instance_type: g5.12xlarge, image: ami-0123456789abcdef0",
        "the catalog has no g5.12xlarge in us-east-9 of aws (did you mean us-east-",
        "or let a running controller ask AWS, which takes pricing:GetProducts",
    ),
    (
        "infra: aws/us-east-1/us-east-1a, instance_type: g5.12xlrge, cpus: 8",
        "the catalog has no g5.12xlrge in us-east-1 of aws (did you mean g5.12xlarge?)",
        "write usd_per_hour of the pool, or a price under prices.overrides",
    ),
    (
        "infra: gcp/us-central1/us-central1-a, instance_type: c4-standard-8, cpus: 8, memory: 8GiB",
        "the catalog has no c4-standard-8 in us-central1 of gcp",
        "write usd_per_hour of the pool, or a price under prices.overrides.",
    ),
    (
        "infra: baidu/bj, instance_type: bcc.lgn1.c12m40.1p40",
        "the catalog has no bcc.lgn1.c12m40.1p40 in bj of baidu",
        "write usd_per_hour of the pool, or a price under prices.overrides, or cny_per_hour.",
    ),
)
UNPRICED_IDS = ("region", "type", "gcp", "baidu")
ACCOUNTS = AWS + (
    "  gcp: {project: p-1, image: projects/p-1/global/images/family/node}\n"
    "  baidu: {image: m-AbCd1234}\n"
)


@pytest.mark.parametrize(("pool", "why", "todo"), UNPRICED, ids=UNPRICED_IDS)
def test_a_pool_whose_price_nobody_knows_is_a_warning(
    run: Run, tmp_path: Path, pool: str, why: str, todo: str
) -> None:
    write(tmp_path, GOOD_POOL, pool, more=ACCOUNTS)

    shown = run("config", "validate")
    answer = json.loads(run("config", "validate", "--json").out)

    assert (shown.code, shown.err) == (0, "")
    says = "clouds.any_of[1] is no offer by what is known here: no price known: "
    (line,) = (line for line in shown.out.splitlines() if says in line)
    assert why in line
    assert todo in line
    assert answer["is_valid"] is True
    assert any(says in warning for warning in answer["warnings"])


@pytest.mark.parametrize(("pool", "why", "todo"), UNPRICED, ids=UNPRICED_IDS)
def test_a_plan_and_a_look_at_offers_say_it_too(
    run: Run, tmp_path: Path, pool: str, why: str, todo: str
) -> None:
    write(tmp_path, GOOD_POOL, pool, more=ACCOUNTS)

    plan = json.loads(run("plan", "--offline", "--gpus", "GPU:1", "--json").out)
    offers = run("offers", "--gpus", "A10G:4")
    view = json.loads(run("offers", "--json").out)

    assert why in json.dumps(plan)
    assert offers.code == 0
    assert "In your hybrid.yaml:" in offers.out
    assert "no price known: " in offers.out
    (left_out,) = view["withheld"]
    assert why in left_out["reason"]["message"]
    assert todo.rstrip(".") in left_out["reason"]["message"]


@pytest.mark.parametrize("words", [("config", "validate"), ("up", "-y")], ids=" ".join)
def test_a_missing_sdk_comes_with_the_command_that_installs_it(
    run: Run, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    package(tmp_path, monkeypatch)
    write(tmp_path, GOOD_POOL)

    shown = run(*words)

    assert shown.code == 2
    assert "hybrid.yaml: clouds.any_of[0].infra: no-such-sdk is not installed" in shown.err
    assert "run: pip install 'hybrid-burst[aws]'" in shown.err
    assert not home.exists()


def test_a_missing_sdk_does_not_hide_other_problems(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package(tmp_path, monkeypatch)
    write(tmp_path, "infra: aws/us-east-1/us-east-1a")

    shown = run("config", "validate")

    assert "no-such-sdk is not installed" in shown.err
    assert "clouds.any_of[0].instance_type: it is missing; add it" in shown.err


def test_an_sdk_that_is_there_is_no_problem(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package(tmp_path, monkeypatch, needs="pydantic>=2")
    write(tmp_path, GOOD_POOL)

    assert run("config", "validate").code == 0


def test_a_provider_that_cannot_be_loaded_is_no_traceback(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package(tmp_path, monkeypatch, needs="pydantic>=2")
    points = tmp_path / "elsewhere" / "hybrid_burst-0.1.0.dist-info" / "entry_points.txt"
    points.write_text("[hybrid.providers]\naws = providers.nowhere:make\n")
    write(tmp_path, GOOD_POOL)

    shown = run("config", "validate")

    assert shown.code == 2
    assert "the provider cannot be loaded" in shown.err
    assert "install it anew" in shown.err


class Shelf:
    """A provider of somebody else's, which says what it offers to a controller only."""

    name = "shelf"
    list_lag_s = 0.0

    def offers(self) -> Sequence[Offer]:
        raise AssertionError("a cloud was asked")


def make_shelf(_name: str, _raw: Mapping[str, object], _context: object) -> Shelf:
    """Return the provider; its entry point."""
    return Shelf()


def test_a_provider_that_cannot_answer_offline_is_not_asked(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package(tmp_path, monkeypatch)
    points = tmp_path / "elsewhere" / "hybrid_burst-0.1.0.dist-info" / "entry_points.txt"
    points.write_text("[hybrid.providers]\nshelf = tests.cli.test_validate:make_shelf\n")
    write(tmp_path, "infra: shelf, instance_type: box, accelerators: GPU:2", more="")

    checked, plan = run("config", "validate"), run("plan", "--offline")

    assert (checked.code, plan.code) == (0, 0)
    assert "says what it offers to a running controller only" in checked.out
    assert "online_only" in plan.out


@pytest.mark.slow
def test_validate_imports_no_sdk(tmp_path: Path, environment: dict[str, str]) -> None:
    points = tmp_path / "metadata" / "hybrid_burst-0.1.0.dist-info" / "entry_points.txt"
    points.write_text("[hybrid.providers]\naws = providers.aws:make\n")
    write(tmp_path, GOOD_POOL)

    heavy, code = loaded(["config", "validate", str(tmp_path / "hybrid.yaml")], environment).split(
        "|"
    )

    assert code.endswith("0")
    assert set(heavy.split(",")) <= {"pydantic", "yaml"}
