"""`hybrid data plan`: what it takes to ship a job's data, against waiting for home."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hybrid.cli import output, words
from hybrid.cli.options import Json, duration_option, seconds
from hybrid.cli.table import Column, table, text
from hybrid.core.quantity import size_bytes

if TYPE_CHECKING:
    from hybrid.cli.table import Part
    from hybrid.core.views import DataPlanView
    from hybrid.data.plan import Entry

_COLUMNS = (
    Column("PLACE"),
    Column("TIME", is_number=True),
    Column("LEAVING COSTS", is_number=True),
    Column("NOT KNOWN", is_long=True),
)
_GB = 1e9

DataOption = Annotated[
    list[str],
    typer.Option(
        "--data",
        metavar="URL[=SIZE][@PLACE]",
        help="Repeatable: s3://team/set.tar=120GB@aws. A local file's size is looked up; it lies "
        "at home unless a place is named.",
    ),
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(
        help="What a job's data costs to ship.", no_args_is_help=True, rich_markup_mode=None
    )
    group.command("plan")(plan)
    app.add_typer(group, name="data")


def plan(
    data: DataOption,
    to: Annotated[
        str, typer.Option(metavar="PLACES", help="Where the job could run, with commas.")
    ] = "onprem,cloud",
    mbit: Annotated[
        float | None, typer.Option(min=0, help="Speed of every way, Mbit/s; not known without.")
    ] = None,
    usd_per_gb: Annotated[
        float, typer.Option(min=0, help="What a cloud asks for data that leaves it.")
    ] = 0.09,
    wait: Annotated[
        str, duration_option("--wait", help="How long home probably needs until it has room.")
    ] = "",
    json: Json = False,
) -> None:
    """Compare shipping a job's data with waiting for home.

    For example: `hybrid data plan --data /data/set.tar --mbit 1000 --wait 20m`.
    """
    from hybrid.core.views import DataPlanView, DataShipmentView
    from hybrid.data.plan import Links, judge

    entries = tuple(entry_of(one) for one in data)
    places = [place.strip() for place in to.split(",") if place.strip()]
    if not places:
        raise typer.BadParameter("--to takes places with commas, such as onprem,aws")
    verdict = judge(
        entries, places, Links(mbit_per_s=mbit or None, usd_per_gb=usd_per_gb), seconds(wait)
    )
    sizes = [entry.size_gb for entry in entries]
    view = DataPlanView(
        size_gb=None if None in sizes else sum(size or 0.0 for size in sizes),
        wait_s=seconds(wait),
        shipments=tuple(
            DataShipmentView(place=s.place, seconds=s.seconds, usd=s.usd, unknown=s.unknown)
            for s in verdict.shipments
        ),
        is_burst=verdict.is_burst,
        why=verdict.why,
    )
    if json:
        output.write(view.model_dump_json().encode())
        return
    output.show(*_page(view))


def entry_of(written: str) -> Entry:
    """Return what `URL[=SIZE][@PLACE]` says. Raises `typer.BadParameter`."""
    from hybrid.data.plan import HOME, Entry

    rest, at, place = written.rpartition("@")
    if not at or "/" in place.partition("/")[2]:  # a place has one slash at most: aws/us-east-1
        rest, place = written, HOME
    url, equals, size = rest.rpartition("=")
    if not equals:
        url, size = rest, ""
    size_gb = None
    if size:
        try:
            size_gb = size_bytes(size) / _GB
        except ValueError as error:
            raise typer.BadParameter(f"--data {written}: {error}") from None
    elif "://" not in url:
        path = Path(url)
        if not path.is_file():
            raise typer.BadParameter(f"--data {written}: {url} is no file here; write {url}=SIZE")
        size_gb = path.stat().st_size / _GB
    if not url or not place:
        raise typer.BadParameter(f"--data takes URL[=SIZE][@PLACE], not {written!r}")
    return Entry(url=url, size_gb=size_gb, place=place)


def _page(view: DataPlanView) -> list[Part]:
    size = "of a size that is not known" if view.size_gb is None else f"of {view.size_gb:g} GB"
    rows = [
        (
            shipment.place,
            "?" if shipment.seconds is None else words.duration(shipment.seconds),
            "?" if shipment.usd is None else words.money(shipment.usd),
            ", ".join(shipment.unknown),
        )
        for shipment in view.shipments
    ]
    return [text(f"Data {size}: {view.why}."), text(""), table(_COLUMNS, rows)]
