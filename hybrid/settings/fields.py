"""The kinds of value a configuration holds: how each is read, written back and described.

Reading is in `readers` and `words`; here each reader meets the JSON schema that editors use and
the text that `hybrid config show` prints.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import PlainSerializer, PlainValidator, SecretStr, WithJsonSchema

from hybrid.core.quantity import CountRange, GpuRequest, duration_text, size_text
from hybrid.settings import readers, words


def _schema(kind: str, **facts: object) -> WithJsonSchema:
    return WithJsonSchema({"type": kind, **facts})


def _duration_or_off(value: float | Literal["off"]) -> str:
    return "off" if value == "off" else duration_text(value)


def _size_or_auto(value: int | Literal["auto"]) -> str:
    return value if value == "auto" else size_text(value)


def _range_or_auto(value: CountRange | None) -> str:
    return "auto" if value is None else str(value)


def _masked(value: SecretStr) -> str:
    return words.masked(value.get_secret_value())


_DURATION_TEXT = PlainSerializer(duration_text, return_type=str, when_used="json")
_SIZE_TEXT = PlainSerializer(size_text, return_type=str, when_used="json")
_SIZE_OR_AUTO = PlainSerializer(_size_or_auto, return_type=str, when_used="json")
_RANGE_OR_AUTO = PlainSerializer(_range_or_auto, return_type=str, when_used="json")
_TEXT = PlainSerializer(str, return_type=str, when_used="json")
_MASKED = PlainSerializer(_masked, return_type=str, when_used="json")

_NUMBER = "[0-9]+([.][0-9]+)?"
_PORT = {"type": "integer", "minimum": readers.PORTS.low, "maximum": readers.PORTS.high}
_SIZE = {"type": "string", "pattern": f"^{_NUMBER} ?([KMGTP]i?B|B)$"}
_DURATION = _schema(
    "string",
    minLength=2,
    pattern="^" + "".join(f"({_NUMBER}{unit})?" for unit in ("d", "h", "m", "s", "ms")) + "$",
)

Count: TypeAlias = Annotated[int, PlainValidator(readers.count(0)), _schema("integer", minimum=0)]
PositiveCount: TypeAlias = Annotated[
    int, PlainValidator(readers.count(1)), _schema("integer", minimum=1)
]
Priority: TypeAlias = Annotated[
    int, PlainValidator(readers.priority), _schema("integer", minimum=0, maximum=100)
]
Amount: TypeAlias = Annotated[float, PlainValidator(readers.amount), _schema("number", minimum=0)]
Price: TypeAlias = Annotated[
    float, PlainValidator(readers.price), _schema("number", exclusiveMinimum=0)
]
Currency: TypeAlias = Annotated[
    str, PlainValidator(words.currency), _schema("string", pattern=f"^{words.CURRENCY.pattern}$")
]
Rates: TypeAlias = Annotated[
    dict[str, float],
    PlainValidator(words.rates),
    _schema(
        "object",
        propertyNames={"pattern": f"^{words.CURRENCY.pattern}$"},
        additionalProperties={"type": "number", "exclusiveMinimum": 0},
    ),
]
Speeds: TypeAlias = Annotated[
    dict[str, float],
    PlainValidator(words.speeds),
    _schema("object", additionalProperties={"type": "number", "exclusiveMinimum": 0}),
]
Share: TypeAlias = Annotated[
    float, PlainValidator(readers.share), _schema("number", minimum=0, maximum=1)
]
Flag: TypeAlias = Annotated[bool, PlainValidator(readers.flag), _schema("boolean")]
Duration: TypeAlias = Annotated[float, PlainValidator(readers.duration), _DURATION_TEXT, _DURATION]
PositiveDuration: TypeAlias = Annotated[
    float, PlainValidator(readers.positive_duration), _DURATION_TEXT, _DURATION
]
Latency: TypeAlias = Annotated[float, PlainValidator(readers.latency), _DURATION_TEXT, _DURATION]
Window: TypeAlias = Annotated[float, PlainValidator(readers.window), _DURATION_TEXT, _DURATION]
Percentile: TypeAlias = Annotated[
    float,
    PlainValidator(readers.percentile),
    _schema("number", exclusiveMinimum=0, exclusiveMaximum=100),
]
KeptFor: TypeAlias = Annotated[
    float | Literal["off"],
    PlainValidator(readers.kept_for),
    PlainSerializer(_duration_or_off, return_type=str, when_used="json"),
    WithJsonSchema({"anyOf": [_DURATION.json_schema, {"const": "off"}]}),
]
Size: TypeAlias = Annotated[int, PlainValidator(readers.size), _SIZE_TEXT, WithJsonSchema(_SIZE)]
StoreSize: TypeAlias = Annotated[
    int | Literal["auto"],
    PlainValidator(readers.store_size),
    _SIZE_OR_AUTO,
    WithJsonSchema({"anyOf": [_SIZE, {"const": "auto"}]}),
]
Gpus: TypeAlias = Annotated[
    GpuRequest,
    PlainValidator(readers.gpus),
    _TEXT,
    _schema("string", pattern="^[A-Za-z][A-Za-z0-9_.-]*(:[0-9]+)?$"),
]
GpusOrAuto: TypeAlias = Annotated[
    GpuRequest | Literal["auto"],
    PlainValidator(readers.gpus_or_auto),
    _TEXT,
    _schema("string", pattern="^([A-Za-z][A-Za-z0-9_.-]*(:[0-9]+)?|auto)$"),
]
PortRange: TypeAlias = Annotated[
    CountRange | None,
    PlainValidator(readers.port_range),
    _RANGE_OR_AUTO,
    _schema("string", pattern="^([0-9]+[.][.][0-9]+|auto)$"),
]
AutoPort: TypeAlias = Annotated[
    int | Literal["auto"],
    PlainValidator(readers.auto_port),
    WithJsonSchema({"anyOf": [_PORT, {"const": "auto"}]}),
]
OptionalPort: TypeAlias = Annotated[
    int | Literal["auto", "off"],
    PlainValidator(readers.optional_port),
    WithJsonSchema({"anyOf": [_PORT, {"enum": ["auto", "off"]}]}),
]
ClusterName: TypeAlias = Annotated[
    str, PlainValidator(words.name), _schema("string", pattern=f"^{words.NAME.pattern}$")
]
HostName: TypeAlias = Annotated[
    str, PlainValidator(words.host_name), _schema("string", pattern=f"^{words.HOST_NAME.pattern}$")
]
ServiceName: TypeAlias = Annotated[
    str,
    PlainValidator(words.service_name),
    _schema("string", pattern=f"^{words.HOST_NAME.pattern}$"),
]
EnvName: TypeAlias = Annotated[
    str, PlainValidator(words.env_name), _schema("string", pattern=f"^{words.ENV_NAME.pattern}$")
]
HttpUrl: TypeAlias = Annotated[
    str, PlainValidator(words.http_url), _schema("string", pattern="^https?://")
]
HostAddress: TypeAlias = Annotated[
    str, PlainValidator(words.host_address), _schema("string", minLength=1)
]
SshOptions: TypeAlias = Annotated[
    tuple[str, ...],
    PlainValidator(words.ssh_options),
    PlainSerializer(list, return_type=list[str], when_used="json"),
    _schema("array", items={"type": "string"}),
]
PythonPath: TypeAlias = Annotated[
    str, PlainValidator(words.python_path), _schema("string", minLength=1)
]
HeadAddress: TypeAlias = Annotated[str, PlainValidator(words.head_address), _schema("string")]
Infra: TypeAlias = Annotated[
    str, PlainValidator(words.infra), _schema("string", pattern=f"^{words.INFRA.pattern}$")
]
BindHost: TypeAlias = Annotated[str, PlainValidator(words.bind_host), _schema("string")]
Text: TypeAlias = Annotated[str, PlainValidator(words.line_of_text), _schema("string", minLength=1)]
VersionText: TypeAlias = Annotated[
    str, PlainValidator(readers.version), _schema("string", pattern="^[0-9]+([.][0-9]+){0,3}$")
]
MigProfile: TypeAlias = Annotated[str, PlainValidator(readers.mig_profile), _schema("string")]
MpsClients: TypeAlias = Annotated[
    int, PlainValidator(readers.mps_clients), _schema("integer", minimum=2, maximum=48)
]
NodeLabels: TypeAlias = Annotated[
    dict[str, str],
    PlainValidator(words.labels),
    _schema("object", additionalProperties={"type": ["string", "number", "boolean", "null"]}),
]
Extras: TypeAlias = Annotated[dict[str, Any], PlainValidator(words.extras), _schema("object")]
LedgerUrl: TypeAlias = Annotated[
    SecretStr, PlainValidator(words.ledger_url), _MASKED, _schema("string")
]
