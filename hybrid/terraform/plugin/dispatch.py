"""Answers Terraform's calls by calling the provider."""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from hybrid.terraform.plugin import walk
from hybrid.terraform.plugin.diagnostics import Diagnostics, wire_path
from hybrid.terraform.plugin.messages import MESSAGES
from hybrid.terraform.plugin.resource import Provider, Resource
from hybrid.terraform.plugin.schema import Schema, Values, wire
from hybrid.terraform.plugin.values import pack, unpack

Message = Any
"""A protobuf message; its class is made at run time, so no checker knows it."""

REQUESTS: Mapping[str, str] = {
    "GetMetadata": "Empty",
    "GetProviderSchema": "Empty",
    "GetFunctions": "Empty",
    "StopProvider": "Empty",
    "ValidateProviderConfig": "ValidateProviderConfig.Request",
    "ValidateResourceConfig": "ValidateResourceConfig.Request",
    "ValidateDataResourceConfig": "ValidateResourceConfig.Request",
    "UpgradeResourceState": "UpgradeResourceState.Request",
    "ConfigureProvider": "ConfigureProvider.Request",
    "ReadResource": "ReadResource.Request",
    "PlanResourceChange": "PlanResourceChange.Request",
    "ApplyResourceChange": "ApplyResourceChange.Request",
    "ImportResourceState": "ImportResourceState.Request",
    "ReadDataSource": "ReadDataSource.Request",
}
"""Call of the service `tfplugin6.Provider` -> its request."""


def answers(provider: Provider) -> Mapping[str, Callable[[Message], Message]]:
    """Return the function that answers each call of `REQUESTS`."""
    dispatch = _Dispatch(provider)
    return {
        "GetMetadata": dispatch.metadata,
        "GetProviderSchema": dispatch.schemas,
        "GetFunctions": lambda _: MESSAGES["GetFunctions.Response"](),
        "StopProvider": dispatch.stop,
        "ValidateProviderConfig": dispatch.validate_provider,
        "ValidateResourceConfig": lambda r: dispatch.validate(r, provider.resources[r.type_name]),
        "ValidateDataResourceConfig": lambda r: dispatch.validate(
            r, provider.data_sources[r.type_name]
        ),
        "UpgradeResourceState": dispatch.upgrade,
        "ConfigureProvider": dispatch.configure,
        "ReadResource": dispatch.read,
        "PlanResourceChange": dispatch.plan,
        "ApplyResourceChange": dispatch.apply,
        "ImportResourceState": dispatch.import_,
        "ReadDataSource": dispatch.read_data,
    }


