"""The garbage collector rests inside the block, and goes on after it as before."""

from __future__ import annotations

import gc

import pytest

from hybrid.core.collector import collector_paused


def test_it_rests_inside_and_goes_on_after_even_an_error() -> None:
    def fail() -> None:
        with collector_paused():
            assert not gc.isenabled()
            raise ValueError("in between")

    with pytest.raises(ValueError, match="in between"):
        fail()
    assert gc.isenabled()


def test_one_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        with collector_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        gc.enable()
