"""Tests of loading: where the file is looked for, and that every mistake is told at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from hybrid.core.errors import ConfigError
from hybrid.settings import SettingsError, load
from tests.settings.writing import CLOUD, load_text, problem, problems

ENV = {"HOME": "/h"}
PROVIDERS = ("local",)


def test_load_reads_the_path_given_before_all_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("given", "variable", "hybrid"):
        Path(f"{name}.yaml").write_text(f"name: {name}")
    env = {**ENV, "HYBRID_CONFIG": "variable.yaml"}

    assert load(Path("given.yaml"), env).name == "given"
    assert load(None, env).name == "variable"
    assert load(None, ENV).name == "hybrid"


def test_load_falls_back_on_the_embedded_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    settings = load(None, ENV, providers=PROVIDERS)

    assert settings.name == "local"
    assert settings.source == "configs/local.yaml (embedded)"
    assert settings.origin.file is not None
    assert settings.origin.file.is_absolute()


def test_load_does_not_pass_over_a_file_with_nearly_the_right_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("hybrid.yml").write_text("name: a")

    with pytest.raises(ConfigError, match=r"hybrid\.yml: .* rename it to hybrid\.yaml"):
        load(None, ENV)


def test_load_does_not_pass_over_a_broken_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("hybrid.yaml").symlink_to("gone.yaml")

    with pytest.raises(ConfigError, match=r"hybrid\.yaml: there is no such file"):
        load(None, ENV)


def test_load_expands_the_home_folder_of_the_environment_it_is_given(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("name: a")

    settings = load(Path("~/c.yaml"), {"HOME": str(tmp_path)})

    assert settings.origin.file == tmp_path / "c.yaml"
    with pytest.raises(ConfigError, match="HOME is not set"):
        load(Path("~/c.yaml"), {})


def test_load_finds_the_installed_providers_by_itself(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("name: a\n" + CLOUD)

    assert load(tmp_path / "c.yaml", ENV).provider_names == ("local",)


def test_state_path_is_below_home_unless_the_file_says_otherwise(tmp_path: Path) -> None:
    assert load_text(tmp_path, "name: a").state_path == Path("/h/.hybrid/a")
    assert load_text(tmp_path, "name: a", {"HYBRID_HOME": "/x"}).state_path == Path("/x/a")
    assert load_text(tmp_path, "name: a\nstate_dir: /y").state_path == Path("/y")
    assert load_text(tmp_path, "name: a\nstate_dir: z").state_path == tmp_path / "z"


def test_load_names_every_mistake_with_its_path_and_line(tmp_path: Path) -> None:
    text = """\
name: Lab
hed: {}
head: {port: 22, cpus: -1}
onprem:
  hosts:
    - {name: a, acclerators: GPU:4}
    - {name: A, accelerators: A100x8}
clouds:
  any_of:
    - infra: moon
      acclerators: A100:8
      usd_per_hour: .nan
burst: {max_wait: 5m, queue: {max_wait: 5}}
lease: {length: 1m, renew: 2m}
head: {}
"""

    found = problems(tmp_path, text)

    assert found == [
        "hybrid.yaml: name: 'Lab' is not a name; write a small letter, then up to 30 small "
        "letters, digits or '-', for example lab-1 (line 1)",
        "hybrid.yaml: hed: the key 'hed' is not known; did you mean head? (line 2)",
        "hybrid.yaml: head.cpus: -1 is too small; write 0 or more (line 3)",
        "hybrid.yaml: head.port: 22 is no usable port; write one within 1024..65535, or auto "
        "(line 3)",
        "hybrid.yaml: onprem.hosts[0].acclerators: the key 'acclerators' is not known; did you "
        "mean accelerators? (line 6)",
        "hybrid.yaml: onprem.hosts[1].accelerators: 'A100x8' is not a GPU request; write "
        "TYPE:COUNT, for example A100:8 (line 7)",
        "hybrid.yaml: onprem.hosts[1].name: 'A' is also the name of hosts[0]; give each its own "
        "(line 7)",
        "hybrid.yaml: clouds.any_of[0].infra: 'moon' is not an installed provider; known are "
        "local, tide (line 10)",
        "hybrid.yaml: clouds.any_of[0].acclerators: the key 'acclerators' is not known; did you "
        "mean accelerators? (line 11)",
        "hybrid.yaml: clouds.any_of[0].usd_per_hour: '.nan' is not a number; write for example "
        "2.40 (line 12)",
        "hybrid.yaml: burst.max_wait: the key 'max_wait' is not known; did you mean "
        "burst.queue.max_wait? (line 13)",
        "hybrid.yaml: burst.queue.max_wait: '5' is not a duration; it has no unit: write 5s for "
        "seconds or 5m for minutes (line 13)",
        "hybrid.yaml: lease.renew: a lease of 1m renewed every 2m runs out in between; write less "
        "than lease.length (line 14)",
        "hybrid.yaml: head: the key 'head' is here twice (first on line 3); keep one (line 15)",
        "hybrid.yaml: budget: there is no cap, so renting could cost any sum; set at least one of "
        "nodes, gpus, usd_per_hour, usd_per_day or usd_per_month, for example usd_per_day: 100",
    ]


def test_a_missing_name_is_told_without_a_line(tmp_path: Path) -> None:
    assert problem(tmp_path, "head: {}") == "hybrid.yaml: name: it is missing; add it"


def test_null_means_the_default_everywhere(tmp_path: Path) -> None:
    text = "name: a\nhead:\nburst: {queue: null}\nservices: ~\nclouds:\nproviders: {local: }\n"

    settings = load_text(tmp_path, text)

    assert settings.head.cpus == 1
    assert settings.burst.queue.max_wait_s == 300.0
    assert settings.clouds is None
    assert settings.providers == {"local": {}}


def test_errors_are_one_exception_that_the_command_line_knows(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load_text(tmp_path, "name: A\nx: 1")

    assert isinstance(caught.value, SettingsError)
    assert [p.path for p in caught.value.problems] == [("name",), ("x",)]
    assert [p.line for p in caught.value.problems] == [1, 2]
