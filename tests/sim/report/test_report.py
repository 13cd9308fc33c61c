"""Reports: what their headline says, that they stand alone, and that nothing in them is code."""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from hybrid.core.errors import ConfigError
from hybrid.sim.advise.hardware import OwnHardware
from hybrid.sim.bounds.report import BoundsView, BoundView
from hybrid.sim.params import SimParams
from hybrid.sim.report import write_png, write_report
from hybrid.sim.report.facts import Report
from hybrid.sim.report.page import page
from hybrid.sim.report.plots import plots_of
from hybrid.sim.report.story import sentences
from hybrid.sim.results import Quantiles
from tests.sim.report.results import BROKEN, result

BOUNDS = BoundsView(
    trace="lab",
    gpus=16,
    max_wait_s=1_800,
    late_share=0.02,
    usd_per_gpu_hour=4.0,
    jobs=1_000,
    gpu_hours=5_000,
    bounds=(
        BoundView(
            name="LB-M", is_lower=True, gpu_hours=50, usd=200, work_ratio=0.01, holds_for="some"
        ),
    ),
)


def told(*runs: object, lang: str = "en") -> str:
    report = Report.of(runs, title="A lab", lang=lang)  # type: ignore[arg-type]
    return " ".join(sentences(report))


def test_the_headline_compares_with_the_cheapest_policy_that_keeps_its_promises() -> None:
    cheap = result("hpa(target 0.9)", 500, promises=BROKEN)

    text = told(result("balanced", 1_000), cheap, result("ray(idle 60 s)", 4_000))

    assert "the policy “balanced” spent $1,000 on rented GPUs in 10 days" in text
    assert "“ray”, would have cost $4,000: 75% of that is saved" in text
    assert "100% of the jobs started" in text
    assert "99.99% of the work ended in time" in text
    assert "5.0% of the jobs were interrupted at least once" in text


def test_the_headline_says_when_ours_costs_more() -> None:
    assert "which is LESS" in told(result("balanced", 5_000), result("ray", 4_000))


def test_the_headline_says_when_promises_are_broken() -> None:
    text = told(result("balanced", 5_000, promises=BROKEN), result("ray", 9_000, promises=BROKEN))

    assert "Its promises were NOT kept: only 90.00% of the jobs" in text
    assert "neither would any other" in text


def test_the_headline_of_a_run_alone_compares_with_nothing() -> None:
    text = told(result("balanced", 0.0, series=()))

    assert "rented nothing" in text
    assert "Nothing else was run" in text


def test_own_gpus_are_never_free() -> None:
    report = Report.of([result("balanced", 1_000)], title="A lab")

    # 10 days x 24 h x 16 GPUs
    assert report.home_usd == pytest.approx(3_840 * OwnHardware().usd_per_gpu_hour)
    assert Report.of([result("ray", 1, series=())], title="A lab").home_usd is None


def test_runs_of_one_policy_are_told_apart() -> None:
    names = Report.of(
        [result("ray(idle 60 s)", 2), result("ray(idle 300 s)", 3), result("fast", 1, seed=4)],
        title="",
    ).runs

    assert list(names) == ["fast", "ray(idle 60 s)", "ray(idle 300 s)"]
    seeds = Report.of([result("fast", 1), result("fast", 2, seed=1)], title="").runs
    assert list(seeds) == ["fast (seed 0)", "fast (seed 1)"]


@pytest.mark.parametrize(
    ("runs", "says"),
    [
        ([], "there is no result"),
        ([result("ray", 1), result("fast", 1, gpus=8)], "lab with 8 GPUs; lab with 16 GPUs"),
        ([result("ray", 1), result("fast", 1, trace="x")], "write a report for each"),
        ([result("ray", 1), result("ray", 1)], "is there twice"),
    ],
)
def test_results_that_do_not_belong_together_are_refused(runs: list[object], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        Report.of(runs, title="A lab")  # type: ignore[arg-type]


class Tags(HTMLParser):
    """Collects what a page would load or run."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.links: list[str] = []
        self.ids: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        for name, value in attrs:
            if name in ("src", "href", "xlink:href", "data") and value:
                self.links.append(value)
            if name == "id" and value:
                self.ids.append(value)


def read(text: str) -> Tags:
    tags = Tags()
    tags.feed(text)
    return tags


@pytest.mark.slow
def test_the_page_stands_alone_and_is_the_same_each_time(tmp_path: Path) -> None:
    runs = [result("balanced", 1_000), result("ray", 4_000, usd_by_reason={"a": 1, "b": 3_999})]
    params = SimParams(gpus=16)
    for name in ("a", "b"):
        write_report(runs, tmp_path / name, title="A lab", bounds=BOUNDS, params=params)

    text = (tmp_path / "a").read_text(encoding="utf-8")
    tags = read(text)

    assert text == (tmp_path / "b").read_text(encoding="utf-8")
    assert not tags.names & {"script", "link", "iframe", "img", "object", "embed"}
    assert all(link.startswith("#") for link in tags.links)
    assert "@import" not in text
    assert not re.search(r"url\((?!#)", text)
    assert len(tags.ids) == len(set(tags.ids))
    assert {link.removeprefix("#") for link in tags.links} <= set(tags.ids)
    assert not re.search(r"#0102[0-9a-f]{2}", text)
    # Captured: (4,000 - 1,000) / (4,000 - 200).
    assert "78.9%" in text
    assert "boot.median_s" in text
    assert text.count("<svg") == 8


@pytest.mark.slow
def test_names_are_text_and_never_code() -> None:
    nasty = '<script>alert("&")</script>'

    text = page(Report.of([result(nasty, 10.0, trace=nasty)], title=nasty, command=nasty))

    assert "<script" not in text
    assert "&lt;script&gt;" in text


@pytest.mark.slow
def test_the_chinese_page_leaves_no_sentence_in_english() -> None:
    runs = [result("balanced", 1_000), *(result(f"p{n}", 2_000 + n) for n in range(7))]
    report = Report.of(
        runs, title="t", bounds=BOUNDS, params=SimParams(gpus=16), command="c", lang="zh"
    )

    text = page(report)

    assert report.words.missing == set()
    assert '<html lang="zh-CN">' in text


@pytest.mark.slow
def test_a_run_without_waits_money_or_gpus_is_drawn_too() -> None:
    still = Quantiles(p50=0, p95=0, p99=0)
    run = result(
        "balanced",
        0.0,
        gpus=0,
        wait_s=still,
        series=tuple(
            point.model_copy(update={"home_busy": 0, "rented": 0, "rented_busy": 0, "queued": 0})
            for point in result("x", 0).series
        ),
    )

    assert "rented nothing" in page(Report.of([run], title="A lab"))


@pytest.mark.slow
def test_the_picture_is_a_png(tmp_path: Path) -> None:
    write_png([result("balanced", 10)], tmp_path / "a.png", title="A lab")

    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_a_run_without_its_course_has_no_plots_over_time() -> None:
    plots = plots_of(Report.of([result("balanced", 10, series=())], title="A lab"))

    assert [plot.name for plot in plots] == ["waits", "promises", "rent"]


@pytest.mark.slow
def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot write .*name a file in a folder that exists"):
        write_report([result("balanced", 10)], tmp_path / "no" / "a.html", title="A lab")


def test_a_missing_matplotlib_is_said_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)

    with pytest.raises(ConfigError, match=r"pip install 'hybrid-burst\[sim\]'"):
        write_report([result("balanced", 10)], tmp_path / "a.html", title="A lab")
