"""Tests of scripts/catalog.py, which makes the price catalog from extracts of price lists."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SCRIPT = ROOT / "scripts" / "catalog.py"
PRICES = os.environ.get("HYBRID_PRICES", "")
"""Folder of the extracts; not part of this repository."""

AWS = "instance_type,gpu,gpu_count,gpu_mem_gb,vcpus,mem_gb,region,usd_hour\n"
GCP = (
    "instance_type,gpu,gpu_count,gpu_mem_gb,vcpus,mem_gb,region,zones,usd_hour,usd_hour_spot,"
    "availability\n"
)
ALL = "provider,region,zone,instance_type,gpu,gpus,price_usd_h,spot_usd_h,source\n"
BAIDU = "item,gpu,gpu_count,vcpus,mem_gb,price,currency,unit,source\n"
SECOND = "karpenter-provider-gcp@417f047 (prices refreshed 2026-08-03)"
THIRD = "karpenter-provider-aws@1d92708 generated 2026-07-20"
H100 = "a3-highgpu-8g,H100-80GB,8,80,208,1872"


@pytest.fixture
def extracts(tmp_path: Path) -> Path:
    folder = tmp_path / "extracts"
    folder.mkdir()
    write(folder)
    return folder


def write(folder: Path, *, new: str = "", old: str = "", gcp: str = "", more: str = "") -> None:
    files = {
        "aws_gpu_ondemand_us-east-1.csv": AWS + new,
        "aws_gpu_ondemand_by_region_2025-03.csv": AWS + old,
        "gcp_gpu.csv": GCP + gcp,
        "gpu_prices_all.csv": ALL + more,
        "baidu_gpu_public.csv": BAIDU,
    }
    for name, content in files.items():
        (folder / name).write_text(content, encoding="utf-8")


def run(folder: Path, into: Path, *more: str) -> subprocess.CompletedProcess[str]:
    into.mkdir(exist_ok=True)
    words = [sys.executable, str(SCRIPT), str(folder), "--into", str(into), *more]
    return subprocess.run(words, capture_output=True, text=True, cwd=ROOT)


def made(folder: Path, into: Path) -> list[dict[str, str]]:
    done = run(folder, into)
    assert done.returncode == 0, done.stderr
    with (into / "gpus.csv").open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def test_of_two_prices_the_newer_wins_and_keeps_its_digits(extracts: Path, tmp_path: Path) -> None:
    write(
        extracts,
        new="p5.48xlarge,H100,8,80.0,192,2048,us-east-1,55.040\n",
        old="p5.48xlarge,H100,8,80.0,192,2048,us-east-1,98.32\n",
        more=f"aws,us-east-1,,p5.48xlarge,H100,8,55.040,,{THIRD}\n",
    )

    (row,) = made(extracts, tmp_path / "out")

    assert (row["on_demand_per_hour"], row["as_of"]) == ("55.040", "2026-07-20")
    assert (row["gpu"], row["gpu_memory_gib"], row["vcpu_count"]) == ("H100", "80", "192")


def test_shares_of_gpus_and_local_zones_are_left_out(extracts: Path, tmp_path: Path) -> None:
    write(
        extracts,
        new="g6f.large,L4,0,2.8,2,8,us-east-1,0.2\n",
        old="g4dn.xlarge,T4,1,16.0,4,16,us-west-2-lax-1,0.6\n",
        gcp="g4-standard-6,RTX-PRO-6000,0.125,96,6,22,us-east1,,0.5,0.2,unverified\n",
    )

    assert made(extracts, tmp_path / "out") == []


def test_a_region_of_two_lists_is_confirmed_and_of_one_is_not(
    extracts: Path, tmp_path: Path
) -> None:
    write(
        extracts,
        gcp=f"{H100},us-east4,,88.0,50.0,unverified\n{H100},mars-1,,88.0,5.0,unverified\n",
        more=f"gcp,us-east4,,a3-highgpu-8g,H100,8,88.0,50.0,{SECOND}\n"
        f"gcp,asia-east1,,a3-highgpu-8g,H100,8,102.0,48.0,{SECOND}\n",
    )

    rows = made(extracts, tmp_path / "out")

    assert [(row["region"], row["is_confirmed"], row["source"]) for row in rows] == [
        ("asia-east1", "yes", "gcp-karpenter"),
        ("mars-1", "no", "gcp-cyclenerd"),
        ("us-east4", "yes", "gcp-karpenter"),
    ]
    assert {row["vcpu_count"] for row in rows} == {"208"}


def test_zones_have_whole_names(extracts: Path, tmp_path: Path) -> None:
    line = "a2-highgpu-1g,A100-40GB,1,40,12,85,us-west1,a|b,3.6,1.9,zone-list-2023-05\n"
    write(extracts, gcp=line)

    (row,) = made(extracts, tmp_path / "out")

    assert row["zones"] == "us-west1-a|us-west1-b"
    assert row["is_confirmed"] == "yes"


def test_the_same_extracts_make_the_same_file(extracts: Path, tmp_path: Path) -> None:
    write(extracts, new="g5.xlarge,A10G,1,22.4,4,16,us-east-1,1.006\n")
    made(extracts, tmp_path / "out")

    again = run(extracts, tmp_path / "out", "--check")
    write(extracts, new="g5.xlarge,A10G,1,22.4,4,16,us-east-1,1.007\n")
    changed = run(extracts, tmp_path / "out", "--check")

    assert (again.returncode, again.stdout) == (0, "")
    assert changed.returncode == 1
    assert "gpus.csv is not what" in changed.stdout


@pytest.mark.skipif(not PRICES, reason="HYBRID_PRICES does not name the folder of the extracts")
def test_the_catalog_is_what_the_extracts_make() -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), PRICES, "--check"], capture_output=True, text=True, cwd=ROOT
    )

    assert (done.returncode, done.stdout) == (0, "")
