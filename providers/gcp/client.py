"""The calls to Compute Engine, one method each. Only this module touches the SDK.

The SDK is imported at the first call: it takes seconds and 150 MB. Its retries are off, and
`Operation.result()` of its futures is never used, because it asks the default endpoint and
takes an operation with errors for a success (measured on google-cloud-compute 1.57).
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from hybrid.core.errors import (
    AuthError,
    InvalidRequestError,
    NotFoundError,
    ProviderError,
    TransientError,
)
from providers.gcp.errors import Failure, error, kind_of
from providers.gcp.naming import Place
from providers.gcp.resources import Machine, Operation, machine_of, operation_of

_PAGE = 500  # the largest that Google gives
_SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)
_PLACE_ONLY = re.compile(r"'projects/[^/']+(/zones/[^/']+)?'")
_INCOMPLETE = ("UNREACHABLE", "PARTIAL_SUCCESS")


class Client:
    """Access to one project. Every method raises `ProviderError` and what it says there.

    Attributes:
        provider: Name of the provider in errors.
    """

    def __init__(self, provider: str, project: str, *, endpoint: str, timeout_s: float) -> None:
        self.provider = provider
        self._project = project
        self._endpoint = endpoint
        self._timeout_s = timeout_s
        self._lock = threading.Lock()
        self._made: dict[str, Any] = {}

    def insert(self, place: Place, body: Mapping[str, object], *, request_id: str) -> Operation:
        """Ask for an instance; the same `request_id` returns the same operation."""
        with self._calling(f"launch {place}"):
            from google.cloud.compute_v1 import Instance

            operation = self._client("InstancesClient").insert_unary(
                request={
                    "project": place.project,
                    "zone": place.zone,
                    "instance_resource": Instance.from_json(json.dumps(body)),
                    "request_id": request_id,
                },
                **self._options(),
            )
            return operation_of(place, operation)

    def bulk_insert(
        self, places: Sequence[Place], body: Mapping[str, object], *, request_id: str
    ) -> Operation:
        """Ask for instances of one zone, all or none; see `insert`."""
        where = places[0]
        with self._calling(f"launch {len(places)} instances in {where.zone}"):
            from google.cloud.compute_v1 import BulkInsertInstanceResource

            operation = self._client("InstancesClient").bulk_insert_unary(
                request={
                    "project": where.project,
                    "zone": where.zone,
                    "bulk_insert_instance_resource_resource": (
                        BulkInsertInstanceResource.from_json(json.dumps(body))
                    ),
                    "request_id": request_id,
                },
                **self._options(),
            )
            return operation_of(where, operation)

    def get(self, place: Place) -> Machine:
        """Return an instance, also one that lists lack yet. `NotFoundError`: there is none."""
        with self._calling(f"look at {place}", is_about_instance=True):
            instance = self._client("InstancesClient").get(
                request=self._named(place), **self._options()
            )
            return machine_of(instance)

    def list_labelled(self, key: str, value: str) -> list[Machine]:
        """Return all instances with a label, of all zones and pages.

        Raises:
            TransientError: A zone is missing from the answer.
        """
        with self._calling("list instances"):
            pager = self._client("InstancesClient").aggregated_list(
                request={
                    "project": self._project,
                    "filter": f'labels.{key} = "{value}"',
                    "max_results": _PAGE,
                },
                **self._options(),
            )
            return [machine for page in pager.pages for machine in self._machines(page)]

    def delete(self, place: Place) -> Operation:
        """Ask for the end of an instance and its disk."""
        with self._calling(f"delete {place}", is_about_instance=True):
            operation = self._client("InstancesClient").delete_unary(
                request=self._named(place), **self._options()
            )
            return operation_of(place, operation)

    def set_metadata(self, place: Place, content: Mapping[str, object]) -> Operation:
        """Replace an instance's metadata, if it is still what `content`'s fingerprint says."""
        with self._calling(f"set the metadata of {place}", is_about_instance=True):
            from google.cloud.compute_v1 import Metadata

            operation = self._client("InstancesClient").set_metadata_unary(
                request={
                    **self._named(place),
                    "metadata_resource": Metadata.from_json(json.dumps(content)),
                },
                **self._options(),
            )
            return operation_of(place, operation)

    def wait(self, operation: Operation, *, limit_s: float) -> Operation:
        """Return the operation when it is done, or as it was when `limit_s` is over."""
        from requests.exceptions import ReadTimeout

        try:
            return self._asked(operation, "wait", limit_s)
        except TransientError as err:
            if isinstance(err.__cause__, ReadTimeout):
                return operation  # Google answers when it is done, or after two minutes
            raise

    def look_at(self, operation: Operation) -> Operation:
        """Return the operation as it is now."""
        return self._asked(operation, "get", self._timeout_s)

    def _asked(self, operation: Operation, verb: str, timeout_s: float) -> Operation:
        with self._calling(f"follow {operation.name}"):
            answer = getattr(self._client("ZoneOperationsClient"), verb)(
                request={
                    "project": operation.project,
                    "zone": operation.zone,
                    "operation": operation.name,
                },
                **self._options(timeout_s),
            )
            return operation_of(operation, answer)

    # --- the SDK --------------------------------------------------------------------------

    def _client(self, kind: str) -> Any:
        """Return a client of the SDK, made when it is first needed."""
        with self._lock:
            if not self._made:
                self._made = self._new_clients()
            return self._made[kind]

    def _new_clients(self) -> dict[str, Any]:
        import google.auth
        from google.api_core.client_options import ClientOptions
        from google.cloud.compute_v1 import InstancesClient, ZoneOperationsClient

        options = ClientOptions(api_endpoint=self._endpoint) if self._endpoint else None
        try:
            # Found once for both, so that a token is fetched once for both.
            credentials, _ = google.auth.default(default_scopes=_SCOPES)
        except (AttributeError, TypeError, ValueError) as err:  # a file of another content
            raise self._error(AuthError, err, "find credentials") from err
        return {
            kind.__name__: kind(credentials=credentials, client_options=options)
            for kind in (InstancesClient, ZoneOperationsClient)
        }

    def _options(self, timeout_s: float | None = None) -> dict[str, Any]:
        return {"retry": None, "timeout": self._timeout_s if timeout_s is None else timeout_s}

    def _named(self, place: Place) -> dict[str, str]:
        return {"project": place.project, "zone": place.zone, "instance": place.name}

    @contextmanager
    def _calling(self, doing: str, *, is_about_instance: bool = False) -> Iterator[None]:
        """Turn everything that the SDK raises into errors of the port.

        `NotFoundError` is a proof of an instance's end, so nothing else that is missing may
        look like it: an image, an operation, or the whole project.
        """
        try:
            from google.api_core.exceptions import GoogleAPICallError
            from google.auth.exceptions import GoogleAuthError, TransportError
            from google.protobuf.json_format import ParseError
            from requests.exceptions import RequestException
        except ImportError as err:
            text = "google-cloud-compute is not installed; pip install 'hybrid-burst[gcp]'"
            raise self._error(AuthError, err, doing, text) from err
        try:
            yield
        except GoogleAPICallError as err:
            failure = _failure(err)
            kind = kind_of(failure)
            if kind is NotFoundError and not (is_about_instance and _is_instance(failure)):
                kind = InvalidRequestError
            raise error(kind, failure, provider=self.provider, doing=doing) from err
        except (RequestException, TransportError) as err:
            raise self._error(TransientError, err, doing) from err
        except GoogleAuthError as err:
            kind = TransientError if err.retryable else AuthError
            raise self._error(kind, err, doing) from err
        except (ParseError, ValueError) as err:
            # A page in place of an answer, or an answer that makes no sense.
            raise self._error(TransientError, err, doing) from err

    def _error(
        self, kind: type[ProviderError], err: Exception, doing: str, text: str = ""
    ) -> ProviderError:
        failure = Failure(type(err).__name__, text or str(err))
        return error(kind, failure, provider=self.provider, doing=doing)

    def _machines(self, page: Any) -> Iterator[Machine]:
        """Yield the instances of a page. Raises `TransientError` when a zone is missing."""
        missing = list(page.unreachables)
        if page.warning.code in _INCOMPLETE:
            missing.append(page.warning.message)
        for scope, content in page.items.items():
            if content.warning.code in _INCOMPLETE:
                missing.append(scope)
            for instance in content.instances:
                yield machine_of(instance)
        if missing:
            failure = Failure("UNREACHABLE", f"the list lacks {', '.join(missing)}")
            raise error(TransientError, failure, provider=self.provider, doing="list instances")


def _is_instance(failure: Failure) -> bool:
    return _PLACE_ONLY.search(failure.message) is None


def _failure(err: Any) -> Failure:
    """Return an HTTP error in Google's words; an error page has no reason."""
    details = [item for item in err.errors or () if isinstance(item, Mapping)]
    reasons = [str(item["reason"]) for item in details if item.get("reason")]
    return Failure(next(iter(reasons), ""), str(err.message), int(err.code or 0))
