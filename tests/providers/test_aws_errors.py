"""Each failure of a call becomes the error that says what to do; credentials in every bad state."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
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
from providers.aws import errors
from providers.aws.client import AwsClient
from tests.providers.aws_cloud import AwsCloud
from tests.providers.contract import launch, live, make_spec

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        ("InsufficientInstanceCapacity", 500, CapacityError),
        ("InsufficientFreeAddressesInSubnet", 400, CapacityError),
        ("SpotMaxPriceTooLow", 400, CapacityError),
        ("VcpuLimitExceeded", 400, QuotaError),
        ("MaxSpotInstanceCountExceeded", 400, QuotaError),
        ("SomethingNewLimitExceeded", 400, QuotaError),
        ("RequestLimitExceeded", 503, ThrottledError),
        ("UnauthorizedOperation", 403, AuthError),
        ("AuthFailure", 401, AuthError),
        ("AuthFailure.ServiceLinkedRoleCreationNotPermitted", 403, AuthError),
        ("OptInRequired", 401, AuthError),
        ("PendingVerification", 400, AuthError),
        ("InvalidAMIID.NotFound", 400, InvalidRequestError),
        ("InvalidSubnetID.NotFound", 400, InvalidRequestError),
        ("InvalidParameterValue", 400, InvalidRequestError),
        ("MissingParameter", 400, InvalidRequestError),
        ("Unsupported", 400, InvalidRequestError),
        ("Thing.NotFound", 400, InvalidRequestError),
        ("InvalidInstanceID.NotFound", 400, NotFoundError),
        ("IdempotentParameterMismatch", 400, ConflictError),
        ("InternalError", 500, TransientError),
        ("Unavailable", 503, TransientError),
        ("NeverHeardOf", 500, TransientError),
    ],
)
def test_a_code_means_one_thing_to_do(code: str, status: int, kind: type[ProviderError]) -> None:
    error = errors.of_code(code, "words", provider="aws", what="ec2 x in y", status=status)

    assert type(error) is kind
    assert (error.code, error.provider) == (code, "aws")
    assert str(error).startswith(f"ec2 x in y: {code}: words")


@pytest.mark.parametrize(
    ("code", "scope"),
    [
        ("InsufficientInstanceCapacity", Scope.POOL),
        ("InsufficientFreeAddressesInSubnet", Scope.ZONE),
        ("VcpuLimitExceeded", Scope.POOL),
        ("VolumeLimitExceeded", Scope.REGION),
        ("OptInRequired", Scope.REGION),
        ("UnauthorizedOperation", Scope.POOL),
        ("ExpiredToken", Scope.ACCOUNT),
    ],
)
def test_a_failure_says_how_far_it_reaches(code: str, scope: Scope) -> None:
    assert errors.of_code(code, "words", provider="aws", what="x").scope is scope


def test_an_unknown_code_claims_nothing_about_the_outcome() -> None:
    error = errors.of_code("NeverHeardOf", "x", provider="aws", what="y", status=400)

    assert type(error) is ProviderError


def test_a_long_message_is_cut() -> None:
    error = errors.of_code("UnauthorizedOperation", "x " * 5000, provider="aws", what="y")

    assert len(str(error)) < 600
    assert "docs/fidelity/aws.md" in str(error)


# --- through boto3 ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ({"code": "RequestLimitExceeded"}, ThrottledError),
        ({"code": "InternalError"}, TransientError),
        ({"code": "NeverHeardOf", "http": 400}, ProviderError),
        ({"code": "NeverHeardOf", "http": 500}, TransientError),
        ({"code": "UnauthorizedOperation"}, AuthError),
        ({"is_html": True, "http": 502}, TransientError),
        ({"is_html": True, "http": 200}, TransientError),
        ({"is_dropped": True}, TransientError),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else None,
)
def test_a_failed_launch_is_one_call_and_one_error(
    aws: AwsCloud, fault: dict[str, Any], kind: type[ProviderError]
) -> None:
    provider, spec = aws.provider(), make_spec(aws)
    aws.controls.fail("RunInstances", **fault)

    with pytest.raises(ProviderError) as caught:
        launch(provider, spec)

    assert type(caught.value) is kind
    assert aws.controls.count("RunInstances") == 1  # nothing retries behind our back
    assert launch(provider, spec) in live(provider)


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ({"code": "RequestLimitExceeded"}, ThrottledError),
        ({"is_html": True, "http": 200}, TransientError),
    ],
    ids=["throttled", "web-page"],
)
@pytest.mark.parametrize("action", ["DescribeInstances", "TerminateInstances", "CreateTags"])
def test_every_call_is_translated(
    aws: AwsCloud, action: str, fault: dict[str, Any], kind: type[ProviderError]
) -> None:
    provider = aws.provider()
    provider_id = launch(provider, make_spec(aws))
    calls: dict[str, Callable[[], object]] = {
        "DescribeInstances": provider.list_instances,
        "TerminateInstances": lambda: provider.terminate([provider_id]),
        "CreateTags": lambda: provider.extend([provider_id], until_s=2e9),
    }
    aws.controls.fail(action, **fault)

    with pytest.raises(kind):
        calls[action]()


def test_a_server_that_is_not_there_leaves_the_outcome_open(aws: AwsCloud) -> None:
    client = AwsClient(provider="aws", endpoint_url="http://127.0.0.1:9")

    with pytest.raises(TransientError, match="EndpointConnectionError"):
        client.call("us-east-1", "ec2.describe_instances")

    client.close()


def test_a_region_that_does_not_exist_is_refused_before_any_call(aws: AwsCloud) -> None:
    with pytest.raises(InvalidRequestError, match="no region 'us-nowhere-1'"):
        aws.client.call("us-nowhere-1", "ec2.describe_instances")

    assert aws.controls.calls == []


def test_a_parameter_that_boto3_does_not_know_is_a_wrong_request(aws: AwsCloud) -> None:
    with pytest.raises(InvalidRequestError, match="ParamValidationError"):
        aws.client.call("us-east-1", "ec2.describe_instances", Filterz=[])


def test_without_boto3_it_is_said_how_to_get_it(
    aws: AwsCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "botocore.exceptions", None)

    with pytest.raises(InvalidRequestError, match="pip install"):
        aws.provider().list_instances()


# --- credentials ------------------------------------------------------------------------------


def refused(aws: AwsCloud, *, profile: str | None = None) -> ProviderError:
    """Return the error of a call with a new client, which reads the environment."""
    client = AwsClient(provider="aws", profile=profile, endpoint_url=aws.emulator.url)
    try:
        with pytest.raises(ProviderError) as caught:
            client.call("us-east-1", "ec2.describe_instances")
    finally:
        client.close()
    return caught.value


@pytest.mark.parametrize(
    ("environment", "code"),
    [
        ({"AWS_ACCESS_KEY_ID": "AKIDNOBODY"}, "AuthFailure"),
        ({"AWS_SECRET_ACCESS_KEY": "not-the-secret"}, "AuthFailure"),
        ({"AWS_ACCESS_KEY_ID": None}, "NoCredentialsError"),
        ({"AWS_ACCESS_KEY_ID": None, "AWS_SECRET_ACCESS_KEY": None}, "NoCredentialsError"),
        ({"AWS_SECRET_ACCESS_KEY": None}, "PartialCredentialsError"),
    ],
    ids=["unknown-key", "wrong-secret", "no-key", "nothing", "no-secret"],
)
def test_wrong_and_missing_credentials_stop_the_provider(
    aws: AwsCloud,
    monkeypatch: pytest.MonkeyPatch,
    environment: dict[str, str | None],
    code: str,
) -> None:
    for name, value in environment.items():
        monkeypatch.delenv(name) if value is None else monkeypatch.setenv(name, value)

    error = refused(aws)

    assert type(error) is AuthError
    assert error.code == code
    assert "not-the-secret" not in str(error)


def test_an_expired_session_stops_the_provider(
    aws: AwsCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    aws.controls.session_token = "of-today"
    monkeypatch.setenv("AWS_SESSION_TOKEN", "of-yesterday")

    error = refused(aws)

    assert type(error) is AuthError
    assert "session has expired" in str(error)


def test_temporary_credentials_work(aws: AwsCloud, monkeypatch: pytest.MonkeyPatch) -> None:
    aws.controls.session_token = "of-today"
    monkeypatch.setenv("AWS_SESSION_TOKEN", "of-today")
    client = AwsClient(provider="aws", endpoint_url=aws.emulator.url)

    answer = client.call("us-east-1", "ec2.describe_instances")

    client.close()
    assert answer["Reservations"] == []


@pytest.mark.parametrize("skew_s", [-3600.0, 3600.0])
def test_a_wrong_clock_is_named(aws: AwsCloud, skew_s: float) -> None:
    aws.controls.clock_skew_s = skew_s

    with pytest.raises(AuthError, match="clock of this machine is wrong"):
        aws.provider().list_instances()


def test_a_profile_that_does_not_exist_is_named(aws: AwsCloud) -> None:
    error = refused(aws, profile="no-such")

    assert type(error) is AuthError
    assert "no-such" in str(error)
    assert "~/.aws/config" in str(error)


def test_a_profile_of_the_configuration_is_used(
    aws: AwsCloud, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    credentials = tmp_path / "credentials"
    credentials.write_text("[burst]\naws_access_key_id = AKIDBURST\naws_secret_access_key = s\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(credentials))
    aws.controls.secrets["AKIDBURST"] = "s"
    client = AwsClient(provider="aws", profile="burst", endpoint_url=aws.emulator.url)

    client.call("us-east-1", "ec2.describe_instances")

    client.close()
