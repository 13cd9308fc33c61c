"""Tests of amounts as people write them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.core.quantity import (
    CountRange,
    GpuRequest,
    count_range,
    duration_s,
    duration_text,
    gpu_request,
    shown,
    size_bytes,
    size_text,
)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0s", 0.0),
        ("90s", 90.0),
        ("5m", 300.0),
        ("1h30m", 5_400.0),
        ("1.5h", 5_400.0),
        ("2d", 172_800.0),
        ("500ms", 0.5),
        ("1m30s500ms", 90.5),
        ("1.0005s", 1.0),
    ],
)
def test_duration_s_reads_units_from_large_to_small(text: str, seconds: float) -> None:
    assert duration_s(text) == seconds


@pytest.mark.parametrize(
    "text",
    ["", "m", "-5m", "5 m", "5M", "5min", "1e3s", "5m5m", "30m1h", "٣s", "1_000s", "9" * 13 + "s"],
)
def test_duration_s_refuses_other_text_and_says_what_to_write(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a duration; write for example 90s, 5m"):
        duration_s(text)


def test_duration_s_says_that_a_bare_number_has_no_unit() -> None:
    with pytest.raises(ValueError, match=r"^'5' is not a duration; it has no unit: write 5s"):
        duration_s("5")


@given(st.integers(min_value=0, max_value=10**12))
def test_duration_text_is_read_back_to_the_same_duration(milliseconds: int) -> None:
    assert duration_s(duration_text(milliseconds / 1000)) == milliseconds / 1000


def test_duration_text_uses_the_largest_units() -> None:
    assert duration_text(90_061.001) == "1d1h1m1s1ms"
    assert duration_text(0) == "0s"


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("80MB", 80_000_000),
        ("16GiB", 16 * 2**30),
        ("1.5KiB", 1_536),
        ("7B", 7),
        ("2 TB", 2 * 10**12),
    ],
)
def test_size_bytes_reads_decimal_and_binary_units(text: str, size: int) -> None:
    assert size_bytes(text) == size


@pytest.mark.parametrize("text", ["", "80", "80M", "80mb", "-1MB", "1e3MB", "80  MB", "MB", "1EB"])
def test_size_bytes_refuses_other_text(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a size; write a number and B, KB, MB"):
        size_bytes(text)


@given(st.integers(min_value=0, max_value=10**15))
def test_size_text_is_read_back_to_the_same_size(size: int) -> None:
    assert len(size_text(size)) <= 16
    if size < 10**12:  # beyond, an odd number of bytes has more digits than a file may hold
        assert size_bytes(size_text(size)) == size


def test_size_text_uses_the_largest_unit_that_divides() -> None:
    assert size_text(80_000_000) == "80MB"
    assert size_text(16 * 2**30) == "16GiB"
    assert size_text(0) == "0B"


@pytest.mark.parametrize(
    ("text", "accelerator", "count"),
    [
        ("A100:8", "A100", 8),
        ("A100", "A100", 1),
        ("A100-80GB:8", "A100-80GB", 8),
        ("GPU:4", "", 4),
        ("gpu:4", "", 4),
        ("GPU", "", 1),
        ("RTX4090", "RTX4090", 1),
        ("rtx4090:2", "rtx4090", 2),
    ],
)
def test_gpu_request_reads_type_and_count(text: str, accelerator: str, count: int) -> None:
    assert gpu_request(text) == GpuRequest(accelerator=accelerator, count=count)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("A100x8", "A100x8' is not a GPU request; write TYPE:COUNT, for example A100:8"),
        ("8xA100", "write TYPE:COUNT, for example A100:8"),
        ("A100 x 2", "write TYPE:COUNT, for example A100:2"),
        ("4", "write GPU:4, or a type and the count, for example A100:4"),
        ("A100:0.5", "a node has whole GPUs"),
        ("A100:80GB:8", "write TYPE:COUNT"),
        ("A100:0", "asks for no GPU; leave it out"),
        ("A100:-1", "write TYPE:COUNT"),
        ("A100:9999999", "write TYPE:COUNT"),
        ("", "'' is not a GPU request"),
        ("A" * 64, "is not a GPU request"),
        ("A100:8; rm -rf /", "is not a GPU request"),
    ],
)
def test_gpu_request_refuses_other_text_and_says_what_was_meant(text: str, hint: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011  # the text is the test
        gpu_request(text)

    assert hint in str(caught.value)


@given(st.integers(min_value=1, max_value=999_999), st.sampled_from(["", "A100", "H200-141GB"]))
def test_a_gpu_request_is_read_back_from_its_text(count: int, accelerator: str) -> None:
    request = GpuRequest(accelerator=accelerator, count=count)

    assert gpu_request(str(request)) == request


@given(st.text(max_size=20))
def test_no_text_makes_a_parser_fail_in_another_way(text: str) -> None:
    for parse in (duration_s, size_bytes, gpu_request, count_range):
        try:
            parse(text)
        except ValueError as err:
            assert "\n" not in str(err)  # noqa: PT017  # both outcomes are fine


def test_count_range_reads_a_range_or_one_number() -> None:
    assert count_range("1..4") == CountRange(low=1, high=4)
    assert count_range("3") == CountRange(low=3, high=3)
    assert str(count_range("1..4")) == "1..4"


def test_count_range_contains_its_ends_only_among_whole_numbers() -> None:
    ends = count_range("1..4")

    assert 1 in ends
    assert 4 in ends
    assert 5 not in ends
    assert 2.0 not in ends


@pytest.mark.parametrize(
    "text", ["", "..", "1..", "..4", "1-4", "1...4", "a..b", "-1..4", "1 .. 4"]
)
def test_count_range_refuses_other_text(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a range; write LOW\.\.HIGH, for example 1\.\.4"):
        count_range(text)


def test_count_range_refuses_an_end_before_its_start() -> None:
    with pytest.raises(ValueError, match=r"'4\.\.1' ends before it starts; write 1\.\.4"):
        count_range("4..1")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "nothing"),
        (True, "true"),
        (False, "false"),
        (5, "5"),
        (2.4, "2.4"),
        (math.nan, "nan"),
        (10**400, "inf"),
        (-(10**400), "-inf"),
        ("a\nb", r"'a\nb'"),
        ({}, "a mapping"),
        ([], "a list"),
    ],
)
def test_shown_is_short_and_on_one_line(value: object, text: str) -> None:
    assert shown(value) == text


def test_shown_cuts_long_text() -> None:
    assert len(shown("x" * 10_000)) < 80
