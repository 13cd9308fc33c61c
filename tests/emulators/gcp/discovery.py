"""Compute Engine's own description of its API, and the check of each request and answer by it.

The document comes with google-api-python-client and is read as a file: the package itself is
not imported.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]

_FILE = "discovery_cache/documents/compute.v1.json"


@dataclass(frozen=True)
class Call:
    """A request that matches a method of the API.

    Attributes:
        method_id: Such as `compute.instances.insert`.
        path: Values of the path's parameters.
    """

    method_id: str
    path: Mapping[str, str]
    method: Json

    @property
    def name(self) -> str:
        """Its name without the API's, such as `instances.insert`."""
        return self.method_id.removeprefix("compute.")


@cache
def document() -> Document:
    """Return the description of the Compute Engine API; 5 MB, so read once."""
    spec = find_spec("googleapiclient")
    if spec is None or spec.origin is None:
        raise ImportError("google-api-python-client is not installed; it has the description")
    return Document(json.loads(Path(spec.origin).parent.joinpath(_FILE).read_bytes()))


class Document:
    """A discovery document."""

    def __init__(self, content: Json) -> None:
        self.base_path = f"/{content['servicePath']}"
        self.revision = str(content["revision"])
        self._schemas: Json = content["schemas"]
        self._common: Json = content["parameters"]
        self._routes = [
            (method["httpMethod"], _as_regex(method["path"]), method)
            for method in _methods(content)
            if "+" not in method["path"]
        ]

    def find(self, verb: str, path: str) -> Call | None:
        """Return the method behind a request."""
        inner = path.removeprefix(self.base_path)
        if inner == path:
            return None
        for http_method, regex, method in self._routes:
            match = regex.fullmatch(inner) if http_method == verb else None
            if match is not None:
                return Call(method["id"], match.groupdict(), method)
        return None

    def problems_of_parameters(self, call: Call, query: Mapping[str, str]) -> list[str]:
        """Return what is wrong with the parameters of a request."""
        known: Json = {**self._common, **call.method.get("parameters", {})}
        problems = [f"{name}: no such parameter" for name in query if name not in known]
        for name, value in {**query, **call.path}.items():
            if name in known:
                problems += _parameter_problems(name, value, known[name])
        for name, parameter in call.method.get("parameters", {}).items():
            if parameter.get("required") and name not in {**query, **call.path}:
                problems.append(f"{name}: required")
        return problems

    def problems_of_request(self, call: Call, body: object) -> list[str]:
        """Return what is wrong with the body of a request."""
        ref = call.method.get("request", {}).get("$ref")
        if ref is None:
            return [] if body is None else ["this method takes no body"]
        return list(_Check(self._schemas, call.method_id).value({"$ref": ref}, body, ref))

    def problems_of_answer(self, call: Call, body: object) -> list[str]:
        """Return what is wrong with a successful answer."""
        ref = call.method["response"]["$ref"]
        return list(_Check(self._schemas, "").value({"$ref": ref}, body, ref))


class _Check:
    """One walk through a value along its schema; `method_id` is `""` for answers."""

    def __init__(self, schemas: Json, method_id: str) -> None:
        self._schemas = schemas
        self._method_id = method_id

    def value(self, schema: Json, value: Any, path: str) -> Iterator[str]:
        if "$ref" in schema:
            schema = self._schemas[schema["$ref"]]
        kind = schema.get("type")
        if kind == "object":
            yield from self._object(schema, value, path)
        elif kind == "array":
            if not isinstance(value, list):
                yield f"{path}: expected a list, got {value!r}"
                return
            for place, item in enumerate(value):
                yield from self.value(schema["items"], item, f"{path}[{place}]")
        elif kind == "string":
            yield from _string_problems(schema, value, path, may_be_empty=not self._method_id)
        elif kind == "boolean" and not isinstance(value, bool):
            yield f"{path}: expected true or false, got {value!r}"
        elif kind == "integer" and (not isinstance(value, int) or isinstance(value, bool)):
            yield f"{path}: expected a whole number, got {value!r}"
        elif kind == "number" and not isinstance(value, int | float):
            yield f"{path}: expected a number, got {value!r}"

    def _object(self, schema: Json, value: Any, path: str) -> Iterator[str]:
        if not isinstance(value, dict):
            yield f"{path}: expected an object, got {value!r}"
            return
        known: Json = schema.get("properties", {})
        others = schema.get("additionalProperties")
        for key, item in value.items():
            if key in known:
                if self._method_id and known[key].get("readOnly"):
                    yield f"{path}.{key}: only the cloud sets this"
                yield from self.value(known[key], item, f"{path}.{key}")
            elif others is not None:
                yield from self.value(others, item, f"{path}[{key}]")
            else:
                yield f"{path}.{key}: no such field"
        for key, field in known.items():
            needed_by: Sequence[str] = field.get("annotations", {}).get("required", ())
            if self._method_id in needed_by and key not in value:
                yield f"{path}.{key}: required"


def _string_problems(schema: Json, value: Any, path: str, *, may_be_empty: bool) -> Iterator[str]:
    if not isinstance(value, str):
        yield f"{path}: expected text, got {value!r}"
    elif schema.get("format") in ("int64", "uint64"):
        if not re.fullmatch(r"-?[0-9]{1,20}", value):
            yield f"{path}: expected a {schema['format']} as text, got {value!r}"
    elif schema.get("format") == "byte":
        try:
            base64.b64decode(value, validate=True)
        except binascii.Error:
            yield f"{path}: expected base64, got {value!r}"
    elif "enum" in schema and value not in schema["enum"]:
        yield f"{path}: {value!r} is none of {', '.join(schema['enum'])}"
    elif (
        "pattern" in schema
        and not (may_be_empty and not value)
        and not re.fullmatch(schema["pattern"], value)
    ):
        yield f"{path}: {value!r} does not match {schema['pattern']}"


def _parameter_problems(name: str, value: str, parameter: Json) -> Iterator[str]:
    kind = parameter.get("type")
    if kind == "boolean" and value not in ("true", "false"):
        yield f"{name}: expected true or false, got {value!r}"
    elif kind == "integer":
        if not re.fullmatch(r"-?[0-9]+", value):
            yield f"{name}: expected a whole number, got {value!r}"
        elif not _is_within(int(value), parameter):
            yield f"{name}: {value} is out of range"
    elif "enum" in parameter and value not in parameter["enum"]:
        yield f"{name}: {value!r} is none of {', '.join(parameter['enum'])}"
    elif "pattern" in parameter and not re.fullmatch(parameter["pattern"], value):
        yield f"{name}: {value!r} does not match {parameter['pattern']}"


def _is_within(number: int, parameter: Json) -> bool:
    low, high = parameter.get("minimum"), parameter.get("maximum")
    return (low is None or number >= int(low)) and (high is None or number <= int(high))


def _methods(part: Json) -> Iterator[Json]:
    yield from part.get("methods", {}).values()
    for resource in part.get("resources", {}).values():
        yield from _methods(resource)


def _as_regex(path: str) -> re.Pattern[str]:
    parts = re.split(r"\{(\w+)\}", path)
    text = "".join(
        f"(?P<{part}>[^/]+)" if place % 2 else re.escape(part) for place, part in enumerate(parts)
    )
    return re.compile(text)
