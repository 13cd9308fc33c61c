#!/usr/bin/env python
"""Makes hybrid/catalog from extracts of public price lists. See docs/prices.md.

    scripts/catalog.py FOLDER            write hybrid/catalog anew from the extracts in FOLDER
    scripts/catalog.py FOLDER --check    only say whether it is what they make

The same extracts make the same bytes. Of two prices for the same thing the newer one wins.
"""

from __future__ import annotations

import argparse
import csv
import io
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path

from hybrid.core.gpu_names import named

CATALOG = Path(__file__).parents[1] / "hybrid" / "catalog"


@dataclass(frozen=True)
class Source:
    """Where an extract comes from; a line of sources.csv."""

    source_id: str
    origin: str
    path: str
    licence: str
    as_of: str


@dataclass(frozen=True)
class Row:
    """A line of gpus.csv. Prices stay text, so that they are those of the source to the digit."""

    provider: str
    region: str
    zones: str
    instance_type: str
    gpu: str
    gpu_count: str
    gpu_memory_gib: str
    vcpu_count: str
    memory_gib: str
    currency: str
    on_demand_per_hour: str
    spot_per_hour: str
    is_confirmed: str
    source: str
    as_of: str


AWS_NEW = Source(
    "aws-karpenter",
    "github:aws/karpenter-provider-aws@1d927085dd81a9df9301e613f371dac5b4d16bfe",
    "pkg/providers/pricing/zz_generated.pricing_aws.go",
    "Apache-2.0",
    "2026-07-20",
)
AWS_OLD = Source(
    "aws-libcloud",
    "apache-libcloud 3.9.1",
    "libcloud/data/pricing.json",
    "Apache-2.0",
    "2025-03-02",
)
GCP_LIST = Source(
    "gcp-cyclenerd",
    "github:Cyclenerd/google-cloud-pricing-cost-calculator"
    "@fd66b26ff84fee5cdd94f341ea89206e76c06b99",
    "pricing.yml",
    "Apache-2.0",
    "2026-07-30",
)
GCP_SECOND = Source(
    "gcp-karpenter",
    "github:cloudpilot-ai/karpenter-provider-gcp@417f047",
    "",
    "Apache-2.0",
    "2026-08-03",
)
BAIDU_DOC = Source(
    "baidu-doc", "https://cloud.baidu.com/doc/BCC/s/imqoohncm", "", "facts", "2026-06-22"
)
BAIDU_OLD_DOC = Source(
    "baidu-old-doc", "https://cloud.baidu.com/doc/BCC/s/uk5dt23r8", "", "facts", "2024-08-12"
)
BAIDU_JAVA = Source("baidu-java-sdk", "baidubce Java SDK, a test", "", "facts", "")
BAIDU_GO = Source(
    "baidu-go-sdk",
    "github:baidubce/bce-sdk-go@69163104",
    "services/bcc/client_test.go",
    "facts",
    "",
)
SOURCES = (AWS_NEW, AWS_OLD, GCP_LIST, GCP_SECOND, BAIDU_DOC, BAIDU_OLD_DOC, BAIDU_JAVA, BAIDU_GO)

_BAIDU_BY_SPEC = {
    "bcc.hgn5IB.c116m978.8A100-80g": BAIDU_DOC,
    "bcc.lgn1.c12m40.1p40": BAIDU_OLD_DOC,
    "bcc.lgn1.c12m40.1p4": BAIDU_JAVA,
    "ehc.lgn5.c128m1024.8a100.8re.4d": BAIDU_GO,
}
_YES_NO = {True: "yes", False: "no"}
_LOCAL_ZONES = "us-west-2-lax-1"  # a zone of us-west-2, which the source takes for a region


def build(folder: Path) -> dict[str, str]:
    """Return the content of each file of the catalog, by name."""
    rows = [*_aws(folder), *_gcp(folder), *_baidu(folder)]
    newest: dict[tuple[str, str, str], Row] = {}
    for row in sorted(rows, key=lambda row: row.as_of, reverse=True):
        newest.setdefault((row.provider, row.instance_type, row.region), row)
    used = {row.source for row in newest.values()}
    return {
        "gpus.csv": _csv(Row, (newest[key] for key in sorted(newest))),
        "sources.csv": _csv(Source, (source for source in SOURCES if source.source_id in used)),
    }


