"""Tests of numbers, counts and shapes as people read them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.core.policy.words import age_text, number, plural, shape_text
from tests.core.make import laws


@pytest.mark.parametrize(
    ("amount", "expected"),
    [
        (0, "0"),
        (-0.00001, "0"),
        (4.0, "4"),
        (0.5, "0.5"),
        (0.1 + 0.2, "0.3"),
        (0.0001, "0.0001"),
        (100.0, "100"),
        (1_250_000, "1250000"),
        (1e12, "1000000000000"),
    ],
)
def test_numbers_are_written_out(amount: float, expected: str) -> None:
    assert number(amount) == expected


@pytest.mark.parametrize(
    ("count", "expected"),
    [(0, "0 nodes"), (1, "1 node"), (2, "2 nodes"), (10**6, "1000000 nodes")],
)
def test_counts_have_their_plural(count: int, expected: str) -> None:
    assert plural(count, "node") == expected


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ({}, "nothing"),
        ({"GPU": 0.0, "memory": 0.0}, "nothing"),
        ({"memory": 2.0**31, "x": 1.0, "CPU": 8.0, "GPU": 4.0}, "4 GPU, 8 CPU, 2 GiB memory, 1 x"),
        ({"GPU": 0.25}, "0.25 GPU"),
        ({"memory": 1.5 * 2**40}, "1536 GiB memory"),
        ({"memory": 500 * 2.0**20}, "500 MiB memory"),
        ({"memory": 1_000.0}, "1000 B memory"),
        ({"memory": 0.5}, "0.5 B memory"),
        ({"object_store_memory": 80e6}, "76.29 MiB object_store_memory"),
    ],
)
def test_shapes_are_written_as_people_say_them(shape: dict[str, float], expected: str) -> None:
    assert shape_text(shape) == expected


@pytest.mark.parametrize(
    ("age_s", "expected"), [(None, "an unknown time"), (0, "0 s"), (61.4, "61 s")]
)
def test_an_unknown_age_is_not_zero(age_s: float | None, expected: str) -> None:
    assert age_text(age_s) == expected


@given(st.floats(0, 1e15))
@laws
def test_no_number_is_in_powers_of_ten_and_each_is_right_to_four_decimals(amount: float) -> None:
    assert "e" not in number(amount)
    assert abs(float(number(amount)) - amount) <= 5e-5 + amount * 1e-12
