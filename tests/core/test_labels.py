"""Tests of label selectors, by Ray's own rules (measured on Ray 2.60)."""

from __future__ import annotations

import pytest

from hybrid.core.labels import admits, admits_any, describe, sites
from hybrid.core.models import Labels, Selector
from tests.core.make import CLOUD, NOT_CLOUD, ONPREM, rule

A100: Selector = (rule("accelerator", "A100"),)
CASES = [
    pytest.param((), {}, True, id="no-rule-admits-all"),
    pytest.param(ONPREM, {"site": "onprem"}, True, id="equal"),
    pytest.param(ONPREM, {"site": "cloud"}, False, id="another-value"),
    pytest.param(ONPREM, {}, False, id="a-positive-rule-needs-the-label"),
    pytest.param(NOT_CLOUD, {"site": "onprem"}, True, id="negated"),
    pytest.param(NOT_CLOUD, {"site": "cloud"}, False, id="negated-refuses"),
    pytest.param(NOT_CLOUD, {}, True, id="negated-admits-a-missing-label"),
    pytest.param((rule("zone", "a", "b"),), {"zone": "b"}, True, id="in"),
    pytest.param((rule("zone", "a", "b"),), {"zone": "c"}, False, id="not-in"),
    pytest.param((rule("zone", "a", "b", is_negated=True),), {"zone": "b"}, False, id="!in"),
    pytest.param((rule("zone", "a", "b", is_negated=True),), {"zone": "c"}, True, id="!in-else"),
    pytest.param((rule("zone"),), {"zone": "a"}, False, id="a-rule-we-do-not-know-admits-none"),
    pytest.param((*CLOUD, *A100), {"site": "cloud", "accelerator": "A100"}, True, id="both"),
    pytest.param((*CLOUD, *A100), {"site": "cloud"}, False, id="only-one-of-both"),
    pytest.param((*CLOUD, *ONPREM), {"site": "cloud"}, False, id="contradiction"),
]


@pytest.mark.parametrize(("selector", "labels", "expected"), CASES)
def test_a_selector_admits_what_ray_admits(
    selector: Selector, labels: Labels, expected: bool
) -> None:
    assert admits(selector, labels) is expected


@pytest.mark.parametrize(
    ("selectors", "labels", "expected"),
    [
        pytest.param((), {"site": "cloud"}, True, id="none-admits-all"),
        pytest.param(((),), {}, True, id="an-empty-selector-admits-all"),
        pytest.param((ONPREM, CLOUD), {"site": "cloud"}, True, id="the-second-choice"),
        pytest.param((ONPREM,), {"site": "cloud"}, False, id="no-choice"),
    ],
)
def test_one_of_several_selectors_is_enough(
    selectors: tuple[Selector, ...], labels: Labels, expected: bool
) -> None:
    assert admits_any(selectors, labels) is expected


@pytest.mark.parametrize(
    ("selectors", "expected"),
    [
        pytest.param((), "anywhere", id="none"),
        pytest.param(((),), "anywhere", id="empty"),
        pytest.param((ONPREM,), "site=onprem", id="one"),
        pytest.param((ONPREM, CLOUD), "site=onprem or site=cloud", id="in-order-of-preference"),
        pytest.param((ONPREM, ()), "site=onprem or anywhere", id="then-anywhere"),
        pytest.param(((*CLOUD, *A100),), "site=cloud,accelerator=A100", id="and"),
        pytest.param((NOT_CLOUD,), "site=!cloud", id="negated"),
        pytest.param(((rule("zone", "a", "b"),),), "zone=in(a,b)", id="in"),
        pytest.param(((rule("zone", "a", "b", is_negated=True),),), "zone=!in(a,b)", id="!in"),
    ],
)
def test_selectors_are_written_as_ray_reads_them(
    selectors: tuple[Selector, ...], expected: str
) -> None:
    assert describe(selectors) == expected


@pytest.mark.parametrize(
    ("selectors", "expected"),
    [
        pytest.param((), ("onprem", "cloud"), id="anywhere"),
        pytest.param((ONPREM,), ("onprem",), id="onprem-only"),
        pytest.param((CLOUD,), ("cloud",), id="cloud-only"),
        pytest.param((ONPREM, CLOUD), ("onprem", "cloud"), id="either"),
        pytest.param(
            (CLOUD, ONPREM), ("onprem", "cloud"), id="the-order-of-preference-is-not-kept"
        ),
        pytest.param((A100,), ("onprem", "cloud"), id="other-labels-do-not-matter"),
        pytest.param(((*ONPREM, *A100),), ("onprem",), id="both-kinds-of-rules"),
        pytest.param((NOT_CLOUD,), ("onprem",), id="negated"),
        pytest.param(((*CLOUD, *ONPREM),), (), id="contradiction"),
    ],
)
def test_sites_are_judged_by_the_site_label(
    selectors: tuple[Selector, ...], expected: tuple[str, ...]
) -> None:
    assert sites(selectors) == expected
