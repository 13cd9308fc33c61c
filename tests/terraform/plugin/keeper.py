"""A provider for tests of the protocol: it keeps boxes in a JSON file, and uses every feature."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from hybrid.terraform.plugin import (
    DataSource,
    Diagnostics,
    Provider,
    Resource,
    attribute,
    block,
    is_known,
    make_schema,
    nested,
    nested_block,
    serve,
)
from hybrid.terraform.plugin.schema import Values


def _db() -> Path:
    return Path(os.environ["KEEPER_DB"])


def load() -> dict[str, Any]:
    return dict(json.loads(_db().read_text())) if _db().exists() else {}


def save(boxes: dict[str, Any]) -> None:
    _db().write_text(json.dumps(boxes))


def _positive(value: float) -> str:
    return "" if value >= 0 else f"must be 0 or more, not {value}"


def _cloud(value: str) -> str:
    return "" if value in ("aws", "gcp") else f"{value!r} is no cloud; write aws or gcp"


_BOX = make_schema(
    block(
        {
            "id": attribute("string", computed=True),
            "name": attribute("string", required=True, replace=True),
            "size": attribute("number", optional=True, computed=True, default=4, check=_positive),
            "price": attribute("number", optional=True),
            "labels": attribute(["map", "string"], optional=True),
            "place": attribute(["object", {"zone": "string", "rack": "number"}], optional=True),
            "pair": attribute(["tuple", ["string", "number"]], optional=True),
            "secret_wo": attribute("string", optional=True, write_only=True, sensitive=True),
            "secret_length": attribute("number", computed=True),
            "token": attribute("string", computed=True, sensitive=True),
            "disks": nested(
                "list",
                {
                    "gib": attribute("number", required=True, check=_positive),
                    "kind": attribute("string", optional=True, computed=True, default="ssd"),
                    "path": attribute("string", computed=True),
                },
                optional=True,
            ),
        },
        {
            "burst": nested_block(
                "list",
                block(
                    {
                        "cloud": attribute("string", required=True, check=_cloud),
                        "usd": attribute("number", optional=True),
                    }
                ),
            ),
            "zone": nested_block("set", block({"name": attribute("string", required=True)})),
            "timeouts": nested_block(
                "single", block({"create": attribute("string", optional=True)})
            ),
        },
    ),
    version=1,
)


class Box(Resource):
    schema = _BOX

    def __init__(self) -> None:
        self.provider: Provider | None = None

    def validate(self, diagnostics: Diagnostics, config: Values) -> None:
        if is_known(config["name"]) and " " in config["name"]:
            diagnostics.error("a name has no spaces", config["name"], at=("name",))

    def create(self, diagnostics: Diagnostics, planned: Values, private: Values) -> Values:
        assert self.provider is not None
        print("a stray line on standard output")  # noqa: T201 - it must not break the protocol
        state = _made(planned, "box-" + planned["name"])
        private["tag"] = f"p-{planned['name']}"
        save(load() | {state["id"]: state})
        if planned["name"] == "slow":
            print("slow creation began", file=sys.stderr)  # noqa: T201
            _db().with_suffix(".began").touch()
            if self.provider.stopping.wait(60):
                diagnostics.error("interrupted", "the box exists, and is not ready")
        if planned["name"] == "broken":
            raise RuntimeError("the press jammed")
        return state

    def read(self, diagnostics: Diagnostics, state: Values, private: Values) -> Values | None:
        found = load().get(state["id"])
        if found is not None and private.get("tag") not in (None, f"p-{found['name']}"):
            diagnostics.error("the private state is another box's", str(private))
        return found

    def update(
        self, diagnostics: Diagnostics, prior: Values, planned: Values, private: Values
    ) -> Values:
        state = _made(planned, prior["id"])
        save(load() | {state["id"]: state})
        return state

    def delete(self, diagnostics: Diagnostics, state: Values, private: Values) -> None:
        boxes = load()
        boxes.pop(state["id"], None)
        save(boxes)

    def import_(self, diagnostics: Diagnostics, identity: str) -> Values | None:
        if identity not in load():
            diagnostics.error("there is no such box", identity)
            return None
        return {"id": identity}

    def upgrade(self, diagnostics: Diagnostics, version: int, raw: Values) -> Values:
        return {**raw, "name": raw.get("title", raw.get("name"))}


def _made(planned: Values, identity: str) -> Values:
    secret = planned["secret_wo"]
    state = {**planned, "id": identity, "token": "t0ken", "secret_wo": None}
    state["secret_length"] = None if secret is None else len(secret)
    disks = planned["disks"]
    if disks is not None:
        state["disks"] = [{**disk, "path": f"/dev/{i}"} for i, disk in enumerate(disks)]
    return state


class Look(DataSource):
    schema = make_schema(
        block(
            {
                "id": attribute("string", required=True),
                "found": attribute("bool", computed=True),
                "sides": nested("list", {"n": attribute("number", computed=True)}, computed=True),
            }
        )
    )

    def read(self, diagnostics: Diagnostics, config: Values) -> Values:
        return {**config, "found": config["id"] in load(), "sides": [{"n": 1}, {"n": 0.25}]}


class Keeper(Provider):
    schema = make_schema(block({"endpoint": attribute("string", optional=True)}))


if __name__ == "__main__":
    box = Box()
    keeper = Keeper({"keeper_box": box}, {"keeper_look": Look()})
    box.provider = keeper
    serve(keeper)
