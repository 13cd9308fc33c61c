"""Importers of service rates and spot zones, on lines as published, and on the real ones."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from hybrid.sim.traces.importers.azure_llm import read_azure_llm
from hybrid.sim.traces.importers.servegen import read_servegen
from hybrid.sim.traces.importers.spot import read_spot
from hybrid.sim.traces.rates import RateWindow
from hybrid.sim.traces.reading import TraceError
from hybrid.sim.traces.spots import SpotSpan
from tests.sim.realtraces import real_trace

AZURE = """TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:15:46.6805900,374,44
2023-11-16 18:15:50.6805900,396,109
2023-11-16 18:15:48.6805900,879,55
2023-11-16 18:18:06.6805900,91,16
never,91,16
2023-11-16 18:15:46.9e999,91,16
"""


def file(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_requests_become_rates_and_quiet_windows_are_there(tmp_path: Path) -> None:
    trace = read_azure_llm(file(tmp_path, "a.csv", AZURE), window_s=60)

    assert trace.windows == (
        RateWindow(0.0, 60.0, 3 / 60, 0.0),  # 0, 2 and 4 s: evenly spread
        RateWindow(60.0, 60.0, 0.0, 0.0),
        RateWindow(120.0, 20.0, 1 / 20, 0.0),
    )
    assert {each.reason: each.first_rows for each in trace.skipped} == {
        "earlier than the line before; sorted": (4,),
        "the time of submission is not one": (6, 7),
    }


def test_windows_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    path = file(tmp_path, "a.csv", "arrival_s,input_tokens,output_tokens\n0,1,1\n1e9,1,1\n")

    with pytest.raises(ValueError, match="window_s"):
        read_azure_llm(path, window_s=0.0)
    with pytest.raises(TraceError, match="too many windows"):
        read_azure_llm(path, window_s=0.01)
    with pytest.raises(TraceError, match="no request"):
        read_azure_llm(file(tmp_path, "b.csv", "arrival_s,input_tokens,output_tokens\n-1,1,1\n"))


def test_clients_of_servegen_are_summed_and_their_variation_weighted(tmp_path: Path) -> None:
    file(tmp_path, "chunk-0-trace.csv", "0,3.0,2.0,Gamma,1,1\n600,0,0,,0,0\n")
    file(tmp_path, "chunk-1-trace.csv", "0,1.0,6.0,Weibull,1,1\n600,2.0,1.0,Gamma,1,1\n\nx,1\n")

    trace = read_servegen(tmp_path)

    assert trace.windows == (RateWindow(0, 600, 4.0, 3.0), RateWindow(600, 600, 2.0, 1.0))
    assert [(each.reason, each.first_rows) for each in trace.skipped] == [
        ("chunk-1-trace.csv: fewer than three numbers", (4,))
    ]


def test_a_folder_without_clients_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="holds no chunk"):
        read_servegen(tmp_path)


def published(gap: float, data: list[int]) -> str:
    return json.dumps({"metadata": {"gap_seconds": gap}, "data": data})


def test_zones_of_a_folder_are_read_as_published(tmp_path: Path) -> None:
    file(tmp_path, "us-b_v100_1.json", published(10, [0, 0, 3, 3, 1]))
    file(tmp_path, "us-a_v100_1.json", published(10, [1]))

    trace = read_spot(tmp_path)

    assert [zone.zone for zone in trace.zones] == ["us-a_v100_1", "us-b_v100_1"]
    assert trace.zones[1].spans == (SpotSpan(0, 20, 0), SpotSpan(20, 40, 3), SpotSpan(40, 50, 1))


def test_run_lengths_are_the_same_as_the_ticks(tmp_path: Path) -> None:
    short = {"x/us-b_v100_1.json": {"gap_seconds": 10, "n": 5, "rle": [[0, 2], [3, 2], [1, 1]]}}
    path = tmp_path / "zones.json.gz"
    path.write_bytes(gzip.compress(json.dumps(short).encode()))
    file(tmp_path, "us-b_v100_1.json", published(10, [0, 0, 3, 3, 1]))

    assert read_spot(path).zones == read_spot(tmp_path / "us-b_v100_1.json").zones
    assert read_spot(path).name == "zones"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "is not JSON"),
        ("[1]", "holds no object"),
        ("{}", "holds no zone"),
        ({"z": 1}, "is no spot trace"),
        ({"z": {"rle": [[1, 2]]}}, "gap_seconds"),
        ({"z": {"gap_seconds": 0, "rle": [[1, 2]]}}, "not above 0"),
        ({"z": {"gap_seconds": 5, "n": 3, "rle": [[1, 2]]}}, "do not add up to 3 ticks"),
        ({"z": {"gap_seconds": 5, "rle": [[-1, 2]]}}, "is not a count"),
        ({"z": {"gap_seconds": 5, "rle": []}}, "has no ticks"),
        ({"z": {"gap_seconds": 5, "rle": [[1, 10**20]]}}, "longer than ten years"),
        ({"metadata": {"gap_seconds": 5}, "data": [0.5]}, "is not a count"),
    ],
)
def test_a_file_that_is_no_spot_trace_is_refused(tmp_path: Path, content: Any, said: str) -> None:
    text = content if isinstance(content, str) else json.dumps(content)

    with pytest.raises(TraceError, match=said):
        read_spot(file(tmp_path, "s.json", text))


def test_the_real_traces_of_services_and_zones_read_without_a_doubt() -> None:
    requests = read_azure_llm(real_trace("inference/azure_llm_2023_conv.csv.gz"), is_strict=True)
    rates = read_servegen(real_trace("inference/servegen_m-large_rate.csv.gz"), is_strict=True)
    spot = read_spot(real_trace("spot/aws_v100_45d_rle.json.gz"))

    assert requests.mean_requests_per_s == pytest.approx(5.53, abs=0.01)
    assert (len(rates.windows), rates.end_s) == (2_016, 14 * 86_400)
    assert rates.mean_requests_per_s == pytest.approx(196, abs=1)
    assert len(spot.zones) == 6
