"""`hybrid data plan`, and the data that `hybrid submit` names."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer

from hybrid.cli.data import entry_of
from hybrid.core.views import DataPlanView
from hybrid.data.plan import Entry
from tests.cli.conftest import Lab, Run


def test_an_entry_is_a_url_with_its_size_and_its_place(tmp_path: Path) -> None:
    assert entry_of("s3://b/set.tar=120GB@aws/us-east-1") == Entry(
        "s3://b/set.tar", 120.0, "aws/us-east-1"
    )
    assert entry_of("s3://b/set.tar") == Entry("s3://b/set.tar", None, "onprem")
    assert entry_of("https://me@host/a/b=1GB") == Entry("https://me@host/a/b", 1.0, "onprem")
    file = tmp_path / "set"
    file.write_bytes(b"x" * 2_000_000)
    assert entry_of(str(file)) == Entry(str(file), 0.002, "onprem")


@pytest.mark.parametrize("written", ["", "=1GB", "/no/such/file", "s3://b/x=12", "s3://b/x@"])
def test_a_senseless_entry_is_refused(written: str) -> None:
    with pytest.raises(typer.BadParameter, match="--data"):
        entry_of(written)


def test_the_plan_shows_its_arithmetic(run: Run) -> None:
    words = ["data", "plan", "--data", "s3://b/set=90GB", "--mbit", "1000", "--wait", "20m"]
    shown = run(*words)
    assert (
        "may go out: its data takes 720 s to cloud, and home has room only in 1200 s" in shown.out
    )
    view = DataPlanView.model_validate_json(run(*words, "--json").out)
    assert [(s.place, s.seconds, s.usd) for s in view.shipments] == [
        ("onprem", 0.0, 0.0),
        ("cloud", 720.0, 0.0),
    ]
    assert view.is_burst


def test_what_is_not_known_is_said_and_stays_home(run: Run) -> None:
    shown = run("data", "plan", "--data", "s3://b/set@aws", "--to", "onprem,gcp")
    assert "stays home until its last moment: the size of s3://b/set is not known" in shown.out
    assert "?" in shown.out


def test_submit_names_data(run: Run, lab: Lab) -> None:
    run("submit", "--gpus", "1", "--data", "s3://b/set=2GB@aws", "--", "python", "a.py")
    [entry] = lab.service.jobs().jobs[0].spec.data
    assert (entry.url, entry.size_gb, entry.place) == ("s3://b/set", 2.0, "aws")
