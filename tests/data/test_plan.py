"""The arithmetic of shipping."""

from __future__ import annotations

import pytest

from hybrid.data.plan import CLOUD, HOME, Entry, Link, Links, judge, ship

LINKS = Links(
    mbit_per_s=1_000,
    pairs={(HOME, "aws"): Link(100, 0.0), (HOME, "aws/us-east-1"): Link(8_000, 0.0)},
)
TERABYTE = Entry("/data/a", 1_000)


def test_seconds_and_dollars_follow_from_size_speed_and_price() -> None:
    made = ship([TERABYTE, Entry("s3://b", 10, "aws/eu-1")], CLOUD, LINKS)
    # 8,000 s for the terabyte at 1 Gbit/s, 80 s for the rest, which leaves a cloud.
    assert made.seconds == 8_080.0
    assert made.usd == pytest.approx(0.9)


def test_what_lies_there_already_is_free() -> None:
    made = ship([Entry("s3://b", 10, "aws/eu-1")], "aws/eu-1", LINKS)
    assert (made.seconds, made.usd) == (0.0, 0.0)


def test_the_most_exact_entry_for_a_way_holds() -> None:
    assert ship([TERABYTE], "aws/us-east-1", LINKS).seconds == 1_000.0
    assert ship([TERABYTE], "aws/eu-1", LINKS).seconds == 80_000.0
    assert ship([TERABYTE], "gcp/x", LINKS).seconds == 8_000.0


def test_unknown_sizes_and_speeds_are_unknown_and_not_nothing() -> None:
    unknown = ship([Entry("s3://b", None, "aws")], HOME, LINKS)
    assert (unknown.seconds, unknown.usd) == (None, None)
    assert unknown.unknown == ("the size of s3://b",)
    unspeedy = ship([TERABYTE], CLOUD, Links())
    assert (unspeedy.seconds, unspeedy.usd) == (None, 0.0)
    assert not judge([TERABYTE], [CLOUD], Links(), 100.0).is_burst


def test_a_job_goes_out_only_if_its_data_is_there_before_home_has_room() -> None:
    places = [HOME, CLOUD]
    slow, fast = (judge([TERABYTE], places, LINKS, wait_s) for wait_s in (7_999.0, 8_001.0))
    assert (slow.is_burst, fast.is_burst) == (False, True)
    assert slow.why == (
        "stays home until its last moment: its data takes 8000 s to cloud, and home has room in "
        "7999 s"
    )
    assert judge([TERABYTE], places, LINKS, None).is_burst
    assert not judge([TERABYTE], [HOME], LINKS, 1e9).is_burst
