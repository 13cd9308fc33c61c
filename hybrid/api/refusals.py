"""Every error answer has one shape: `{"error": {"kind": ..., "message": ...}}`."""

from __future__ import annotations

from collections.abc import Sequence

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic_core import ErrorDetails
from starlette.exceptions import HTTPException

from hybrid.core.errors import (
    ClusterError,
    ConfigError,
    FleetError,
    HybridError,
    IllegalTransitionError,
    JobError,
    LedgerError,
    NotFoundError,
    ThrottledError,
    TransientError,
)

_ENVELOPE = ("body", "query", "path", "spec")

log = structlog.get_logger(__name__)

_STATUS_BY_ERROR: Sequence[tuple[type[HybridError], int]] = (
    (ConfigError, 400),
    (JobError, 404),
    (NotFoundError, 404),
    (LedgerError, 503),
    (ClusterError, 503),
    (FleetError, 503),
    (ThrottledError, 503),
    (TransientError, 503),
    (IllegalTransitionError, 500),
    (HybridError, 409),
)


class RefusedJobError(HybridError):
    """Ray will not take this job; unlike a plain `JobError` it is not about an unknown id."""


def refusal(status: int, kind: str, message: str) -> JSONResponse:
    """Return an error answer."""
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else None
    body = {"error": {"kind": kind, "message": message}}
    return JSONResponse(body, status_code=status, headers=headers)


def status_of(error: HybridError) -> int:
    """Return the HTTP status of an error, by the nearest class in the table."""
    return next(status for kind, status in _STATUS_BY_ERROR if isinstance(error, kind))


def install(app: FastAPI) -> None:
    """Make `app` answer every error in the one shape."""
    app.add_exception_handler(HybridError, _on_hybrid_error)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(HTTPException, _on_http_error)
    app.add_exception_handler(Exception, _on_bug)


async def _on_hybrid_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HybridError)  # noqa: S101 - registered for this class only
    kind = "JobError" if isinstance(error, RefusedJobError) else type(error).__name__
    return refusal(status_of(error), kind, str(error))


async def _on_invalid(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101 - as above
    problems = error.errors()
    is_json_broken = any(problem["type"] == "json_invalid" for problem in problems)
    text = "; ".join(_sentence(problem) for problem in problems)
    return refusal(400 if is_json_broken else 422, "ValidationError", text)


async def _on_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - as above
    message = str(error.detail)
    if error.status_code == 404:
        message = f"there is nothing at {request.url.path}; see /openapi.json for what there is"
    return refusal(error.status_code, "HTTPError", message)


async def _on_bug(request: Request, error: Exception) -> Response:
    log.error("request_failed", path=request.url.path, error_type=type(error).__name__)
    message = (
        f"the controller hit a bug ({type(error).__name__}) on {request.url.path}; "
        "its traceback is in controller.log, please report it"
    )
    return refusal(500, "InternalError", message)


def _sentence(problem: ErrorDetails) -> str:
    place, message = problem["loc"], problem["msg"]
    if problem["type"] != "json_invalid":
        # Where in the HTTP request it stood is no news to somebody who called a function.
        while len(place) > 1 and place[0] in _ENVELOPE:
            place = place[1:]
        message = message[:1].lower() + message[1:]
    return f"{'.'.join(str(part) for part in place)}: {message}"
