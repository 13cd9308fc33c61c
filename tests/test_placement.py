"""The options that say where work may run: their form, and what Ray makes of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any

import pytest

import hybrid
from hybrid.placement import cloud_only, onprem_only, prefer_onprem
from tests.lacking import lacking
from tests.ray_cluster import LocalRay

ALL = [prefer_onprem, onprem_only, cloud_only]

# --- their form ---------------------------------------------------------------------------


def test_prefer_onprem_falls_back_to_the_cloud() -> None:
    assert prefer_onprem() == {
        "label_selector": {"site": "onprem"},
        "fallback_strategy": [{"label_selector": {"site": "cloud"}}],
    }


def test_onprem_only_and_cloud_only_have_no_second_choice() -> None:
    assert onprem_only() == {"label_selector": {"site": "onprem"}}
    assert cloud_only() == {"label_selector": {"site": "cloud"}}


def test_further_labels_hold_on_either_site() -> None:
    options = prefer_onprem({"instance-type": ["p4d.24xlarge", "p5"]}, accelerator="A100")

    rules = {"instance-type": "in(p4d.24xlarge,p5)", "accelerator": "A100"}
    assert options == {
        "label_selector": {"site": "onprem", **rules},
        "fallback_strategy": [{"label_selector": {"site": "cloud", **rules}}],
    }


def test_a_list_of_one_is_its_value() -> None:
    assert cloud_only(provider=["aws"]) == {"label_selector": {"site": "cloud", "provider": "aws"}}


def test_the_options_are_the_callers_own() -> None:
    prefer_onprem()["fallback_strategy"].clear()

    assert prefer_onprem()["fallback_strategy"]


def test_they_are_names_of_the_package() -> None:
    assert hybrid.prefer_onprem is prefer_onprem


@pytest.mark.parametrize("function", ALL)
@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ({"site": "cloud"}, "leave it out"),
        ({"zone": "!z1"}, "would admit nodes that lack the label"),
        ({"zone": "!in(z1)"}, "not a value to ask for"),
        ({"zone": "in(z1,z2)"}, "not a value to ask for"),
        ({"zone": ["z1", "!z2"]}, "not a value to ask for"),
        ({"zone": ""}, "not a value to ask for"),
        ({"zone": []}, "the list of values is empty"),
        ({"my zone": "z1"}, "not a label name"),
    ],
    ids=["site", "negated", "negated-list", "spelled-list", "in-list", "empty", "none", "key"],
)
def test_only_positive_rules_can_be_asked_for(
    function: Callable[[Mapping[str, Any]], object], labels: Mapping[str, Any], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        function(labels)


# --- what Ray makes of them ---------------------------------------------------------------

WHERE = """
    import hybrid
    site_by_id = {n["NodeID"]: n["Labels"].get("site") for n in ray.nodes()}
    def here(): return ray.get_runtime_context().get_node_id()
"""


@pytest.mark.ray
@pytest.mark.slow
def test_tasks_and_actors_run_where_they_may(local_ray: LocalRay) -> None:
    # Each takes half of a node's four GPUs; an actor keeps them.
    code = f"""{WHERE}
    @ray.remote(num_gpus=2, num_cpus=0)
    class Actor:
        def where(self): return here()
    @ray.remote(num_gpus=2, num_cpus=0)
    def task(): return here()
    def actor(options):
        actors.append(Actor.options(**options).remote())
        return site_by_id[ray.get(actors[-1].where.remote(), timeout=60)]
    actors, sites = [], {{}}
    sites["task at home"] = site_by_id[ray.get(task.options(**hybrid.prefer_onprem()).remote())]
    sites["task in cloud"] = site_by_id[ray.get(task.options(**hybrid.cloud_only()).remote())]
    sites["first"] = actor(hybrid.prefer_onprem())
    sites["second"] = actor(hybrid.onprem_only())
    sites["third, home is full"] = actor(hybrid.prefer_onprem(zone=["z1", "z9"]))
    waiting = task.options(**hybrid.onprem_only()).remote()
    elsewhere = task.options(**hybrid.prefer_onprem(zone="z9")).remote()
    done, _ = ray.wait([waiting, elsewhere], timeout=2)
    sites["waits for home"] = waiting not in done
    sites["no such zone"] = elsewhere not in done
    say(sites)
    """
    with local_ray.driver(code) as driver:
        sites = driver.says()

    assert sites == {
        "task at home": "onprem",
        "task in cloud": "cloud",
        "first": "onprem",
        "second": "onprem",
        "third, home is full": "cloud",
        "waits for home": True,
        "no such zone": True,
    }


@pytest.mark.ray
@pytest.mark.slow
def test_children_stay_in_a_placement_group_of_one_site(local_ray: LocalRay) -> None:
    code = f"""{WHERE}
    from ray.util import placement_group
    from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy
    @ray.remote(num_cpus=1)
    def child(): return here()
    @ray.remote(num_cpus=1)
    def parent(): return [here(), *ray.get([child.remote() for _ in range(3)])]
    selector = hybrid.onprem_only()["label_selector"]
    group = placement_group([{{"CPU": 1}}] * 2, bundle_label_selector=[selector] * 2)
    strategy = PlacementGroupSchedulingStrategy(
        group, placement_group_capture_child_tasks=True
    )
    nodes = ray.get(parent.options(scheduling_strategy=strategy).remote(), timeout=60)
    say([site_by_id[node_id] for node_id in nodes])
    """
    with local_ray.driver(code) as driver:
        assert driver.says() == ["onprem"] * 4


@pytest.mark.ray
@pytest.mark.slow
def test_serve_replicas_run_where_they_may(local_ray: LocalRay) -> None:
    if not (find_spec("grpc_reflection") and find_spec("numpy")):
        lacking("needs ray[serve]")
    # Home has room for one of the two.
    code = f"""{WHERE}
    from ray import serve
    @serve.deployment(
        num_replicas=2,
        ray_actor_options={{"num_gpus": 3, "num_cpus": 0, **hybrid.prefer_onprem()}},
    )
    class Model:
        def __call__(self): return here()
    serve.start(proxy_location="Disabled")
    serve.run(Model.bind(), route_prefix=None)
    import os
    from ray.util.state import list_actors
    # Other Rays may run on this machine.
    os.environ["RAY_ADDRESS"] = ray.get_runtime_context().gcs_address
    alive = list_actors(filters=[("state", "=", "ALIVE")])
    replicas = [actor for actor in alive if actor.class_name.startswith("ServeReplica")]
    say(sorted(site_by_id[replica.node_id] for replica in replicas))
    serve.shutdown()
    say("shut down")
    """
    with local_ray.driver(code) as driver:
        sites = driver.says()
        driver.says()  # Serve's own actors outlive the driver

    assert sites == ["cloud", "onprem"]


@pytest.mark.parametrize("wrong", [3, 2.5, None, True])
def test_a_label_that_is_no_text_is_refused_like_every_other_wrong_one(wrong: object) -> None:
    with pytest.raises(ValueError, match=r"label foo: .* is not text"):
        hybrid.prefer_onprem(foo=wrong)  # type: ignore[arg-type]
