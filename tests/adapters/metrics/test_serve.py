"""Latency and load of Serve applications from the pages of nodes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hybrid.adapters.metrics import Ask, ServeMetrics, UnreadableError
from hybrid.adapters.metrics.exposition import samples
from hybrid.core.slo import Load, Reading, Seen, Slo
from tests.adapters.metrics.pages import Pages, gauges, histogram, serving
from tests.world.clock import VirtualClock

SLO = Slo(target_ms=500, window_s=60)
RECORDED = Path(__file__).parent / "recorded" / "node.txt"


@pytest.fixture
def node() -> Iterator[Pages]:
    with serving() as pages:
        yield pages


@pytest.fixture
def other() -> Iterator[Pages]:
    with serving() as pages:
        yield pages


def metrics(*pages: Pages, **changes: object) -> ServeMetrics:
    ask = Ask("chat", SLO, **changes)  # type: ignore[arg-type]
    urls = [page.url for page in pages]
    return ServeMetrics(lambda: urls, {"s": ask}, VirtualClock(), timeout_s=2.0)


def reading(found: object) -> Reading:
    assert isinstance(found, Seen)
    assert found.reading is not None
    return found.reading


def test_a_reading_is_what_the_histograms_of_all_nodes_grew_by(node: Pages, other: Pages) -> None:
    source = metrics(node, other)
    node.says(histogram(100, 200, 300, 300))
    other.says(histogram(0, 0, 7, 7, worker="w2"))
    assert source.look(0.0)["s"].reading is None

    node.says(histogram(100, 210, 310, 310))
    other.says(histogram(0, 0, 17, 17, worker="w2"))
    found = reading(source.look(10.0)["s"])

    # Ten between 10 and 100 ms, ten above: so the 95th of 100 is at 90 % of the upper ten.
    assert found.value_ms == pytest.approx(910)
    assert found.rate_rps == 2.0
    assert (found.at_s, found.span_s) == (10.0, 10.0)


def test_nothing_is_said_before_a_step_is_over(node: Pages) -> None:
    source = metrics(node)
    node.says(histogram(0, 0, 5, 5))
    source.look(0.0)

    assert source.look(5.0)["s"].reading is None
    assert reading(source.look(9.9)["s"]).is_quiet


def test_what_comes_between_two_steps_counts_once(node: Pages) -> None:
    source = metrics(node)
    node.says(histogram(0, 0, 5, 5))
    source.look(0.0)
    node.says(histogram(0, 0, 9, 9))
    source.look(5.0)
    node.says(histogram(0, 0, 15, 15))

    assert reading(source.look(10.0)["s"]).rate_rps == 1.0
    assert reading(source.look(20.0)["s"]).rate_rps == 0.0


def test_no_request_is_not_a_latency_of_zero(node: Pages) -> None:
    source = metrics(node)
    node.says(histogram(0, 0, 5, 5))
    source.look(0.0)

    found = reading(source.look(10.0)["s"])

    assert found.value_ms is None
    assert found.is_quiet
    assert found.why == "no request came in the last 10 s"


def test_a_process_that_was_replaced_counts_from_zero(node: Pages) -> None:
    source = metrics(node)
    node.says(histogram(900, 900, 900, 900))
    source.look(0.0)
    node.says(histogram(0, 10, 10, 10))

    found = reading(source.look(10.0)["s"])

    assert found.rate_rps == 1.0
    assert found.value_ms == pytest.approx(95.5)


def test_a_process_that_began_since_the_last_look_counts_whole(node: Pages) -> None:
    source = metrics(node)
    node.says(histogram(5, 5, 5, 5))
    source.look(0.0)
    node.says(histogram(5, 5, 5, 5) + histogram(0, 20, 20, 20, worker="w2"))

    assert reading(source.look(10.0)["s"]).rate_rps == 2.0


def test_failed_requests_are_no_fast_answers(node: Pages) -> None:
    source = metrics(node)
    node.says(histogram(0, 0, 0, 0))
    source.look(0.0)
    node.says(histogram(0, 10, 10, 10) + histogram(90, 90, 90, 90, status="500"))

    found = reading(source.look(10.0)["s"])

    assert found.value_ms == pytest.approx(95.5)
    assert found.why == "90 of 100 requests failed and are left out"

    node.says(histogram(0, 10, 10, 10) + histogram(99, 99, 99, 99, status="500"))
    failed = reading(source.look(20.0)["s"])
    assert failed.value_ms is None
    assert failed.why == "all 9 requests of the last 10 s failed"
    assert not failed.is_quiet


def test_a_node_that_does_not_answer_hides_what_is_good_and_not_what_is_bad(
    node: Pages, other: Pages
) -> None:
    source = metrics(node, other)
    node.says(histogram(0, 0, 0, 0))
    other.says(histogram(0, 0, 0, 0, worker="w2"))
    source.look(0.0)
    other.says("overloaded", status=503)

    node.says(histogram(10, 10, 10, 10))
    good = reading(source.look(10.0)["s"])
    node.says(histogram(10, 10, 20, 20))
    bad = reading(source.look(20.0)["s"])

    assert good.value_ms is None
    assert "answers with HTTP 503: overloaded" in good.why
    assert not good.is_quiet
    assert bad.value_ms == pytest.approx(955)
    assert bad.rate_rps is None


def test_a_node_without_the_service_is_not_missed(node: Pages, other: Pages) -> None:
    source = metrics(node, other)
    node.says(histogram(0, 0, 0, 0))
    other.says("", status=500)
    source.look(0.0)
    node.says(histogram(10, 10, 10, 10))

    assert reading(source.look(10.0)["s"]).value_ms == pytest.approx(9.5)


def test_a_node_that_left_is_not_missed(node: Pages, other: Pages) -> None:
    urls = [node.url, other.url]
    source = ServeMetrics(lambda: urls, {"s": Ask("chat", SLO)}, VirtualClock())
    node.says(histogram(0, 0, 0, 0))
    other.says(histogram(0, 0, 0, 0, worker="w2"))
    source.look(0.0)
    urls.remove(other.url)
    node.says(histogram(10, 10, 10, 10))

    assert reading(source.look(10.0)["s"]).value_ms == pytest.approx(9.5)


def test_what_came_while_a_node_could_not_be_read_is_left_out(node: Pages, other: Pages) -> None:
    source = metrics(node, other)
    other.says(histogram(0, 0, 0, 0, worker="w2"))
    node.says(histogram(0, 0, 0, 0))
    source.look(0.0)
    node.says("", status=500)
    source.look(10.0)
    node.says(histogram(0, 0, 800, 800))
    source.look(20.0)
    node.says(histogram(0, 10, 810, 810))
    source.look(30.0)

    node.says(histogram(0, 20, 820, 820))
    assert reading(source.look(40.0)["s"]).rate_rps == 1.0


def test_a_source_that_cannot_be_asked_at_all_says_why(node: Pages) -> None:
    def fail() -> list[str]:
        raise UnreadableError("Ray's head is away")

    source = ServeMetrics(fail, {"s": Ask("chat", SLO)}, VirtualClock())
    source.look(0.0)

    assert reading(source.look(10.0)["s"]).why == "Ray's head is away"

    nobody = ServeMetrics(list, {"s": Ask("chat", SLO)}, VirtualClock())
    nobody.look(0.0)
    assert reading(nobody.look(10.0)["s"]).why == "no node of the cluster tells metrics yet"


def test_a_page_that_never_ends_costs_its_time_limit(node: Pages) -> None:
    from hybrid.adapters.clock import SystemClock

    node.says(histogram(0, 0, 0, 0) * 20)
    node.delay_s = 0.02
    source = ServeMetrics(lambda: [node.url], {"s": Ask("chat", SLO)}, SystemClock(), timeout_s=0.3)
    source.look(0.0)

    assert reading(source.look(10.0)["s"]).why.endswith("/metrics did not answer within 0.3 s")


def test_an_unknown_application_names_those_that_are_known(node: Pages) -> None:
    source = metrics(node)
    node.says(histogram(0, 0, 0, 0, app="other"))
    source.look(0.0)

    found = reading(source.look(10.0)["s"])

    assert found.why == "Ray Serve does not report the application 'chat'; it reports other"
    assert not found.is_quiet


def test_the_load_of_a_deployment(node: Pages) -> None:
    node.says(gauges(replicas=3, target=4, queued=7, ongoing=5))

    assert metrics(node).look(0.0)["s"].load == Load(running=3, target=4, in_system=12)


def test_the_load_of_one_of_several_deployments_needs_its_name(node: Pages) -> None:
    node.says(
        gauges(replicas=3, target=3, queued=0, ongoing=0)
        + gauges(replicas=1, target=1, queued=0, ongoing=2, deployment="Router")
    )

    assert metrics(node).look(0.0)["s"].load == Load()
    named = metrics(node, deployment="Router").look(0.0)["s"].load
    assert named == Load(running=1, target=1, in_system=2)


def test_processing_time_is_that_of_the_deployment(node: Pages) -> None:
    name = "ray_serve_deployment_processing_latency_ms"
    source = metrics(node, deployment="Model", is_processing=True)
    node.says(histogram(0, 0, 0, 0, name=name) + histogram(0, 0, 0, 0))
    source.look(0.0)
    node.says(histogram(10, 10, 10, 10, name=name) + histogram(0, 0, 10, 10))

    assert reading(source.look(10.0)["s"]).value_ms == pytest.approx(9.5)


def test_a_page_of_a_real_node_is_read() -> None:
    """Recorded from Ray 2.60, and shortened."""
    found = list(samples(RECORDED.read_text(), {"ray_serve_http_request_latency_ms_bucket"}))

    chat = {s.labels["le"]: s.value for s in found if s.labels["application"] == "chat"}
    assert chat["+Inf"] == 224
    assert len(chat) == len(found) - len(chat) > 10


def test_lines_that_are_broken_are_left_out() -> None:
    text = 'a{x="1"} 1\na{x="1 2\na{} b\na 3\nb 4\n\n# a comment\na{x="2"} NaN\n'

    assert [(s.name, s.value) for s in samples(text, {"a"})][:2] == [("a", 1.0), ("a", 3.0)]
