"""Whatever is wrong with any setting is told in a plain sentence: no pattern, no program's words.

Every field of the file's own models and of all providers' models gets bad values.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args, get_origin

import pytest
from pydantic import BaseModel, ValidationError

from hybrid.settings import SettingsError
from hybrid.settings.catalogue import keys
from hybrid.settings.problem import Path as At
from hybrid.settings.refusals import sentence
from providers.aws.params import Params as AwsParams
from providers.baidu.params import Params as BaiduParams
from providers.gcp.params import Params as GcpParams
from providers.local.params import Params as LocalParams
from tests.settings.plain import why_not_plain
from tests.settings.writing import load_text

BAD: dict[str, object] = {
    "spaces": "what is this!",
    "empty": "",
    "long": "x" * 5_000,
    "odd": "sg-XYZ;$(id)",
    "minus": -1,
    "zero": 0,
    "share": 0.5,
    "huge": 10**30,
    "nan": float("nan"),
    "endless": float("inf"),
    "yes": True,
    "list": [[]],
    "numbers": [1, 2, 3],
    "mapping": {"what is": {"this": 1}},
    "words": {"what is": "this!"},
}

# --- the models of providers ------------------------------------------------------------------

GOOD: dict[str, tuple[type[BaseModel], dict[str, Any]]] = {
    "aws": (
        AwsParams,
        {
            "regions": {
                "us-east-1": {
                    "image": "ami-0123456789abcdef0",
                    "subnets": {"us-east-1a": "subnet-0123abcd"},
                    "security_groups": ["sg-0123abcd"],
                }
            },
            "tags": {"team": "ml"},
            "pools": [
                {
                    "infra": "aws/us-east-1/us-east-1a",
                    "instance_type": "p5.48xlarge",
                    "labels": {"a": "b"},
                }
            ],
        },
    ),
    "gcp": (
        GcpParams,
        {
            "project": "p-1",
            "image": "projects/p-1/global/images/node",
            "network_tags": ["node"],
            "tags": {"team": "ml"},
            "pools": [
                {
                    "infra": "gcp/us-central1/us-central1-a",
                    "instance_type": "g2-standard-8",
                    "cpus": 8,
                    "memory": "8GiB",
                    "labels": {"a": "b"},
                }
            ],
        },
    ),
    "baidu": (
        BaiduParams,
        {
            "image": "m-1",
            "subnets": {"bj": "sbn-1"},
            "security_groups": ["g-1"],
            "exchange": {"cny_per_usd": 7.1, "as_of": "2026-11-27", "source": "x"},
            "endpoints": {"bj": "https://bcc.example.com"},
            "errors": {"SoldOut": "capacity"},
            "pools": [
                {
                    "infra": "baidu/bj",
                    "instance_type": "bcc.lgn1.c12m40.1p40",
                    "labels": {"a": "b"},
                }
            ],
        },
    ),
    "local": (
        LocalParams,
        {
            "pools": [
                {
                    "infra": "local/north",
                    "usd_per_hour": 1.0,
                    "fail": {},
                    "labels": {"a": "b"},
                }
            ]
        },
    ),
}


def fields(model: type[BaseModel], raw: Mapping[str, Any], above: At = ()) -> Iterator[At]:
    """Yield the place of each field, of what stands in mappings and lists, and of no such field."""
    for name, info in model.model_fields.items():
        here = (*above, name)
        yield here
        given = raw.get(name)
        inside = _model_in(info.annotation)
        if inside is not None and isinstance(given, Mapping):
            is_one = get_origin(info.annotation) is not dict
            for key, part in {"": given}.items() if is_one else given.items():
                yield from fields(inside, part, here if is_one else (*here, key))
        elif inside is not None and isinstance(given, list):
            yield from fields(inside, given[0], (*here, 0))
        elif isinstance(given, Mapping):
            yield from ((*here, key) for key in given)
        elif isinstance(given, list):
            yield (*here, 0)
    yield (*above, "what_is_this")


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and get_origin(annotation) is None:
        return annotation if issubclass(annotation, BaseModel) else None
    return next(filter(None, map(_model_in, get_args(annotation))), None)


def with_value(raw: Mapping[str, Any], place: At, value: object) -> dict[str, Any]:
    changed: Any = copy.deepcopy(dict(raw))
    part = changed
    for key in place[:-1]:
        part = part[key] if isinstance(key, int) else part.setdefault(key, {})
    part[place[-1]] = value
    return dict(changed)


PLACES = [(name, place) for name, (model, raw) in GOOD.items() for place in fields(model, raw)]


@pytest.mark.parametrize(
    ("name", "place"), PLACES, ids=["-".join(map(str, (n, *p))) for n, p in PLACES]
)
def test_what_a_provider_refuses_is_a_plain_sentence(name: str, place: At) -> None:
    model, raw = GOOD[name]
    model.model_validate(raw)
    refused = set()
    for kind, value in BAD.items():
        try:
            model.model_validate(with_value(raw, place, value))
        except ValidationError as error:
            refused.add(kind)
            for item in error.errors(include_url=False):
                assert not (why := why_not_plain(text := sentence(item))), f"{kind}: {why}: {text}"

    assert refused, "no bad value was refused here"


def test_no_provider_has_a_pattern_of_pydantics() -> None:
    """`hybrid.core.worded.spelled` has words for it."""
    for name, (model, _) in GOOD.items():
        schema = json.dumps(model.model_json_schema())
        assert '"pattern"' not in schema, name


# --- the file's own models --------------------------------------------------------------------

POOLS = [{"infra": "local", "usd_per_hour": 1}]
FILE: dict[str, Any] = {
    "name": "lab",
    "budget": {"nodes": 1},
    "onprem": {"hosts": [{"name": "h-1"}]},
    "clouds": {"any_of": POOLS},
    "prices": {"overrides": [{"infra": "local", "instance_type": "t", "per_hour": 1}]},
    "services": [{"name": "s", "target": "1s"}],
}
KEYS = [tuple(0 if part == "[]" else part for part in key.path) for key in keys()]


@pytest.mark.parametrize("place", KEYS, ids=["-".join(map(str, place)) for place in KEYS])
def test_what_the_file_refuses_is_a_plain_sentence(tmp_path: Path, place: At) -> None:
    good = FILE | ({"clouds": {"ordered": POOLS}} if "ordered" in place else {})
    load_text(tmp_path, json.dumps(good))
    refused = set()
    for kind, value in BAD.items():
        content = with_value(good, place, value)
        try:
            load_text(tmp_path, json.dumps(content))
        except SettingsError as error:
            refused.add(kind)
            for problem in error.problems:
                assert not (why := why_not_plain(problem.text)), f"{kind}: {why}: {problem.text}"

    assert refused, "no bad value was refused here"
