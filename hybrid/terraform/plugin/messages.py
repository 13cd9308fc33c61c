"""The messages of Terraform's plugin protocol 6, built when the program starts.

There is no generated code, so any protobuf runtime will do: Ray pins one, cloud SDKs another.
The table names the fields that are used or must be echoed; protobuf passes others through.

Field numbers: `docs/plugin-protocol/tfplugin6.8.proto` of hashicorp/terraform.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_PACKAGE = "tfplugin6"
_STRING, _MESSAGE = 9, 11
_SCALARS = {"string": _STRING, "bytes": 12, "int": 3, "bool": 8}
_OPTIONAL, _REPEATED = 1, 3

_TABLE: Mapping[str, str] = {
    "Empty": "",
    "DynamicValue": "1 msgpack bytes, 2 json bytes",
    "AttributePath": "1 steps *AttributePath.Step",
    "AttributePath.Step": (
        "1 attribute_name ?string, 2 element_key_string ?string, 3 element_key_int ?int"
    ),
    "Diagnostic": "1 severity int, 2 summary string, 3 detail string, 4 attribute AttributePath",
    "RawState": "1 json bytes, 2 flatmap %string",
    "Schema": "1 version int, 2 block Schema.Block",
    "Schema.Object": "1 attributes *Schema.Attribute, 3 nesting int",
    "Schema.Attribute": (
        "1 name string, 2 type bytes, 3 description string, 4 required bool, 5 optional bool, "
        "6 computed bool, 7 sensitive bool, 8 description_kind int, 9 deprecated bool, "
        "10 nested_type Schema.Object, 11 write_only bool"
    ),
    "Schema.NestedBlock": (
        "1 type_name string, 2 block Schema.Block, 3 nesting int, 4 min_items int, 5 max_items int"
    ),
    "Schema.Block": (
        "1 version int, 2 attributes *Schema.Attribute, 3 block_types *Schema.NestedBlock, "
        "4 description string, 5 description_kind int, 6 deprecated bool"
    ),
    "ServerCapabilities": (
        "1 plan_destroy bool, 2 get_provider_schema_optional bool, 3 move_resource_state bool"
    ),
    "TypeName": "1 type_name string",
    "GetMetadata.Response": (
        "1 server_capabilities ServerCapabilities, 2 diagnostics *Diagnostic, "
        "3 data_sources *TypeName, 4 resources *TypeName"
    ),
    "GetProviderSchema.Response": (
        "1 provider Schema, 2 resource_schemas %Schema, 3 data_source_schemas %Schema, "
        "4 diagnostics *Diagnostic, 6 server_capabilities ServerCapabilities"
    ),
    "GetFunctions.Response": "2 diagnostics *Diagnostic",
    "ValidateProviderConfig.Request": "1 config DynamicValue",
    "ValidateProviderConfig.Response": "2 diagnostics *Diagnostic",
    "ValidateResourceConfig.Request": "1 type_name string, 2 config DynamicValue",
    "ValidateResourceConfig.Response": "1 diagnostics *Diagnostic",
    "UpgradeResourceState.Request": "1 type_name string, 2 version int, 3 raw_state RawState",
    "UpgradeResourceState.Response": "1 upgraded_state DynamicValue, 2 diagnostics *Diagnostic",
    "ConfigureProvider.Request": "1 terraform_version string, 2 config DynamicValue",
    "ConfigureProvider.Response": "1 diagnostics *Diagnostic",
    "ReadResource.Request": "1 type_name string, 2 current_state DynamicValue, 3 private bytes",
    "ReadResource.Response": (
        "1 new_state DynamicValue, 2 diagnostics *Diagnostic, 3 private bytes"
    ),
    "PlanResourceChange.Request": (
        "1 type_name string, 2 prior_state DynamicValue, 3 proposed_new_state DynamicValue, "
        "4 config DynamicValue, 5 prior_private bytes"
    ),
    "PlanResourceChange.Response": (
        "1 planned_state DynamicValue, 2 requires_replace *AttributePath, "
        "3 planned_private bytes, 4 diagnostics *Diagnostic"
    ),
    "ApplyResourceChange.Request": (
        "1 type_name string, 2 prior_state DynamicValue, 3 planned_state DynamicValue, "
        "4 config DynamicValue, 5 planned_private bytes"
    ),
    "ApplyResourceChange.Response": (
        "1 new_state DynamicValue, 2 private bytes, 3 diagnostics *Diagnostic"
    ),
    "ImportResourceState.Request": "1 type_name string, 2 id string",
    "ImportResourceState.ImportedResource": (
        "1 type_name string, 2 state DynamicValue, 3 private bytes"
    ),
    "ImportResourceState.Response": (
        "1 imported_resources *ImportResourceState.ImportedResource, 2 diagnostics *Diagnostic"
    ),
    "ReadDataSource.Request": "1 type_name string, 2 config DynamicValue",
    "ReadDataSource.Response": "1 state DynamicValue, 2 diagnostics *Diagnostic",
    "StopProvider.Response": "1 Error string",
}
"""Message -> its fields as `number name type`; `*` repeated, `%` a map by string, `?` one of."""


def _declare(file: Any, declared: dict[str, Any], name: str) -> Any:
    """Return the descriptor of a message, made inside its parent when it is new."""
    if name not in declared:
        parent, _, leaf = name.rpartition(".")
        if parent:
            declared[name] = _declare(file, declared, parent).nested_type.add(name=leaf)
        else:
            declared[name] = file.message_type.add(name=name)
    return declared[name]


def _set_type(field: Any, kind: str) -> None:
    if kind in _SCALARS:
        field.type = _SCALARS[kind]
    else:
        field.type, field.type_name = _MESSAGE, f".{_PACKAGE}.{kind}"


def _add_field(message: Any, path: str, number: int, name: str, kind: str) -> None:
    field = message.field.add(name=name, number=number, label=_OPTIONAL)
    mark, kind = (kind[0], kind[1:]) if kind[0] in "*%?" else ("", kind)
    if mark == "*":
        field.label = _REPEATED
    if mark == "?":
        if not message.oneof_decl:
            message.oneof_decl.add(name="selector")
        field.oneof_index = 0
    if mark == "%":
        entry_name = "".join(word.capitalize() for word in name.split("_")) + "Entry"
        entry = message.nested_type.add(name=entry_name)
        entry.options.map_entry = True
        entry.field.add(name="key", number=1, label=_OPTIONAL, type=_STRING)
        _set_type(entry.field.add(name="value", number=2, label=_OPTIONAL), kind)
        field.label, kind = _REPEATED, f"{path}.{entry_name}"
    _set_type(field, kind)


def _build() -> Mapping[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(
        name="hybrid_tfplugin6.proto", package=_PACKAGE, syntax="proto3"
    )
    declared: dict[str, Any] = {}
    for name in _TABLE:
        _declare(file, declared, name)
    for name, fields in _TABLE.items():
        for field in filter(None, fields.split(", ")):
            number, field_name, kind = field.split()
            _add_field(declared[name], name, int(number), field_name, kind)
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))
        for name in _TABLE
    }


MESSAGES: Mapping[str, Any] = _build()
"""Message name, such as `ReadResource.Request`, -> its class."""
