"""Policies and parameters by the names that people write."""

from __future__ import annotations

import pytest

from hybrid.core.errors import ConfigError
from hybrid.sim.named import NAMES, Named, changed, named, takes
from hybrid.sim.params import SimParams


@pytest.mark.parametrize("name", NAMES)
def test_each_name_makes_a_new_policy_each_time(name: str) -> None:
    policy = named(name, {})
    first, second = policy.make(late_share=0.01), policy.make(late_share=0.01)
    assert first is not second
    assert first.name.startswith(name)


def test_a_profile_goes_by_the_late_share_that_is_promised() -> None:
    assert Named("balanced").make(late_share=0.0).jobs.late_share == 0.0


def test_a_duration_is_set_with_its_unit_or_in_seconds() -> None:
    assert named("balanced", {"rent_after": "1m30s"}).changes == {"rent_after_s": 90.0}
    assert named("balanced", {"rent_after_s": "90"}).changes == {"rent_after_s": 90.0}
    assert named("ray", {"idle_after": "1m"}).changes == {"idle_after_s": 60.0}
    assert named("ray", {"is_packed": "true"}).changes == {"is_packed": True}
    assert named("slurm", {"resume_rate": "3"}).changes == {"resume_rate": 3}


def test_the_site_has_parameters_inside_parameters() -> None:
    site = changed(SimParams(gpus=8), {"sim.boot.median": "4m", "sim.tick": "10", "hold": "1s"})
    assert site.boot.median_s == 240.0
    assert site.tick_s == 10.0


def test_a_policy_says_which_parameters_it_takes() -> None:
    assert takes("balanced", "rent_after")
    assert takes("ray", "idle_after_s")
    assert not takes("ray", "rent_after")
    assert not takes("nobody", "rent_after")


@pytest.mark.parametrize(
    ("name", "settings", "words"),
    [
        ("best", {}, "there is no policy 'best'; take one of thrifty, balanced"),
        ("ray", {"rent_after": "1s"}, "ray has no parameter 'rent_after'; it has idle_after_s"),
        ("balanced", {"suspensions": "1.5"}, "suspensions: '1.5' is not a whole number"),
        ("balanced", {"rent_after": "soon"}, "rent_after: 'soon' is not a duration"),
        ("balanced", {"node_size_margin": "7"}, "node_size_margin is 7"),
        ("balanced", {"late_share": "0.1"}, "it is an option: --late-share"),
        ("hpa", {"target": "nan"}, "target is nan; it must be above 0"),
        ("hpa", {"target": "0"}, "target is 0; it must be above 0"),
        ("ray", {"is_packed": "yes"}, "is_packed: 'yes' is not true or false"),
        ("keda", {"cooldown": "-5s"}, "cooldown: '-5s' is not a duration"),
        ("reactive", {"above_gpus": "-1"}, "above_gpus is -1; it must be 0 or more"),
    ],
)
def test_what_does_not_fit_a_policy_is_said(
    name: str, settings: dict[str, str], words: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        named(name, settings)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("sim.boot", "1", "set one of sim.boot.alloc_s"),
        ("sim.boots.median", "1", "has no parameter 'boots'"),
        ("sim.tick", "0", "tick_s is 0.0"),
        ("sim.node_sizes", "1", "sim.node_sizes cannot be set"),
        ("sim.tick.x", "1", "sim.tick.x cannot be set"),
        ("sim.boot.fail_share", "2", "fail_share is 2.0"),
        ("sim.boot.fail_share", "nan", "fail_share is nan"),
    ],
)
def test_what_does_not_fit_the_site_is_said(key: str, value: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        changed(SimParams(gpus=8), {key: value})
    assert words in str(caught.value)
