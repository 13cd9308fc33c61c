"""Every file in configs/ loads, fits the schema, and means what its comments say."""

from __future__ import annotations

from importlib.metadata import entry_points
from pathlib import Path

import jsonschema
import pytest

from hybrid.adapters import catalog
from hybrid.adapters.clock import SystemClock
from hybrid.app.offline import checked, doubts
from hybrid.core.ports import ProviderContext
from hybrid.settings import json_schema, load, packaged
from hybrid.settings.advice import unready_clouds
from hybrid.settings.document import read
from hybrid.settings.scalars import resolve

CONFIGS = sorted((Path(__file__).parent.parent / "configs").glob("*.yaml"))
ENV = {"HOME": "/h"}


@pytest.mark.parametrize("file", CONFIGS, ids=lambda file: file.stem)
def test_a_config_loads_without_a_warning_but_that_its_cloud_is_not_ready(file: Path) -> None:
    settings = load(file, ENV)

    assert settings.name == file.stem
    assert settings.warnings() == tuple(unready_clouds(settings))


@pytest.mark.parametrize("file", CONFIGS, ids=lambda file: file.stem)
def test_every_cloud_accepts_its_part_of_a_config(file: Path, tmp_path: Path) -> None:
    settings = load(file, ENV)
    makers = {point.name: point.load() for point in entry_points(group="hybrid.providers")}
    context = ProviderContext(
        cluster_id="c-1",
        cluster_name=settings.name,
        state_dir=str(tmp_path),
        ray_dir=str(tmp_path),
        clock=SystemClock(),
        catalog=catalog.load(),
    )

    for name in settings.provider_names:
        makers[name](name, settings.provider_raw(name), context)


@pytest.mark.parametrize("file", CONFIGS, ids=lambda file: file.stem)
def test_the_adapters_judge_a_config_without_asking_a_cloud(file: Path) -> None:
    settings = load(file, ENV)

    offered = checked(settings, SystemClock())

    assert len(offered) == (len(settings.clouds.pools) if settings.clouds else 0)
    doubtful = [item.view for item in offered if item.offer is None]
    # The one spot price that only AWS knows.
    assert [view.reason.code for view in doubtful if view.reason] == ["no_price"] * len(doubtful)
    assert len(list(doubts(settings, offered))) == len(doubtful)


@pytest.mark.parametrize("file", CONFIGS, ids=lambda file: file.stem)
def test_a_config_fits_the_schema(file: Path) -> None:
    jsonschema.validate(
        resolve(read(file, file.name).content),
        json_schema(),
        cls=jsonschema.Draft202012Validator,
    )


@pytest.mark.parametrize("file", CONFIGS, ids=lambda file: file.stem)
def test_a_config_comes_with_the_program(file: Path) -> None:
    assert packaged(file.name).read_bytes() == file.read_bytes()


def test_every_key_of_the_default_is_explained() -> None:
    """A newcomer reads this file first."""
    lines = [
        line.strip(" -") for line in packaged("local.yaml").read_text(encoding="utf-8").splitlines()
    ]
    keys = {line.split(":")[0] for line in lines if line and not line.startswith("#")}
    explained = {line.split(":")[0] for line in lines if "#" in line}

    # `ray`, `hosts` and `queue` only hold what is explained below them.
    assert keys - explained == {"ray", "hosts", "queue"}


def test_the_default_is_the_small_world_of_the_quickstart() -> None:
    settings = load(packaged("local.yaml"), ENV)

    assert settings.head.port == "auto"
    assert [host.gpu_count for host in settings.onprem.hosts] == [4, 4]
    assert settings.provider_raw("local")["pools"] == [
        {
            "infra": "local",
            "accelerators": "GPU:4",
            "cpus": 4,
            "usd_per_hour": 2.4,
            "max_nodes": 2,
            "stock": 2,
            "boot_delay": "3s",
            "rank": 0,
        }
    ]
    assert settings.burst.queue.max_wait_s == 5.0
    assert settings.idle.min_life_s == 10.0
    assert settings.caps.gpu_count == 8
    assert settings.controller.tick_s == 1.0
