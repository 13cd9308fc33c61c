"""What Baidu's codes mean."""

from __future__ import annotations

from typing import Any

import pytest

from hybrid.core.errors import (
    AuthError,
    CapacityError,
    ConflictError,
    InvalidRequestError,
    NotFoundError,
    ProviderError,
    QuotaError,
    Scope,
    ThrottledError,
    TransientError,
)
from providers.baidu.errors import Failure, error_of


def meaning(code: str, status: int | None = 403, **own: Any) -> type[ProviderError]:
    failure = Failure(status=status, code=code, message="words")
    return type(error_of(failure, provider="baidu", action="try", own=own))


@pytest.mark.parametrize(
    ("code", "status", "error"),
    [
        # Published by Baidu: the page of common codes, pages of single calls, the Go SDK.
        ("AccessDenied", 403, AuthError),
        ("InvalidAccessKeyId", 403, AuthError),
        ("InvalidHTTPAuthHeader", 400, AuthError),
        ("SignatureDoesNotMatch", 400, AuthError),
        ("RequestExpired", 400, AuthError),
        ("OptInRequired", 403, AuthError),
        ("QualifyNotPass", 403, AuthError),
        ("IdempotentParameterMismatch", 403, ConflictError),
        ("InappropriateJSON", 400, InvalidRequestError),
        ("MalformedJSON", 400, InvalidRequestError),
        ("InvalidURI", 400, InvalidRequestError),
        ("InvalidHTTPRequest", 400, InvalidRequestError),
        ("InvalidVersion", 404, InvalidRequestError),
        ("BadRequest", 400, InvalidRequestError),
        ("Instance.NotSupportInstanceTypeException", 403, InvalidRequestError),
        ("TagExceptions.TagValueInvalid", 400, InvalidRequestError),
        ("TagExceptions.LimitExceeded", 413, QuotaError),
        ("Instance.ReleaseWhileCreating", 403, TransientError),
        ("OperationDenied", 403, TransientError),
        ("InvalidInstanceStatus", 409, TransientError),
        ("InternalError", 500, TransientError),
        ("NoSuchObject", 404, NotFoundError),
        ("InstanceNotExist", 404, NotFoundError),
        ("InvalidInstanceId.NotFound", 400, NotFoundError),
        ("Forbidden.InstanceNotFound", 403, NotFoundError),
        # Matched by Baidu's own network driver.
        ("RateLimit", 429, ThrottledError),
        ("RateLimitExceeded", 403, ThrottledError),
        ("QuotaLimitExceeded", 403, QuotaError),
        ("ExceedLimitException", 400, QuotaError),
        ("SubnetHasNoMoreIp", 403, QuotaError),
        # Guessed.
        ("Instance.SoldOut", 403, CapacityError),
        ("Instance.ResourceNotEnough", 409, CapacityError),
        ("AccountBalanceNotEnough", 403, QuotaError),
        ("PaymentFailed", 403, QuotaError),
        # Not known.
        ("SomethingNew", 403, ProviderError),
        ("SomethingNew", 404, ProviderError),
        ("SomethingNew", 429, ThrottledError),
        ("SomethingNew", 500, TransientError),
        ("", 403, TransientError),
        ("", 404, TransientError),
        ("", 429, ThrottledError),
        ("", None, TransientError),
    ],
)
def test_a_code_means_what_to_do(code: str, status: int | None, error: type[ProviderError]) -> None:
    assert meaning(code, status) is error


@pytest.mark.parametrize(
    ("own", "error"),
    [
        ({"newthing": "capacity"}, CapacityError),
        ({"Thing": "quota"}, QuotaError),
        ({"WORDS": "throttled"}, ThrottledError),  # in the message
        ({"other": "capacity"}, ProviderError),
    ],
)
def test_the_configuration_decides_by_part_of_a_code_or_message(
    own: dict[str, Any], error: type[ProviderError]
) -> None:
    assert meaning("NewThing", **own) is error


def test_the_configuration_comes_before_our_table() -> None:
    assert meaning("Quota.SoldOut", soldout="capacity") is CapacityError


def test_an_error_says_what_was_tried_what_baidu_said_and_what_to_do_next() -> None:
    failure = Failure(status=400, code="RequestExpired", message="Too old.", request_id="r-1")

    error = error_of(failure, provider="baidu", action="list instances", own={})

    assert str(error) == (
        "cannot list instances: Too old. (RequestExpired, HTTP 400, request r-1); compare this "
        "machine's clock with the true time"
    )
    assert (error.provider, error.code) == ("baidu", "RequestExpired")


@pytest.mark.parametrize(
    ("code", "scope"),
    [
        ("AccessDenied", Scope.ACCOUNT),
        ("QuotaLimitExceeded", Scope.REGION),
        ("PaymentFailed", Scope.ACCOUNT),
        ("SubnetHasNoMoreIp", Scope.ZONE),
        ("RateLimit", Scope.ACCOUNT),
        ("Instance.SoldOut", Scope.POOL),
        ("Instance.NotSupportInstanceTypeException", Scope.POOL),
    ],
)
def test_a_failure_says_how_far_it_reaches(code: str, scope: Scope) -> None:
    failure = Failure(status=403, code=code)

    assert error_of(failure, provider="baidu", action="try", own={}).scope is scope
