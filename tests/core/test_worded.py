"""Values of providers' settings: what is read, and the sentences for what is not."""

from __future__ import annotations

from typing import Annotated

import pytest
from pydantic import TypeAdapter, ValidationError

from hybrid.core.worded import seconds, size, spelled

SUBNET = TypeAdapter(
    Annotated[str, spelled(r"a|subnet-[0-9a-f]{8}", "the id of a subnet", "subnet-0123abcd")]
)
PACE = TypeAdapter(Annotated[float, seconds(low=300.0, high=86_400.0)])
DISK = TypeAdapter(Annotated[int, size(low=2**30, high=2**40)])


@pytest.mark.parametrize("text", ["a", "subnet-0123abcd"])
def test_text_that_is_spelled_right_stays_as_it_is(text: str) -> None:
    assert SUBNET.validate_python(text) == text


@pytest.mark.parametrize("text", ["", "ab", "xa", "subnet-0123abcde", "subnet-0123abcd\n", "A"])
def test_text_that_is_spelled_otherwise_is_shown_with_an_example(text: str) -> None:
    with pytest.raises(ValidationError) as caught:
        SUBNET.validate_python(text)

    (error,) = caught.value.errors()
    assert error["msg"].endswith(
        f"{text!r} is not the id of a subnet; write for example subnet-0123abcd"
    )


@pytest.mark.parametrize(("value", "read_s"), [("5m", 300.0), ("1d", 86_400.0), (600, 600.0)])
def test_a_duration_is_text_or_seconds(value: object, read_s: float) -> None:
    assert PACE.validate_python(value) == read_s


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("4m59s", "'4m59s' is too little; write 5m or more"),
        ("25h", "'25h' is too much; write 1d or less"),
        (1, "1 is too little; write 5m or more"),
        ("soon", "'soon' is not a duration; write for example 90s, 5m, 1h30m or 2d"),
        (True, "true is not a duration; write for example 5m or 90s"),
        (float("nan"), "nan is not a duration"),
        (float("inf"), "inf is not a duration"),
        (10**400, "inf is not a duration"),
        (None, "nothing is not a duration"),
        ([1], "a list is not a duration"),
    ],
)
def test_another_duration_is_refused(value: object, words: str) -> None:
    with pytest.raises(ValidationError) as caught:
        PACE.validate_python(value)

    assert words in caught.value.errors()[0]["msg"]


@pytest.mark.parametrize(
    ("value", "read"), [("100GiB", 100 * 2**30), (2**30, 2**30), (2.0**31, 2**31)]
)
def test_a_size_is_text_or_bytes(value: object, read: int) -> None:
    assert DISK.validate_python(value) == read


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("8MB", "'8MB' is too little; write 1GiB or more"),
        ("2TiB", "'2TiB' is too much; write 1TiB or less"),
        (2**30 + 0.5, "is not a size; write for example 80MB or 16GiB"),
        ("big", "'big' is not a size; write a number and B, KB"),
        (float("nan"), "nan is not a size"),
        (False, "false is not a size"),
        ({}, "a mapping is not a size"),
    ],
)
def test_another_size_is_refused(value: object, words: str) -> None:
    with pytest.raises(ValidationError) as caught:
        DISK.validate_python(value)

    assert words in caught.value.errors()[0]["msg"]