@contextmanager
def _told(diagnostics: Diagnostics, what: str) -> Iterator[None]:
    """Turn an exception into an error that Terraform shows."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - this is where the program meets its user
        traceback.print_exc(file=sys.stderr)  # to be seen with TF_LOG=debug
        diagnostics.error(f"{what} failed", f"{type(error).__name__}: {error}")


def _check(diagnostics: Diagnostics, content: Schema, config: Values) -> None:
    for path, described, value in walk.leaves(content, config):
        check = described.get("check")
        if check is not None and (refusal := check(value)):
            diagnostics.error(refusal, at=path)


def _object(content: Schema, wire: Message) -> Values | None:
    value = unpack(wire)
    return None if value is None else walk.complete(content, value)


def _private(raw: bytes) -> dict[str, Any]:
    return dict(json.loads(raw)) if raw else {}


class _Dispatch:
    def __init__(self, provider: Provider) -> None:
        self._provider = provider

    def _of(self, request: Message) -> tuple[Resource, Schema]:
        resource = self._provider.resources[request.type_name]
        return resource, resource.schema.get("block") or {}

    def metadata(self, _: Message) -> Message:
        return MESSAGES["GetMetadata.Response"](
            server_capabilities=_capabilities(),
            resources=[{"type_name": name} for name in self._provider.resources],
            data_sources=[{"type_name": name} for name in self._provider.data_sources],
        )

    def schemas(self, _: Message) -> Message:
        answer = MESSAGES["GetProviderSchema.Response"](
            provider=wire(self._provider.schema), server_capabilities=_capabilities()
        )
        for name, resource in self._provider.resources.items():
            answer.resource_schemas[name].CopyFrom(wire(resource.schema))
        for name, source in self._provider.data_sources.items():
            answer.data_source_schemas[name].CopyFrom(wire(source.schema))
        return answer

    def stop(self, _: Message) -> Message:
        # running creations see it and return what exists; the server itself stays up
        self._provider.stopping.set()
        return MESSAGES["StopProvider.Response"]()

    def validate_provider(self, request: Message) -> Message:
        diagnostics = Diagnostics()
        content = self._provider.schema.get("block") or {}
        config = _object(content, request.config) or {}
        with _told(diagnostics, "Checking the provider's configuration"):
            _check(diagnostics, content, config)
            self._provider.validate(diagnostics, config)
        return MESSAGES["ValidateProviderConfig.Response"](diagnostics=diagnostics.messages)

    def configure(self, request: Message) -> Message:
        diagnostics = Diagnostics()
        content = self._provider.schema.get("block") or {}
        config = _object(content, request.config) or {}
        with _told(diagnostics, "Configuring the provider"):
            self._provider.configure(diagnostics, config, request.terraform_version)
        return MESSAGES["ConfigureProvider.Response"](diagnostics=diagnostics.messages)

    def validate(self, request: Message, described: Any) -> Message:
        diagnostics = Diagnostics()
        content = described.schema.get("block") or {}
        config = _object(content, request.config) or {}
        with _told(diagnostics, f"Checking {request.type_name}"):
            _check(diagnostics, content, config)
            described.validate(diagnostics, config)
        return MESSAGES["ValidateResourceConfig.Response"](diagnostics=diagnostics.messages)

    def upgrade(self, request: Message) -> Message:
        """Called on every run, also when the version is today's."""
        diagnostics = Diagnostics()
        resource, content = self._of(request)
        raw = json.loads(request.raw_state.json or b"{}")
        if request.version != resource.schema.get("version", 0):
            with _told(diagnostics, f"Upgrading the state of {request.type_name}"):
                raw = resource.upgrade(diagnostics, request.version, raw)
        upgraded = pack(walk.complete(content, raw))
        return MESSAGES["UpgradeResourceState.Response"](
            upgraded_state=upgraded, diagnostics=diagnostics.messages
        )

    def read(self, request: Message) -> Message:
        diagnostics = Diagnostics()
        resource, content = self._of(request)
        state = _object(content, request.current_state)
        private = _private(request.private)
        with _told(diagnostics, f"Reading {request.type_name}"):
            if state is not None:
                state = resource.read(diagnostics, dict(state), private)
        seen = None if state is None else walk.settled(content, state)
        return MESSAGES["ReadResource.Response"](
            new_state=pack(seen), diagnostics=diagnostics.messages, private=_wire_private(private)
        )

    def plan(self, request: Message) -> Message:
        diagnostics = Diagnostics()
        resource, content = self._of(request)
        prior = _object(content, request.prior_state)
        proposed = _object(content, request.proposed_new_state)
        config = _object(content, request.config) or {}
        answer = MESSAGES["PlanResourceChange.Response"](planned_private=request.prior_private)
        if proposed is None:  # a destruction
            answer.planned_state.CopyFrom(pack(None))
            return answer
        planned = walk.with_config(content, proposed, config, walk.with_defaults)
        if prior is None:
            planned = walk.mark_unknown(content, planned)
        with _told(diagnostics, f"Planning {request.type_name}"):
            planned = resource.plan(diagnostics, prior, planned, config)
            if prior is not None:
                paths = resource.replaced_paths(prior, planned)
                answer.requires_replace.extend(wire_path(path) for path in paths)
        answer.planned_state.CopyFrom(pack(walk.without_write_only(content, planned)))
        answer.diagnostics.extend(diagnostics.messages)
        return answer

    def apply(self, request: Message) -> Message:
        diagnostics = Diagnostics()
        resource, content = self._of(request)
        prior = _object(content, request.prior_state)
        planned = _object(content, request.planned_state)
        if planned is not None:
            config = _object(content, request.config)
            planned = walk.with_config(content, planned, config, walk.with_secrets)
        private = _private(request.planned_private)
        made = prior
        with _told(diagnostics, f"Changing {request.type_name}"):
            made = _change(resource, diagnostics, prior, planned, private)
        new_state = None if made is None else walk.settled(content, made)
        return MESSAGES["ApplyResourceChange.Response"](
            new_state=pack(new_state),
            private=_wire_private(private),
            diagnostics=diagnostics.messages,
        )

    def import_(self, request: Message) -> Message:
        diagnostics = Diagnostics()
        resource, content = self._of(request)
        found: Values | None = None
        with _told(diagnostics, f"Importing {request.type_name}"):
            found = resource.import_(diagnostics, request.id)
        answer = MESSAGES["ImportResourceState.Response"](diagnostics=diagnostics.messages)
        if found is not None:
            answer.imported_resources.add(
                type_name=request.type_name, state=pack(walk.settled(content, found))
            )
        return answer

    def read_data(self, request: Message) -> Message:
        diagnostics = Diagnostics()
        source = self._provider.data_sources[request.type_name]
        content = source.schema.get("block") or {}
        read: Values | None = None
        with _told(diagnostics, f"Reading {request.type_name}"):
            read = source.read(diagnostics, _object(content, request.config) or {})
        state = None if read is None else walk.settled(content, read)
        return MESSAGES["ReadDataSource.Response"](
            state=pack(state), diagnostics=diagnostics.messages
        )


def _change(
    resource: Resource,
    diagnostics: Diagnostics,
    prior: Values | None,
    planned: Values | None,
    private: dict[str, Any],
) -> Values | None:
    """Create, update or delete; return what is there afterwards."""
    if planned is None:
        if prior is not None:
            resource.delete(diagnostics, prior, private)
        return prior if diagnostics.has_errors else None
    if prior is None:
        return resource.create(diagnostics, planned, private)
    return resource.update(diagnostics, prior, planned, private)


def _capabilities() -> Message:
    return MESSAGES["ServerCapabilities"](get_provider_schema_optional=True, plan_destroy=True)


def _wire_private(private: Mapping[str, Any]) -> bytes:
    return json.dumps(private).encode() if private else b""
