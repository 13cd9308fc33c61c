"""The endpoints of layers, through a real server and on a real state folder."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import cast

import httpx
import pytest

from hybrid.api.server import make_app, serve
from hybrid.app.layers import ConfigLayers
from hybrid.control.service import Service
from hybrid.settings import Settings, load
from tests.api.fake_service import FakeService

_TOKEN = "t0ken"
_LOCAL = {
    "providers": {"local": {}},
    "pools": [{"infra": "local", "accelerators": "GPU:1", "cpus": 1, "usd_per_hour": 1}],
    "budget": {"nodes": 1},
}


class Lab:
    """A served controller whose configuration can be changed.

    Attributes:
        restarts: How often it was told to begin again.
        rented: Providers of which something is rented.
    """

    def __init__(self, folder: Path) -> None:
        file = folder / "hybrid.yaml"
        file.write_text("name: lab\n")
        env = {"HOME": str(folder)}
        self.restarts = 0
        self.rented: set[str] = set()
        self.is_ready = True
        settings = load(file, env)
        self.layers = ConfigLayers(
            settings,
            settings.state_path,
            env,
            missing=self._missing,
            is_ready=lambda: self.is_ready,
            restart=self._restart,
        )
        self._file, self._env = file, env

    def reload(self) -> Settings:
        """Return what the next controller would work with."""
        return load(self._file, self._env)

    def _missing(self, places: Mapping[str, Collection[str]]) -> str:
        lost = sorted(self.rented - set(places))
        return f"instances of {', '.join(lost)} are still rented" if lost else ""

    def _restart(self) -> None:
        self.restarts += 1


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


@pytest.fixture
def client(lab: Lab) -> Iterator[httpx.Client]:
    app = make_app(cast(Service, FakeService()), _TOKEN, layers=lab.layers)
    running = serve(app, "127.0.0.1", 0)
    headers = {"Authorization": f"Bearer {_TOKEN}"}
    with httpx.Client(base_url=f"{running.url}/api/v1/", headers=headers, trust_env=False) as made:
        yield made
    running.stop()


def _body(content: object) -> dict[str, object]:
    return {"source": "a test", "content": content}


def _message(answer: httpx.Response) -> str:
    return str(answer.json()["error"]["message"])


def test_a_layer_is_kept_taken_up_and_taken_away(lab: Lab, client: httpx.Client) -> None:
    first = client.put("layers/cloud-a", json=_body(_LOCAL))

    assert first.status_code == 200
    assert first.json()["facts"] == {"is_restarting": True}
    assert [layer["name"] for layer in client.get("layers").json()["layers"]] == ["cloud-a"]
    assert lab.reload().provider_names == ("local",)
    again = client.put("layers/cloud-a", json=_body(_LOCAL))
    assert again.json()["facts"] == {}
    assert lab.restarts == 1
    assert client.delete("layers/cloud-a").json()["facts"] == {"is_restarting": True}
    assert client.delete("layers/cloud-a").json()["facts"] == {}
    assert lab.reload().provider_names == ()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"head": {"cpus": 9}}, "it may not set 'head'"),
        ({"burst": {"queue": {"max_wait": "soon"}}}, "a test: burst.queue.max_wait:"),
        (
            {"pools": [{"infra": "azure"}], "budget": {"nodes": 1}},
            "a test: clouds.ordered[0].infra",
        ),
        ({"pools": 3}, "pools: it is not a list"),
        ({k: v for k, v in _LOCAL.items() if k != "budget"}, "there is no cap"),
    ],
    ids=["head", "value", "provider", "no-list", "no-cap"],
)
def test_what_does_not_fit_is_refused_and_nothing_changes(
    lab: Lab, client: httpx.Client, content: object, said: str
) -> None:
    answer = client.put("layers/x", json=_body(content))

    assert answer.status_code == 400
    assert said in _message(answer)
    assert client.get("layers").json()["layers"] == []
    assert lab.restarts == 0


def test_a_cloud_with_rented_instances_is_not_taken_away(lab: Lab, client: httpx.Client) -> None:
    client.put("layers/cloud-a", json=_body(_LOCAL))
    lab.rented = {"local"}

    answer = client.delete("layers/cloud-a")

    assert answer.status_code == 400
    assert "instances of local are still rented" in _message(answer)
    assert lab.reload().provider_names == ("local",)


def test_a_cluster_that_starts_is_asked_again_later(lab: Lab, client: httpx.Client) -> None:
    lab.is_ready = False

    assert client.put("layers/x", json=_body({})).status_code == 503


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_nobody_without_the_token_sees_or_changes_layers(client: httpx.Client, method: str) -> None:
    path = "layers" if method == "GET" else "layers/x"

    answer = client.request(method, path, headers={"Authorization": "Bearer wrong"})

    assert answer.status_code == 401


@pytest.mark.parametrize("name", ["..%2Fx", "X", ".hidden", "a" * 64])
def test_a_name_that_is_no_file_name_is_refused(client: httpx.Client, name: str) -> None:
    assert client.put(f"layers/{name}", json=_body({})).status_code in (400, 404, 422)
