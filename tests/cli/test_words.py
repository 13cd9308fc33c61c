"""Values as people read them."""

from __future__ import annotations

import time

import pytest

from hybrid.cli import words


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "?"),
        (-5, "0s"),
        (0, "0s"),
        (59.9, "59s"),
        (60, "1m"),
        (3_599, "59m"),
        (3_600, "1h00m"),
        (7_500, "2h05m"),
        (86_399, "23h59m"),
        (86_400, "1d0h"),
        (273_600, "3d4h"),
    ],
)
def test_duration_takes_one_or_two_units(seconds: float | None, text: str) -> None:
    assert words.duration(seconds) == text


@pytest.mark.parametrize(
    ("usd", "text"),
    [(None, "?"), (0, "$0.00"), (0.001, "<$0.01"), (2.4, "$2.40"), (1234.5, "$1,234.50")],
)
def test_money_never_shows_a_little_as_nothing(usd: float | None, text: str) -> None:
    assert words.money(usd) == text


def test_unknown_is_never_zero() -> None:
    assert words.rate(None) == "?"
    assert words.number(None) == "?"
    assert words.used(None, 4) == "?/4"
    assert words.age(None, 10.0) == "?"


def test_used_of_nothing_is_a_dash() -> None:
    assert words.used(0, 0) == "-"


@pytest.mark.parametrize(
    ("resources", "text"),
    [
        ({}, "nothing"),
        ({"CPU": 2, "GPU": 0.5}, "GPU:0.5 CPU:2"),
        ({"memory": 16 * 2**30, "tpu": 1}, "memory:16GiB tpu:1"),
    ],
)
def test_shape_begins_with_gpus(resources: dict[str, float], text: str) -> None:
    assert words.shape(resources) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("\u8bad\u7ec3 \u00e9", "\u8bad\u7ec3 \u00e9"),
        ("a\nb\tc", "a b c"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("bell\x07", "bell\\x07"),
        ("\u202eevil", "\\u202eevil"),
        ("half\udcff", "half\\udcff"),
    ],
)
def test_safe_shows_what_could_steer_a_terminal(text: str, shown: str) -> None:
    assert words.safe(text) == shown


def test_a_moment_has_its_date_unless_it_is_of_today() -> None:
    now_s = time.mktime((2026, 7, 20, 14, 3, 55, 0, 0, -1))

    assert words.moment(now_s, now_s) == "14:03:55"
    assert words.moment(now_s - 86_400, now_s) == "07-19 14:03"


@pytest.mark.parametrize(
    ("where", "sites", "text"),
    [
        ("anywhere", (), "anywhere"),
        ("site=cloud", (), "cloud"),
        ("site=onprem or site=cloud", (), "onprem, cloud"),
        ("site=onprem,accelerator=A100", ("onprem",), "site=onprem,accelerator=A100"),
        ("site=!onprem", (), "site=!onprem"),
        ("", ("onprem", "cloud"), "onprem, cloud"),
        ("", (), "anywhere"),
    ],
)
def test_places_are_short_when_the_site_alone_decides(
    where: str, sites: tuple[str, ...], text: str
) -> None:
    assert words.places(where, sites) == text