def _aws(folder: Path) -> Iterator[Row]:
    for name, source in (
        ("aws_gpu_ondemand_by_region_2025-03.csv", AWS_OLD),
        ("aws_gpu_ondemand_us-east-1.csv", AWS_NEW),
    ):
        for line in _lines(folder / name):
            if line["region"] != _LOCAL_ZONES and _has_whole_gpus(line):
                yield _row("aws", line, source)
    # Types that the first extract lacks: it knows those alone whose size moto knows.
    for line in _lines(folder / "gpu_prices_all.csv"):
        if line["source"].startswith("karpenter-provider-aws@1d92708"):
            yield _row("aws", _renamed(line), AWS_NEW)


def _gcp(folder: Path) -> Iterator[Row]:
    """Yield machines whose price includes their GPUs. Where two lists have a region, it has it."""
    second = {
        (line["instance_type"], line["region"]): _renamed(line)
        for line in _lines(folder / "gpu_prices_all.csv")
        if line["source"].startswith("karpenter-provider-gcp@417f047")
    }
    size_by_type: dict[str, dict[str, str]] = {}
    for line in _lines(folder / "gcp_gpu.csv"):
        if _has_whole_gpus(line):
            place = (line["instance_type"], line["region"])
            is_confirmed = line["availability"] != "unverified"
            yield replace(_row("gcp", line, GCP_LIST), is_confirmed=_YES_NO[is_confirmed])
            size_by_type[line["instance_type"]] = {**line, "region": "", "zones": ""}
            if place in second:
                second[place]["zones"] = line["zones"]
    for line in second.values():
        yield _row("gcp", {**size_by_type[line["instance_type"]], **line}, GCP_SECOND)


def _baidu(folder: Path) -> Iterator[Row]:
    """Yield types of BCC, which have no published price. BML's prices are of another service."""
    for line in _lines(folder / "baidu_gpu_public.csv"):
        if source := _BAIDU_BY_SPEC.get(line["item"]):
            more = {"instance_type": line["item"], "region": "", "currency": "CNY"}
            yield _row("baidu", {**line, **more}, source)


def _row(provider: str, line: Mapping[str, str], source: Source) -> Row:
    memory = line.get("gpu_mem_gb", "")
    return Row(
        provider=provider,
        region=line["region"],
        zones="|".join(
            f"{line['region']}-{zone}" for zone in line.get("zones", "").split("|") if zone
        ),
        instance_type=line["instance_type"],
        gpu=named(line["gpu"], float(memory) if memory else None),
        gpu_count=line["gpu_count"],
        gpu_memory_gib=f"{float(memory):g}" if memory else "",
        vcpu_count=line.get("vcpus", ""),
        memory_gib=line.get("mem_gb", ""),
        currency=line.get("currency") or "USD",
        on_demand_per_hour=line.get("usd_hour", ""),
        spot_per_hour=line.get("usd_hour_spot", ""),
        is_confirmed=_YES_NO[True],
        source=source.source_id,
        as_of=source.as_of,
    )


def _renamed(line: Mapping[str, str]) -> dict[str, str]:
    """Return a line of gpu_prices_all.csv with the columns of the other extracts."""
    return {
        "instance_type": line["instance_type"],
        "region": line["region"],
        "gpu": line["gpu"],
        "gpu_count": line["gpus"],
        "usd_hour": line["price_usd_h"],
        "usd_hour_spot": line["spot_usd_h"],
    }


def _has_whole_gpus(line: Mapping[str, str]) -> bool:
    """Return whether it has GPUs of its own: nobody can ask for a share of one."""
    return float(line["gpu_count"]).is_integer() and float(line["gpu_count"]) >= 1


def _lines(file: Path) -> Iterator[dict[str, str]]:
    with file.open(encoding="utf-8", newline="") as content:
        yield from csv.DictReader(content)


def _csv(kind: type, rows: Iterable[object]) -> str:
    content = io.StringIO()
    names = [field.name for field in fields(kind)]
    writer = csv.writer(content, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([getattr(row, name) for name in names] for row in rows)
    return content.getvalue()


def main() -> int:
    """Run it; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="extracts of price lists")
    parser.add_argument("--check", action="store_true", help="write nothing")
    parser.add_argument("--into", type=Path, default=CATALOG, help="where the catalog is")
    options = parser.parse_args()
    differs = False
    for name, content in build(options.folder).items():
        file = options.into / name
        if file.exists() and file.read_text(encoding="utf-8") == content:
            continue
        differs = True
        if options.check:
            print(f"{file.name} is not what {options.folder} makes; run this without --check")
        else:
            file.write_text(content, encoding="utf-8")
            print(f"{file.name}: {content.count(chr(10)) - 1} rows, {len(content)} bytes")
    return int(differs and options.check)


if __name__ == "__main__":
    sys.exit(main())
