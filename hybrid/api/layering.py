"""The endpoints of configuration layers: what Terraform lays over a running cluster's file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Protocol

from fastapi import APIRouter, Path
from fastapi.responses import Response
from pydantic import Field

from hybrid.api.reading import answer
from hybrid.core.models import Model
from hybrid.core.views import Accepted

Name = Annotated[str, Path(pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$")]


class LayerBody(Model):
    """`PUT /api/v1/layers/NAME`.

    Attributes:
        source: Where it comes from, for people.
        content: In the words of `hybrid.yaml`, as JSON; and `pools`.
    """

    source: str = Field(min_length=1, max_length=200)
    content: Mapping[str, object]


class LayerView(LayerBody):
    """A layer that is in force."""

    name: str


class LayersView(Model):
    """`GET /api/v1/layers`."""

    layers: tuple[LayerView, ...]


class Layers(Protocol):
    """What keeps layers. A change is checked first; then the controller restarts with it."""

    def all(self) -> Sequence[LayerView]:
        """Return those in force, by name."""
        ...

    def put(self, name: str, body: LayerBody) -> Accepted:
        """Lay one over the file, in place of one of its name. Raises `ConfigError`."""
        ...

    def remove(self, name: str) -> Accepted:
        """Take one away; one that is not there is fine. Raises `ConfigError`."""
        ...


def layer_routes(layers: Layers) -> APIRouter:
    """Return the endpoints of layers."""
    routes = APIRouter(tags=["configure"])

    @routes.get("/layers", response_model=LayersView)
    def all_() -> Response:
        """What lies over the configuration file, by name."""
        return answer(LayersView(layers=tuple(layers.all())))

    @routes.put("/layers/{name}", response_model=Accepted)
    def put(name: Name, body: LayerBody) -> Response:
        """Check a layer, keep it, and restart the controller with it; work goes on."""
        return answer(layers.put(name, body))

    @routes.delete("/layers/{name}", response_model=Accepted)
    def remove(name: Name) -> Response:
        """Take a layer away, and restart the controller without it; work goes on."""
        return answer(layers.remove(name))

    return routes
