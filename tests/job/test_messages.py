"""The notes between the controller and a job: what a job writes may be anything."""

from __future__ import annotations

import pytest

from hybrid.job import messages
from hybrid.job.messages import Ask, Saved

GARBAGE = [
    b"",
    b"\xff\xfe",
    b"no json",
    b"null",
    b"[]",
    b"3",
    b"{}",
    b"[" * 100_000,
    b'{"at_s": 1}',
    b'{"url": null, "at_s": 1}',
    b'{"url": {"a": 1}, "at_s": 1}',
    b'{"url": "x", "at_s": "soon"}',
    b'{"url": "x", "at_s": NaN}',
    b'{"url": "x", "at_s": 1e999}',
    b'{"url": "x", "at_s": 1' + b"0" * 400 + b"}",
    b'{"url": "x", "at_s": 1, "step": 1e999}',
    b'{"url": "x", "at_s": 1, "step": [1]}',
    b'{"url": "' + b"x" * 2_001 + b'", "at_s": 1}',
    b'{"why": "move", "by_s": null}',
    b'{"why": "move", "by_s": Infinity}',
]


@pytest.mark.parametrize("raw", GARBAGE, ids=range(len(GARBAGE)))
def test_garbage_is_no_note_and_no_error(raw: bytes) -> None:
    assert messages.parse_saved(raw) is None
    assert messages.parse_ask(raw) is None


def test_what_is_written_is_read_again() -> None:
    assert messages.parse_saved(messages.encode({"url": "s3://a/b", "at_s": 2.5})) == Saved(
        "s3://a/b", 2.5
    )
    saved = messages.encode({"url": "x", "at_s": 2, "step": 7, "of a later version": 1})
    assert messages.parse_saved(saved) == Saved("x", 2.0, 7)
    assert messages.parse_ask(messages.encode({"why": "move", "by_s": 9})) == Ask("move", 9.0)


def test_each_attempt_has_keys_of_its_own() -> None:
    keys = {
        make("j-1", attempt)
        for make in (messages.ask_key, messages.saved_key, messages.phase_key)
        for attempt in (1, 2)
    }
    assert len(keys) == 6
