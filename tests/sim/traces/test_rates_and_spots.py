"""Rates of services and spot zones: the models and our files of them."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from hybrid.sim.traces.rates import RateTrace, RateWindow, read_rates, write_rates
from hybrid.sim.traces.reading import TraceError
from hybrid.sim.traces.spots import SpotSpan, SpotTrace, SpotZone, read_spots, write_spots, zone_of

RATES = "start_s,length_s,requests_per_s,interarrival_cv\n"
SPOTS = "zone,start_s,end_s,available\n"


@pytest.mark.parametrize(
    "numbers",
    [(-1, 60, 1, 1), (0, 0, 1, 1), (0, math.nan, 1, 1), (0, 60, -1, 1), (0, 60, 1, math.inf)],
)
def test_a_window_refuses_numbers_out_of_bounds(numbers: tuple[float, float, float, float]) -> None:
    with pytest.raises(ValueError, match="window"):
        RateWindow(*numbers)


def test_rates_read_back_the_same(tmp_path: Path) -> None:
    trace = RateTrace("r", (RateWindow(0, 60, 1.25, 2.0), RateWindow(60, 30, 0.0, 0.0)))

    write_rates(trace, tmp_path / "r.csv.gz")

    assert read_rates(tmp_path / "r.csv.gz") == trace
    assert trace.end_s == 90
    assert trace.mean_requests_per_s == pytest.approx(75 / 90)


def test_windows_are_sorted_and_one_that_reaches_into_another_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text(
        RATES + "60,60,2,1\n0,60,1,1\n90,60,3,1\n120,60,x,1\n1e300,1e300,1,1\n", encoding="utf-8"
    )

    trace = read_rates(path)

    assert [window.start_s for window in trace.windows] == [0.0, 60.0]
    assert [(each.reason, each.first_rows) for each in trace.skipped] == [
        ("requests_per_s is not a plain number", (5,)),
        ("a number is too large; in other units?", (6,)),
        ("earlier than the line before; sorted", (2,)),
        ("reaches into another window", (4,)),
    ]


def test_a_file_without_windows_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text(RATES + "0,-5,1,1\n", encoding="utf-8")

    with pytest.raises(TraceError, match="no window that can be used"):
        read_rates(path)
    assert RateTrace("none", ()).end_s == RateTrace("none", ()).mean_requests_per_s == 0.0


def test_runs_become_spans_and_equal_neighbours_one() -> None:
    zone = zone_of("z", 10.0, [(0, 2), (1, 3), (1, 1), (5, 0), (0, 4)])

    assert zone.spans == (SpotSpan(0, 20, 0), SpotSpan(20, 60, 1), SpotSpan(60, 100, 0))
    assert zone.available_ratio == 0.4
    assert [zone.available_at(at_s) for at_s in (0, 20, 59, 99, 100)] == [0, 1, 1, 0, None]


def test_spots_read_back_the_same(tmp_path: Path) -> None:
    zones = (zone_of("a", 10.0, [(1, 2), (0, 1)]), zone_of("b", 5.0, [(16, 3)]))
    trace = SpotTrace("s", zones)

    write_spots(trace, tmp_path / "s.csv")

    assert read_spots(tmp_path / "s.csv") == trace
    assert trace.end_s == 30.0


def test_bad_spans_are_counted_and_overlapping_ones_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    path.write_text(SPOTS + "a,0,10,1\na,10,10,0\na,10,20,-1\na,20,30,1.5\n", encoding="utf-8")

    assert read_spots(path).zones == (SpotZone("a", (SpotSpan(0, 10, 1),)),)
    assert sum(each.count for each in read_spots(path).skipped) == 3
    path.write_text(SPOTS + "a,0,10,1\na,5,20,0\n", encoding="utf-8")
    with pytest.raises(TraceError, match="line 3: reaches into another span of a"):
        read_spots(path)
    path.write_text(SPOTS, encoding="utf-8")
    with pytest.raises(TraceError, match="no zone"):
        read_spots(path)
