"""The instance metadata service, version 2, of every instance."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from tests.emulators.aws.backend import Moto
from tests.emulators.aws.wire import Answer

PREFIX = "/imds/"
_ABSENT = Answer(404, "text/html", b"<h1>404 Not Found</h1>")


@dataclass
class Metadata:
    """Serves `/imds/<instance id>/latest/...`; a real instance asks 169.254.169.254.

    Attributes:
        notices: When instances are taken back.
        raw: What they are told instead, word for word.
        failing: So many requests fail, as when the service is away for a moment.
        asked: How often anybody asked for a notice.
    """

    moto: Moto
    notices: dict[str, float] = field(default_factory=dict)
    raw: dict[str, str] = field(default_factory=dict)
    failing: int = 0
    asked: int = 0
    _tokens: dict[str, str] = field(default_factory=dict)

    def answer(self, environ: Mapping[str, Any]) -> Answer:
        if self.failing > 0:
            self.failing -= 1
            return Answer(503, "text/html", b"<h1>503 Service Unavailable</h1>")
        instance_id, _, path = environ["PATH_INFO"].removeprefix(PREFIX).partition("/")
        try:
            instance = self.moto.find(instance_id)
        except KeyError:
            return _ABSENT
        if path == "latest/api/token":
            return self._token(environ, instance_id)
        given = environ.get("HTTP_X_AWS_EC2_METADATA_TOKEN", "")
        is_needed = given or instance.metadata_options.http_tokens == "required"
        if is_needed and self._tokens.get(given) != instance_id:
            return Answer(401, "text/html", b"<h1>401 Unauthorized</h1>")
        return self._datum(instance, path.removeprefix("latest/meta-data/"))

    def _token(self, environ: Mapping[str, Any], instance_id: str) -> Answer:
        lives_s = environ.get("HTTP_X_AWS_EC2_METADATA_TOKEN_TTL_SECONDS", "")
        if environ["REQUEST_METHOD"] != "PUT" or not lives_s.isdigit():
            return Answer(400, "text/html", b"<h1>400 Bad Request</h1>")
        token = uuid.uuid4().hex
        self._tokens[token] = instance_id
        return Answer(200, "text/plain", token.encode())

    def _datum(self, instance: Any, path: str) -> Answer:
        if path == "instance-id":
            return Answer(200, "text/plain", instance.id.encode())
        if path.startswith("tags/instance/"):
            tags = self.moto.tags(instance.id)
            value = tags.get(path.removeprefix("tags/instance/"))
            if instance.metadata_options.instance_metadata_tags != "enabled" or value is None:
                return _ABSENT
            return Answer(200, "text/plain", value.encode())
        if path == "spot/instance-action":
            return self._spot_action(instance.id)
        return _ABSENT

    def _spot_action(self, instance_id: str) -> Answer:
        self.asked += 1
        if instance_id in self.raw:
            return Answer(200, "application/json", self.raw[instance_id].encode())
        if instance_id not in self.notices:
            return _ABSENT
        at = datetime.fromtimestamp(self.notices[instance_id], tz=UTC)
        content = {"action": "terminate", "time": at.strftime("%Y-%m-%dT%H:%M:%SZ")}
        return Answer(200, "application/json", json.dumps(content).encode())
