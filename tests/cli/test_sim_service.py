"""`hybrid sim service`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hybrid.cli.app import run
from hybrid.core.errors import ConfigError
from hybrid.sim.services.compare import ServiceComparison

HEADER = "start_s,length_s,requests_per_s,interarrival_cv\n"


def written(folder: Path) -> Path:
    path = folder / "rates.csv"
    rows = (f"{600 * n},600,{rate},1.5\n" for n, rate in enumerate((20, 60, 30)))
    path.write_text(HEADER + "".join(rows))
    return path


def of(*words: str) -> None:
    with pytest.raises(SystemExit) as ended:
        run(["sim", "service", *words])
    assert ended.value.code in (0, None)


def test_the_page_compares_the_policy_with_each_baseline(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    of("--trace", str(written(tmp_path)), "--local", "6", "--borrow", "8")

    page = capsys.readouterr()
    for who in ("policy ", "hpa, best with 99.0%", "keda, best with 99.9%", "hpa+loans, best"):
        assert f"\n{who}" in page.out
    assert "6 replicas at home of 4 requests/s, 8 GPUs to borrow, seed 0" in page.out
    assert "hpa, 90 %" in page.err


def test_json_has_everything_that_decided(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--trace", str(written(tmp_path)), "--no-baselines", "--json", "--shape", "steps"]

    of(*words, "--seed", "3", "--scale", "2")

    answer = json.loads(capsys.readouterr().out)
    view = ServiceComparison.model_validate(answer)
    assert view.baselines == ()
    assert (view.params.seed, view.params.scale, view.params.shape) == (3, 2.0, "steps")
    assert view.mean_rps == pytest.approx(2 * 110 / 3, rel=0.05)


def test_only_some_days_of_a_file_of_requests(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "requests.csv"
    rows = (f"{n * 0.5},10,10\n" for n in range(1_000))
    path.write_text("arrival_s,input_tokens,output_tokens\n" + "".join(rows))

    of("--trace", str(path), "--days", "0-1", "--no-baselines")

    assert "2.0 requests/s" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param(("--trace", "nowhere"), "there is no file nowhere", id="no-file"),
        pytest.param(("--days", "5-6"), "has nothing in days 5-6", id="no-such-days"),
    ],
)
def test_what_cannot_be_simulated_is_said(
    words: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    known = () if "--trace" in words else ("--trace", str(written(tmp_path)))

    with pytest.raises(ConfigError, match=said):
        run(["sim", "service", *words, *known])


@pytest.mark.parametrize(
    "words",
    [("--days", "7-3"), ("--scale", "0"), ("--replica-rps", "nan"), ("--local", "-1")],
    ids=" ".join,
)
def test_an_option_that_makes_no_sense_is_refused(words: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit) as ended:
        run(["sim", "service", *words])

    assert ended.value.code == 2
